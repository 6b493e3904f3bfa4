"""The check `tool_call`: the model calls a tool, with arguments that pass checks; or it calls none."""

from collections.abc import Mapping
from typing import Any, Final

from shared.contracts.checks import Check
from worker.validation.checks.kind import FAILED, PASSED, Inner, Score, Subject, no, undecided, yes
from worker.validation.display import cut
from worker.validation.extraction import ExtractionError, extract_json

MAX_SHOWN_CALLS: Final = 5


def tool_call(check: Check, subject: Subject, inner: Inner) -> Score:
    """Looks for one call that matches; others may stand beside it."""
    calls = subject.answer.tool_calls
    if check.argument is None:
        return no(f"expected no tool call, found {called(calls)}") if calls else yes("no tool was called")
    tried = [(name_of(call), matches(check, call, subject, inner)) for call in calls]
    best = max((score for _, score in tried), key=lambda score: score.value or 0.0, default=None)
    is_found = best is not None and best.value == PASSED
    if open_score := undecided(((check, score) for _, score in tried), is_settled=is_found):
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
    if open_score := undecided(scores, is_settled=bool(failed)):
        return open_score
    reason = f"arguments: {'; '.join(failed) if failed else 'as expected'}"
    return Score(min(score.value or 0.0 for _, score in scores), reason, passed=not failed)


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
