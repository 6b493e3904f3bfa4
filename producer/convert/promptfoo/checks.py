"""Translates assertions into checks."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from producer.convert.nunjucks import KnownVariables, is_nunjucks, to_jinja
from producer.convert.promptfoo.csv_rows import TYPES, split_texts
from producer.convert.promptfoo.functions import Functions, to_transform
from producer.convert.promptfoo.graders import Graders
from producer.convert.promptfoo.patterns import to_python
from producer.convert.promptfoo.prompt_templates import messages_in
from producer.convert.promptfoo.providers import script_of
from producer.convert.promptfoo.suite import Assertion
from producer.convert.promptfoo.written import (
    WrittenElements,
    WrittenMessage,
    WrittenTool,
    read,
)
from producer.load.yaml_text import parse_yaml
from shared.errors import WrongInput
from shared.templates.template_rendering import render
from worker.validation.checks import CHECK_KINDS, AsksJudges

Check = dict[str, Any]
"""A check as a bench has it."""
_ELEMENTS: Final = (
    "html|head|body|div|span|p|a|img|h[1-6]|ul|ol|li|table|tr|td|th|form|input|button|script|style|link|meta"
    "|br|hr"
)
_OUTPUT: Final = re.compile(r"\{\{\s*output\s*\}\}")
_VARIABLE: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_CODE: Final = re.compile(r"\{%|\{\{(?!\s*\w+\s*\}\})")
_AS_THE_PROMPT: Final = "as the prompt says"
"""The rubric of an assertion that has only a prompt."""
_DEFAULT_THRESHOLDS: Final = {"similar": 0.75, "similar:cosine": 0.75, "bleu": 0.5, "rouge-n": 0.75}
DEFAULT_EMBEDDER: Final = "openai/text-embedding-3-large"
"""What promptfoo compares meanings with if nothing else is named."""
DEFAULT_GRADER: Final = "openai/gpt-5.5-2026-04-23"
"""What promptfoo 0.121 grades with if nothing else is named and a key of OpenAI is set."""
_ELSEWHERE: Final[Mapping[str, str]] = {
    "moderation": "no check asks a moderation service",
    "guardrails": "answers of guardrails are not recorded",
    "classifier": "no check asks a classifier",
    "webhook": "checks call no addresses of yours: use `javascript`, or an installed check",
    "pi": "no check asks this service",
    "search-rubric": "judges do not search: use `rubric`",
    "agent-rubric": "judges run no tools: use `rubric`",
    "is-sql": "no check reads SQL: use `javascript` or `regex`",
    "contains-sql": "no check reads SQL: use `javascript` or `regex`",
    "gleu": "no check computes it: use `bleu` or `rouge_1`",
    "meteor": "no check computes it: use `rouge_l` or `similar`",
    "ruby": "checks are not written in Ruby: use `javascript` or `python`",
    "perplexity": "log probabilities are not recorded",
    "perplexity-score": "log probabilities are not recorded",
    "max-score": "no check compares scores of answers: `proctor compare RUN --by model` does",
    "skill-used": "skills of agents are not recorded",
    "conversation-relevance": "no check reads a whole conversation: use `rubric`",
}
"""Types without a counterpart, and why."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What the assertions of a test are translated with."""

    variables: KnownVariables
    """The values of variables in all cases that share the check."""
    values: Mapping[str, Any] | None
    """The variables of the only case; None: it is shared by several."""
    grader: Any = None
    """Who grades."""
    rubric_prompt: Any = None
    """How the grader is asked."""
    tools: Sequence[Any] = ()
    """Tools that the models are offered."""
    functions: Functions = field(default_factory=Functions)
    """Functions of the validators file."""
    graders: Graders = field(default_factory=Graders)
    """The judges of the bench."""
    is_averaged: bool = False
    """Whether the mean score decides, so that sets count by theirs."""
    left: list[tuple[Assertion, str, str]] = field(default_factory=list)
    """What was left."""


class PerCase(Exception):  # noqa: N818 - it is no error: the check is made for each case
    """A check holds variables where checks have no templates."""


