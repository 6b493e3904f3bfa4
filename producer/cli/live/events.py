"""Writes the progress of a run as JSON Lines on stdout: one event per change, a few per second at most."""

import json
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from producer.cli.error_exit import SCHEMA_VERSION
from producer.cli.live.progress import FailedItem, Progress, without_numbers
from producer.cli.output import Output
from shared.names import FINAL_STATES

if TYPE_CHECKING:
    from producer.cli.live.view import View

EVERY_S: Final = 0.5
"""Between two events of progress."""


def write_event(output: Output, event: str, fields: Mapping[str, Any]) -> None:
    """Writes one event."""
    output.data(json.dumps({"schema_version": SCHEMA_VERSION, "event": event, **fields}, ensure_ascii=False))


class Events:
    """A view for programs, in addition to one for people.

    Args:
        output: where events go.
        beside: the view for people, on stderr.
    """

    def __init__(self, output: Output, beside: "View") -> None:
        self._output = output
        self._beside = beside
        self._written_s = -EVERY_S
        self._last: dict[str, Any] = {}
        self._last_reason = ""
        self._failed: tuple[FailedItem, ...] = ()

    def loading(self, source: str, items: int) -> None:
        """Writes how much of the input was read."""
        self._beside.loading(source, items)
        if monotonic() - self._written_s >= EVERY_S:
            self._written_s = monotonic()
            write_event(self._output, "loading", {"source": source, "items": items})

    def note(self, text: str) -> None:
        """Shows a note to people."""
        self._beside.note(text)

    def show(self, progress: Progress) -> None:
        """Writes what has changed since the last snapshot."""
        self._beside.show(progress)
        run = {"run_id": progress.run}
        if not self._last:
            known = {"kind": progress.kind.name, "total": progress.total, "source": progress.source}
            write_event(self._output, "submitted", {**run, **known})
        for failed in reversed(progress.calls.failed):
            if failed not in self._failed:
                write_event(self._output, "failure", {**run, **failed._asdict()})
        self._failed = progress.calls.failed
        if (reason := without_numbers(progress.why)) != self._last_reason:
            self._last_reason = reason
            if progress.why:
                write_event(self._output, "waiting", {**run, "why": progress.why})
        self._progress(progress)

    def close(self) -> None:
        """Leaves the terminal in order."""
        self._beside.close()

    def _progress(self, progress: Progress) -> None:
        """Writes the numbers if one has changed and the last event is old enough."""
        counted = {
            "state": str(progress.state),
            "done": progress.done,
            "total": progress.total,
            "tally": dict(progress.tally),
            "in_flight": progress.calls.in_flight,
            "why": progress.why,
        }
        moved = {**counted, "why": without_numbers(progress.why)}
        is_late = monotonic() - self._written_s >= EVERY_S or progress.state in FINAL_STATES
        if moved == self._last or not (is_late or not self._last):
            return
        self._last, self._written_s = moved, monotonic()
        calls = progress.calls
        figures = {
            "rate_s": None if progress.rate_s is None else round(progress.rate_s, 2),
            "left_s": None if progress.left_s is None else round(progress.left_s, 1),
            "elapsed_s": round(progress.elapsed_s, 2),
            "queued": progress.queued,
            "workers": progress.workers,
            "limits": list(calls.limits),
            "cost_usd": progress.cost_usd,
            "max_cost_usd": calls.cap_usd,
        }
        write_event(self._output, "progress", {"run_id": progress.run, **counted, **figures})
