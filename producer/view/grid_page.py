"""What the page of several runs shows of a grid: runs with changes, checks and cases by run; pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import and_
from typing import Final, NamedTuple

from producer.aggregate.compared_checks import ComparedCheck
from producer.aggregate.compared_items import CHECK_PREFIX, Names
from producer.aggregate.comparison import LOWER_IS_BETTER, PASS_RATE
from producer.documents import Rate
from producer.item_ids import item_id
from producer.report.cells import Size, plain
from producer.report.comparison.to_html import SORTS
from producer.report.comparison.wording import (
    amount_of,
    change_of,
    interval_of,
    is_sure,
    level_of,
    score_name,
)
from producer.report.html.rendering import fill
from producer.report.html.viewer import Letter
from producer.text import age, many, percent, plural
from producer.view.grid import Cell, Grid, RunColumn
from producer.view.history import SettingsOf, changed_settings
from producer.view.html_pages import Frame, framed
from producer.view.links import Links
from producer.view.params import NO_FILTER, GivenFilter
from shared.names import Outcome

TEMPLATE: Final = "view/grid.html.j2"
PAGE: Final = 50
"""Rows of a page."""
MOST_CHECKS: Final = 60
"""Checks that are shown, those that changed most first."""
LABELS: Final = dict(zip(SORTS, ("✗ Broken", "✓ Fixed", "Changed", "Only text"), strict=True))


class GridQuery(NamedTuple):
    """What the address of the page asks for."""

    show: str = ""
    """Rows to which this happened since the baseline: one of `SORTS`; empty: all."""
    of: str = ""
    """In this run; empty: in any."""
    number: int = 1
    """The first row, from 1."""
    q: str = ""
    """Words in the name of the case."""


class GridSearch(NamedTuple):
    """A filter of cases by their answers, and how far the search for them came."""

    given: GivenFilter
    rows: bytes | None = None
    """For each row whether an answer meets it; None: all do."""
    percent: int = 100
    """Of the answers that were searched."""


NO_SEARCH: Final = GridSearch(NO_FILTER)


class ShownChange(NamedTuple):
    """A change since the baseline."""

    text: str
    tone: str
    """`p` or `f` where it is more than chance; else empty."""
    about: str


class Measured(NamedTuple):
    """A value of a run."""

    text: str
    delta: ShownChange | None


class RunRow(NamedTuple):
    """A run in the table above."""

    run: str
    label: str
    about: Sequence[str]
    """Its name, what of its settings differs from the baseline's, its age."""
    rate: Rate
    rate_text: str
    values: Sequence[Measured]
    sorts: Sequence[tuple[str, int]]
    """What became of its cases, and of how many."""
    note: str
    """Why there is nothing to compare."""


class GridCell(NamedTuple):
    """A cell, as it is shown."""

    letter: Letter
    word: str
    share: str
    """Of several answers, how many passed; empty of a single one."""
    is_mixed: bool
    """Whether some passed and some did not."""
    sort: str
    place: str
    about: str


class GridRow(NamedTuple):
    """A case in all runs."""

    number: int
    name: str
    more: str
    letter: Letter
    """Of its worst cell."""
    cells: Sequence[GridCell | None]


class GridView(NamedTuple):
    """All that the page shows."""

    title: str
    notes: Sequence[str]
    headings: Sequence[str]
    runs: Sequence[RunRow]
    checks: Sequence[tuple[str, Sequence[Measured | None]]]
    unshown: int
    """Checks that are not shown."""
    rows: Sequence[GridRow]
    found: int
    """Rows that meet the filter."""
    total: int
    first: int
    after: int
    """Number of the row that the next page begins with; 0 after the last row."""
    of: str
    """The run that rows are filtered by."""
    chips: Sequence[tuple[str, str, int]]
    left: str
    """What is still being read; empty once everything is."""
    noun: str
    nouns: str


class About(NamedTuple):
    """What is said of runs beside their results."""

    now_ms: int
    settings: SettingsOf


