"""The check `levenshtein`: edit distance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.checking import outcome, passes
from worker.validation.checks.levenshtein import edit_distance


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"levenshtein": "kitten", "at_least": 0.5}, "sitting"),
        ({"levenshtein": "a", "at_least": 1}, "a"),
        ({"levenshtein": "", "at_least": 1}, ""),
        ({"levenshtein": "A", "ignore_case": True, "at_least": 1}, "a"),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"levenshtein": "kitten", "at_least": 0.6}, "sitting"),
        ({"levenshtein": "abc", "at_least": 0.1}, ""),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def slow_distance(first: str, second: str) -> int:
    """The textbook's table."""
    row = list(range(len(second) + 1))
    for at, char in enumerate(first, 1):
        corner, row[0] = row[0], at
        for to, other in enumerate(second, 1):
            corner, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, corner + (char != other))
    return row[-1]


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_the_distance_is_that_of_the_table(first: str, second: str) -> None:
    assert edit_distance(first, second) == slow_distance(first, second)


def test_long_texts_are_cut_and_said_to_be() -> None:
    row = outcome({"levenshtein": "ab" * 100_000, "at_least": 0}, "ba" * 500_000)
    assert row.reason.endswith("of the first 10,000 characters")
