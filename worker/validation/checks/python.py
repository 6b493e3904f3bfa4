"""The check `python` and stage 0.5: a function of the validators file judges the output, in the sandbox."""

from typing import Any, Final

import msgspec

from shared.contracts.checks import Check
from shared.errors import CheckUnusableError
from worker.validation.case_verdict import MAX_REASON_CHARS, CheckSandbox
from worker.validation.checks.kind import FAILED, PASSED, Score, Subject, no, yes
from worker.validation.display import cut, escape_surrogates, show

RETURN_PAIR: Final = 2
"""A function returns a verdict, or a verdict and a text."""


def python(check: Check, subject: Subject) -> Score:
    """Calls `f(output)` or `f(output, context)`: a bool, a number from 0 to 1, or (either, reason).

    Raises:
        CheckUnusableError: the sandbox cannot call it for any output.

    >>> python(Check("python", "is_short"), Subject("text")).reason
    'function is_short was not run: there is no sandbox here'
    """
    name, sandbox = check.argument, subject.sandbox
    if sandbox is None:
        return no(f"function {cut(name)} was not run: there is no sandbox here", error="unavailable")
    try:
        if isinstance(sandbox, CheckSandbox):
            returned = sandbox.check(name, subject.text, encoded_context(subject))
        else:
            returned = sandbox.call(name, subject.text)
    except CheckUnusableError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever stops a function, it did not accept
        return stopped(f"function {cut(name)}", error)
    return score_of(name, returned)


def score_of(name: str, returned: object) -> Score:
    """Reads what a function returned.

    >>> score_of("f", (0.5, "half of it"))[:2], score_of("f", True).reason
    ((0.5, 'half of it'), 'function f returned true')
    >>> score_of("f", 7).reason
    'function f returned 7, which is neither a bool nor a number from 0 to 1, alone or in (it, reason)'
    """
    verdict, reason = _verdict_and_reason(returned)
    value: float | None = None
    if verdict is True or verdict is False:
        value = PASSED if verdict else FAILED
    elif type(verdict) in (int, float) and 0 <= verdict <= 1:  # type: ignore[operator] # it is a number
        value = float(verdict)  # type: ignore[arg-type] # it is a number
    if value is None:
        wanted = "which is neither a bool nor a number from 0 to 1, alone or in (it, reason)"
        return no(f"function {cut(name)} returned {described(returned)}, {wanted}", error="bad_return")
    return Score(value, reason or f"function {cut(name)} returned {described(verdict)}")


def context_of(subject: Subject) -> dict[str, Any]:
    """What a function with a second parameter receives."""
    answer = subject.answer
    return {
        "input": subject.input,
        "vars": subject.vars,
        "expected": subject.expected,
        "tool_calls": answer.tool_calls,
        "refusal": answer.refusal,
        "finish_reason": answer.finish_reason,
        "reasoning": answer.reasoning,
        "latency_s": answer.latency_s,
        "first_token_s": answer.first_token_s,
        "tokens_per_s": answer.tokens_per_s,
        "cost_usd": answer.cost_usd,
        "tokens": answer.tokens,
        "metadata": subject.metadata,
    }


def encoded_context(subject: Subject) -> str:
    """The same as JSON."""
    return msgspec.json.encode(context_of(subject)).decode()


def validator(check: Check, subject: Subject) -> Score:
    """Calls the validator of a case, which returns a bool or (bool, reason).

    Raises:
        CheckUnusableError: the sandbox says that it cannot be called for any output.

    >>> validator(Check("validator", "is_short"), Subject("text")).reason
    'validator is_short was not run: there is no sandbox here'
    """
    name, sandbox = check.argument, subject.sandbox
    if sandbox is None:
        return no(f"validator {cut(name)} was not run: there is no sandbox here", error="unavailable")
    try:
        returned = sandbox.call(name, subject.text)
    except CheckUnusableError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever stops a validator, it did not accept
        return stopped(f"validator {cut(name)}", error)
    verdict, reason = _verdict_and_reason(returned)
    reason = escape_surrogates(reason, MAX_REASON_CHARS)
    if verdict is True:
        return yes(reason or f"validator {cut(name)} accepts it", validator=name)
    if verdict is False:
        return no(reason or f"validator {cut(name)} does not accept it", validator=name)
    reason = f"validator {cut(name)} returned {described(returned)}, which is neither a bool nor (bool, str)"
    return no(reason, validator=name, error="bad_return")


def _verdict_and_reason(returned: object) -> tuple[object, str]:
    """What a function returned, with the reason that it gave."""
    if isinstance(returned, tuple) and len(returned) == RETURN_PAIR and isinstance(returned[1], str):
        return returned
    return returned, ""


def described(returned: object) -> str:
    """What a function in the sandbox returned, without calling any code of it.

    >>> described(0.5), described((1, 2))
    ('0.5', 'a tuple')
    """
    if returned is None or type(returned) in (bool, int, float, str):
        return show(returned)
    return f"a {type(returned).__name__}"


def stopped(what: str, error: BaseException) -> Score:
    """The score that an exception means; the sandbox names a reason, other code does not.

    >>> stopped("validator f", ValueError("no")).reason
    'validator f raised ValueError: no'
    """
    reason = getattr(error, "reason", None)
    text = escape_surrogates(str(error), MAX_REASON_CHARS) or type(error).__name__
    if isinstance(reason, str):
        word = "timed out" if reason == "timeout" else "could not be run"
        return no(f"{what} {word}: {text}", error=reason)
    return no(f"{what} raised {type(error).__name__}: {text}", error="exception")