def to_check(assertion: Assertion, context: CheckContext) -> Check | None:
    """Translates an assertion.

    Args:
        assertion: the assertion.
        context: what it is translated with.

    Returns:
        The check; None where there is none, which is then listed in the context.

    Raises:
        PerCase: it needs the variables of a single case.
    """
    try:
        return _translated(assertion, context)
    except WrongInput as error:
        reason = error.args[0]
    except (ValueError, TypeError, OverflowError, AttributeError):
        reason = "its value is not of the kind that it needs"
    context.left.append((assertion, f"assertion {assertion.type}", reason))
    return None


def _translated(assertion: Assertion, context: CheckContext) -> Check | None:
    kind = assertion.type.removeprefix("not-")
    if kind == "assert-set":
        return _with_options(_set(assertion, context), assertion, context)
    make = _KINDS.get(kind)
    if make is None:
        known = kind in TYPES or kind.startswith(("trajectory:", "trace-", "promptfoo:"))
        usual = "agents' steps are not recorded" if known else "promptfoo has no such type"
        raise WrongInput(_ELSEWHERE.get(kind, usual))
    check = make(assertion, context)
    if assertion.type.startswith("not-"):
        check = {"not": check}
    return _with_options(check, assertion, context)


def _with_options(check: Check, assertion: Assertion, context: CheckContext) -> Check:
    """Adds what all assertions have."""
    if assertion.transform:
        check["transform"] = to_transform(assertion.transform, context.functions)
    if assertion.metric:
        check["name"] = _rendered(assertion.metric, context)
    if assertion.weight is not None and assertion.weight != 1:
        if assertion.weight < 0:
            raise WrongInput("its weight is negative")
        check["weight"] = _plain(assertion.weight)
        check |= {} if assertion.weight else {"at_least": 0}  # it is measured, and passes
    return check


def _set(assertion: Assertion, context: CheckContext) -> Check:
    """A set: all of them, or their mean."""
    inner = [check for each in assertion.inner if (check := to_check(each, context)) is not None]
    if not inner:
        raise WrongInput("none of its assertions has a counterpart")
    if assertion.threshold is None and not context.is_averaged:
        return {"all": inner}
    return {"mean": inner, "at_least": _plain(assertion.threshold or 0)}


def _plain(number: float) -> float | int:
    return int(number) if float(number).is_integer() else number


def _text(value: Any, context: CheckContext) -> str:
    """A text that checks take as a template."""
    text = _as_text(value)
    return to_jinja(text, context.variables) if is_nunjucks(text) else text


def _as_text(value: Any) -> str:
    """A value as JavaScript writes it as a text."""
    if value is None or value == "":
        raise WrongInput("it has no value")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        raise WrongInput("its value is no text")
    return str(value)


def _rendered(value: str, context: CheckContext) -> str:
    """A text with the variables of its case."""
    if not is_nunjucks(value):
        return value
    if context.values is None:
        raise PerCase
    return render(to_jinja(value, context.variables), context.values)


def _equals(assertion: Assertion, context: CheckContext) -> Check:
    value = assertion.value
    if isinstance(value, dict | list):
        return {"json_schema": {"const": value}, "where": "whole"}
    if value == "":
        return {"equals": ""}
    return {"equals": _text(value, context)}


def _contains(assertion: Assertion, context: CheckContext) -> Check:
    return {"contains": _text(assertion.value, context), **_case(assertion)}


def _case(assertion: Assertion) -> Check:
    return {"ignore_case": True} if assertion.type.removeprefix("not-").startswith("i") else {}


def _contains_several(assertion: Assertion, context: CheckContext) -> Check:
    value = assertion.value
    if isinstance(value, str):
        value = split_texts(_rendered(value, context))
    if not isinstance(value, list) or not value:
        raise WrongInput("it has no list of texts")
    name = "contains_any" if assertion.type.endswith("-any") else "contains_all"
    return {name: [_text(each, context) for each in value], **_case(assertion)}


def _of_text(name: str) -> Callable[[Assertion, CheckContext], Check]:
    """A check with a text."""
    return lambda assertion, context: {name: _text(assertion.value, context)}


