"""Gives numbers to JSON values: equal ones, whatever the order of their keys and items, get the same number.

An object is the set of its keys with their values' numbers, a list the sorted numbers of its items, so that one
look-up compares two of any size. No collision of hashes can make different values equal, since dictionaries
compare what they find. Nothing recurses: a value may be nested as deep as memory allows.
"""

from typing import Any, Final

MAX_HASHED_INT: Final = 1 << 60
"""Larger integers are known by their digits: the hash of an integer is no secret, and a hostile output could
hold thousands that share one."""


class Interning:
    """Gives numbers to values; equal values get the same one."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._containers: dict[int, int] = {}
        self._alive: list[Any] = []

    def number(self, value: Any) -> int:
        """The number of a JSON value.

        >>> same = Interning()
        >>> same.number([1, {"a": 2, "b": 3}]) == same.number([{"b": 3, "a": 2}, 1])
        True
        >>> same.number([1]) == same.number([1.0]) or same.number([True]) == same.number([1])
        False
        """
        if type(value) is not dict and type(value) is not list:
            return self._scalar(value)
        self._alive.append(value)  # so that no other value takes its place in memory
        done = self._containers
        stack = [value]
        while stack:
            top = stack[-1]
            children = top.values() if type(top) is dict else top
            pending = [
                child
                for child in children
                if (type(child) is dict or type(child) is list) and id(child) not in done
            ]
            if pending:
                stack.extend(pending)
                continue
            stack.pop()
            if id(top) not in done:
                done[id(top)] = self._container(top)
        return done[id(value)]

    def _container(self, value: Any) -> int:
        """The number of an object or list whose containers have theirs."""
        done, scalar = self._containers, self._scalar
        key: object
        if type(value) is dict:
            key = frozenset(
                (name, done[id(inner)] if type(inner) is dict or type(inner) is list else scalar(inner))
                for name, inner in value.items()
            )
        else:
            key = tuple(
                sorted(
                    [
                        done[id(inner)] if type(inner) is dict or type(inner) is list else scalar(inner)
                        for inner in value
                    ]
                )
            )
        return self._numbers.setdefault(key, len(self._numbers))

    def _scalar(self, value: Any) -> int:
        """The number of anything else; of two NaN each has its own."""
        kind = type(value)
        key: object = (kind, value)
        if kind is int and not -MAX_HASHED_INT < value < MAX_HASHED_INT:
            key = (kind, hex(value))
        elif kind is float and value != value:  # noqa: PLR0124 - what defines NaN
            key = object()
        return self._numbers.setdefault(key, len(self._numbers))
