"""The check `javascript`: an expression, the body of a function, or a file judges the output, in the sandbox.

What may be returned, and when it passes, is as promptfoo has it.
"""

import json
from math import isfinite
from typing import Any, Final

import msgspec

from shared.contracts.checks import Check
from shared.contracts.transform_config import script_of
from shared.errors import CheckUnusableError
from worker.validation.case_verdict import CheckSandbox, Returned
from worker.validation.checks.kind import FAILED, PASSED, Label, Score, Subject, no, titled
from worker.validation.checks.python import context_of, stopped
from worker.validation.display import escape_surrogates, show

MAX_PARTS: Final = 20
"""Results of parts (`componentResults`) that are kept."""
MAX_SHOWN: Final = 200
"""Characters of their reasons."""
WANTED: Final = "which is neither true or false, a finite number, nor {pass, score, reason}"
JAVASCRIPT_OPTIONS: Final = {"config": dict[str, Any]}


def javascript_title(check: Check, _label: Label) -> str:
    """Names a check after its code, or its file."""
    written = check.argument
    if isinstance(written, str):
        return titled(check, written)
    function = f":{written['function']}" if "function" in written else ""
    return titled(check, written["file"] + function)


def javascript(check: Check, subject: Subject) -> Score:
    """Calls a function of `output` and `context`.

    Raises:
        CheckUnusableError: JavaScript cannot be run here.

    >>> javascript(Check("javascript", "true"), Subject("text")).reason
    'JavaScript was not run: there is no sandbox here'
    """
    sandbox = subject.sandbox
    if not isinstance(sandbox, CheckSandbox):
        return no("JavaScript was not run: there is no sandbox here", error="unavailable")
    try:
        returned = sandbox.script(script_of(check.argument), request_of(subject, check.options.get("config")))
    except CheckUnusableError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever stops a script, it did not accept
        return stopped("JavaScript", error)
    return score_of(returned, check.at_least)


def request_of(subject: Subject, config: dict[str, Any] | None = None) -> str:
    """Writes what a script is called with, as JSON."""
    context = msgspec.json.encode(javascript_context(subject, config)).decode()
    return f'{{"output": {json.dumps(subject.given)}, "context": {context}}}'


def javascript_context(subject: Subject, config: dict[str, Any] | None) -> dict[str, Any]:
    """What a function receives beside the output, with the keys that promptfoo has."""
    answer = subject.answer
    return context_of(subject) | {
        "prompt": subject.input,
        "test": {"vars": subject.vars, "metadata": subject.metadata},
        "config": config or {},
        "providerResponse": {
            "cost": answer.cost_usd,
            "latencyMs": None if answer.latency_s is None else answer.latency_s * 1000,
            "tokenUsage": {"total": answer.tokens},
        },
    }


def score_of(returned: Returned, at_least: float | None) -> Score:
    """Reads what a script returned; a score outside of 0 to 1 counts as the nearer of the two.

    >>> score_of(Returned("number", 3), None)[:2], score_of(Returned("number", 0), None).passed
    ((1.0, 'JavaScript returned 3'), False)
    >>> score_of(Returned("object", {"pass": True, "score": 0.2, "reason": "short"}), 0.5).passed
    True
    """
    value, reason, detail = returned.value, "", dict[str, Any]()
    match returned:
        case Returned("boolean", bool(passed)):
            value = PASSED if passed else FAILED
        case Returned("number") if _is_number(value):
            passed = value > 0 if at_least is None else value >= at_least
        case Returned(_, {"pass": bool(passed), "score": score, "reason": str(reason)}) if _is_number(score):
            value, detail = score, _parts(value.get("componentResults"))
        case _:
            what = returned.type if value is None and returned.type != "object" else show(value)
            return no(f"JavaScript returned {what}, {WANTED}", error="bad_return")
    reason = reason or f"JavaScript returned {show(returned.value)}"
    return Score(min(max(float(value), FAILED), PASSED), reason, detail, passed, is_final=True)


def _parts(results: Any) -> dict[str, Any]:
    r"""Keeps of the results of parts what every result has; anything else may be nested without end.

    >>> _parts([{"pass": True, "score": 1, "reason": "a\ud800", "more": [[]]}, 5])
    {'parts': [{'pass': True, 'score': 1, 'reason': 'a\\ud800'}]}
    """
    found = list[dict[str, Any]]()
    for each in results[:MAX_PARTS] if isinstance(results, list) else ():
        match each:
            case {"pass": bool(passed), "score": score, "reason": str(reason)} if _is_number(score):
                found.append({"pass": passed, "score": score, "reason": escape_surrogates(reason, MAX_SHOWN)})
    return {"parts": found} if found else {}


def _is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return type(value) in (int, float) and isfinite(value)