def _at_most(name: str, unit: int) -> Callable[[Assertion, CheckContext], Check]:
    """A check with an upper bound, in so many of the assertion's units."""

    def check(assertion: Assertion, _context: CheckContext) -> Check:
        if assertion.threshold is None:
            raise WrongInput("it has no threshold")
        return {name: _plain(assertion.threshold / unit)}

    return check


def _regex(assertion: Assertion, context: CheckContext) -> Check:
    return {"regex": to_python(_rendered(_as_text(assertion.value), context))}


def _json(assertion: Assertion, context: CheckContext) -> Check:
    schema = assertion.value
    if isinstance(schema, str) and schema.strip():
        schema = parse_yaml(_rendered(schema, context))
    where = "whole" if assertion.type.endswith("is-json") else "anywhere"
    return {"json_schema" if schema else "json": schema or True, "where": where}


def _edits(assertion: Assertion, context: CheckContext) -> Check:
    most = 5 if assertion.threshold is None else int(assertion.threshold)
    return {"edit_distance": {"text": _text(assertion.value, context), "max": most}}


def _xml(assertion: Assertion, context: CheckContext) -> Check:
    """XML with elements, which are a list, or named one behind the other."""
    where = {"where": "anywhere"} if assertion.type.endswith("contains-xml") else {}
    value = read(WrittenElements, assertion.value).required_elements or assertion.value
    if isinstance(value, str):
        value = split_texts(_rendered(value, context))
    return {"xml": [str(each) for each in value] if isinstance(value, list) and value else True, **where}


def _html(assertion: Assertion, context: CheckContext) -> Check:
    """A pattern that is found where promptfoo finds HTML, but for rare forms of it."""
    del context
    if assertion.type.endswith("contains-html"):
        return {"regex": rf"(?is)<(?:{_ELEMENTS})\b|<!doctype|<[a-z][^>]*>.*</[a-z]+>"}
    return {"regex": rf"(?is)\A\s*(?!<\?xml)(?:<!doctype[^>]*>\s*)?<(?:{_ELEMENTS})\b.*>\s*\Z"}


def _word_count(assertion: Assertion, context: CheckContext) -> Check:
    value = assertion.value
    if isinstance(value, dict):
        bounds = {key: _plain(value[key]) for key in ("min", "max") if key in value}
        return {"length": bounds, "unit": "words"}
    try:
        words = _plain(float(_rendered(_as_text(value), context)))
    except ValueError:
        raise WrongInput("its value is no number") from None
    return {"length": {"min": words, "max": words}, "unit": "words"}


def _scored(name: str) -> Callable[[Assertion, CheckContext], Check]:
    """A check with a score and a threshold."""

    def check(assertion: Assertion, context: CheckContext) -> Check:
        value = assertion.value
        kind = assertion.type.removeprefix("not-")
        texts = [_text(each, context) for each in value] if isinstance(value, list) else _text(value, context)
        at_least = _DEFAULT_THRESHOLDS[kind] if assertion.threshold is None else assertion.threshold
        return {name: texts, "at_least": _plain(at_least)}

    return check


def _similar(assertion: Assertion, context: CheckContext) -> Check:
    own = _grader(assertion, context, "embedding") or DEFAULT_EMBEDDER
    values = assertion.value if isinstance(assertion.value, list) else [assertion.value]
    model = {"model": own} if own else {}
    threshold = 0.75 if assertion.threshold is None else assertion.threshold
    checks = [{"similar": _text(each, context), **model, "at_least": _plain(threshold)} for each in values]
    return checks[0] if len(checks) == 1 else {"any": checks}


def _grader(assertion: Assertion, context: CheckContext, use: str) -> str | None:
    """The judge of an assertion; None where neither it nor its test names one."""

    def leave(what: str, reason: str) -> None:
        context.left.append((assertion, what, reason))

    own = context.graders.name(assertion.provider, use, leave)
    return own or context.graders.name(context.grader, use, leave)


