"""Filters rows of a table by a condition: `failed and (tag = slow or latency > 2s) and not cached`. Pure.

    condition   and, or, not, parentheses; a field alone: it has a value; a status alone: it has this one
    =  !=       one of some values, separated by commas; for numbers and times also a range, such as 0.2..0.8
    <  <=  >  >=                                         numbers, times (350ms, 2s, 3d) and money (0.01)
    ~  !~       contains, ignoring case
    values      quoted where they have spaces, brackets or commas: reason ~ "no match"

`proctor results --where` and the addresses of pages use the same language. A table declares its fields: those
of answers are in `ANSWERS`, and the list of runs has its own.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, NoReturn

from msgspec import Struct

from shared.contracts.case_vocabulary import CaseStatus
from shared.errors import UsageError

MOST_CHARS: Final = 2_000
"""Longest filter."""
MOST_NESTED: Final = 50
"""Deepest nesting of parentheses and `not`."""


class RowFacts(Struct, gc=False):
    """The facts of a row that filters test; those that its kind does not have keep their defaults."""

    status: str = ""
    outcome: str = ""
    reason: str = ""
    error: str = ""
    model: str = ""
    id: str = ""
    prompt: str = ""
    category: str = ""
    thread: str = ""
    output: str = ""
    tags: Sequence[str] = ()
    failed_checks: Sequence[str] = ()
    metadata: Mapping[str, Any] = {}
    vars: Mapping[str, Any] = {}
    score: float | None = None
    latency_ms: float | None = None
    first_token_ms: float | None = None
    cost_usd: float | None = None
    disagreement: float | None = None
    doubt: float | None = None
    attempts: float | None = None
    repeat: float | None = None
    is_cached: bool = False


Test = Callable[[Any], bool]
"""Returns whether a row matches, by the facts of its table."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A parsed filter."""

    text: str
    """As it was written."""
    fields: frozenset[str]
    """The facts that it looks at, by their names: no others need to be read from a row."""
    matches: Test
    """Whether a row meets it."""


class FilterError(UsageError):
    """A filter that cannot be read; `column`, counted from 1, is where."""

    def __init__(self, column: int, what: str, hint: str) -> None:
        super().__init__(f"filter, column {column}: {what}", hint=hint)
        self.column = column


class FilterUnit(NamedTuple):
    """How values of a numeric field are written."""

    pattern: re.Pattern[str]
    factors: Mapping[str, float]
    words: str


class Field(NamedTuple):
    """A field of a table."""

    fact: str
    """Its name among the facts of a row."""
    about: str
    unit: FilterUnit | None = None
    """Unit of a numeric field; None: the field is a text, or several."""
    values: Collection[str] = ()
    """The words that it may be; empty: any."""
    alone: Collection[str] = ()
    """Those of them that are a condition by themselves."""


class FilterTable(NamedTuple):
    """What the rows of a table can be filtered by."""

    fields: Mapping[str, Field]
    examples: str
    """Some conditions, separated by commas."""
    maps: Collection[str] = ()
    """Facts with names of the user's: `metadata.NAME`."""

    @property
    def words(self) -> dict[str, str]:
        """The words that are a condition by themselves, each with the fact that it is a value of."""
        return {word: field.fact for field in self.fields.values() for word in field.alone}


