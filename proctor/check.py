"""Checks of an answer, one function for each kind; docs/checks.md says what they do."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

Check = Mapping[str, Any]


class Options(TypedDict, total=False):
    """What every check takes."""

    name: str
    """What reports and gates call it."""
    at_least: float
    """Score from which it passes, 0 to 1."""
    weight: float
    """How much its score counts in the mean of the case."""
    json_path: str
    """JSONPath (RFC 9535) of what is checked in the JSON of the output."""


class TextOptions(Options, total=False):
    """What comparisons of texts take as well."""

    ignore_case: bool
    """Whether letter case is ignored."""
    normalize: bool
    """Whether composed characters and white space are alike."""


def equals(text: str, **options: Unpack[TextOptions]) -> Check:
    """The output is the text."""
    return {"equals": text, **options}


def contains(text: str, **options: Unpack[TextOptions]) -> Check:
    """The text is somewhere in the output."""
    return {"contains": text, **options}


def contains_all(texts: Sequence[str], **options: Unpack[TextOptions]) -> Check:
    """Each of the texts is in the output."""
    return {"contains_all": list(texts), **options}


def contains_any(texts: Sequence[str], **options: Unpack[TextOptions]) -> Check:
    """At least one of the texts is in the output."""
    return {"contains_any": list(texts), **options}


def starts_with(text: str, **options: Unpack[TextOptions]) -> Check:
    """The output begins with the text."""
    return {"starts_with": text, **options}


def one_of(texts: Sequence[str], **options: Unpack[TextOptions]) -> Check:
    """The output is one of the texts."""
    return {"one_of": list(texts), **options}


def regex(pattern: str, **options: Unpack[Options]) -> Check:
    """The pattern matches somewhere in the output."""
    return {"regex": pattern, **options}


def json(**options: Unpack[Options]) -> Check:
    """There is JSON in the output."""
    return {"json": None, **options}


def json_schema(schema: Mapping[str, Any] | str, **options: Unpack[Options]) -> Check:
    """The JSON in the output is valid against the schema, or the one in a file."""
    return {"json_schema": schema, **options}


def json_equals(value: Any, **options: Unpack[Options]) -> Check:
    """The JSON in the output is this value."""
    return {"json_equals": value, **options}


def number(value: float, *, tolerance: float | str | None = None, **options: Unpack[Options]) -> Check:
    """The only number in the output is this one, within `tolerance`: 0.05, or "5%"."""
    return {"number": value, **({} if tolerance is None else {"tolerance": tolerance}), **options}


def length(
    *,
    min: int | None = None,  # noqa: A002 - the key's name
    max: int | None = None,  # noqa: A002 - the key's name
    unit: Literal["characters", "words"] = "characters",
    **options: Unpack[Options],
) -> Check:
    """The output has `min` to `max` characters or words."""
    bounds = {name: bound for name, bound in (("min", min), ("max", max)) if bound is not None}
    return {"length": bounds, "unit": unit, **options}


def max_tokens_used(tokens: int, **options: Unpack[Options]) -> Check:
    """Prompt and answer together have at most this many tokens."""
    return {"max_tokens_used": tokens, **options}


def max_latency_s(seconds: float, **options: Unpack[Options]) -> Check:
    """The answer took at most this many seconds."""
    return {"max_latency_s": seconds, **options}


def max_first_token_s(seconds: float, **options: Unpack[Options]) -> Check:
    """The first token, of text or reasoning, came after at most this many seconds."""
    return {"max_first_token_s": seconds, **options}


def min_tokens_per_s(tokens: float, **options: Unpack[Options]) -> Check:
    """After the first token, at least this many tokens came per second."""
    return {"min_tokens_per_s": tokens, **options}


def max_cost(usd: float, **options: Unpack[Options]) -> Check:
    """The answer cost at most this many US dollars."""
    return {"max_cost": usd, **options}


def rouge_l(reference: str, **options: Unpack[Options]) -> Check:
    """ROUGE-L with the reference reaches `at_least`."""
    return {"rouge_l": reference, **options}


def rouge_1(reference: str, **options: Unpack[Options]) -> Check:
    """The F1 of words shared with the reference reaches `at_least`."""
    return {"rouge_1": reference, **options}


def edit_distance(text: str, *, at_most: int, **options: Unpack[TextOptions]) -> Check:
    """At most so many characters have to be changed to make the output the text."""
    return {"edit_distance": {"text": text, "max": at_most}, **options}


def xml(elements: Sequence[str] = (), **options: Unpack[Options]) -> Check:
    """The output is well-formed XML, with these elements."""
    return {"xml": list(elements) or True, **options}


def finish_reason(reason: str, **options: Unpack[Options]) -> Check:
    """The answer ended for this reason, in OpenAI's words."""
    return {"finish_reason": reason, **options}


def mean_of(checks: Sequence[Check], **options: Unpack[Options]) -> Check:
    """The mean of the checks' scores reaches `at_least`."""
    return {"mean": list(checks), **options}


def levenshtein(text: str, **options: Unpack[TextOptions]) -> Check:
    """The similarity to the text, by edit distance, reaches `at_least`."""
    return {"levenshtein": text, **options}


def bleu(reference: str | Sequence[str], **options: Unpack[Options]) -> Check:
    """BLEU-4 with the reference, or the best of several, reaches `at_least`."""
    return {"bleu": reference if isinstance(reference, str) else list(reference), **options}


