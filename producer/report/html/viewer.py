"""Writes the pages of HTML reports: one file, no network, a sentence first, then the rows that it is about.

A page is written piece by piece, in this order:

    rows = Rows(facets=("tag", "reason"), orders=("latency",), groups=(Group("failure", "failures"),))
    rows.add(Row("c1", html, "pf-", {"tag": ["json"], "reason": ["timed out"]}, {"latency": 450.0}), group=0)
    …
    write(begin(Page("cases", "Support desk", "k7m2", "f", "Gate failed: 26 of 36", folder="cases/report")))
    write(strip([Metric("pass rate", "72.2%", at=0.722, low=0.56, high=0.84, target=0.9)]))  # if wanted
    write(tools(rows, chips=[Chip("show", "failed", "Failed")], orders=[("-latency", "slowest first")]))
    for piece in rows.pieces(Head(columns=3, metrics=…)): write(piece)
    …whatever the page says beside: sections of its own templates…
    write(end(facts, folder="cases/report"))

`rows` are spooled to disk until they are written, sorted by group and otherwise in the order they came.
Memory holds some numbers of each. The first ones are elements of the page, the others blocks of compressed
markup, which the script unpacks where they are seen, opened, searched or printed. `page.css` and `page.js` of
the page's folder go into the page, if they exist.

**Rows** are made by the page's own template. A row, and what the script finds by attributes and classes:

    <article class="row" data-row id="c1" data-title="refund-window">
      <div class="lead"><b>refund-window</b><p>gist of what was asked</p><span class="tag">json</span></div>
      <details class="cell is-f" data-name="gpt-4o-mini">      one for each letter: is-p is-f is-e is-n
        <summary>
          <span class="head"><span class="mark f">✗</span><b class="mname">gpt-4o-mini</b>
            <b class="reasontext f">why</b><span class="num">0.84 s</span></span>
          <span class="out">gist of the answer</span>           of a pass: before `.num`, in a `.head.line`
        </summary>
        <div class="body"><section><h3>…</h3>everything: the panel shows it</section>…</div>
      </details>
      <div class="cell"></div>                                  a cell without anything, letter `-`
    </article>

`report/html/viewer.html.j2` has macros for `mark`, `interval`, `box`, `msg`, `checks`, `diff`, `cmd`. In a
body, `<div data-from="asked"></div>` is replaced in the panel by a copy of what the row has in
its `[data-part="asked"]`, so that what its cells share is written once, and an
`<a href="#image-1" data-figure="image-1">` by a copy of the `<figure id="image-1">` below the rows; a
`<section data-others hidden><h3>Other models</h3></section>` receives the row's other cells as buttons;
`[data-copy]` gets a copy button, and `y` copies the one that also has `data-key="y"`; long `[data-copy]` and
`[data-long]` are folded. Texts in `<h3>`, `<h4>` and `.vh` are labels: the search does not look at them.

**Letters** of `outcomes`: `p` passed, `f` failed, `e` error, `-` no cell, `n` a cell without an outcome. From
them come the values `failed`, `errors` and `differ` of the facet `show`. A facet may name a value several
times, such as a reason once for each answer: `rows.answers` counts these, `rows.having` counts rows.

**Components** of `viewer.css`: `.verdict .why .meta`, `.strip .metric`, `.tools .search .chip`, `.reasons
.reason`, `.rows .heads .row .lead .cell .head .out`, `.group`, `.tag`, `.badge`, `.note`, `.mark` and `.p
.f .e .c` (passed, failed, error, cold), `.box`, `.diff` with `.del .add`, `.checks`, `.msg`, `.others`,
`.cmd`, `.facts`, `.dim .small .num .mono .nowrap .vh`. Below the rows stand `section.more` with `.charts`,
and tables `.data` in a `.scroll` (`data-sort` and an id: sorted by a click; `data-value` of a cell is what
it is sorted by; columns of class `n` are numbers). Columns of `.rows`: `n1` to `n5`; more are a `.matrix`,
which scrolls sideways beside the leads of its rows, with its head. Above 1,100 px the panel stands beside the
rows, below 760 px rows are cards, but for those of a matrix.

**What can be clicked** has a border and round ends (`.chip`, `.reason`; a `.btn` is square) or a line below;
what cannot (`.tag`, `.badge`) is flat.

**Script**: its state lies in the address after `#`: `q`, names of facets, `order`, `open=id.cell`, ids of
tables. A page's own `page.js` may listen to `view:open` (detail: row, cell, panel), `view:close` and
`view:choose` (other rows are shown) on `document`, and use `report` of the list, such as `report.open(0, 0)`.
"""