NUMBER: Final = FilterUnit(
    re.compile(r"(-?\d*\.?\d+)(%?)"), {"": 1, "%": 0.01}, "a number such as 0.8 or 80%"
)
_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TIME_PATTERN: Final = re.compile(r"(\d*\.?\d+)(ms|s|m|h|d)")
TIME: Final = FilterUnit(_TIME_PATTERN, _MS, "a time such as 350ms or 2s")
AGE: Final = FilterUnit(_TIME_PATTERN, _MS, "a time such as 30m, 2h or 3d")
MONEY: Final = FilterUnit(re.compile(r"\$?(\d*\.?\d+)()"), {"": 1}, "US dollars such as 0.01")
OUTCOMES: Final = ("passed", "failed", "error", "skipped", "decided")
STATUSES: Final = (*(str(status) for status in CaseStatus), "must", "should", "skip")
FIELDS: Final[Mapping[str, Field]] = {
    "status": Field(
        "status",
        "word of the verdict, such as `failed_regex`; of turns the decision",
        values=dict.fromkeys((*OUTCOMES, *STATUSES)),
        alone=STATUSES,
    ),
    "outcome": Field(
        "outcome",
        "`passed`, `failed`, `error`, `skipped`, `decided`",
        values=OUTCOMES,
        alone=OUTCOMES,
    ),
    "reason": Field("reason", "why it did not pass"),
    "error": Field("error", "code of an error, such as `upstream_timeout`"),
    "model": Field("model", "model that answered"),
    "id": Field("id", "id of the case, query or message"),
    "prompt": Field("prompt", "id of the prompt"),
    "category": Field("category", "category of the query"),
    "thread": Field("thread", "thread of the turn"),
    "output": Field("output", "text of the answer"),
    "tag": Field("tags", "one of the tags of the case"),
    "check": Field("failed_checks", "name of a check that failed"),
    "score": Field("score", "weighted mean of the checks", NUMBER),
    "latency": Field("latency_ms", "time of the answer", TIME),
    "first_token": Field("first_token_ms", "time to the first token", TIME),
    "cost": Field("cost_usd", "cost of the answer and its judges", MONEY),
    "disagreement": Field("disagreement", "how evenly judges are divided, from 0 to 1", NUMBER),
    "doubt": Field(
        "doubt",
        "how uncertain the verdict is, from 0 to 1: judges differ, scores are near their bounds",
        NUMBER,
    ),
    "attempts": Field("attempts", "calls that were made", NUMBER),
    "repeat": Field("repeat", "number of the repetition, from 1", NUMBER),
    "cached": Field("is_cached", "whether the answer came from the cache", values=("yes", "no")),
}
"""The fields of answers; `metadata.NAME` and `vars.NAME` join them."""
ANSWERS: Final = FilterTable(FIELDS, "failed, score < 0.5, tag = slow", ("metadata", "vars"))
_RELATIONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
}
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quoted>"[^"]*"|'[^']*')|(?P<sign>!=|!~|<=|>=|==|[=<>~(),])|(?P<word>[^\s=<>~(),"'!]+))"""
)
_SIGNS: Final = ("=", "!=", "~", "!~", *_RELATIONS)
_CONNECTIVES: Final = ("and", "or", "not")


class _Token(NamedTuple):
    """A part of a filter."""

    kind: str
    text: str
    column: int


def parse_filter(text: str, table: FilterTable = ANSWERS) -> RowFilter:
    """Reads a filter.

    Args:
        text: the filter.
        table: what its rows can be filtered by.

    Raises:
        FilterError: it cannot be read; the message names the column, and the nearest name.

    >>> slow = parse_filter("failed and (tag = slow, big or latency > 2s) and not reason ~ 'no match'")
    >>> slow.matches(RowFacts(outcome="failed", latency_ms=2_500.0, reason="too long"))
    True
    >>> sorted(slow.fields)
    ['latency_ms', 'outcome', 'reason', 'tags']
    >>> parse_filter("scor < 0.5")
    Traceback (most recent call last):
    producer.row_filter.FilterError: filter, column 1: no field is called 'scor'
    """
    if len(text) > MOST_CHARS:
        raise FilterError(MOST_CHARS, f"longer than {MOST_CHARS:,} characters", "use a shorter one")
    return _Parser(text, table).whole()


