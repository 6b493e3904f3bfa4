"""The check `regex` and stage 0: a pattern matches somewhere in the output, and runs in the sandbox."""

import re
from typing import Annotated, Any, Final

from pydantic import AfterValidator, StringConstraints
from pydantic_core import PydanticCustomError

from shared.contracts.case_vocabulary import pattern_error
from shared.contracts.checks import Check
from shared.errors import CheckUnusableError
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.checks.python import stopped
from worker.validation.display import cut, escape_surrogates, show

MAX_KEPT_CHARS: Final = 1_000
"""Characters of a match that are kept."""


def _compiles(pattern: str) -> str:
    """Refuses what is no pattern."""
    problem = pattern_error(pattern)
    if problem is not None:
        raise PydanticCustomError("pattern", "not a regular expression: {problem}", {"problem": problem})
    return pattern


Pattern = Annotated[str, StringConstraints(min_length=1), AfterValidator(_compiles)]


def regex(check: Check, subject: Subject) -> Score:
    r"""Searches a pattern, in the sandbox if there is one; `^` and `$` match at line ends.

    Raises:
        CheckUnusableError: the sandbox cannot search the pattern in any text.

    >>> regex(Check("regex", "(?i)par.s"), Subject("It is PARIS.")).reason
    'pattern "(?i)par.s" found: "PARIS" at 6'
    >>> regex(Check("regex", "^b"), Subject("a\nb")).detail["span"]
    [2, 3]
    """
    pattern, text, sandbox = check.argument, subject.text, subject.sandbox
    if sandbox is None:
        problem = pattern_error(pattern)
        if problem is not None:
            return no(f"the pattern is no regular expression: {problem}", error="bad_pattern")
    try:
        found = re.search(pattern, text, re.MULTILINE) if sandbox is None else sandbox.search(pattern, text)
    except CheckUnusableError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever stops the search, the pattern was not found
        return stopped(f"pattern {show(pattern)}", error)
    if found is None or found is False:
        return no(f"pattern {show(pattern)} is nowhere in the output, which begins: {cut(text, 80)}")
    span, match = _place(found, text)
    where = f" at {span[0]}" if span else ""
    what = f": {show(match)}{where}" if match is not None else ""
    kept = None if match is None else escape_surrogates(match, MAX_KEPT_CHARS)
    return yes(f"pattern {show(pattern)} found{what}", match=kept, span=span)


def _place(found: Any, text: str) -> tuple[list[int] | None, str | None]:
    """Where a match stands, as far as it is known: a sandbox may only tell the matched text."""
    if isinstance(found, re.Match):
        return list(found.span()), found.group()
    if not isinstance(found, str):
        return None, None
    first = text.find(found)
    is_only_place = bool(found) and first >= 0 and text.find(found, first + 1) < 0
    return [first, first + len(found)] if is_only_place else None, found
