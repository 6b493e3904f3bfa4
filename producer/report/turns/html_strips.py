"""Draws what became of the turns of a thread, one cell a turn: by height as well as by colour."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

from producer.report.html.page import markup

if TYPE_CHECKING:
    from markupsafe import Markup

STEP: Final = 7
"""From one cell to the next."""
HEIGHT: Final = 20
MOST_CELLS: Final = 200
"""Turns of a thread that are drawn."""
FROZEN: Final = "peak freeze"


class Mark(NamedTuple):
    """How one kind of turn is drawn."""

    tone: str
    """A class of the page's style."""
    path: str
    """Drawn from the foot of the cell."""


MARKS: Final[Mapping[str, Mark]] = {
    "must": Mark("t1", "v-14h5v14z"),
    "should": Mark("t0", "v-9h5v9z"),
    "skip": Mark("t5", "v-4h5v4z"),
    "error": Mark("cross", "m0 -1l5 -8m0 8l-5 -8"),
    FROZEN: Mark("frost", "m0 -19h5l-2.5 4z"),
}
"""A frozen turn has the mark of its decision as well."""


def strip(turns: Sequence[tuple[str, bool]], told: str) -> "Markup":
    """Draws a thread.

    Args:
        turns: the decision of each turn, or `error`, and whether the guardrail froze its summary.
        told: what is shown, for those who hear it.

    >>> drawn = strip([("must", False), ("skip", True), ("must", False)], "3 turns <3")
    >>> drawn.count("<path"), 'd="M0 19v-14h5v14zM14 19v-14h5v14z"' in drawn, "&lt;3" in drawn
    (3, True, True)
    """
    paths = dict[str, list[str]]()
    for at, (decision, is_frozen) in enumerate(turns[:MOST_CELLS]):
        for name in (decision, *([FROZEN] if is_frozen else [])):
            paths.setdefault(name, []).append(f"M{at * STEP} {HEIGHT - 1}{MARKS[name].path}")
    width = STEP * max(1, min(len(turns), MOST_CELLS))
    drawn = "".join(f'<path class="{MARKS[name].tone}" d="{"".join(ds)}"/>' for name, ds in paths.items())
    size = f'viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" preserveAspectRatio="none"'
    return markup(f'<svg class="strip" {size} role="img" aria-label="{escape(told)}">{drawn}</svg>')


def mark(name: str) -> "Markup":
    """Draws one mark alone, for the legend."""
    path = f'<path class="{MARKS[name].tone}" d="M0 {HEIGHT - 1}{MARKS[name].path}"/>'
    size = f'viewBox="0 0 {STEP} {HEIGHT}" width="{STEP}" height="{HEIGHT}"'
    return markup(f'<svg class="mark" {size} aria-hidden="true">{path}</svg>')
