"""Cases that a later version submitted, as a worker of this version answers them."""

from collections.abc import Sequence
from typing import Final

import pytest

from shared.contracts.checks import Check
from worker.executors.case_criteria import error_of_later_version

LATER: Final = Check("max_words", 5)
NEGATED: Final = Check("not", checks=(LATER,))


@pytest.mark.parametrize(
    ("criterion", "checks", "code", "lacks"),
    [
        ("max_words", (), "unknown_criterion", "cannot check max_words"),
        ("checks", (LATER,), "unknown_check", "has no check max_words"),
        ("checks", (NEGATED,), "unknown_check", "has no check max_words"),
    ],
)
def test_what_this_version_lacks_is_named(
    criterion: str, checks: Sequence[Check], code: str, lacks: str
) -> None:
    """The case ends in an error that names the criterion or check and what to do."""
    text = f"this version of the worker {lacks}; update all workers, then `proctor retry`"
    assert error_of_later_version([criterion], checks) == (code, text)


def test_a_case_of_this_version_is_evaluated() -> None:
    """Known criteria and checks, inner ones included, are no error."""
    inner = Check("not", checks=(Check("contains", "a"),))
    assert error_of_later_version(["expected", "checks"], [inner]) is None