from array import array
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, islice
from typing import Final, NamedTuple
from zlib import compressobj

import msgspec

from producer.documents import Rate
from producer.report.html.page_policy import NO_SCRIPT, policy_of, scripts_of, style_of
from producer.report.html.rendering import fill, markup, readable, ways_back
from producer.report.html.spool import Spool
from producer.text import bounds, percent
from shared.names import Outcome

TEMPLATE: Final = "report/html/viewer.html.j2"
FIRST: Final = 100
"""Rows that stand in the page as elements, so that they are on the screen before any script."""
BLOCK: Final = 100
"""Further rows that are compressed together."""
END: Final = b"<!--row-->"
"""Ends each row of a block; in texts it is escaped."""
LEVEL: Final = 1
"""Of compression: higher ones make the page little smaller, and take longer to write."""
SHOW: Final = "show"
"""The facet that comes from the letters of cells."""
MOST_REASONS: Final = 8
"""Reasons that stand in the line; the others are folded."""
MOST_VALUES: Final = 20_000
"""Most distinct values of one facet."""
OTHER: Final = "other"
"""Stands for the values that come later."""
PLACES: Final = 1 << 40
"""Places of rows in a group."""
WIDEST: Final = 5
"""Columns that share the width of the page; more scroll sideways beside the leads of rows."""
WIDEST_SHARED: Final = 9
"""Columns from which on all have their least width, however wide the page is."""
MOST_SPANNED: Final = 12
"""Columns below one name; it is repeated above further ones."""


class Letter(StrEnum):
    """How a cell ended, as the classes and the script of a page write it."""

    PASSED = "p"
    FAILED = "f"
    ERROR = "e"
    NONE = "n"
    """A cell without an outcome."""
    ABSENT = "-"
    """No cell."""

    @classmethod
    def of(cls, outcome: Outcome) -> "Letter":
        """Returns the letter of an outcome; skipped and decided items have none.

        >>> Letter.of(Outcome.ERROR).value, Letter.of(Outcome.SKIPPED).value
        ('e', 'n')
        """
        return _LETTERS.get(outcome, cls.NONE)


_LETTERS: Final = {
    Outcome.PASSED: Letter.PASSED,
    Outcome.FAILED: Letter.FAILED,
    Outcome.ERROR: Letter.ERROR,
}
WORST_FIRST: Final = (Letter.FAILED, Letter.ERROR, Letter.NONE, Letter.PASSED)
"""The order in which answers, and groups of rows, stand on a page."""


class PageRow(NamedTuple):
    """One row of a page."""

    id: str
    """Of the element, and in the address."""
    html: bytes
    outcomes: str
    """A letter for each cell."""
    facets: Mapping[str, Sequence[str]] = {}
    orders: Mapping[str, float | None] = {}


class Group(NamedTuple):
    """Rows that stand together under a heading, such as `9 cases with a failure`."""

    one: str
    many: str
    name: str = ""
    """Before the number, such as what they belong to."""


class Chip(NamedTuple):
    """A value of a facet that a click filters by."""

    facet: str
    value: str
    label: str
    tone: str = "f"
    """Of a reason: `f` failed, `e` error."""


class Fact(NamedTuple):
    """A small figure."""

    label: str
    value: str = ""
    tone: str = ""


