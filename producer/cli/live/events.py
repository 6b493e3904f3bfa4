"""Writes the progress of a run as JSON Lines on stdout: one event per change, a few per second at most."""

import json
from dataclasses import replace
from time import monotonic
from typing import Final

from msgspec import to_builtins

from producer.cli.live.progress import CallsSoFar, FailedItem, Progress, View, without_numbers
from producer.cli.output import Output
from producer.cli.service_documents import (
    FailureEvent,
    LoadingEvent,
    ProgressEvent,
    SubmittedEvent,
    WaitingEvent,
)
from producer.documents import SCHEMA_VERSION, AnyRun
from shared.names import FINAL_STATES

EVERY_S: Final = 0.5
"""Between two events of progress."""


def write_finished(output: Output, document: AnyRun) -> None:
    """Writes the document of a run as its last event."""
    event = {"schema_version": SCHEMA_VERSION, "event": "finished", **to_builtins(document)}
    output.data(json.dumps(event, ensure_ascii=False))


class Events:
    """A view for programs, in addition to one for people.

    Args:
        output: where events go.
        beside: the view for people, on stderr.
    """

    def __init__(self, output: Output, beside: View) -> None:
        self._output = output
        self._beside = beside
        self._written_s = -EVERY_S
        self._last: Progress | None = None
        self._last_reason = ""
        self._failed: tuple[FailedItem, ...] = ()

    def loading(self, source: str, items: int) -> None:
        """Writes how much of the input was read."""
        self._beside.loading(source, items)
        if monotonic() - self._written_s >= EVERY_S:
            self._written_s = monotonic()
            self._output.document(LoadingEvent(source=source, items=items))

    def note(self, text: str) -> None:
        """Shows a note to people."""
        self._beside.note(text)

    def show(self, progress: Progress) -> None:
        """Writes what has changed since the last snapshot."""
        self._beside.show(progress)
        run, write = progress.run, self._output.document
        if self._last is None:
            kind, total, source = progress.kind.name, progress.total, progress.source
            write(SubmittedEvent(run_id=run, kind=kind, total=total, source=source))
        for failed in reversed(progress.calls.failed):
            if failed not in self._failed:
                write(FailureEvent(run_id=run, item=failed.item, code=failed.code, message=failed.message))
        self._failed = progress.calls.failed
        if (reason := without_numbers(progress.why)) != self._last_reason:
            self._last_reason = reason
            if progress.why:
                write(WaitingEvent(run_id=run, why=progress.why))
        self._progress(progress)

    def close(self) -> None:
        """Leaves the terminal in order."""
        self._beside.close()

    def _progress(self, progress: Progress) -> None:
        """Writes the numbers if one has changed and the last event is old enough."""
        moved = replace(
            progress,
            why=without_numbers(progress.why),
            calls=CallsSoFar(in_flight=progress.calls.in_flight),
            elapsed_s=0.0,
            workers=0,
            queued=0,
            rate_s=None,
        )
        is_late = monotonic() - self._written_s >= EVERY_S or progress.state in FINAL_STATES
        if moved == self._last or not (is_late or self._last is None):
            return
        self._last, self._written_s = moved, monotonic()
        self._output.document(_event_of(progress))


def _event_of(progress: Progress) -> ProgressEvent:
    """Returns a snapshot as programs get it."""
    calls = progress.calls
    return ProgressEvent(
        run_id=progress.run,
        state=str(progress.state),
        done=progress.done,
        total=progress.total,
        tally=dict(progress.tally),
        in_flight=calls.in_flight,
        why=progress.why,
        rate_s=None if progress.rate_s is None else round(progress.rate_s, 2),
        left_s=None if progress.left_s is None else round(progress.left_s, 1),
        elapsed_s=round(progress.elapsed_s, 2),
        queued=progress.queued,
        workers=progress.workers,
        limits=calls.limits,
        cost_usd=progress.cost_usd,
        max_cost_usd=calls.cap_usd,
    )
