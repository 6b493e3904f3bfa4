"""Shows progress on stderr: a view that redraws itself on a terminal, occasional lines elsewhere."""

from collections.abc import Iterable
from time import monotonic
from typing import Final, Protocol

from producer.cli.live.progress import plain_line
from producer.cli.output import Output, printable
from producer.following import Progress, without_numbers
from producer.following.events import Event, Narrator, as_line
from producer.text import plural

LINE_EVERY_S: Final = 10.0
"""Interval between lines of a log while only numbers change."""


class View(Protocol):
    """Shows snapshots of a run."""

    def loading(self, source: str, items: int) -> None:
        """Shows how much of the input was read."""

    def note(self, text: str) -> None:
        """Shows a note once."""

    def show(self, progress: Progress) -> None:
        """Shows a snapshot."""

    def close(self) -> None:
        """Restores the terminal."""


class NoView:
    """Shows nothing: `--quiet` and `--no-progress`."""

    def loading(self, source: str, items: int) -> None:
        """Shows nothing."""

    def note(self, text: str) -> None:
        """Shows nothing."""

    def show(self, progress: Progress) -> None:
        """Shows nothing."""

    def close(self) -> None:
        """Does nothing."""


class PlainView:
    """Writes a line if something changes, and one every ten seconds."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._last_s = monotonic()
        self._last_reason: tuple[str, str] = ("", "")
        self._shown_at: dict[tuple[str, str], float] = {}

    def loading(self, source: str, items: int) -> None:
        """Writes how much was read, each ten seconds."""
        if monotonic() - self._last_s >= LINE_EVERY_S:
            self._last_s = monotonic()
            self._output.note(f"reading {printable(source)}: {plural(items, 'item')} so far")

    def note(self, text: str) -> None:
        """Writes a line."""
        self._output.note(text)

    def show(self, progress: Progress) -> None:
        """Writes a line if the state or the reason to wait has changed, or after ten seconds."""
        reason, now_s = (progress.state, without_numbers(progress.why)), monotonic()
        # A limit may block and release many times a minute: one line is enough for a while.
        is_new = (
            reason != self._last_reason and now_s - self._shown_at.get(reason, -LINE_EVERY_S) >= LINE_EVERY_S
        )
        if not is_new and now_s - self._last_s < LINE_EVERY_S:
            return
        self._last_reason = reason
        self._shown_at[reason] = self._last_s = now_s
        self._output.note(printable(plain_line(progress)))

    def close(self) -> None:
        """Does nothing."""


class EventLines:
    """Writes events as JSON Lines to stdout, in addition to a view for people on stderr."""

    def __init__(self, output: Output, beside: View) -> None:
        self._output, self._beside = output, beside
        self._narrator = Narrator()

    def loading(self, source: str, items: int) -> None:
        """Writes how much of the input was read."""
        self._beside.loading(source, items)
        self._write(self._narrator.loading(source, items))

    def note(self, text: str) -> None:
        """Shows a note to people."""
        self._beside.note(text)

    def show(self, progress: Progress) -> None:
        """Writes what has changed since the last snapshot."""
        self._beside.show(progress)
        self._write(self._narrator.told(progress))

    def close(self) -> None:
        """Restores the terminal."""
        self._beside.close()

    def _write(self, events: Iterable[Event]) -> None:
        for event in events:
            self._output.data(as_line(event))


def open_view(output: Output) -> View:
    """Returns the view that fits the terminal and the options."""
    view = _for_people(output)
    return EventLines(output, view) if output.options.jsonl else view


def _for_people(output: Output) -> View:
    """Returns the view on stderr."""
    if output.live:
        from producer.cli.live.drawing import LiveView  # noqa: PLC0415 - start-up: only a terminal pays for rich

        return LiveView(color=output.error_color)
    if output.options.quiet or output.options.no_progress:
        return NoView()
    return PlainView(output)
