"""Are two JSON values the same, whatever the order? Exact, strict about types, quick on hostile input.

This decides; `explain` says how the two differ. DeepDiff, which explains, does not decide: it takes
`[null]` for `["NONE"]`, and needs minutes for long lists that are half right.
"""

from typing import Any

from worker.validation.differences import Differences, explain
from worker.validation.interning import Interning

__all__ = ["Differences", "explain", "unordered_equal"]


def unordered_equal(first: Any, second: Any) -> bool:
    """Returns whether two JSON values are the same but for the order of keys and of list items.

    How often an item occurs counts, and so does its type: 4 is not 4.0, and true is not 1.

    >>> unordered_equal({"a": [1, {"b": 2}], "c": None}, {"c": None, "a": [{"b": 2}, 1]})
    True
    >>> unordered_equal([1, 1, 2], [1, 2, 2]), unordered_equal(4, 4.0), unordered_equal([None], ["NONE"])
    (False, False, False)
    """
    try:
        if _same_in_order(first, second):
            return True
    except RecursionError:
        pass  # the other way needs no stack
    same = Interning()
    return same.number(first) == same.number(second)


def _same_in_order(first: Any, second: Any) -> bool:
    """The usual case of a right answer, in a fifth of the time: lists in the same order."""
    kind = type(first)
    if kind is not type(second):
        return False
    if kind is dict:
        return first.keys() == second.keys() and all(
            _same_in_order(value, second[key]) for key, value in first.items()
        )
    if kind is list:
        return len(first) == len(second) and all(map(_same_in_order, first, second))
    return bool(first == second)
