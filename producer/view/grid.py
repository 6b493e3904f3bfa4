"""Several runs beside a baseline: how each case ended in each of them, in some bytes a cell."""

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from typing import Final, NamedTuple

from producer import kinds
from producer.aggregate.compared_checks import ComparedCheck, compare_checks
from producer.aggregate.compared_items import KEY_PARTS, ComparedItem, Items, Known, Line, Names, items_of
from producer.aggregate.comparison import GOOD, Comparison, PairedItems, compare
from producer.compared_runs import lines_of_run
from producer.report.comparison.to_html import SORTS
from producer.row_reader import state_of
from producer.view.history import MOST_TOGETHER
from shared.errors import UsageError
from shared.runs import RunInfo, RunStore

MOST_ITEMS: Final = 250_000
"""Items of a run; two runs of so many are held at once, in some 500 MB."""
MOST_KEPT: Final = 3
"""Grids that are kept, each with 30 bytes a cell."""
WAIT_S: Final = 0.25
"""How long a request waits for a grid that is being read."""
TEXT: Final = SORTS.index("text")
SAME: Final = len(SORTS)
"""Of a cell that is as in the baseline, or not there."""


class Cell(NamedTuple):
    """How the answers to a case ended in a run."""

    outcome: str
    word: str
    passed: int
    tries: int
    position: int
    """Of the first answer that did not pass, else of the first."""
    sort: str
    """What became of it since the baseline: one of `SORTS`, or nothing."""


@dataclass(slots=True)
class _Cells:
    """Numbers of items, or of cells, in columns of their own."""

    rows: "array[int]" = field(default_factory=lambda: array("l"))
    """Of items; of cells, the row of each item of the run by its position, -1 where it has none."""
    positions: "array[int]" = field(default_factory=lambda: array("l"))
    words: "array[int]" = field(default_factory=lambda: array("H"))
    passed: "array[int]" = field(default_factory=lambda: array("H"))
    tries: "array[int]" = field(default_factory=lambda: array("H"))
    sorts: bytearray = field(default_factory=bytearray)

    def add(self, row: int, item: ComparedItem, word: int, sort: int) -> None:
        """Adds an item."""
        passed, tries = item.tries or (int(item.outcome in GOOD), 1)
        self.rows.append(row)
        self.positions.append(item.place)
        self.words.append(word)
        self.passed.append(passed)
        self.tries.append(tries)
        self.sorts.append(sort)

    def scattered(self, rows: Sequence[int], size: int) -> "_Cells":
        """Returns cells in the order of rows; repeats of a case share one."""
        none = array("H", bytes(2 * size))
        placed = array("l", [-1]) * (max(self.positions, default=-1) + 1)
        cells = _Cells(placed, array("l", [0]) * size, none[:], none[:], none, bytearray([SAME]) * size)
        for at, row_before in enumerate(self.rows):
            row = placed[self.positions[at]] = rows[row_before]
            is_first, has_failed = not cells.tries[row], self.passed[at] < self.tries[at]
            if is_first or (has_failed and cells.passed[row] == cells.tries[row]):
                cells.positions[row], cells.words[row] = self.positions[at], self.words[at]
            cells.passed[row] += self.passed[at]
            cells.tries[row] += self.tries[at]
            cells.sorts[row] = min(cells.sorts[row], self.sorts[at])
        return cells


@dataclass(slots=True)
class RunColumn:
    """A run in the grid."""

    info: RunInfo
    found: Comparison
    """With the baseline, without its pairs; of the baseline with itself."""
    checks: Mapping[str, ComparedCheck]
    cells: _Cells
    parts: Mapping[int, frozenset[str]]
    """Models and prompts of its items, by their places in identities."""

    def mark(self, marked: bytearray, positions: Iterable[int]) -> None:
        """Marks the rows of items, which are named by their positions."""
        placed = self.cells.rows
        for position in positions:
            if position < len(placed) and (row := placed[position]) >= 0:
                marked[row] = 1