def grid_page(
    grid: Grid, query: GridQuery, links: Links, about: About, search: GridSearch = NO_SEARCH
) -> bytes:
    """Writes the page."""
    runs = [info.run for info in grid.runs]
    base = {"run": runs, "baseline": runs[0], "view": "cases"}
    kept = {"show": query.show, "of": query.of, "q": query.q, "where": search.given.text}
    view = grid_view(grid, query, links, about, search)
    body = fill(TEMPLATE, "page", view, query, search, base, kept, links)
    return framed(Frame(f"{plural(len(runs), 'run')} · Proctor", links, crumbs=[("Runs", links.to())]), body)


def grid_view(
    grid: Grid, query: GridQuery, links: Links, about: About, search: GridSearch = NO_SEARCH
) -> GridView:
    """Chooses what is shown."""
    columns = list(grid.columns)  # a thread adds to it
    labels, checks = _labels(grid), _checks(columns)
    scores = dict.fromkeys(name for column in columns for name in column.found.scores)
    names = [name for name in scores if not name.startswith(CHECK_PREFIX)]
    rows, found, first = list[GridRow](), 0, max(0, query.number - 1)
    if grid.is_whole:
        chosen = _chosen(grid, query, search)
        found = len(chosen)
        rows = [
            _row(grid, row, first + at + 1, labels, links)
            for at, row in enumerate(chosen[first : first + PAGE])
        ]
    noun = grid.runs[0].kind.noun
    return GridView(
        _verdict(columns, labels),
        _notes(columns),
        [score_name(columns[0].found.comparing, name) for name in names] if columns else [],
        [_run(grid, column, labels[column.info.run], names, about) for column in columns],
        checks[:MOST_CHECKS],
        max(0, len(checks) - MOST_CHECKS),
        rows,
        found,
        len(grid.names),
        first + 1,
        first + PAGE + 1 if first + PAGE < found else 0,
        labels.get(query.of, ""),
        _chips(grid, query, search),
        "" if grid.is_whole else f"{len(columns)} of {plural(len(grid.runs), 'run')} read",
        noun,
        many(noun),
    )


def _labels(grid: Grid) -> Mapping[str, str]:
    """Names runs; those of one name by their ids."""
    titles = Counter(info.title for info in grid.runs)
    return {info.run: info.title if titles[info.title] == 1 else info.run for info in grid.runs}


def _verdict(columns: Sequence[RunColumn], labels: Mapping[str, str]) -> str:
    """Writes which runs are better or worse than the baseline."""
    if len(columns) < 2:  # noqa: PLR2004 - the baseline and another one
        return "Reading the runs"
    parts, base = list[str](), labels[columns[0].info.run]
    for word in ("worse", "better"):
        found = [labels[column.info.run] for column in columns if column.found.verdict == word]
        if found:
            parts.append(f"{' and '.join(found)} {'are' if len(found) > 1 else 'is'} {word}")
    return f"{'; '.join(parts)} than {base}" if parts else f"No run differs from {base} by more than chance"


def _notes(columns: Sequence[RunColumn]) -> list[str]:
    """Writes how the changes were found."""
    if not columns:
        return []
    found = columns[0].found
    nouns, one_in = many(columns[0].info.kind.noun), round(1 / found.test.level_each)
    return [
        f"Changes are computed over the {nouns} that a run shares with the baseline.",
        "Coloured changes are more than chance: outcomes and checks by McNemar's test, other values by their",
        f"{level_of(found)} interval, which excludes 0 (by chance, 1 in {one_in} does).",
    ]


def _run(grid: Grid, column: RunColumn, label: str, names: Sequence[str], about: About) -> RunRow:
    info, found, nothing = column.info, column.found, Measured("", None)
    known = (
        info.title if label != info.title else "",
        changed_settings(about.settings, grid.runs[0], info),
        f"{age((about.now_ms - info.created_ms) / 1000)} ago",
    )
    return RunRow(
        info.run,
        label,
        [text for text in known if text],
        found.pass_rate.b,
        percent(found.pass_rate.b.value) if found.pass_rate.b.n else "no answers",
        [_score(column, name) if name in found.scores else nothing for name in names],
        [(sort, column.cells.sorts.count(at)) for at, sort in enumerate(SORTS)],
        "" if found.counts.pairs else f"shares no {info.kind.noun} with the baseline",
    )


