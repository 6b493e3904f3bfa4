"""The table of runs for `runs list` and `status`: mark, id, kind, name, state, pass rate, payment, age."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from producer.cli.output import Output, Style, printable
from producer.run_standing import Standing, passed_of, standing_of, state_text
from producer.text import age, cost, count, percent, rate
from shared.clock import now_ms
from shared.kinds import TURNS, Kind
from shared.names import RunState
from shared.runs import RunInfo
from shared.runs.served import StreamState

COLUMNS: Final = ("", "RUN", "KIND", "NAME", "STATE", "ITEMS", "PASSED", "PAID", "AGE")
RIGHT: Final = ("ITEMS", "PASSED", "PAID", "AGE")
SPARE: Final = ("ITEMS", "PAID", "KIND")
"""Columns that a narrow terminal omits, in this order; `--json` has everything."""
CUT: Final = ("NAME", "RUN")
"""Columns whose cells are cut in the middle, the first one first."""
NOTHING: Final = "-"
SERVED: Final = "proctor serve"
"""What a stream has in place of a name."""
_WORKING: Final = frozenset({RunState.RUNNING, RunState.LOADING, RunState.CANCELLING})
_MARKS: Final[Mapping[Standing, tuple[str, Style]]] = {
    Standing.GOOD: ("✓", "green"),
    Standing.BAD: ("✗", "red"),
    Standing.SHORT: ("!", "yellow"),
    Standing.WORKING: ("●", "cyan"),
    Standing.WAITING: ("○", "yellow"),
}
"""Mark and colour by how a run stands."""


def print_runs(
    output: Output,
    runs: Sequence[RunInfo],
    why: Mapping[str, str],
    *,
    worked_on: Collection[Kind],
    streams: Sequence[StreamState] = (),
) -> None:
    """Prints runs as a table to stdout, and the reasons of waiting runs to stderr.

    Args:
        output: where to.
        runs: the newest first.
        why: reasons of runs that wait, by id.
        worked_on: kinds that a live worker works on.
        streams: of served turns, a line each before the runs.
    """
    marks = [_MARKS[standing_of(info, is_worked_on=info.kind in worked_on)] for info in runs]
    rows = [
        (mark, *_cells(info, is_worked_on=info.kind in worked_on))
        for (mark, _), info in zip(marks, runs, strict=True)
    ]
    rows = [*map(_stream_cells, streams), *rows]
    styles = [*(_MARKS[Standing.WORKING][1] for _ in streams), *(style for _, style in marks)]
    output.table(COLUMNS, rows, right=RIGHT, spare=SPARE, middle=CUT, marks=styles, style_of=_style)
    for info in runs:
        if reason := why.get(info.run):
            output.note(printable(f"{info.run} {'ended' if info.is_final else 'waits'}: {reason}"))


def _style(heading: str, cell: str) -> Style | None:
    """Returns the colour of a state; a run that has finished has the colour of its mark alone.

    >>> _style("STATE", "interrupted 85%"), _style("STATE", "finished"), _style("NAME", "paused")
    ('yellow', None, None)
    """
    if heading != "STATE" or cell == RunState.FINISHED:
        return None
    word = cell.partition(" ")[0]
    return "red" if word == RunState.ABORTED else "cyan" if word in _WORKING else "yellow"


def passed_text(info: RunInfo) -> str:
    """Returns which part of the items with a result passed; `-` where nothing is checked or answered."""
    found = passed_of(info)
    return NOTHING if found is None else percent(found.passed / found.done)


def _stream_cells(state: StreamState) -> tuple[str, ...]:
    """Writes the row of a stream: its turns today and its rate."""
    mark, _ = _MARKS[Standing.WORKING]
    today = f"{count(state.today.total)} today"
    return (mark, state.name, TURNS.name, SERVED, rate(state.per_s), today, NOTHING, NOTHING, NOTHING)


def _cells(info: RunInfo, *, is_worked_on: bool) -> tuple[str, ...]:
    """Writes a row without its mark."""
    return (
        info.run,
        info.kind.name,
        info.title,
        state_text(info, is_worked_on=is_worked_on),
        count(info.total),
        passed_text(info),
        cost(info.paid_usd) if info.paid_usd else NOTHING,
        age((now_ms() - info.created_ms) / 1000),
    )