def _rubric(assertion: Assertion, context: CheckContext) -> Check:
    prompt = assertion.rubric_prompt or context.rubric_prompt
    value = _AS_THE_PROMPT if assertion.value is None and prompt else assertion.value
    check: Check = {"rubric": _text(value, context), **_judge(assertion, context)}
    return check | ({} if prompt is None else {"prompt": _judge_prompt(prompt)})


def _judge_prompt(written: Any) -> str:
    r"""How a judge is asked: a text, or a conversation, whose messages become one text.

    >>> _judge_prompt([{"content": "Of {{topic}}."}, {"content": "{{output}}"}])
    'Of {{ vars.topic }}.\n\n{{ output }}'
    """
    messages = messages_in(written) if isinstance(written, str) else written
    texts = [written] if messages is None else [read(WrittenMessage, each).content for each in messages]
    prompt = "\n\n".join(_as_text(each) for each in texts)
    if not _OUTPUT.search(prompt) or _CODE.search(prompt):
        raise WrongInput("its rubricPrompt is no text with {{ output }}: write `prompt`")
    own = {"output", "rubric"}
    return _VARIABLE.sub(lambda found: f"{{{{ {'' if found[1] in own else 'vars.'}{found[1]} }}}}", prompt)


def _javascript(assertion: Assertion, context: CheckContext) -> Check:
    """Code, or a function of a file; a threshold above 1 becomes a comparison, since scores end there."""
    value = str(assertion.value or "")
    options: Check = {"config": dict(assertion.config)} if assertion.config else {}
    if value.startswith("file://"):
        script = script_of(value)
        if script is None:
            raise WrongInput("its file is neither JavaScript nor TypeScript")
        try:
            check: Check = {"javascript": context.functions.script(value)}
        except WrongInput:
            check = context.functions.hosted(script)
        return {**check, **_at_least(assertion), **options}
    code = _text(value.rstrip(), context)
    if assertion.threshold is not None and assertion.threshold > 1:
        if "\n" in code:
            raise WrongInput("its threshold is above 1: compare with it in the code")
        return {"javascript": f"({code}) >= {_plain(assertion.threshold)}", **options}
    return {"javascript": code, **_at_least(assertion), **options}


def _at_least(assertion: Assertion) -> Check:
    return {} if assertion.threshold is None else {"at_least": _plain(assertion.threshold)}


def _python(assertion: Assertion, context: CheckContext) -> Check:
    """A function of the validators file, which is written beside the bench."""
    value = str(assertion.value or "")
    script = script_of(value) if value.startswith("file://") else None
    if script is not None:
        path, _, function = script.path.partition(":")
        try:
            name = context.functions.of_file(path, function or "get_assert", assertion.threshold)
        except WrongInput:
            options: Check = {"config": dict(assertion.config)} if assertion.config else {}
            return {**context.functions.hosted(script), **_at_least(assertion), **options}
        return {"python": name}
    return {"python": context.functions.of_text(_rendered(value, context), assertion.threshold)}


def _valid_call(assertion: Assertion, context: CheckContext) -> Check:
    """A call of one of the tools that models are offered, with arguments by their schemas."""
    del assertion
    calls = list[Check]()
    for tool in context.tools:
        flat = read(WrittenTool, read(WrittenTool, tool).function or tool)
        if not isinstance(flat.name, str):
            raise WrongInput("the tools of its provider are not known")
        schema = flat.parameters or flat.input_schema or {"type": "object"}
        calls.append({"tool_call": {"name": flat.name, "arguments": {"json_schema": schema}}})
    if not calls:
        raise WrongInput("its provider is offered no tools")
    return calls[0] if len(calls) == 1 else {"any": calls}


def _tool_names(assertion: Assertion, context: CheckContext) -> Check:
    """Exactly these tools; with a lower threshold some may differ, which no check says."""
    value = assertion.value
    names = split_texts(_rendered(value, context)) if isinstance(value, str) else value
    if not isinstance(names, list) or (assertion.threshold or 1) < 1:
        raise WrongInput("only exact sets of tools are checked")
    return {"tool_calls": [str(each) for each in names], "order": "any"}


