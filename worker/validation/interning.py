"""Gives numbers to JSON values: equal ones, whatever the order of their keys and items, get the same number.

An object is the set of its keys with their values' numbers, a list the sorted numbers of its items, so that
one look-up compares two of any size. No collision of hashes can make different values equal, since
dictionaries compare what they find. Nothing recurses: a value may be nested as deep as memory allows.
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
        try:
            return self._by_recursion(value)
        except RecursionError:
            return self._by_stack(value)

    def _by_recursion(self, value: Any) -> int:
        """The quick way, for what is not nested deep."""
        kind = type(value)
        if kind is str:
            return self._numbers.setdefault(value, len(self._numbers))
        if kind is not dict and kind is not list:
            return self._scalar(value)
        number = self._containers.get(id(value))
        if number is not None:
            return number
        key: object
        if kind is dict:
            key = frozenset([(name, self._by_recursion(inner)) for name, inner in value.items()])
        else:
            key = tuple(sorted([self._by_recursion(inner) for inner in value]))
        return self._keep(value, key)

    def _keep(self, value: Any, key: object) -> int:
        """Keeps a container's number, and the container: its place in memory is its name here."""
        number = self._containers[id(value)] = self._numbers.setdefault(key, len(self._numbers))
        self._alive.append(value)
        return number

    def _by_stack(self, value: Any) -> int:
        """The other way: innermost containers first, from a stack of our own."""
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
                self._of_container(top)
        return done[id(value)]

    def _of_container(self, value: Any) -> int:
        """The number of an object or list whose containers have theirs."""
        key: object
        if type(value) is dict:
            key = frozenset([(name, self._known(inner)) for name, inner in value.items()])
        else:
            key = tuple(sorted([self._known(inner) for inner in value]))
        return self._keep(value, key)

    def _known(self, value: Any) -> int:
        """The number of a value whose containers have theirs."""
        if type(value) is dict or type(value) is list:
            return self._containers[id(value)]
        return self._scalar(value)

    def _scalar(self, value: Any) -> int:
        """The number of anything else; of two NaN each has its own."""
        kind = type(value)
        if kind is str:
            return self._numbers.setdefault(value, len(self._numbers))
        key: object = (kind, value)
        if kind is int:
            if not -MAX_HASHED_INT < value < MAX_HASHED_INT:
                key = (kind, hex(value))
        elif kind is float and value != value:  # noqa: PLR0124 - what defines NaN
            key = object()
        return self._numbers.setdefault(key, len(self._numbers))
