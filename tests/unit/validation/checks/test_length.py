"""The check `length`: bounds on characters and words."""

import pytest

from tests.support.checking import passes, reason


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"length": 5}, "Paris"),
        ({"length": {"min": 5}}, "Paris"),
        ({"length": {"min": 1, "max": 2}, "unit": "words"}, "It is"),
        ({"length": {"max": 0}}, ""),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"length": 4}, "Paris"),
        ({"length": {"min": 6}}, "Paris"),
        ({"length": {"max": 1}, "unit": "words"}, "It is"),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert reason({"length": {"min": 2, "max": 4}}, "Paris") == "the output has 5 characters, expected 2 to 4"