def _graded(name: str) -> Callable[[Assertion, CheckContext], Check]:
    """A check by a judge with a statement."""

    def check(assertion: Assertion, context: CheckContext) -> Check:
        return {name: _text(assertion.value, context), **_judge(assertion, context)}

    return check


def _judge(assertion: Assertion, context: CheckContext) -> Check:
    """The judge of a check, and from which score it passes."""
    own = _grader(assertion, context, "text")
    return {**({"model": own} if own else {}), **_at_least(assertion)}


def is_graded_by_default(check: object) -> bool:
    """Returns whether a check, or one that it holds, names no judge and needs one.

    >>> is_graded_by_default({"not": {"rubric": "kind"}})
    True
    >>> is_graded_by_default({"rubric": "kind", "model": "m"})
    False
    """
    if isinstance(check, list):
        return any(map(is_graded_by_default, check))
    if not isinstance(check, dict):
        return False
    is_open = not check.keys() & {"model", "models"} and any(
        isinstance(CHECK_KINDS[name].asks, AsksJudges) for name in check.keys() & CHECK_KINDS.keys()
    )
    return is_open or any(is_graded_by_default(check.get(name)) for name in ("all", "any", "mean", "not"))


def _g_eval(assertion: Assertion, context: CheckContext) -> Check:
    values = assertion.value if isinstance(assertion.value, list) else [assertion.value]
    checks = [{"g_eval": _text(each, context), **_judge(assertion, context)} for each in values]
    return checks[0] if len(checks) == 1 else {"all": checks}


def _relevance(assertion: Assertion, context: CheckContext) -> Check:
    names = ("query", "question", "input", "prompt")
    query = next((each for each in names if "text" in context.variables.kinds((each,))), None)
    argument: Any = True if query is None else f"{{{{ {query} }}}}"
    return {"answer_relevance": argument, **_judge(assertion, context)}


def _context(name: str) -> Callable[[Assertion, CheckContext], Check]:
    """A check of an answer by the passages that it was made of."""

    def check(assertion: Assertion, context: CheckContext) -> Check:
        passages: Any = to_jinja("{{ context }}", context.variables)
        if assertion.context_transform:
            passages = to_transform(assertion.context_transform, context.functions)
        elif "missing" in context.variables.kinds(("context",)):
            raise WrongInput("its context is no variable of the test")
        if name == "context_recall":
            passages = {"context": passages, "expected": _text(assertion.value, context)}
        return {name: passages, **_judge(assertion, context)}

    return check


_KINDS: Final[Mapping[str, Callable[[Assertion, CheckContext], Check]]] = {
    "equals": _equals,
    "contains": _contains,
    "icontains": _contains,
    "contains-all": _contains_several,
    "contains-any": _contains_several,
    "icontains-all": _contains_several,
    "icontains-any": _contains_several,
    "starts-with": _of_text("starts_with"),
    "regex": _regex,
    "is-json": _json,
    "contains-json": _json,
    "latency": _at_most("max_latency_s", 1_000),
    "cost": _at_most("max_cost", 1),
    "word-count": _word_count,
    "bleu": _scored("bleu"),
    "rouge-n": _scored("rouge_1"),
    "levenshtein": _edits,
    "finish-reason": _of_text("finish_reason"),
    "is-xml": _xml,
    "contains-xml": _xml,
    "is-html": _html,
    "contains-html": _html,
    "similar": _similar,
    "similar:cosine": _similar,
    "llm-rubric": _rubric,
    "is-refusal": lambda _assertion, _context: {"refusal": True},
    "javascript": _javascript,
    "python": _python,
    "is-valid-openai-tools-call": _valid_call,
    "is-valid-openai-function-call": _valid_call,
    "is-valid-function-call": _valid_call,
    "tool-call-f1": _tool_names,
    "factuality": _graded("factuality"),
    "model-graded-factuality": _graded("factuality"),
    "model-graded-closedqa": _graded("closed_qa"),
    "g-eval": _g_eval,
    "select-best": _graded("select_best"),
    "answer-relevance": _relevance,
    "context-recall": _context("context_recall"),
    "context-faithfulness": _context("context_faithfulness"),
    "context-relevance": _context("context_precision"),
}
"""What translates each type."""
