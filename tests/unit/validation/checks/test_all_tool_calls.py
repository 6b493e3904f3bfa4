"""The check `tool_calls`: all calls of an answer, in this order or in any."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.checking import call, outcome
from worker.validation.checks import Answer
from worker.validation.checks.called_tools import paired

BOTH = [call("a"), call("b")]


@pytest.mark.parametrize(
    ("check", "calls", "expected"),
    [
        ({"tool_calls": ["a", "b"]}, BOTH, True),
        ({"tool_calls": ["b", "a"]}, BOTH, False),
        ({"tool_calls": ["b", "a"], "order": "any"}, BOTH, True),
        ({"tool_calls": ["a"]}, BOTH, False),
        ({"tool_calls": ["a", "b", "b"], "order": "any"}, BOTH, False),
        ({"tool_calls": ["a", "a"], "order": "any"}, BOTH, False),
        ({"tool_calls": []}, [], True),
        ({"tool_calls": []}, BOTH, False),
        ({"tool_calls": [{"name": "a", "arguments": {"json_equals": {"x": 1}}}, "b"]}, BOTH, False),
        (
            {"tool_calls": ["a", {"name": "a", "arguments": {"json_equals": {}}}], "order": "any"},
            [call("a", "{}"), call("a", '{"x": 1}')],
            True,
        ),
    ],
)
def test_calls_are_compared(check: object, calls: list[dict[str, object]], *, expected: bool) -> None:
    assert outcome(check, answer=Answer(tool_calls=calls)).passed is expected


@given(
    st.integers(0, 4).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_the_pairing_is_the_largest(table: list[list[bool]]) -> None:
    size = len(table)
    best = max(
        sum(table[row][column] for row, column in enumerate(order)) for order in permutations(range(size))
    )
    assert paired(table) == best