def tool_call(
    tool: str, *, arguments: Check | Sequence[Check] | None = None, **options: Unpack[Options]
) -> Check:
    """One of the calls is of this tool, with arguments that pass the checks."""
    if arguments is None:
        return {"tool_call": tool, **options}
    inner = arguments if isinstance(arguments, Mapping) else list(arguments)
    return {"tool_call": {"name": tool, "arguments": inner}, **options}


def no_tool_call(**options: Unpack[Options]) -> Check:
    """No tool is called."""
    return {"tool_call": "none", **options}


def tool_calls(
    tools: Sequence[str | Mapping[str, Any]],
    *,
    order: Literal["strict", "any"] = "strict",
    **options: Unpack[Options],
) -> Check:
    """Exactly these tools are called."""
    return {"tool_calls": list(tools), "order": order, **options}


def refusal(**options: Unpack[Options]) -> Check:
    """The model refuses."""
    return {"refusal": None, **options}


def no_refusal(**options: Unpack[Options]) -> Check:
    """The model does not refuse."""
    return {"no_refusal": None, **options}


def python(function: str, **options: Unpack[Options]) -> Check:
    """A function of the bench's validators file returns true, or a score that reaches `at_least`."""
    return {"python": function, **options}


def javascript(
    code: str | None = None,
    *,
    file: str | None = None,
    function: str | None = None,
    config: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> Check:
    """An expression, or a function of a file, returns true, a number above 0, or `{pass, score, reason}`."""
    named = {"file": file, **({} if function is None else {"function": function})}
    configured = {} if config is None else {"config": config}
    return {"javascript": named if code is None else code, **configured, **options}


def verdict(
    function: str | None = None,
    *,
    model: str,
    config: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> Check:
    """A function of code beside the bench, an entry of `model_configs`, says so itself."""
    configured = {} if config is None else {"config": config}
    return {"verdict": function, "model": model, **configured, **options}


def similar(text: str, *, model: str | None = None, **options: Unpack[Options]) -> Check:
    """The cosine of the embeddings of output and text reaches `at_least`; asks a model."""
    return {"similar": text, **({} if model is None else {"model": model}), **options}


class JudgeOptions(Options, total=False):
    """What checks take as well that judges grade."""

    model: str
    """The judge."""
    models: Sequence[str]
    """A panel of judges instead."""
    prompt: str
    """What they are asked, in your own words."""


def rubric(
    criterion: str, *, choices: Mapping[str, float] | None = None, **options: Unpack[JudgeOptions]
) -> Check:
    """A judge's score for the criterion, or that of its choice, reaches `at_least`."""
    return _graded({"rubric": criterion, **({} if choices is None else {"choices": dict(choices)})}, options)


def factuality(
    expected: str, *, scores: Mapping[str, float] | None = None, **options: Unpack[JudgeOptions]
) -> Check:
    """A judge finds that the facts agree with an expected statement."""
    return _graded({"factuality": expected, **({} if scores is None else {"scores": dict(scores)})}, options)


def closed_qa(criterion: str, **options: Unpack[JudgeOptions]) -> Check:
    """A judge says that the output, as an answer to the input, meets the criterion."""
    return _graded({"closed_qa": criterion}, options)


def select_best(criterion: str, **options: Unpack[JudgeOptions]) -> Check:
    """A judge chooses it as the best of the answers of all models and prompts to its case."""
    return _graded({"select_best": criterion}, options)


def g_eval(criteria: str, *, steps: Sequence[str] = (), **options: Unpack[JudgeOptions]) -> Check:
    """A judge's grade by evaluation steps, which it writes first where none are given."""
    return _graded({"g_eval": {"criteria": criteria, "steps": list(steps)} if steps else criteria}, options)


def answer_relevance(question: str | None = None, **options: Unpack[JudgeOptions]) -> Check:
    """The share of its statements that address the question, which is the input or given."""
    return _graded({"answer_relevance": question}, options)


def context_recall(context: str | Sequence[str], expected: str, **options: Unpack[JudgeOptions]) -> Check:
    """The share of the statements of an expected answer that the context has."""
    texts = context if isinstance(context, str) else list(context)
    return _graded({"context_recall": {"context": texts, "expected": expected}}, options)


def context_precision(context: str | Sequence[str], **options: Unpack[JudgeOptions]) -> Check:
    """The useful passages of the context come first."""
    return _graded({"context_precision": context if isinstance(context, str) else list(context)}, options)


def context_faithfulness(context: str | Sequence[str], **options: Unpack[JudgeOptions]) -> Check:
    """The share of the claims of the output that follow from the context."""
    return _graded({"context_faithfulness": context if isinstance(context, str) else list(context)}, options)


def _graded(check: Check, options: JudgeOptions) -> Check:
    """A check that judges grade, with its options; a panel is a list, as in bench files."""
    models = {"models": list(options["models"])} if "models" in options else {}
    return {**check, **options, **models}


def all_of(checks: Sequence[Check], **options: Unpack[Options]) -> Check:
    """Each of the checks passes."""
    return {"all": list(checks), **options}


def any_of(checks: Sequence[Check], **options: Unpack[Options]) -> Check:
    """At least one of the checks passes."""
    return {"any": list(checks), **options}


def not_(check: Check, **options: Unpack[Options]) -> Check:
    """The check does not pass."""
    return {"not": check, **options}
