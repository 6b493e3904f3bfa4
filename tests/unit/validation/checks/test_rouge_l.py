"""The check `rouge_l`: ROUGE-L of a reference."""

import pytest

from tests.support.checking import passes


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"rouge_l": "The cat sat down.", "at_least": 0.85}, "the cat sat"),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"rouge_l": "The cat sat down.", "at_least": 0.9}, "the cat sat"),
        ({"rouge_l": "cat", "at_least": 0.1}, ""),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False
