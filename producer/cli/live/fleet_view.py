"""Shows the fleet periodically: in place on a terminal, as lines elsewhere, as JSON Lines for programs."""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from time import monotonic
from typing import Any, Final

from msgspec.structs import replace

from producer.cli.error_exit import describe
from producer.cli.live.fleet import HEADINGS, SPARE, UNITS, WORKER_HEADINGS, queue_cells, worker_cells
from producer.cli.output import Output, printable
from producer.following import Meter
from producer.service_documents import ListedRun, StatusDocument
from producer.tables import aligned_lines, drop_columns
from producer.text import count, plural, rate, share
from shared.errors import RedisUnreachableError
from shared.names import FINAL_STATES

EVERY_S: Final = 1.0
"""Polling interval."""
LINE_EVERY_S: Final = 10.0
"""Interval between lines of a log while only numbers change."""


class Rates:
    """Measures the rates of running runs between two snapshots."""

    def __init__(self) -> None:
        self._meters: dict[str, Meter] = {}

    def of(self, document: StatusDocument) -> dict[str, float | None]:
        """Adds a snapshot; returns items per second by run."""
        runs = [run for run in document.runs if run.state not in FINAL_STATES]
        self._meters = {run.run_id: self._meters.get(run.run_id, Meter()) for run in runs}
        now_s = monotonic()
        return {run.run_id: self._meters[run.run_id].rate(now_s, run.done) for run in runs}


def watch_fleet(output: Output, read: Callable[[], StatusDocument]) -> None:
    """Shows the results of `read` until Ctrl-C.

    Args:
        output: where it is shown.
        read: returns a snapshot, the document that `status --json` prints.
    """
    rates, pause = Rates(), threading.Event()
    with ExitStack() as stack:
        show = _viewer(output, stack)
        while True:
            show(*_look(read, rates))
            pause.wait(EVERY_S)


def screen_lines(
    document: StatusDocument, rates: Mapping[str, float | None], *, width: int, height: int
) -> list[str]:
    """Formats a snapshot for a terminal of this size: queues, running runs, workers.

    Args:
        document: as `status --json` prints it.
        rates: items a second by run.
        width: cells of a line.
        height: lines.
    """
    cells = [queue_cells(queue) for queue in document.queues]
    shown, queues = drop_columns(("QUEUE", *HEADINGS), cells, spare=SPARE, width=width)
    lines = [*aligned_lines(shown, queues, right=HEADINGS, width=width), UNITS[:width], ""]
    columns = ("RUN", "STATE", "DONE", "ITEMS", "RATE", "WAITS FOR")
    runs = [_run_cells(run, rates[run.run_id]) for run in document.runs if run.run_id in rates]
    if runs:
        lines += [*aligned_lines(columns, runs, right=columns[2:5], width=width), ""]
    else:
        lines += ["no run is under way", ""]
    workers = [worker_cells(worker) for worker in document.workers]
    if workers:
        lines += aligned_lines(WORKER_HEADINGS, workers, right=WORKER_HEADINGS[2:], width=width)
    else:
        lines += ["no worker is alive; start one with `proctor worker`"[:width]]
    if document.dead:
        lines += ["", f"{plural(document.dead, 'dead item')}, see `proctor dead list`"[:width]]
    if len(lines) > height:
        hidden = len(lines) - height + 1
        lines = [*lines[: height - 1], f"… and {plural(hidden, 'more line')}"]
    return lines


def plain_line(document: StatusDocument, rates: Mapping[str, float | None]) -> str:
    """Formats a snapshot as one line of a log."""
    lengths = [queue.queued for queue in document.queues if queue.queued is not None]
    queued = None if len(lengths) < len(document.queues) else sum(lengths)
    parts = [f"workers {len(document.workers)} queue {count(queued)} dead {count(document.dead)}"]
    for run in document.runs:
        if run.run_id in rates:
            cells = _run_cells(run, rates[run.run_id])
            waits = f" waiting: {cells[5]}" if cells[5] else ""
            parts.append(f"{cells[0]} {cells[1]} {cells[2]} of {cells[3]} {cells[4]}{waits}".strip())
    return " | ".join(parts)


def _look(
    read: Callable[[], StatusDocument], rates: Rates
) -> tuple[StatusDocument | None, dict[str, float | None]]:
    """Reads a snapshot; None while Redis does not answer."""
    try:
        document = read()
    except Exception as error:
        failure = describe(error)
        if failure is None or failure.code != RedisUnreachableError.code:
            raise
        return None, {}
    return document, rates.of(document)


def _viewer(
    output: Output, stack: ExitStack
) -> Callable[[StatusDocument | None, Mapping[str, float | None]], None]:
    """Chooses how snapshots are shown."""
    if output.options.json:
        return lambda document, rates: _print_json(output, document, rates)
    if not (sys.stdout.isatty() and output.live):
        return _Lines(output).show
    from rich.text import Text  # noqa: PLC0415 - start-up: only a terminal pays for rich

    from producer.cli.live.drawing import InPlace, live_console  # noqa: PLC0415 - same

    console = live_console(sys.stdout, color=output.color)
    place = InPlace(console, transient=False)
    stack.callback(place.close)

    def show(document: StatusDocument | None, rates: Mapping[str, float | None]) -> None:
        """Draws a snapshot in place."""
        if document is None:
            place.show(lambda _: Text("Redis does not answer; waiting for it", no_wrap=True))
            return
        place.show(
            lambda size: _painted(
                screen_lines(document, rates, width=size.width, height=size.height - 1), Text
            )
        )

    return show


def _painted(lines: Sequence[str], text: Any) -> Any:
    """Puts lines together, headings dim."""
    drawn = text(no_wrap=True, overflow="ellipsis")
    for number, line in enumerate(lines):
        is_heading = line.startswith(("QUEUE ", "RUN ", "WORKER ", UNITS[:10]))
        drawn.append(("\n" if number else "") + line, "dim" if is_heading else "")
    return drawn


def _print_json(output: Output, document: StatusDocument | None, rates: Mapping[str, float | None]) -> None:
    """Writes a snapshot as JSON; nothing while Redis does not answer."""
    if document is not None:
        runs = tuple(replace(run, rate_s=_rounded(rates.get(run.run_id))) for run in document.runs)
        output.document(replace(document, runs=runs))


class _Lines:
    """Writes a line if workers or states have changed, and one every ten seconds."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._last_state: Any = None
        self._last_s = 0.0

    def show(self, document: StatusDocument | None, rates: Mapping[str, float | None]) -> None:
        """Shows a snapshot."""
        parts: Any = None
        if document is not None:
            under_way = [(run.run_id, run.state) for run in document.runs if run.run_id in rates]
            parts = (len(document.workers), under_way, document.dead)
        now_s = monotonic()
        if parts == self._last_state and now_s - self._last_s < LINE_EVERY_S:
            return
        self._last_state, self._last_s = parts, now_s
        if document is None:
            self._output.note("Redis does not answer; waiting for it")
        else:
            self._output.data(printable(plain_line(document, rates)))


def _run_cells(run: ListedRun, per_s: float | None) -> tuple[str, ...]:
    """Formats a running run."""
    return (
        printable(run.run_id),
        str(run.state),
        share(run.done, run.total),
        count(run.total),
        "" if per_s is None else rate(per_s),
        printable(run.why),
    )


def _rounded(per_s: float | None) -> float | None:
    """Rounds a rate for programs."""
    return None if per_s is None else round(per_s, 2)
