"""The check `one_of`: the whole text, out of a list."""

import pytest

from tests.support.checking import passes, reason


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"one_of": ["yes", "no"]}, "no"),
        ({"one_of": ["yes", "no"], "ignore_case": True}, "No"),
        ({"one_of": [1, 2]}, "2"),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"one_of": ["yes", "no"]}, "No"),
        ({"one_of": ["yes", "no"]}, "no."),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert (
        reason({"one_of": ["Paris", "Berlin"]}, "Rome") == 'expected one of "Paris", "Berlin", found "Rome"'
    )
