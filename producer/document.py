"""The one JSON document of a run, and the exit code it stands for: what `--json` prints, at any time."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from producer.aggregate.turns import TurnTotals
from shared.names import RunState
from shared.runs import RunInfo, RunStore, TurnRow

SCHEMA_VERSION: Final = 1

EXIT_DONE: Final = 0
EXIT_NOT_GOOD: Final = 1
EXIT_INFRASTRUCTURE: Final = 3
EXIT_INCOMPLETE: Final = 4


class Report(Protocol):
    """Something that is written while the rows of a run go by."""

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Takes some rows, in input order."""

    def end(self, document: Mapping[str, Any]) -> None:
        """Takes the document, after the last row."""


def run_document(
    store: RunStore, run: str, *, reports: Sequence[Report] = (), files: Sequence[Mapping[str, str]] = ()
) -> dict[str, Any]:
    """Reads a run once, from the first row to the last, and says what became of it.

    Args:
        store: reads the run.
        run: its id.
        reports: are written in the same pass.
        files: `format` and `path` of each file that is being written.

    Raises:
        UnknownRunError: there is no such run.
        RedisUnreachableError: Redis stays away.
    """
    info, totals = store.info(run), TurnTotals()
    for rows in store.pages(run):
        totals.add(rows)
        for report in reports:
            report.page(rows)
    document = document_of(info, totals, files=files)
    for report in reports:
        report.end(document)
    return document


def document_of(
    info: RunInfo, totals: TurnTotals, *, files: Sequence[Mapping[str, str]] = ()
) -> dict[str, Any]:
    """Puts together what is known of a turns run."""
    counts = totals.counts(info.total)
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": info.run,
        "kind": info.kind.value,
        "state": info.state.value,
        "counts": counts,
        "summary": {**totals.summary(), **_circumstances(info)},
        "files": [dict(file) for file in files],
        "exit": exit_code(info.state, counts),
    }


def exit_code(state: RunState, counts: Mapping[str, int]) -> int:
    """Says how a command that waited for the run exits; a run that goes on has nothing wrong so far.

    >>> exit_code(RunState.FINISHED, {"error": 0}), exit_code(RunState.FINISHED, {"error": 2})
    (0, 1)
    >>> exit_code(RunState.CANCELLED, {"error": 2}), exit_code(RunState.ABORTED, {"error": 2})
    (4, 3)
    """
    match state:
        case RunState.FINISHED:
            return EXIT_NOT_GOOD if counts["error"] else EXIT_DONE
        case RunState.ABORTED:
            return EXIT_INFRASTRUCTURE
        case RunState.CANCELLED | RunState.INCOMPLETE:
            return EXIT_INCOMPLETE
        case RunState.LOADING | RunState.RUNNING | RunState.PAUSED | RunState.CANCELLING:
            return EXIT_DONE


def _circumstances(info: RunInfo) -> dict[str, Any]:
    """What is told beside the numbers: threads, time and where it came from."""
    duration_ms = info.duration_ms
    return {
        "threads": info.threads,
        "source": info.source,
        "summary_policy": info.snapshot.get("summary_policy", ""),
        "namespace": info.namespace,
        "duration_s": None if duration_ms is None else round(duration_ms / 1000, 3),
        "turns_per_s": round(1000 * info.total / duration_ms, 1) if duration_ms else None,
    }