class Metric(NamedTuple):
    """A figure with what is known about it: a model in the head of a matrix, or a metric with its target."""

    name: str
    value: str
    over: str = ""
    """Small, above the name."""
    at: float | None = None
    """Where the value lies on a bar, 0 to 1."""
    low: float = 0.0
    high: float = 0.0
    target: float | None = None
    captions: tuple[str, str] = ("", "")
    """Below the bar, at its left and its right."""
    facts: Sequence[Fact] = ()
    tone: str = ""
    """Of the value: `p`, `f`, `e` or nothing."""
    popover: str = ""
    """Id of what its name opens, see `popover`."""

    def rated(self, rate: Rate, caption: str = "") -> "Metric":
        """Returns it with a rate as its value, drawn as a bar with its interval.

        >>> Metric("Passed", "no answers").rated(Rate(0.75, 0.3006, 0.9544, 4)).captions
        ('95%: 30 to 95', '')
        """
        captions = (f"95%: {' to '.join(bounds(rate, 0))}", caption)
        return self._replace(
            value=percent(rate.value), at=rate.value, low=rate.low, high=rate.high, captions=captions
        )


class ColumnSpan(NamedTuple):
    """A name above several columns, such as a model above those of its prompts."""

    name: str
    columns: int
    popover: str = ""
    """Id of what the name opens."""


class Head(NamedTuple):
    """What stands above the columns of rows."""

    columns: int
    """Cells of a row."""
    metrics: Sequence[Metric] = ()
    """One for each column; none: no head."""
    title: str = ""
    """Above the leads of rows."""
    notes: Sequence[str] = ()
    label: str = "Results"
    """Of the list, for those who hear it."""
    spans: Sequence[ColumnSpan] = ()
    """Names above the metrics, which they all stand over together."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a page begins with."""

    kind: str
    name: str
    run: str
    tone: str
    """`p`, `f`, `e`, or empty while there is no telling."""
    verdict: str
    why: Sequence[str] = ()
    """Sentences that say by how much, and what is in doubt."""
    meta: Sequence[str] = ()
    """What was run."""
    badge: str = ""
    links: Sequence[tuple[str, str]] = ()
    """Texts and places on the page, such as `#costs`."""
    folder: str = ""
    """Below `producer`, with `page.css` and `page.js` if the page has them."""
    has_images: bool = False
    """Whether images stand in it, as `data:` URLs; others are never loaded."""
    has_form: bool = False
    """Whether it sends a form to the server that wrote it."""


