"""The checks `tool_call` and `tool_calls`: the model makes a call, or exactly these, with such arguments."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shared.contracts.checks import Check
from shared.errors import WrongInput
from worker.validation.checks.kind import (
    FAILED,
    MANY_CHECKS,
    ONE_CHECK,
    PASSED,
    Held,
    Inner,
    Label,
    Nested,
    Score,
    Subject,
    no,
    placed,
    undecided,
    yes,
)
from worker.validation.display import cut, show
from worker.validation.extraction import ExtractionError, extract_json

MAX_SHOWN_CALLS: Final = 5
NO_CALL: Final = "none"
"""The argument that asks for an answer without calls."""
CALL: Final[Sequence[Mapping[str, Any]]] = (
    {"type": "string", "minLength": 1},
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "arguments": {"anyOf": [ONE_CHECK, MANY_CHECKS]},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
)
"""JSON Schemas of a call: the name of a tool, alone or with checks of its arguments."""


def tool_call(check: Check, subject: Subject, inner: Inner) -> Score:
    """Looks for one call that matches; others may stand beside it."""
    calls = subject.answer.tool_calls
    if check.argument is None:
        return no(f"expected no tool call, found {called(calls)}") if calls else yes("no tool was called")
    tried = [(name_of(call), matches(check, call, subject, inner)) for call in calls]
    best = max((score for _, score in tried), key=lambda score: score.value or 0.0, default=None)
    is_found = best is not None and best.value == PASSED
    if open_score := undecided(((check, score) for _, score in tried), inner, is_settled=is_found):
        return open_score
    if best is None or best.value == FAILED:
        named = [score for name, score in tried if name == check.argument]
        if named:
            return no(f"found {check.argument}({{…}}): {named[0].reason}")
        return no(f"expected a call of {check.argument}, found {called(calls)}")
    return best


def matches(check: Check, call: Mapping[str, Any], subject: Subject, inner: Inner) -> Score:
    """Whether one call is the one that is asked for."""
    if name_of(call) != check.argument:
        return no(f"expected a call of {check.argument}")
    if not check.checks:
        return yes(f"{check.argument} was called")
    text = arguments_of(call)
    try:
        arguments = subject.at_node(extract_json(text).value)
    except ExtractionError as error:
        return no(error.after("no JSON in the arguments"))
    scores = [(each, inner.score(each, arguments)) for each in check.checks]
    failed = [score.reason for _, score in scores if not (score.passed or score.unavailable)]
    if open_score := undecided(scores, inner, is_settled=bool(failed)):
        return open_score
    reason = f"arguments: {'; '.join(failed) if failed else 'as expected'}"
    return Score(min(score.value or 0.0 for _, score in scores), reason, passed=not failed)


def split_call(value: Any) -> tuple[str | None, list[Held]]:
    """Takes the name of a tool and the checks of its arguments apart; `none` asks for no call.

    >>> split_call({"name": "weather", "arguments": ["json"]})
    ('weather', [Held(path=('arguments', 0), raw='json', of='', unnamed=None)])
    """
    if value == NO_CALL:
        return None, []
    call = {"name": value} if isinstance(value, str) else value
    name = call.get("name") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(name, str) or not name:
        raise WrongInput(f"a call has the name of a tool, found {show(value)}")
    if unknown := [key for key in call if key not in ("name", "arguments")]:
        raise WrongInput(f"a call has no {unknown[0]!r}", "it has `name` and `arguments`", path=(unknown[0],))
    if "arguments" not in call:
        return name, []
    checks = call["arguments"]
    if isinstance(checks, list):
        return name, [Held(("arguments", at), each) for at, each in enumerate(checks)]
    what, hint = (
        f"arguments are checked by a check, found {show(checks)}",
        "write `arguments: {json_equals: {…}}`",
    )
    return name, [Held(("arguments",), checks, unnamed=WrongInput(what, hint))]


def join_call(name: str | None, checks: Sequence[Any]) -> Any:
    """Writes a call of a tool.

    >>> join_call("weather", ["json"]), join_call(None, [])
    ({'name': 'weather', 'arguments': ['json']}, 'none')
    """
    if name is None:
        return NO_CALL
    return {"name": name, "arguments": list(checks)} if checks else {"name": name}


def tool_call_title(check: Check, label: Label) -> str:
    """Names the call with the checks of its arguments."""
    return f"{placed(check)}: {call_of(check, label)}"


def call_of(check: Check, label: Label) -> str:
    """Names a call that is asked for.

    >>> call_of(Check("tool_call", "weather", checks=(Check("contains", "Paris"),)), lambda each: each.check)
    'weather(contains)'
    """
    tool = check.argument or NO_CALL
    return f"{tool}({', '.join(map(label, check.checks))})" if check.checks else tool


TOOL_CALL: Final = Nested(
    tool_call, split_call, join_call, {"anyOf": [{"const": NO_CALL}, *CALL]}, has_own_scores=False
)


def name_of(call: Mapping[str, Any]) -> str:
    """The name of the function that a call names.

    >>> name_of({"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}})
    'weather'
    """
    function = call.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""


def arguments_of(call: Mapping[str, Any]) -> str:
    """The arguments of a call, as the model wrote them."""
    function = call.get("function")
    text = function.get("arguments") if isinstance(function, Mapping) else None
    return text if isinstance(text, str) else ""


def called(calls: Any) -> str:
    """Names calls.

    >>> called([]), called([{"function": {"name": "a", "arguments": "{}"}}])
    ('none', 'a({})')
    """
    shown = [f"{cut(name_of(call), 60)}({cut(arguments_of(call), 80)})" for call in calls[:MAX_SHOWN_CALLS]]
    more = f" and {len(calls) - len(shown)} more" if len(calls) > len(shown) else ""
    return (", ".join(shown) + more) if shown else "none"


ONE: Final = "tool_call"
"""The kind of each of its checks."""


def tool_calls(check: Check, subject: Subject, inner: Inner) -> Score:
    """Compares all calls; with `order: any` each expected one is paired with a call of its own."""
    calls, wanted = subject.answer.tool_calls, check.checks
    if len(calls) != len(wanted):
        return no(f"expected {len(wanted)} calls ({_names(wanted)}), found {len(calls)}: {called(calls)}")
    is_strict = check.options.get("order", "strict") == "strict"
    return (_in_order if is_strict else _in_any_order)(wanted, subject, inner)


def _in_order(wanted: Sequence[Check], subject: Subject, inner: Inner) -> Score:
    """Compares each call with the one that is expected at its place."""
    calls, names = subject.answer.tool_calls, _names(wanted)
    found = [matches(each, call, subject, inner) for each, call in zip(wanted, calls, strict=True)]
    wrong = next(
        ((at, score) for at, score in enumerate(found, 1) if not (_is_match(score) or score.unavailable)),
        None,
    )
    named = ((each, score) for each, score in zip(wanted, found, strict=True))
    if open_score := undecided(named, inner, is_settled=wrong is not None):
        return open_score
    if wrong is None:
        return yes(f"the calls are {names}, in this order")
    at, score = wrong
    why = f"call {at} is {cut(name_of(calls[at - 1]), 60)}({{…}}): {score.reason}"
    return no(f"{why}; expected {names} in this order, found {called(calls)}")


def _in_any_order(wanted: Sequence[Check], subject: Subject, inner: Inner) -> Score:
    """Compares each call with all that are expected."""
    calls, names = subject.answer.tool_calls, _names(wanted)
    table = [[matches(each, call, subject, inner) for call in calls] for each in wanted]
    is_paired = paired([[_is_match(score) for score in row] for row in table]) == len(wanted)
    every = ((each, score) for each, row in zip(wanted, table, strict=True) for score in row)
    if open_score := undecided(every, inner, is_settled=is_paired):
        return open_score
    if is_paired:
        return yes(f"the calls are {names}")
    return no(f"expected {names} in any order, found {called(calls)}")


def paired(matches_of: list[list[bool]]) -> int:
    """How many rows can have a column of their own (Kuhn's augmenting paths).

    >>> paired([[True, True], [True, False]]), paired([[True, False], [True, False]])
    (2, 1)
    """
    owner: dict[int, int] = {}

    def find(row: int, tried: set[int]) -> bool:
        for column, is_match in enumerate(matches_of[row]):
            if is_match and column not in tried:
                tried.add(column)
                if column not in owner or find(owner[column], tried):
                    owner[column] = row
                    return True
        return False

    return sum(find(row, set()) for row in range(len(matches_of)))


def _names(wanted: Sequence[Check]) -> str:
    return ", ".join(each.argument for each in wanted)


def _is_match(score: Score) -> bool:
    """Whether a call is the expected one."""
    return bool(score.value) if score.passed is None else score.passed


def split_calls(value: Any) -> tuple[None, list[Held]]:
    """Takes a list of calls apart; a tool may be called `none`."""
    if not isinstance(value, list):
        raise WrongInput(f"tool_calls takes a list of calls, found {show(value)}")
    calls = ({"name": NO_CALL} if call == NO_CALL else call for call in value)
    return None, [Held((at,), call, ONE) for at, call in enumerate(calls)]


def tool_calls_title(check: Check, label: Label) -> str:
    """Names the calls."""
    calls = ", ".join(call_of(each, label) for each in check.checks)
    return f"{placed(check)}: {calls}" if calls else placed(check)


TOOL_CALLS: Final = Nested(
    tool_calls,
    split_calls,
    join=lambda _, checks: [each[ONE] for each in checks],
    schema={"type": "array", "items": {"anyOf": CALL}},
    has_own_scores=False,
)
