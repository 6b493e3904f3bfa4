"""The check `regex`: a pattern matches somewhere in the output, as `regex_pattern` does."""

from typing import Annotated

from pydantic import AfterValidator, StringConstraints
from pydantic_core import PydanticCustomError

from shared.contracts.case_vocabulary import pattern_error
from shared.contracts.checks import Check
from worker.validation.case_verdict import StageOutcome
from worker.validation.checks.kind import FAILED, PASSED, Score, Subject
from worker.validation.custom_checks import find_pattern


def _compiles(pattern: str) -> str:
    """Refuses what is no pattern."""
    problem = pattern_error(pattern)
    if problem is not None:
        raise PydanticCustomError("pattern", "not a regular expression: {problem}", {"problem": problem})
    return pattern


Pattern = Annotated[str, StringConstraints(min_length=1), AfterValidator(_compiles)]


def regex(check: Check, subject: Subject) -> Score:
    """Searches a pattern, in the sandbox if there is one; `^` and `$` match at line ends.

    Raises:
        CheckUnusableError: the sandbox cannot search the pattern in any text.

    >>> regex(Check("regex", "(?i)par.s"), Subject("It is PARIS.")).reason
    'pattern "(?i)par.s" found: "PARIS" at 6'
    """
    found = find_pattern(check.argument, subject.text, subject.sandbox)
    return Score(PASSED if found.outcome is StageOutcome.PASS else FAILED, found.reason, found.detail)
