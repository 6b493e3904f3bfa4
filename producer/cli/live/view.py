"""Shows progress on stderr: a view that redraws itself on a terminal, occasional lines elsewhere."""

from time import monotonic
from typing import Final

from producer.cli.live.progress import Progress, View, plain_line, without_numbers
from producer.cli.output import Output, printable
from producer.text import plural

LINE_EVERY_S: Final = 10.0
"""Interval between lines of a log while only numbers change."""


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


def open_view(output: Output) -> View:
    """Returns the view that fits the terminal and the options."""
    if not output.options.jsonl:
        return _for_people(output)
    from producer.cli.live.events import Events  # noqa: PLC0415 - only `--jsonl` needs it

    return Events(output, _for_people(output))


def _for_people(output: Output) -> View:
    """Returns the view on stderr."""
    if output.live:
        from producer.cli.live.drawing import LiveView  # noqa: PLC0415 - start-up: only a terminal pays for rich

        return LiveView(color=output.error_color)
    if output.options.quiet or output.options.no_progress:
        return NoView()
    return PlainView(output)
