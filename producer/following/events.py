"""What happens to a run, as typed events; each is one line of `--jsonl`, and can be sent as it is."""

import json
from time import monotonic
from typing import Final, Literal

from msgspec import to_builtins

from producer.documents import SCHEMA_VERSION, AnyRun, Part, Version, as_json
from producer.following import FailedItem, Progress, without_numbers
from producer.service_documents import (
    FailureEvent,
    LoadingEvent,
    ProgressEvent,
    SubmittedEvent,
    WaitingEvent,
)
from shared.names import FINAL_STATES

EVERY_S: Final = 0.5
"""Between two events of progress."""


class FinishedEvent(Part, frozen=True, kw_only=True):
    """The run has ended; the line of this event is its document."""

    schema_version: Version = SCHEMA_VERSION
    event: Literal["finished"] = "finished"
    document: AnyRun


Event = LoadingEvent | SubmittedEvent | FailureEvent | WaitingEvent | ProgressEvent | FinishedEvent


def as_line(event: Event) -> str:
    """Encodes an event as one line of JSON.

    >>> as_line(WaitingEvent(run_id="run-1", why="no worker is alive"))
    '{"schema_version": 2, "event": "waiting", "run_id": "run-1", "why": "no worker is alive"}'
    """
    if not isinstance(event, FinishedEvent):
        return as_json(event)
    head = {"schema_version": event.schema_version, "event": event.event}
    return json.dumps({**head, **to_builtins(event.document)}, ensure_ascii=False)


class Narrator:
    """Makes events of snapshots: one for each change, and progress at most twice a second."""

    def __init__(self) -> None:
        self._told_s = -EVERY_S
        self._last: ProgressEvent | None = None
        self._last_reason = ""
        self._failed: tuple[FailedItem, ...] = ()

    def loading(self, source: str, items: int) -> list[Event]:
        """Tells how much of the input was read."""
        if monotonic() - self._told_s < EVERY_S:
            return []
        self._told_s = monotonic()
        return [LoadingEvent(source=source, items=items)]

    def told(self, progress: Progress) -> list[Event]:
        """Tells what has changed since the last snapshot."""
        run, events = progress.run, list[Event]()
        if self._last is None:
            events.append(
                SubmittedEvent(
                    run_id=run, kind=progress.kind.name, total=progress.total, source=progress.source
                )
            )
        for failed in reversed(progress.calls.failed):
            if failed not in self._failed:
                events.append(FailureEvent(run_id=run, **failed._asdict()))
        self._failed = progress.calls.failed
        if (reason := without_numbers(progress.why)) != self._last_reason:
            self._last_reason = reason
            if progress.why:
                events.append(WaitingEvent(run_id=run, why=progress.why))
        now, is_late = _event_of(progress), monotonic() - self._told_s >= EVERY_S
        has_moved = self._last is None or _counted(now) != _counted(self._last)
        if has_moved and (is_late or self._last is None or progress.state in FINAL_STATES):
            self._last, self._told_s = now, monotonic()
            events.append(now)
        return events


def _event_of(progress: Progress) -> ProgressEvent:
    """Makes the event of a snapshot."""
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


def _counted(event: ProgressEvent) -> tuple[object, ...]:
    """Returns what has to change for a further event: no times, rates, or seconds in a reason to wait."""
    return event.state, event.done, event.total, event.tally, event.in_flight, without_numbers(event.why)