class Rows:
    """Keeps rows on disk until all are known, and an index of numbers beside them.

    Args:
        facets: names of what rows are filtered by.
        orders: names of numbers that rows are put in order by.
        groups: headings; none: rows are not grouped.
        most: rows that are written; those that come last are left out.
    """

    def __init__(
        self,
        *,
        facets: Sequence[str] = (),
        orders: Sequence[str] = (),
        groups: Sequence[Group] = (),
        most: int | None = None,
    ) -> None:
        self._facets, self._orders, self._groups = (SHOW, *facets), tuple(orders), tuple(groups)
        self._html, self._index, self._most = Spool(), Spool(), most
        self._names: dict[str, dict[str, int]] = {facet: {} for facet in self._facets}
        self._answers: dict[str, array[int]] = {facet: array("L") for facet in self._facets}
        self._having: dict[str, array[int]] = {facet: array("L") for facet in self._facets}
        self._in_groups = Counter[int]()

    def __len__(self) -> int:
        return len(self._html) if self._most is None else min(self._most, len(self._html))

    @property
    def left(self) -> int:
        """Rows that are not written."""
        return len(self._html) - len(self)

    def add(self, row: PageRow, *, group: int = 0, place: int = 0) -> None:
        """Takes a row; groups come in the order of their numbers, and in them rows by their places."""
        facets = {**row.facets, SHOW: _shown(row.outcomes)}
        numbers = [[self._number(facet, value) for value in facets.get(facet, ())] for facet in self._facets]
        for facet, found in zip(self._facets, numbers, strict=True):
            for number in found:
                self._answers[facet][number] += 1
            for number in set(found):
                self._having[facet][number] += 1
        orders = [row.orders.get(order) for order in self._orders]
        key = group * PLACES + place
        record = [readable(row.id), row.outcomes, group, *numbers, *orders]
        self._index.add(key, msgspec.json.encode(record))
        self._html.add(key, row.html)
        self._in_groups[group] += 1

    def having(self, facet: str) -> Counter[str]:
        """Counts rows by the values of a facet, the most frequent first."""
        return self._counted(facet, self._having)

    def answers(self, facet: str) -> Counter[str]:
        """Counts how often rows name the values of a facet."""
        return self._counted(facet, self._answers)

    def pieces(self, head: Head) -> Iterator[bytes]:
        """Yields the list of rows with its head and its index; called once."""
        is_matrix = head.columns > WIDEST
        spans = [piece for span in head.spans for piece in _pieces_of(span)]
        columns = f"n{min(head.columns, WIDEST_SHARED)}"
        yield fill(TEMPLATE, "rows", head._replace(spans=spans), columns, is_matrix)
        rows = self._html.pieces(self._most)
        for group, members in groupby(islice(rows, FIRST), key=lambda row: row[0] // PLACES):
            if self._groups:
                yield fill(TEMPLATE, "group", *self._groups[group], self._in_groups[group])
            yield from (html for _, html in members)
        yield fill(TEMPLATE, "packed", max(0, len(self) - FIRST))
        for _ in range(FIRST, len(self), BLOCK):
            yield b'<script type="text/plain" data-block>'
            yield _packed(islice(rows, BLOCK))
            yield b"</script>\n"
        yield fill(TEMPLATE, "rows_end", is_matrix)
        yield b'<script type="application/json" data-index>'
        yield _safe(msgspec.json.encode(self._outline()))[:-1] + b',"rows":['
        for at, (_, record) in enumerate(self._index.pieces(self._most)):
            yield b",\n" + _safe(record) if at else _safe(record)
        yield b"]}</script>\n"
        self.close()

    def close(self) -> None:
        """Gives the disk back, also where nothing was written."""
        self._html.close()
        self._index.close()

    def _outline(self) -> dict[str, object]:
        """The index of all rows."""
        return {
            "facets": self._facets,
            "names": [list(self._names[facet]) for facet in self._facets],
            "orders": self._orders,
            "groups": self._groups,
        }

    def _number(self, facet: str, value: str) -> int:
        """Numbers a value; the later ones of very many have one number."""
        names, value = self._names[facet], readable(value)
        name = value if value in names or len(names) < MOST_VALUES else OTHER
        if name not in names:
            names[name] = len(names)
            self._answers[facet].append(0)
            self._having[facet].append(0)
        return names[name]

    def _counted(self, facet: str, counts: Mapping[str, Sequence[int]]) -> Counter[str]:
        """Counts by name."""
        found = Counter(dict(zip(self._names[facet], counts[facet], strict=True)))
        return Counter(dict(found.most_common()))


def begin(page: Page) -> bytes:
    """Writes a page up to its verdict."""
    policy = policy_of([page.folder], has_images=page.has_images, has_form=page.has_form)
    style, crumbs = markup(style_of(page.folder)), ways_back()
    return fill(TEMPLATE, "begin", page, crumbs, style, markup(NO_SCRIPT), markup(policy))


def strip(metrics: Sequence[Metric], label: str = "Metrics") -> bytes:
    """Writes figures side by side, in rows of equal length where that is possible.

    Args:
        metrics: one for each card.
        label: of the list, for those who hear it.
    """
    return fill(TEMPLATE, "strip", metrics, label, [balanced(len(metrics), most) for most in (6, 4, 2)])


def popover(id: str, title: str, facts: Sequence[tuple[str, str]]) -> bytes:  # noqa: A002 - the attribute
    """Writes what a name in the head of the columns opens.

    Args:
        id: of the element, unique on the page.
        title: its heading.
        facts: names and texts.
    """
    return fill(TEMPLATE, "popover", id, title, facts)


def balanced(number: int, most: int) -> int:
    """Returns how many cards stand in a row, so that the last row is not one alone.

    >>> [balanced(number, 4) for number in (1, 4, 5, 6, 7, 9)]
    [1, 4, 3, 3, 4, 3]
    """
    return -(-number // -(-number // most)) if number else 1


def tools(
    rows: Rows,
    *,
    nouns: tuple[str, str] = ("case", "cases"),
    search: str = "Search",
    chips: Sequence[Chip] = (),
    choices: Sequence[tuple[str, str]] = (),
    orders: Sequence[tuple[str, str]] = (),
    first: str = "failures first",
    reasons: Sequence[Chip] = (),
    lead: str = "",
) -> bytes:
    """Writes search, filters and the line of reasons, for a reader with scripts.

    Args:
        rows: all of them.
        nouns: what a row is, one and many.
        search: what the field says it searches.
        chips: filters that are always in sight; those that no row has are left out.
        choices: facets that are chosen from a list, with their labels; those with one value are left out.
        orders: keys (`-latency`: from the highest) and labels.
        first: label of the order that rows are in.
        reasons: in their order.
        lead: what stands before the reasons.
    """
    counts = {facet: rows.having(facet) for facet in {chip.facet for chip in chips}}
    found = [(chip, counts[chip.facet][readable(chip.value)]) for chip in chips]
    shown = [(chip, number) for chip, number in found if number]
    answers = {chip.facet: rows.answers(chip.facet) for chip in reasons[:1]}
    counted = [(chip, answers[chip.facet][readable(chip.value)]) for chip in reasons]
    values = [(facet, label, sorted(rows.having(facet))) for facet, label in choices]
    chosen = [each for each in values if len(each[2]) > 1]
    ordered = [("", first), *orders] if orders else []
    parts = (shown, chosen, ordered, (counted[:MOST_REASONS], counted[MOST_REASONS:], lead))
    return fill(TEMPLATE, "tools", search, nouns, len(rows), *parts)


def end(
    facts: Iterable[tuple[str, str]] = (),
    *,
    folder: str = "",
    row: str = "case",
    cell: str = "model",
    about: str = "About this run",
) -> bytes:
    """Writes the end of a page.

    Args:
        facts: names and values of what was run, for the fold at its foot.
        folder: the page's own.
        row: what `j` and `k` move between.
        cell: what `h` and `l` move between; empty: rows have one cell.
        about: the summary of the fold.
    """
    scripts = [markup(script) for script in scripts_of(folder) if script]
    return fill(TEMPLATE, "end", list(facts), row, cell, scripts, about)


def _shown(outcomes: str) -> list[str]:
    """Names what the letters of a row's cells say of it.

    >>> _shown("pfe"), _shown("pp-"), _shown("fn")
    (['failed', 'errors', 'differ'], [], ['failed'])
    """
    kinds = set(outcomes) - {"-", "n"}
    said = [word for letter, word in (("f", "failed"), ("e", "errors")) if letter in kinds]
    return [*said, "differ"] if len(kinds) > 1 else said


def _packed(rows: Iterable[tuple[int, bytes]]) -> bytes:
    """Compresses a block of rows as base64, which ends no script."""
    packer = compressobj(LEVEL)
    parts = [packer.compress(html + END) for _, html in rows]
    return b64encode(b"".join([*parts, packer.flush()]))


def _pieces_of(span: ColumnSpan) -> Iterator[ColumnSpan]:
    """Divides a span that is wider than the style has widths for."""
    for first in range(0, span.columns, MOST_SPANNED):
        yield span._replace(columns=min(MOST_SPANNED, span.columns - first))


def _safe(json: bytes) -> bytes:
    r"""Makes JSON that ends no script and begins no comment.

    >>> _safe(b'["</script>"]')
    b'["\\u003c/script>"]'
    """
    return json.replace(b"<", b"\\u003c")