def _score(column: RunColumn, name: str) -> Measured:
    return Measured(amount_of(name, column.found.scores[name].b), _delta(column, name))


def _delta(column: RunColumn, name: str) -> ShownChange | None:
    """Writes how a score changed."""
    found = column.found
    difference = found.scores[name].difference
    if not difference:
        return None
    tone = ""
    if is_sure(found, name):
        tone = "p" if (difference > 0) != (name in LOWER_IS_BETTER) else "f"
    interval = interval_of(found, name)
    about = f"{level_of(found)} interval {interval}" if interval else "too few to tell"
    return ShownChange(change_of(name, difference), tone, about)


def _checks(columns: Sequence[RunColumn]) -> list[tuple[str, Sequence[Measured | None]]]:
    """Writes how often each check passed in each run, those that changed by more than chance first."""
    names = dict.fromkeys(name for column in columns for name in column.checks)
    ordered = sorted(names, key=lambda name: min(_rank(column.checks.get(name)) for column in columns))
    return [(name, [_share(column.checks.get(name)) for column in columns]) for name in ordered]


def _rank(check: ComparedCheck | None) -> tuple[bool, float]:
    if check is None:
        return True, 0.0
    return not check.test.is_significant, -abs(check.b - check.a) / check.n


def _share(check: ComparedCheck | None) -> Measured | None:
    if check is None:
        return None
    text, change = percent(check.b / check.n), (check.b - check.a) / check.n
    if not change:
        return Measured(text, None)
    tone = ("p" if change > 0 else "f") if check.test.is_significant else ""
    about = f"{check.b:,} of {check.n:,}, {check.a:,} in the baseline; p = {check.test.p_value:.2g}"
    return Measured(text, ShownChange(change_of(PASS_RATE, change), tone, about))


def _chosen(grid: Grid, query: GridQuery, search: GridSearch) -> Sequence[int]:
    """Returns the rows that meet the filters, in their order."""
    marked, words = _marked(grid, query.show, query.of, search), query.q.lower().split()
    found = compress(grid.order, (marked[row] for row in grid.order))
    return [row for row in found if _has(grid.names[row], words)] if words else list(found)


def _marked(grid: Grid, sort: str, run: str, search: GridSearch) -> bytes:
    """Returns for each row whether it has changed so, and an answer meets the filter."""
    marked = grid.marked(sort, run)
    return marked if search.rows is None else bytes(map(and_, marked, search.rows))


def _has(names: Names, words: Sequence[str]) -> bool:
    name = " ".join(names).lower()
    return all(word in name for word in words)


def _chips(grid: Grid, query: GridQuery, search: GridSearch) -> list[tuple[str, str, int]]:
    """Counts what each filter would show."""
    if not grid.is_whole:
        return []
    return [(sort, LABELS[sort], _marked(grid, sort, query.of, search).count(1)) for sort in SORTS]


def _row(grid: Grid, row: int, number: int, labels: Mapping[str, str], links: Links) -> GridRow:
    name, *more = [part for part in grid.names[row] if part]
    cells = [
        _cell(found, column, labels[column.info.run], links) if (found := grid.cell(column, row)) else None
        for column in grid.columns
    ]
    letters = [cell.letter for cell in cells if cell]
    worst = next((letter for letter in (Letter.FAILED, Letter.ERROR) if letter in letters), letters[0])
    return GridRow(number, plain(name, Size.LINE), plain(" · ".join(more), Size.LINE), worst, cells)


def _cell(cell: Cell, column: RunColumn, label: str, links: Links) -> GridCell:
    info = column.info
    share = f"{cell.passed}/{cell.tries}" if cell.tries > 1 else ""
    said = f"{cell.passed} of {cell.tries} passed" if share else cell.word
    about = ": ".join(filter(None, (label, said))) + (f", {cell.sort}" if cell.sort else "")
    place = links.to("run", info.run, "item", item_id(info.kind, cell.position))
    letter, is_mixed = Letter.of(Outcome(cell.outcome)), 0 < cell.passed < cell.tries
    sort = "only text" if cell.sort == "text" else cell.sort
    return GridCell(letter, cell.word, share, is_mixed, sort, place, plain(about, Size.LINE))
