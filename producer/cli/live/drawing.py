"""Draws the live view with rich, on stderr. Imported only when stderr is a terminal."""

import sys
from collections.abc import Callable, Iterable
from copy import copy
from time import monotonic
from typing import IO, Final, Literal

from rich.console import Console, ConsoleDimensions, Group, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from producer.cli.live.progress import figures, money, outcomes
from producer.cli.output import printable
from producer.following import Progress
from producer.text import count, share
from shared.names import FINAL_STATES

DRAW_EVERY_S: Final = 0.1
OUTCOMES: Final = {"passed": "green", "failed": "red", "errors": "yellow"}
"""Colours of outcomes."""
MAX_WIDTH: Final = 100
"""Lines longer than this are harder to read, however wide the terminal is."""


def live_console(stream: IO[str], *, color: bool) -> Console:
    """Makes a console that redraws; without colours it moves the cursor all the same."""
    # Numbers in colours of rich's own choice would be noise.
    system: Literal["auto"] | None = "auto" if color else None
    return Console(file=stream, highlight=False, force_terminal=True, color_system=system)


class InPlace:
    """Draws over what it drew before, also where the terminal has become narrower since.

    A terminal that becomes narrower breaks lines that are too long for it, so that more of them have to be
    erased than were drawn. Its size is read once for each drawing: one that was made for two sizes, since the
    terminal changed meanwhile, could not be erased.

    Args:
        console: where it draws.
        transient: whether nothing of it stays at its end.
    """

    def __init__(self, console: Console, *, transient: bool) -> None:
        self.console = console
        self._terminal = copy(console)
        """Has the size of now, while that of `console` is the one of its last drawing."""
        self._is_transient = transient
        self._drawn = list[int]()
        """Cells of each line that was drawn."""
        self._fit()
        self._live = self._started()

    def _fit(self) -> bool:
        """Takes over the size of the terminal; returns whether it has become narrower."""
        before, self.console.size = self.console.width, self._terminal.size
        return self.console.width < before

    def _started(self) -> Live:
        live = Live(console=self.console, auto_refresh=False, transient=self._is_transient)
        live.start()
        return live

    def show(self, draw: Callable[[ConsoleDimensions], RenderableType]) -> None:
        """Draws what is made for the size of the terminal."""
        if self._fit():
            self._erase_broken()
        drawing = draw(self.console.size)
        self._live.update(drawing, refresh=True)
        lines = self.console.render_lines(drawing, pad=False)
        self._drawn = [Segment.get_line_length(line) for line in lines]

    def close(self) -> None:
        """Ends."""
        if self._fit() and self._is_transient:
            self._erase_broken()
        self._live.stop()

    def _erase_broken(self) -> None:
        """Erases what was drawn, with the lines that the terminal has added by breaking it."""
        added = sum(max(0, -(-cells // self.console.width) - 1) for cells in self._drawn)
        if not added:
            return
        self._live.transient = True  # its own lines are erased by it
        self._live.stop()
        self.console.file.write(f"\x1b[{added}A\r\x1b[J")
        self.console.file.flush()
        self._live = self._started()


class LiveView:
    """Redraws a few lines in place."""

    def __init__(self, console: Console | None = None, *, color: bool = True) -> None:
        self._place = InPlace(console or live_console(sys.stderr, color=color), transient=True)
        self._drawn_s = 0.0

    def loading(self, source: str, items: int) -> None:
        """Draws how much was read, a few times a second at most: reading is faster than drawing."""
        if monotonic() - self._drawn_s < DRAW_EVERY_S:
            return
        self._drawn_s = monotonic()
        line = Text.assemble(("reading ", "dim"), printable(source), "  ", (count(items), "bold"), " items")
        self._place.show(lambda _: line)

    def note(self, text: str) -> None:
        """Writes a line above the view, where it stays."""
        self._place.console.print(Text(printable(text)))

    def show(self, progress: Progress) -> None:
        """Draws one snapshot."""
        self._place.show(lambda size: draw(progress, min(size.width, MAX_WIDTH)))

    def close(self) -> None:
        """Removes the view before the summary is printed."""
        self._place.close()


def draw(progress: Progress, width: int) -> Group:
    """Returns a snapshot as four lines, and more if there are limits, failures, or a reason to wait."""
    state = Text(progress.state, style="green" if progress.state in FINAL_STATES else "cyan")
    head = Text.assemble((progress.run, "bold"), "  ", (printable(progress.source), "dim"), no_wrap=True)
    head.truncate(max(1, width - len(state) - 2), overflow="ellipsis")
    head.append(" " * max(1, width - head.cell_len - len(state))).append_text(state)
    lines = [
        head,
        _bar(progress, width),
        _pairs([*outcomes(progress), *money(progress)]),
        _pairs(figures(progress)),
        *(_line(("limit  ", "dim"), printable(limit)) for limit in progress.calls.limits),
        *(
            _line(("failed  ", "red"), f"{printable(item)}  {code}  ", (printable(message), "dim"))
            for item, code, message in progress.calls.failed
        ),
    ]
    if progress.why:
        lines.append(Text.assemble(("waiting  ", "yellow"), printable(progress.why)))
    return Group(*lines)


def _line(*parts: str | tuple[str, str]) -> Text:
    """Draws one line, cut where the terminal ends."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _bar(progress: Progress, width: int) -> Text:
    """Draws the bar with its numbers behind it."""
    label = f"  {share(progress.done, progress.total):>5}  {count(progress.done)} of {count(progress.total)}"
    cells = max(10, width - len(label))
    full = cells * progress.done // progress.total if progress.total else 0
    return Text.assemble(("━" * full, "green"), ("━" * (cells - full), "bright_black"), label, no_wrap=True)


def _pairs(pairs: Iterable[tuple[str, str]]) -> Text:
    """Draws words in grey with their numbers, those of outcomes that occurred in their colours."""
    line = Text(no_wrap=True, overflow="ellipsis")
    for word, number in pairs:
        style = "" if number == "0" else OUTCOMES.get(word, "")
        line.append(f"{word} ", "dim").append(number, style).append("   ")
    return line
