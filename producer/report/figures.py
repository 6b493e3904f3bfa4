"""Figures with their units, and tables of them, which every format writes alike."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, Flag, auto
from typing import Any, Final, Generic, NamedTuple, TypeVar

from producer.documents import Rate
from producer.text import bounds, cost, latency, percent

NONE: Final = "-"
"""Shown instead of a figure that does not exist."""


class Unit(Enum):
    """How a number is written."""

    COUNT = "count"
    SHARE = "share"
    """From 0 to 1, written in percent."""
    SCORE = "score"
    """From 0 to 1, written with three decimals."""
    USD = "usd"
    LATENCY_S = "latency in seconds"
    """Milliseconds, written in seconds."""
    LATENCY_MS = "latency in milliseconds"
    PER_S = "rate"


_WRITTEN: Final[Mapping[Unit, Callable[[float], str]]] = {
    Unit.COUNT: lambda number: f"{number:,}",
    Unit.SHARE: percent,
    Unit.SCORE: lambda score: f"{score:.3f}",
    Unit.USD: cost,
    Unit.LATENCY_S: lambda ms: f"{ms / 1000:.2f}s",
    Unit.LATENCY_MS: latency,
    Unit.PER_S: lambda rate: f"{rate:,.1f}",
}


class Figure(NamedTuple):
    """A number with its unit; `str` of it is what people read.

    >>> str(Figure(0.0123, Unit.USD)), str(Figure(3, of=4)), str(Figure(0.75, Unit.SHARE, error=0.25))
    ('$0.01', '3 of 4', '75.0% ± 25.0')
    """

    value: float | None = None
    unit: Unit = Unit.COUNT
    of: int | None = None
    """The total of which it is a part."""
    missing: str = NONE
    """Shown if there is no value."""
    note: str = ""
    """Shown small beside it, if there is room."""
    error: float | None = None
    """Standard error of a share."""

    def __str__(self) -> str:
        if self.value is None:
            return self.missing
        text = _WRITTEN[self.unit](self.value)
        if self.error is not None:
            text = f"{text} ± {100 * self.error:.1f}"
        return text if self.of is None else f"{text} of {self.of:,}"

    @property
    def is_blank(self) -> bool:
        """Whether it can be left out: it does not exist, or counts what did not occur."""
        if self.value is None:
            return self.missing == NONE
        return not self.value and self.unit is Unit.COUNT and self.of is None

    @property
    def key(self) -> float | None:
        """By which rows are sorted."""
        return self.value


class ConfidenceInterval(NamedTuple):
    """Where a share or a score lies with 95% confidence.

    >>> str(ConfidenceInterval(0.3006, 0.75, 0.9544, 4))
    '30.1-95.4%'
    >>> str(ConfidenceInterval(0.5, 0.75, 1.0, 4, Unit.SCORE))
    '0.500-1.000'
    """

    low: float
    at: float
    high: float
    n: int
    unit: Unit = Unit.SHARE

    def __str__(self) -> str:
        if self.unit is Unit.SHARE:
            return f"{'-'.join(bounds(self))}%"
        return f"{_WRITTEN[self.unit](self.low)}-{_WRITTEN[self.unit](self.high)}"

    @property
    def is_share(self) -> bool:
        """Whether a page draws it as a bar from 0 to 100%."""
        return self.unit is Unit.SHARE

    @property
    def key(self) -> float:
        """By which rows are sorted."""
        return self.low


class Name(NamedTuple):
    """What a row is about; a page filters its results by it."""

    text: str
    facet: str = ""
    """The facet of results that it filters by; empty: none."""
    value: str = ""
    """The value of that facet, if it is not the text."""
    tone: str = ""
    """`p` for what is good, `f` for what is not."""

    def __str__(self) -> str:
        return self.text


Cell = str | Name | Figure | ConfidenceInterval


class Labelled(NamedTuple):
    """A figure in a line of several.

    >>> str(Labelled("judged", Figure(4), "by 12 votes"))
    'judged 4 by 12 votes'
    """

    label: str
    figure: Cell
    note: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.label, str(self.figure), self.note)))


class ShownIn(Flag):
    """Where a table or a column is shown."""

    BRIEF = auto()
    """In a terminal after a run, and in the summary of a job."""
    VERBOSE = auto()
    """In a terminal with `-v`."""
    MARKDOWN = auto()
    PAGE = auto()
    FILES = MARKDOWN | PAGE
    EVERYWHERE = BRIEF | FILES
    MORE = VERBOSE | FILES


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table: its heading, and its cell for each item."""

    heading: str
    of: Callable[[T], Cell]
    spare: int = 0
    """A narrow terminal drops columns from 1 on, in this order; a column with 0 stays."""
    meaning: str = ""
    """What the heading means, where it does not explain itself."""
    places: ShownIn = ShownIn.EVERYWHERE | ShownIn.VERBOSE
    """Where it is shown, if its table is."""
    is_kept: bool = False
    """Whether it is shown also where it has no figure, or only zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table for every format; texts are not escaped yet."""

    title: str
    columns: Sequence[Column[Any]] = ()
    rows: Sequence[Sequence[Cell]] = ()
    names: int = 1
    """Columns that say what a row is about."""
    places: ShownIn = ShownIn.MORE
    lines: Sequence[str] = ()
    """Sentences before the rows."""
    note: str = ""
    """Sentence after the rows."""
    link: str = ""
    """Text of the link to it in the head of a page."""
    bars: str = ""
    """Heading of the column of shares that a terminal also draws."""

    @property
    def anchor(self) -> str:
        """Its name in addresses."""
        return (self.link or self.title).lower().replace(" ", "-")

    @property
    def headings(self) -> Sequence[str]:
        """The headings of its columns."""
        return [column.heading for column in self.columns]

    def __bool__(self) -> bool:
        return bool(self.rows or self.lines)

    def filled(self, items: Iterable[Any]) -> "Table":
        """Returns the table with a row for each item, without columns in which no row has a figure.

        >>> columns = Column("Tag", str), Column("Errors", lambda _: Figure(0))
        >>> Table(title="Tags", columns=columns).filled(["a"]).headings
        ['Tag']
        """
        rows = [[column.of(item) for column in self.columns] for item in items]
        kept = (
            at
            for at, column in enumerate(self.columns)
            if at < self.names or column.is_kept or any(not _is_blank(row[at]) for row in rows)
        )
        return _with_columns(replace(self, rows=rows), kept)

    def shown_in(self, place: ShownIn) -> "Table":
        """Returns the table with the columns that are shown in a place."""
        kept = (at for at, column in enumerate(self.columns) if place in column.places)
        return _with_columns(self, kept)

    def texts(self, safe: Callable[[str], str]) -> list[list[str]]:
        """Returns its cells as texts; `safe` escapes all but figures."""
        return [
            [str(cell) if isinstance(cell, Figure | ConfidenceInterval) else safe(str(cell)) for cell in row]
            for row in self.rows
        ]


def _with_columns(table: Table, columns: Iterable[int]) -> Table:
    """Returns a table with some of its columns."""
    kept = list(columns)
    rows = [[row[at] for at in kept] for row in table.rows]
    return replace(table, columns=[table.columns[at] for at in kept], rows=rows)


def _is_blank(cell: Cell) -> bool:
    return cell.is_blank if isinstance(cell, Figure) else cell in {"", NONE}


def interval_of(rate: Rate) -> ConfidenceInterval:
    """Returns the interval of a rate."""
    return ConfidenceInterval(rate.low, rate.value, rate.high, rate.n)


def latency_s(ms: float | None) -> str:
    """Writes a latency in seconds.

    >>> latency_s(450), latency_s(None)
    ('0.45s', '-')
    """
    return str(Figure(ms, Unit.LATENCY_S))
