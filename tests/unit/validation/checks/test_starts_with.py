"""The check `starts_with`: the beginning of the text."""

import pytest

from tests.support.checking import passes, reason


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"starts_with": "Yes"}, "Yes."),
        ({"starts_with": "Yes", "normalize": True}, " Yes."),
        ({"starts_with": "yes", "ignore_case": True}, "YES"),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"starts_with": "Yes"}, " Yes."),
        ({"starts_with": "Yes"}, ""),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert (
        reason({"starts_with": "Paris"}, "Rome")
        == '"Paris" is not the start of the output, which begins: Rome'
    )
