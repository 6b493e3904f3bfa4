"""Selects parts of a JSON value by a JSONPath of RFC 9535, within a bounded number of steps.

A path is compiled to functions once. The value may be hostile and the path anything, so each visited node is
a step, and a path that takes too many is given up. The functions `match` and `search` of the RFC are refused:
patterns run in the sandbox only, by the check `regex`. Longer than 500 lines, because a grammar reads best in
one piece.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import ge, gt, le, lt
from typing import Any, Final

from shared.errors import ConfigError
from worker.validation.display import cut

MAX_STEPS: Final = 500_000
"""Nodes that are visited for one path, about a quarter of a second."""
MAX_PATH_CHARS: Final = 1_000
MAX_NESTED: Final = 20
"""How deep filters and parentheses may stand in each other."""
MAX_INDEX: Final = (1 << 53) - 1
REMEMBERED: Final = 256
"""Paths that a process keeps ready."""

NOTHING: Final = object()
"""What a query for a single value finds where there is none."""
_HINT: Final = "such as $.capital, $.cities[0].name or $..name"
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NAME: Final = re.compile(r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*")
_INT: Final = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER: Final = re.compile(r"(?:-?0|-?[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(r"[a-z][a-z_0-9]*")
_COMPARISON: Final = re.compile(r"==|!=|<=|>=|<|>")
_PLAIN: Final = {
    "'": re.compile(r"[^'\\\x00-\x1f]*"),
    '"': re.compile(r'[^"\\\x00-\x1f]*'),
}
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\"}
_HIGH: Final = range(0xD800, 0xDC00)
_LOW: Final = range(0xDC00, 0xE000)
"""The halves of surrogate pairs."""
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


class JsonPathError(ConfigError):
    """A text is no JSONPath, or it leads through too much of a value."""

    code = "json_path"


@dataclass(slots=True)
class _Walk:
    """One evaluation of a path: the whole value, and the steps that are left."""

    root: Any
    left: int = MAX_STEPS

    def step(self, count: int = 1) -> None:
        """Counts visited nodes."""
        self.left -= count
        if self.left < 0:
            raise JsonPathError(f"the JSONPath visits more than {MAX_STEPS:,} values")


Select = Callable[[_Walk, Any], Iterator[Any]]
"""Yields what a selector selects of one node."""
Query = Callable[[_Walk, Any], list[Any]]
"""The nodes that a query selects, from the current node."""
Value = Callable[[_Walk, Any], Any]
"""The value of an operand of a comparison, or `NOTHING`."""
Test = Callable[[_Walk, Any], bool]
"""Whether a filter keeps the current node."""


def select(path: str, value: Any) -> list[Any]:
    """Returns the nodes that a path selects.

    Raises:
        JsonPathError: it is no path, or takes too many steps.

    >>> select("$.cities[?@.size > 2].name", {"cities": [{"name": "Paris", "size": 3}, {"name": "Nice"}]})
    ['Paris']
    >>> select("$.city", {})
    []
    """
    return compile_path(path)(_Walk(value), value)


@lru_cache(REMEMBERED)
def compile_path(path: str) -> Query:
    """Compiles a path.

    Raises:
        JsonPathError: it is no path.

    >>> compile_path("$.a[")
    Traceback (most recent call last):
        ...
    worker.validation.json_path.JsonPathError: not a JSONPath: expected a selector at character 5 of $.a[
    """
    if len(path) > MAX_PATH_CHARS:
        what = f"the JSONPath has more than {MAX_PATH_CHARS:,} characters"
        raise JsonPathError(what, hint="shorten it: $..name selects a key at any depth")
    return _Parser(path).whole()


class _Parser:
    """Reads a path from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def whole(self) -> Query:
        """Reads a path from its `$` to its end."""
        self._expect("$")
        query, _ = self._query(is_absolute=True)
        if self._at < len(self._text):
            raise self._error("expected . or [")
        return query

    def _error(self, what: str) -> JsonPathError:
        where = f"at character {self._at + 1} of {cut(self._text, 60)}"
        return JsonPathError(f"not a JSONPath: {what} {where}", hint=_HINT)

    def _space(self) -> None:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _take(self, text: str) -> bool:
        """Reads this text if it is next."""
        is_next = self._text.startswith(text, self._at)
        self._at += len(text) if is_next else 0
        return is_next

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._error(f"expected {text}")

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        """Reads what matches, if it does."""
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match.group()

    def _query(self, *, is_absolute: bool) -> tuple[Query, bool]:
        """Reads the segments after `$` or `@`; also says whether they select at most one node."""
        segments: list[tuple[bool, list[Select]]] = []
        is_singular = True
        while True:
            before = self._at
            self._space()
            if self._take(".."):
                segments.append((True, self._selectors() if self._take("[") else [self._shorthand()]))
                is_singular = False
            elif self._take("["):
                start, selectors = self._at, self._selectors()
                segments.append((False, selectors))
                is_singular = is_singular and _is_single(self._text[start : self._at - 1], selectors)
            elif self._take("."):
                is_singular = is_singular and self._text[self._at : self._at + 1] != "*"
                segments.append((False, [self._shorthand()]))
            else:
                self._at = before
                return _query_of(segments, is_absolute=is_absolute), is_singular

    def _shorthand(self) -> Select:
        """Reads the name or `*` after a dot."""
        if self._take("*"):
            return _wildcard
        name = self._match(_NAME)
        if name is None:
            raise self._error("expected a name or *")
        return _by_name(name)

    def _selectors(self) -> list[Select]:
        """Reads what stands in brackets."""
        selectors = []
        while True:
            self._space()
            selectors.append(self._selector())
            self._space()
            if self._take("]"):
                return selectors
            if not self._take(","):
                raise self._error("expected , or ]")

    def _selector(self) -> Select:
        if self._take("*"):
            return _wildcard
        if self._take("?"):
            self._space()
            return _by_test(self._either())
        if self._text[self._at : self._at + 1] in ("'", '"'):
            return _by_name(self._string())
        start = self._index()
        before = self._at
        self._space()
        if not self._take(":"):
            self._at = before
            if start is None:
                raise self._error("expected a selector")
            return _by_index(start)
        self._space()
        end = self._index()
        self._space()
        step = None
        if self._take(":"):
            self._space()
            step = self._index()
        return _by_slice(start, end, 1 if step is None else step)

    def _index(self) -> int | None:
        """Reads an integer, if there is one."""
        text = self._match(_INT)
        if text is None:
            return None
        if len(text) > 17 or abs(int(text)) > MAX_INDEX:  # noqa: PLR2004 - digits of the greatest with its sign
            raise self._error("an index that is too large ends")
        return int(text)

    def _string(self) -> str:
        """Reads a text in quotes."""
        quote = self._text[self._at]
        self._at += 1
        parts = []
        while True:
            parts.append(self._match(_PLAIN[quote]) or "")
            if self._take(quote):
                return "".join(parts)
            if not self._take("\\"):
                raise self._error(f"expected {quote}")
            parts.append(self._escaped(quote))

    def _escaped(self, quote: str) -> str:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        if char == quote:
            return quote
        if char != "u":
            if char not in _ESCAPES:
                raise self._error("an unknown escape ends")
            return _ESCAPES[char]
        first = self._code_unit()
        if first in _HIGH and self._take("\\u"):
            second = self._code_unit()
            if second in _LOW:
                return chr(0x10000 + ((first - _HIGH.start) << 10) + (second - _LOW.start))
        elif first not in _HIGH and first not in _LOW:
            return chr(first)
        raise self._error("half of a surrogate pair ends")

    def _code_unit(self) -> int:
        text = self._match(_HEX)
        if text is None:
            raise self._error("expected four hexadecimal digits")
        return int(text, 16)

    def _either(self) -> Test:
        """Reads tests that are joined by `||`."""
        tests = [self._both()]
        while self._joined("||"):
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda walk, node: any(test(walk, node) for test in tests)

    def _both(self) -> Test:
        """Reads tests that are joined by `&&`."""
        tests = [self._basic()]
        while self._joined("&&"):
            tests.append(self._basic())
        return tests[0] if len(tests) == 1 else lambda walk, node: all(test(walk, node) for test in tests)

    def _joined(self, sign: str) -> bool:
        before = self._at
        self._space()
        if not self._take(sign):
            self._at = before
            return False
        self._space()
        return True

    def _basic(self) -> Test:
        """Reads a comparison, a test for existence, or one of those in parentheses."""
        self._depth += 1
        if self._depth > MAX_NESTED:
            raise self._error(f"more than {MAX_NESTED} filters and parentheses stand in each other")
        test = self._unbounded_basic()
        self._depth -= 1
        return test

    def _unbounded_basic(self) -> Test:
        is_negated = self._take("!")
        if is_negated:
            self._space()
        if self._take("("):
            self._space()
            inner = self._either()
            self._space()
            self._expect(")")
            return _negated(inner) if is_negated else inner
        if self._text[self._at : self._at + 1] in ("@", "$"):
            query, is_singular = self._filter_query()
            sign = None if is_negated else self._sign()
            if sign is None:
                return _negated(_exists(query)) if is_negated else _exists(query)
            if not is_singular:
                raise self._error("only a query for a single value can be compared, one for several ends")
            return _comparison(_only(query), sign, self._operand())
        if is_negated:
            raise self._error("expected a query or ( after !")
        first, sign = self._operand(), self._sign()
        if sign is None:
            raise self._error("expected a comparison")
        return _comparison(first, sign, self._operand())

    def _sign(self) -> str | None:
        """Reads the sign of a comparison, if there is one."""
        before = self._at
        self._space()
        sign = self._match(_COMPARISON)
        if sign is None:
            self._at = before
        else:
            self._space()
        return sign

    def _filter_query(self) -> tuple[Query, bool]:
        is_absolute = self._text[self._at] == "$"
        self._at += 1
        return self._query(is_absolute=is_absolute)

    def _operand(self) -> Value:
        """Reads a literal, a query for a single value, or a function."""
        char = self._text[self._at : self._at + 1]
        if char in ("@", "$"):
            query, is_singular = self._filter_query()
            if not is_singular:
                raise self._error("only a query for a single value can be compared, one for several ends")
            return _only(query)
        if char in ("'", '"'):
            return _constant(self._string())
        number = self._match(_NUMBER)
        if number is not None:
            return _constant(float(number) if set(number) & set(".eE") else int(number))
        word = self._match(_WORD)
        if word in _CONSTANTS and not self._text.startswith("(", self._at):
            return _constant(_CONSTANTS[word])
        if word is None:
            raise self._error("expected a value")
        return self._function(word)

    def _function(self, name: str) -> Value:
        """Reads the call of a function."""
        if name in ("match", "search"):
            raise self._error(f"{name}() is not supported, use the check regex; it ends")
        if name not in ("length", "count", "value"):
            raise self._error(f"{cut(name, 40)} is no function of RFC 9535; it ends")
        self._expect("(")
        self._space()
        if name == "length":
            value: Value = _length(self._operand())
        else:
            if self._text[self._at : self._at + 1] not in ("@", "$"):
                raise self._error("expected a query")
            query, _ = self._filter_query()
            value = _count(query) if name == "count" else _only(query)
        self._space()
        self._expect(")")
        return value


_CONSTANTS: Final[dict[str | None, Any]] = {"true": True, "false": False, "null": None}


def _is_single(text: str, selectors: list[Select]) -> bool:
    """Whether what stands in brackets is one name or one index."""
    text = text.strip()
    return len(selectors) == 1 and (text[:1] in ("'", '"') or _INT.fullmatch(text) is not None)


def _query_of(segments: list[tuple[bool, list[Select]]], *, is_absolute: bool) -> Query:
    """Makes a query of its segments, each with whether it looks at all descendants."""

    def query(walk: _Walk, node: Any) -> list[Any]:
        nodes = [walk.root if is_absolute else node]
        for is_deep, selectors in segments:
            found: list[Any] = []
            for outer in nodes:
                for each in _descendants(walk, outer) if is_deep else (outer,):
                    for selector in selectors:
                        found.extend(selector(walk, each))
            nodes = found
        return nodes

    return query


def _descendants(walk: _Walk, node: Any) -> Iterator[Any]:
    """Yields a node and all below it, each before its children."""
    stack = [node]
    while stack:
        top = stack.pop()
        walk.step()
        yield top
        stack.extend(reversed(_children(top)))


def _children(node: Any) -> list[Any]:
    if type(node) is dict:
        return list(node.values())
    return node if type(node) is list else []


def _wildcard(walk: _Walk, node: Any) -> Iterator[Any]:
    for child in _children(node):
        walk.step()
        yield child


def _by_name(name: str) -> Select:
    def selected(walk: _Walk, node: Any) -> Iterator[Any]:
        walk.step()
        if type(node) is dict and name in node:
            yield node[name]

    return selected


def _by_index(index: int) -> Select:
    def selected(walk: _Walk, node: Any) -> Iterator[Any]:
        walk.step()
        if type(node) is list and -len(node) <= index < len(node):
            yield node[index]

    return selected


def _by_slice(start: int | None, end: int | None, step: int) -> Select:
    def selected(walk: _Walk, node: Any) -> Iterator[Any]:
        if type(node) is list and step:
            for child in node[start:end:step]:
                walk.step()
                yield child

    return selected


def _by_test(test: Test) -> Select:
    def selected(walk: _Walk, node: Any) -> Iterator[Any]:
        for child in _children(node):
            walk.step()
            if test(walk, child):
                yield child

    return selected


def _exists(query: Query) -> Test:
    return lambda walk, node: bool(query(walk, node))


def _negated(test: Test) -> Test:
    return lambda walk, node: not test(walk, node)


def _constant(value: Any) -> Value:
    return lambda _walk, _node: value


def _only(query: Query) -> Value:
    def value(walk: _Walk, node: Any) -> Any:
        nodes = query(walk, node)
        return nodes[0] if len(nodes) == 1 else NOTHING

    return value


def _count(query: Query) -> Value:
    return lambda walk, node: len(query(walk, node))


def _length(operand: Value) -> Value:
    def value(walk: _Walk, node: Any) -> Any:
        found = operand(walk, node)
        return len(found) if isinstance(found, str | list | dict) else NOTHING

    return value


def _comparison(first: Value, sign: str, second: Value) -> Test:
    """Makes a test of two operands."""

    def test(walk: _Walk, node: Any) -> bool:
        one, other = first(walk, node), second(walk, node)
        if sign == "==":
            return _same(walk, one, other)
        if sign == "!=":
            return not _same(walk, one, other)
        if (_is_number(one) and _is_number(other)) or (isinstance(one, str) and isinstance(other, str)):
            return _ORDERS[sign](one, other)
        return sign in ("<=", ">=") and _same(walk, one, other)

    return test


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(walk: _Walk, one: Any, other: Any) -> bool:
    """Whether two values are equal: numbers by value, lists in order."""
    stack = [(one, other)]
    while stack:
        walk.step()
        one, other = stack.pop()
        if _is_number(one) and _is_number(other):
            if one != other:
                return False
        elif type(one) is not type(other):
            return False
        elif type(one) is dict:
            if one.keys() != other.keys():
                return False
            stack.extend((each, other[key]) for key, each in one.items())
        elif type(one) is list:
            if len(one) != len(other):
                return False
            stack.extend(zip(one, other, strict=True))
        elif one != other:
            return False
    return True
