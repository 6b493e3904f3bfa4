"""Stages 0 and 0.5: user patterns and validators, untrusted code that runs in the sandbox."""

import re
from typing import Any, Final

from shared.contracts.case_vocabulary import pattern_error
from shared.errors import CheckUnusableError
from worker.validation.case_verdict import Finding, UntrustedRunner, failed, passed
from worker.validation.display import cut, escape_surrogates, show

MAX_KEPT_CHARS: Final = 1_000
"""Characters of a match that are kept."""
MAX_REASON_CHARS: Final = 4_000
"""Characters that are kept of the reason of a validator or a sandbox."""

RETURN_PAIR: Final = 2
"""A validator returns a verdict, or a verdict and a text."""


def find_pattern(pattern: str, text: str, sandbox: UntrustedRunner | None) -> Finding:
    r"""Searches a text, in the sandbox if there is one.

    Raises:
        CheckUnusableError: the sandbox says that the pattern cannot be searched in any text.

    >>> find_pattern("^b", "a\nb", None).detail["span"]
    [2, 3]
    """
    if sandbox is None:
        problem = pattern_error(pattern)
        if problem is not None:
            return failed(f"the pattern is no regular expression: {problem}", error="bad_pattern")
    try:
        found = re.search(pattern, text, re.MULTILINE) if sandbox is None else sandbox.search(pattern, text)
    except CheckUnusableError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever stops the search, the pattern was not found
        return _stopped(f"pattern {show(pattern)}", error)
    if found is None or found is False:
        return failed(f"pattern {show(pattern)} is nowhere in the output, which begins: {cut(text, 80)}")
    span, match = _place(found, text)
    where = f" at {span[0]}" if span else ""
    what = f": {show(match)}{where}" if match is not None else ""
    kept = None if match is None else escape_surrogates(match, MAX_KEPT_CHARS)
    return passed(f"pattern {show(pattern)} found{what}", match=kept, span=span)


def _place(found: Any, text: str) -> tuple[list[int] | None, str | None]:
    """Where a match stands, as far as it is known: a sandbox may only tell the matched text."""
    if isinstance(found, re.Match):
        return list(found.span()), found.group()
    if not isinstance(found, str):
        return None, None
    first = text.find(found)
    is_only_place = bool(found) and first >= 0 and text.find(found, first + 1) < 0
    return [first, first + len(found)] if is_only_place else None, found


def call_validator(name: str, text: str, sandbox: UntrustedRunner | None) -> Finding:
    """Calls a validator, in the sandbox only: it is code from outside.

    Raises:
        CheckUnusableError: the sandbox says that it cannot be called for any output.

    >>> call_validator("is_short", "text", None).reason
    'validator is_short was not run: there is no sandbox here'
    """
    if sandbox is None:
        return failed(f"validator {cut(name)} was not run: there is no sandbox here", error="unavailable")
    try:
        returned = sandbox.call(name, text)
    except CheckUnusableError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever stops a validator, it did not accept
        return _stopped(f"validator {cut(name)}", error)
    verdict, reason = returned, ""
    if isinstance(returned, tuple) and len(returned) == RETURN_PAIR and isinstance(returned[1], str):
        verdict, reason = returned[0], escape_surrogates(returned[1], MAX_REASON_CHARS)
    if verdict is True:
        return passed(reason or f"validator {cut(name)} accepts it", validator=name)
    if verdict is False:
        return failed(reason or f"validator {cut(name)} does not accept it", validator=name)
    reason = f"validator {cut(name)} returned {described(returned)}, which is neither a bool nor (bool, str)"
    return failed(reason, validator=name, error="bad_return")


def described(returned: object) -> str:
    """What a function in the sandbox returned, without calling any code of it.

    >>> described(0.5), described((1, 2))
    ('0.5', 'a tuple')
    """
    if returned is None or type(returned) in (bool, int, float, str):
        return show(returned)
    return f"a {type(returned).__name__}"


def _stopped(what: str, error: Exception) -> Finding:
    """The failure that an exception means."""
    reason, code = why_stopped(what, error)
    return failed(reason, error=code)


def why_stopped(what: str, error: Exception) -> tuple[str, str]:
    """What an exception means, in a sentence and a word; the sandbox names a reason, other code does not.

    >>> why_stopped("validator f", ValueError("no"))
    ('validator f raised ValueError: no', 'exception')
    """
    reason = getattr(error, "reason", None)
    text = escape_surrogates(str(error), MAX_REASON_CHARS) or type(error).__name__
    if isinstance(reason, str):
        word = "timed out" if reason == "timeout" else "could not be run"
        return f"{what} {word}: {text}", reason
    return f"{what} raised {type(error).__name__}: {text}", "exception"
