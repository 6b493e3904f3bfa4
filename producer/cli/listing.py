"""Writes lists of runs, for people and for programs."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from producer.cli.output import Output, printable
from producer.cli.wording import count, duration, share
from shared.clock import iso_utc
from shared.names import RunState
from shared.runs import RunInfo, RunStore

COLUMNS: Final = ("RUN", "STATE", "DONE", "ITEMS", "SUBMITTED", "TOOK", "SOURCE")


def reasons(store: RunStore, runs: Iterable[RunInfo]) -> dict[str, str]:
    """Reads why runs do not move, by run; only what is under way, or was cut short, has a reason."""
    waiting = [info for info in runs if not info.is_final or info.state == RunState.INCOMPLETE]
    return {info.run: store.why_of(info, store.standing(info)) for info in waiting}


def print_runs(output: Output, runs: Sequence[RunInfo], why: Mapping[str, str]) -> None:
    """Writes runs as a table to stdout, one line each, and on stderr what those wait for that do not move."""
    rows = [
        (
            info.run,
            str(info.state),
            share(info.done, info.total),
            count(info.total),
            when(info.created_ms),
            "" if info.duration_ms is None else duration(info.duration_ms / 1000),
            info.source,
        )
        for info in runs
    ]
    output.table(COLUMNS, rows, right=("DONE", "ITEMS", "TOOK"))
    for info in runs:
        if reason := why.get(info.run):
            output.note(printable(f"{info.run} {'ended' if info.is_final else 'waits'}: {reason}"))


def when(epoch_ms: int) -> str:
    """Writes a time as a person reads it: of this machine, with the year only when it is another."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC).astimezone()
    is_this_year = moment.year == datetime.now(UTC).year
    return moment.strftime("%b %d %H:%M" if is_this_year else "%Y-%m-%d %H:%M")


def run_as_dict(info: RunInfo, why: str = "") -> dict[str, Any]:
    """Returns what is known of a run without its results; totals by outcome are in its own document."""
    return {
        "run_id": info.run,
        "kind": info.kind,
        "state": info.state,
        "namespace": info.namespace,
        "total": info.total,
        "done": info.done,
        "threads": info.threads,
        "created_at": iso_utc(info.created_ms),
        "finished_at": None if info.finished_ms is None else iso_utc(info.finished_ms),
        "source": info.source,
        "why": why,
    }
