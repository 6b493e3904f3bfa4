"""The check `contains_all`: several parts of the text."""

import pytest

from tests.support.checking import passes, reason


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"contains_all": ["a", "b"]}, "b a"),
        ({"contains_all": ["A", "b"], "ignore_case": True}, "aB"),
        ({"contains_all": [1]}, "21"),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"contains_all": ["a", "b"]}, "a"),
        ({"contains_all": ["a"]}, ""),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert (
        reason({"contains_all": ["Paris", "R"]}, "Rome")
        == '1 of 2 texts is missing: "Paris" in the output, which begins: Rome'
    )
