"""Shows how far a run is: a line that is redrawn on a terminal, a bar in a notebook, rare lines elsewhere."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from shutil import get_terminal_size
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from proctor.following import Event

CELLS: Final = 24
"""Width of the bar, at most."""
FEWEST_CELLS: Final = 4
BAD: Final = {"failed": "failed", "error": "in error"}
"""Outcomes that are counted, and how they are called."""
PLAIN_EVERY_S: Final = 30.0
"""Between two lines where nothing can be redrawn; shorter runs say nothing."""


def progress() -> "Callable[[Event], None]":
    """Returns what shows the events of one run, for the place where this program runs."""
    if notebook := _notebook():
        return _InNotebook(notebook)
    if sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb":
        return _on_terminal
    return _Plain()


def told(event: "Event") -> str:
    """Writes how far a run is.

    >>> from proctor.following import Event
    >>> fields = {"run_id": "run-1", "done": 1200, "total": 2000, "tally": {"failed": 3}, "rate_s": 31.4}
    >>> told(Event("progress", {**fields, "left_s": 83.2, "cost_usd": 0.1234}))
    '1,200 of 2,000 · 3 failed · 31.4/s · $0.12 · 1:23 left'
    """
    line, tally = event.fields, event.fields.get("tally", {})
    parts = [f"{event.done:,} of {event.total:,}"]
    parts += [f"{tally[name]:,} {word}" for name, word in BAD.items() if tally.get(name)]
    if line.get("rate_s") is not None:
        parts.append(f"{line['rate_s']:,.1f}/s")
    if line.get("cost_usd"):
        parts.append(f"${line['cost_usd']:,.2f}")
    if line.get("left_s") is not None:
        minutes, seconds = divmod(int(line["left_s"]), 60)
        parts.append(f"{minutes}:{seconds:02} left")
    return " · ".join(parts)


def _bar(event: "Event", cells: int) -> str:
    """Draws a bar of at most `CELLS`; empty where there is hardly room for one."""
    cells = min(cells, CELLS)
    filled = cells * event.done // event.total if event.total else 0
    return "█" * filled + "░" * (cells - filled) + " " if cells >= FEWEST_CELLS else ""


def _on_terminal(event: "Event") -> None:
    columns = get_terminal_size().columns - 1
    if event.name == "finished":
        line, end = str(event), "\n"
    elif event.name == "progress":
        text = told(event)
        room = columns - len(f"{event.run_id}  {text}")
        line, end = f"{event.run_id} {_bar(event, room)}{text}", ""
    else:
        return
    sys.stderr.write(f"\r{line[:columns]}\x1b[K{end}")
    sys.stderr.flush()


class _Plain:
    """Writes a line now and then, so that logs of long runs show that they go on."""

    def __init__(self) -> None:
        self._written_s = monotonic()

    def __call__(self, event: "Event") -> None:
        if event.name == "progress" and monotonic() - self._written_s >= PLAIN_EVERY_S:
            self._written_s = monotonic()
            sys.stderr.write(f"{event.run_id}: {told(event)}\n")
            sys.stderr.flush()


class _InNotebook:
    """Shows a bar below the cell, which is replaced by the end of the run.

    Args:
        display: IPython's.
    """

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._escape = import_module("html").escape  # start-up: only notebooks need it
        self._shown: Any = None

    def __call__(self, event: "Event") -> None:
        if event.name == "finished":
            self._show(str(event))
        elif event.name == "progress":
            bar = f'<progress value="{event.done}" max="{event.total}"></progress>'
            self._show(f"{event.run_id} {told(event)}", bar)

    def _show(self, text: str, bar: str = "") -> None:
        forms = {"text/plain": text, "text/html": bar + self._escape(text)}
        if self._shown is None:
            self._shown = self._display(forms, raw=True, display_id=True)
        else:
            self._shown.update(forms, raw=True)


def _notebook() -> Callable[..., Any] | None:
    """Returns IPython's `display` in the kernel of a notebook; IPython is not imported for it."""
    ipython = sys.modules.get("IPython")
    if ipython is None or getattr(ipython.get_ipython(), "kernel", None) is None:
        return None
    display: Callable[..., Any] = import_module("IPython.display").display
    return display
