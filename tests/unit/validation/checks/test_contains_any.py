"""The check `contains_any`: one of several parts of the text."""

import pytest

from tests.support.checking import passes, reason


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"contains_any": ["a", "b"]}, "xb"),
        ({"contains_any": ["A", "b"], "ignore_case": True}, "a"),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"contains_any": ["a", "b"]}, ""),
        ({"contains_any": ["a", "b"]}, "c"),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert (
        reason({"contains_any": ["Paris", "Berlin"]}, "Rome")
        == 'none of "Paris", "Berlin" is in the output, which begins: Rome'
    )
    assert reason({"contains_any": ["Paris", "Berlin"]}, "Berlin") == '"Berlin" is in the output'