class _Parser:
    """Reads one filter from left to right."""

    def __init__(self, text: str, table: FilterTable) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._table = table
        self._tokens = _tokens(text)
        self._facts = set[str]()

    def whole(self) -> RowFilter:
        """Parses the whole filter."""
        test = self._any()
        if self._next.kind != "end":
            self._fail("`and` or `or` is missing", f"such as: and {self._next.text}")
        return RowFilter(self._text, frozenset(self._facts), test)

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _takes(self, *words: str) -> bool:
        """Takes a word of the language or a sign, if it comes next."""
        token = self._next
        if token.kind not in {"word", "sign"} or token.text.lower() not in words:
            return False
        self._at += 1
        return True

    def _fail(self, what: str, hint: str, token: _Token | None = None) -> NoReturn:
        raise FilterError((token or self._next).column, what, hint)

    def _any(self) -> Test:
        tests = [self._all()]
        while self._takes("or"):
            tests.append(self._all())
        return tests[0] if len(tests) == 1 else _either(tests)

    def _all(self) -> Test:
        tests = [self._one()]
        while self._takes("and"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else _both(tests)

    def _one(self) -> Test:
        self._depth += 1
        if self._depth > MOST_NESTED:
            self._fail("nested too deeply", f"use at most {MOST_NESTED} parentheses within each other")
        if self._takes("not"):
            test = _opposite(self._one())
        elif self._takes("("):
            test = self._any()
            if not self._takes(")"):
                self._fail("a closing parenthesis is missing", "add `)`")
        else:
            test = self._comparison()
        self._depth -= 1
        return test

    def _comparison(self) -> Test:
        token = self._take()
        if token.kind != "word" or token.text.lower() in _CONNECTIVES:
            self._fail("a condition is missing", f"such as: {self._table.examples}", token)
        sign = self._next.text if self._next.kind == "sign" else ""
        if sign not in {*_SIGNS, "=="}:
            return self._alone(token)
        self._take()
        group, dot, name = token.text.partition(".")
        if dot and group in self._table.maps:
            self._facts.add(group)
            return _of_map(group, name, sign, self._values(None))
        field = self._table.fields.get(token.text)
        if field is None:
            named = [f"{each}.NAME" for each in self._table.maps]
            self._unknown(token, "field", [*self._table.fields, *named])
        self._facts.add(field.fact)
        if field.unit is not None:
            return self._numeric(token, field, sign)
        if sign in _RELATIONS:
            self._fail(f"{token.text} is a text", "compare it with =, !=, ~ or !~", token)
        return self._textual(token, field, sign)

    def _alone(self, token: _Token) -> Test:
        """Reads a word without a sign: a status, or a field that must have a value."""
        fields, words = self._table.fields, self._table.words
        if fact := words.get(token.text):
            self._facts.add(fact)
            return _equal(fact, frozenset((token.text,)))
        group, dot, name = token.text.partition(".")
        if dot and group in self._table.maps:
            self._facts.add(group)
            return lambda facts: bool(getattr(facts, group).get(name))
        if token.text not in fields:
            self._unknown(token, "field or status", [*words, *fields])
        fact = fields[token.text].fact
        self._facts.add(fact)
        return lambda facts: bool(getattr(facts, fact))

    def _unknown(self, token: _Token, what: str, known: Sequence[str]) -> NoReturn:
        close = get_close_matches(token.text, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(dict.fromkeys(known))}"
        self._fail(f"no {what} is called {token.text!r}", hint, token)

    def _values(self, unit: FilterUnit | None) -> list[_Token]:
        """Reads values, separated by commas."""
        values = list[_Token]()
        while True:
            token = self._take()
            if token.kind not in {"word", "quoted"}:
                self._fail("a value is missing", unit.words if unit else "quote one with spaces", token)
            values.append(token)
            if not self._takes(","):
                return values

    def _textual(self, token: _Token, field: Field, sign: str) -> Test:
        values = self._values(None)
        for value in values if field.values and sign in {"=", "==", "!="} else ():
            if value.text not in field.values:
                self._unknown(value, f"value of {token.text}", [*field.values])
        if token.text == "cached":
            wanted = {value.text == "yes" for value in values}
            test: Test = lambda facts: facts.is_cached in wanted  # noqa: E731 - like the other tests
        elif "~" in sign:
            test = _contains(field.fact, [value.text.casefold() for value in values])
        else:
            test = _equal(field.fact, frozenset(value.text for value in values))
        return _opposite(test) if sign.startswith("!") else test

    def _numeric(self, token: _Token, field: Field, sign: str) -> Test:
        unit = field.unit
        assert unit is not None  # noqa: S101 - the caller has checked
        if "~" in sign:
            self._fail(f"{token.text} is a number", "compare it with =, !=, <, <=, > or >=", token)
        values = self._values(unit)
        if sign in _RELATIONS:
            if len(values) > 1:
                self._fail("several values", f"{sign} takes one", values[1])
            return _related(
                field.fact, _RELATIONS[sign], self._number(token, values[0], values[0].text, unit)
            )
        ranges = [self._range(token, value, unit) for value in values]
        test = _in_ranges(field.fact, ranges)
        return _opposite(test) if sign.startswith("!") else test

    def _range(self, field: _Token, value: _Token, unit: FilterUnit) -> tuple[float, float]:
        low, dots, high = value.text.partition("..")
        if not dots:
            number = self._number(field, value, low, unit)
            return number, number
        return (
            self._number(field, value, low, unit) if low else float("-inf"),
            self._number(field, value, high, unit) if high else float("inf"),
        )

    def _number(self, field: _Token, value: _Token, text: str, unit: FilterUnit) -> float:
        found = unit.pattern.fullmatch(text)
        if found is None:
            self._fail(f"{field.text} is compared with {text!r}", f"write {unit.words}", value)
        return float(found[1]) * unit.factors[found[2]]


def _tokens(text: str) -> list[_Token]:
    """Splits a filter into tokens; the last one marks its end."""
    found, at = list[_Token](), 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            what = "a quote is not closed" if text[start] in "\"'" else f"{text[start]!r} has no meaning here"
            raise FilterError(start + 1, what, 'quote values with spaces or signs: reason ~ "a = b"')
        kind = match.lastgroup or ""
        part = match[kind]
        found.append(_Token(kind, part[1:-1] if kind == "quoted" else part, match.start(kind) + 1))
        at = match.end()
    return [*found, _Token("end", "", end + 1)]


def _either(tests: Sequence[Test]) -> Test:
    if len(tests) == 2:  # noqa: PLR2004 - the usual case, without a generator for each row
        first, second = tests
        return lambda facts: first(facts) or second(facts)
    return lambda facts: any(test(facts) for test in tests)


def _both(tests: Sequence[Test]) -> Test:
    if len(tests) == 2:  # noqa: PLR2004 - the usual case, without a generator for each row
        first, second = tests
        return lambda facts: first(facts) and second(facts)
    return lambda facts: all(test(facts) for test in tests)


def _opposite(test: Test) -> Test:
    return lambda facts: not test(facts)


def _equal(fact: str, wanted: frozenset[str]) -> Test:
    def test(facts: Any) -> bool:
        found = getattr(facts, fact)
        return found in wanted if isinstance(found, str) else not wanted.isdisjoint(found)

    return test


def _contains(fact: str, parts: Sequence[str]) -> Test:
    def test(facts: Any) -> bool:
        found = getattr(facts, fact)
        text = (found if isinstance(found, str) else "\n".join(found)).casefold()
        return any(part in text for part in parts)

    return test


def _related(fact: str, relation: Callable[[Any, Any], bool], bound: float) -> Test:
    def test(facts: Any) -> bool:
        value = getattr(facts, fact)
        return value is not None and relation(value, bound)

    return test


def _in_ranges(fact: str, ranges: Sequence[tuple[float, float]]) -> Test:
    def test(facts: Any) -> bool:
        value = getattr(facts, fact)
        return value is not None and any(low <= value <= high for low, high in ranges)

    return test


def _of_map(group: str, name: str, sign: str, values: Sequence[_Token]) -> Test:
    """Compares a variable or a fact about a case: as a number with <, <=, > and >=, else as text."""
    texts = [value.text for value in values]
    if sign in _RELATIONS:
        bound = _as_number(texts[0])
        if bound is None or len(texts) > 1:
            raise FilterError(values[0].column, f"{texts[0]!r} is no number", f"{sign} takes one number")
        relation = _RELATIONS[sign]

        def related(facts: Any) -> bool:
            value = getattr(facts, group).get(name)
            return isinstance(value, int | float) and relation(value, bound)

        return related

    def test(facts: Any) -> bool:
        value = getattr(facts, group).get(name)
        entries = value if isinstance(value, list) else [value]
        found = [_as_text(entry) for entry in entries if entry is not None]
        if "~" in sign:
            return any(part.casefold() in text.casefold() for part in texts for text in found)
        return any(text in texts for text in found)

    return _opposite(test) if sign.startswith("!") else test


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _as_text(value: Any) -> str:
    """Writes a value as people write it in a filter.

    >>> [_as_text(value) for value in (True, 3, "de")]
    ['true', '3', 'de']
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