@dataclass(slots=True)
class Grid:
    """Runs, the baseline first, and their cases.

    A thread adds a column for each run that it has read; there are rows once it has read them all.
    """

    runs: Sequence[RunInfo]
    columns: list[RunColumn] = field(default_factory=list)
    names: Sequence[Names] = ()
    """Of the rows, without the number of a repetition, and without the model where each run has one."""
    order: Sequence[int] = ()
    """Rows, those first about which runs disagree most."""
    is_whole: bool = False
    _words: list[tuple[str, str]] = field(default_factory=list)
    _items: dict[Names, int] = field(default_factory=dict)

    def cell(self, column: RunColumn, row: int) -> Cell | None:
        """Returns a cell; None where the run has no answer to the case."""
        cells = column.cells
        if not cells.tries[row]:
            return None
        sort = SORTS[cells.sorts[row]] if cells.sorts[row] != SAME else ""
        numbers = cells.passed[row], cells.tries[row], cells.positions[row]
        return Cell(*self._words[cells.words[row]], *numbers, sort)

    def marked(self, sort: str, run: str) -> bytes:
        """Returns for each row whether that happened to it since the baseline: in a run, or in any.

        Args:
            sort: one of `SORTS`; empty: anything or nothing.
            run: empty: any.
        """
        if not sort:
            return b"\1" * len(self.names)
        table, found = bytes(at == SORTS.index(sort) for at in range(256)), 0
        for column in self.columns:
            if run in ("", column.info.run):
                found |= int.from_bytes(column.cells.sorts.translate(table))
        return found.to_bytes(len(self.names))

    def add(self, info: RunInfo, baseline: Items, items: Items) -> None:
        """Takes a run that was read."""
        found = compare(info.kind, baseline, items)
        pairs, parts = found.pairs, dict[int, frozenset[str]]()
        if found.comparing.are_cases:
            parts = {at: frozenset(item.key[at] for item in items.items) for at in KEY_PARTS.values()}
        sorts = dict[int, int]()
        for sort, listed in enumerate((pairs.broken, pairs.fixed, pairs.changed)):
            sorts.update((pair.after.place, sort) for pair in listed)
        for before, after in pairs.same:
            if before.answer != after.answer:
                sorts[after.place] = TEXT
        cells = _Cells()
        for item in items.items:
            row = self._items.setdefault(item.key[:-1], len(self._items))
            cells.add(row, item, self._word(item), sorts.get(item.place, SAME))
        light = replace(found, pairs=PairedItems())
        self.columns.append(RunColumn(info, light, compare_checks(pairs), cells, parts))

    def _word(self, item: ComparedItem) -> int:
        word = (item.outcome, item.word)
        if word not in self._words:  # there are a handful
            self._words.append(word)
        return self._words.index(word)

    def finish(self) -> None:
        """Puts the items of all runs into rows, and the rows in order."""
        parts = [column.parts for column in self.columns]
        shared = {at for at in KEY_PARTS.values() if all(len(each.get(at, ())) == 1 for each in parts)}
        short = dict[Names, int]()
        rows = [
            short.setdefault(tuple(name for at, name in enumerate(names) if at not in shared), len(short))
            for names in self._items
        ]
        for column in self.columns:
            column.cells = column.cells.scattered(rows, len(short))
        self.names, self._items = list(short), {}
        self.order = array("l", sorted(range(len(short)), key=self._rank))
        self.is_whole = True

    def _rank(self, row: int) -> tuple[float, float]:
        """Orders rows: runs disagree, all failed, all passed."""
        cells = [column.cells for column in self.columns]
        shares = [each.passed[row] / each.tries[row] for each in cells if each.tries[row]]
        is_changed = any(each.sorts[row] < TEXT for each in cells)
        return -max(max(shares) - min(shares), is_changed / 1_000), sum(shares) / len(shares)


def read_items(store: RunStore, info: RunInfo, stopped: Event) -> Items:
    """Reads the items of a run; the place of each is its position.

    Args:
        store: reads the run.
        info: the run.
        stopped: ends the reading early; what was read is of no use then.
    """
    position = 0

    def lines() -> Iterator[tuple[Line, Known | None]]:
        nonlocal position
        for read in lines_of_run(store, info):
            if stopped.is_set():
                return
            position = read.position
            yield read.line, read.known

    return items_of(kinds.of(info.kind).compared().comparing, lines(), keep=lambda _: position)


class _Kept(NamedTuple):
    """A grid that is being read, or was."""

    states: Sequence[str]
    """Of its runs, when the reading began."""
    grid: Grid
    made: Future[None]
    stopped: Event


class Grids:
    """Makes grids, one at a time in a thread, and keeps some."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="grid")
        self._kept = OrderedDict[tuple[str, ...], _Kept]()
        self._lock = Lock()

    def get(self, store: RunStore, runs: Sequence[RunInfo]) -> Grid:
        """Returns the grid of some runs, as far as it is known after a moment.

        What is being read is read to its end, also if runs change meanwhile.

        Args:
            store: reads the runs.
            runs: the baseline first.

        Raises:
            UsageError: these runs cannot be compared.
            RedisUnreachableError: Redis is away.
        """
        _check(runs)
        key, states = tuple(info.run for info in runs), [state_of(info) for info in runs]
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or (kept.made.done() and (kept.states != states or kept.made.exception())):
                grid, stopped = Grid(runs), Event()
                kept = _Kept(states, grid, self._pool.submit(_make, grid, store, stopped), stopped)
                self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)[1].stopped.set()
        with suppress(TimeoutError):
            kept.made.result(WAIT_S)
        return kept.grid

    def close(self) -> None:
        """Ends what is being read."""
        for kept in self._kept.values():
            kept.stopped.set()
        self._pool.shutdown(cancel_futures=True)


def _check(runs: Sequence[RunInfo]) -> None:
    """Refuses runs that cannot be compared."""
    if not 1 < len({info.run for info in runs}) <= MOST_TOGETHER:
        raise UsageError(
            f"a comparison takes 2 to {MOST_TOGETHER} runs", hint="mark them in the list of runs"
        )
    first = runs[0]
    for info in runs:
        if info.kind is not first.kind:
            what = f"{first.run} has {first.kind} and {info.run} has {info.kind}"
            raise UsageError(what, hint="compare runs of one kind")
        if info.total > MOST_ITEMS:
            hint = f"proctor compare {first.run} {info.run} compares two of any size"
            raise UsageError(f"{info.run} has more than {MOST_ITEMS:,} {info.kind}", hint=hint)


def _make(grid: Grid, store: RunStore, stopped: Event) -> None:
    baseline = None
    for info in grid.runs:
        items = read_items(store, info, stopped)
        if stopped.is_set():
            return
        baseline = baseline or items
        grid.add(info, baseline, items)
    grid.finish()
