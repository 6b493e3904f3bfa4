"""Draws the affect of a thread, as a whole and beside each message, and its decisions as a small strip."""

from array import array
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import Final, NamedTuple

from markupsafe import Markup

from producer.report.html.rendering import markup
from producer.turns.report.turn_records import ERROR, SKIPPED, Mood

WIDTH: Final = 1000
BASE: Final = 60
"""Where an affect of zero lies."""
RISE: Final = 56
"""From there to an affect of one."""
HEIGHT: Final = 84
MOST_POINTS: Final = 240
"""Drawn of one thread; of a longer one, several turns are one point, the strongest."""
LEAST_POINTS: Final = 3
"""Fewer turns are no line to look at."""
STRIP_TURNS: Final = 40
"""Of the small strip."""
RAIL: Final = (4, 58)
"""Of the drawing beside a message: where zero lies, and how far one is from it."""
STRENGTH: Final = {ERROR: 4, "must": 3, "should": 2, "skip": 1, SKIPPED: 0}
"""Decisions by weight; an error is drawn before all of them."""
CLASSES: Final = ("d-none", "d-skip", "d-should", "d-must", "d-error")
HEIGHTS: Final = (2, 4, 9, 14, 14)


class Course:
    """What is drawn of a thread: numbers of each of its turns, thirteen bytes together."""

    def __init__(self) -> None:
        self._orders, self._levels, self._marks = array("q"), array("f"), bytearray()

    def __len__(self) -> int:
        return len(self._marks)

    @property
    def is_measured(self) -> bool:
        """Whether the affect of any turn is known."""
        return any(level >= 0 for level in self._levels)

    def add(self, order: int, mood: Mood, decision: str, *, is_frozen: bool) -> None:
        """Takes a turn."""
        self._orders.append(order)
        self._levels.append(mood.level if mood.phase else -1.0)
        self._marks.append(STRENGTH[decision] + (8 if is_frozen else 0))

    def points(self, most: int) -> list["MoodPoint"]:
        """Returns the turns as they were decided; of very many, the strongest of each few."""
        at = sorted(range(len(self)), key=self._orders.__getitem__)
        size = -(-len(at) // most)
        return [self._point(at[first : first + size]) for first in range(0, len(at), size)] if at else []

    def _point(self, turns: Sequence[int]) -> "MoodPoint":
        """Takes a few turns together."""
        marks = [self._marks[turn] for turn in turns]
        return MoodPoint(
            max(self._levels[turn] for turn in turns),
            max(mark & 7 for mark in marks),
            max(marks) >= 8,  # noqa: PLR2004 - the bit of a freeze
        )


class MoodPoint(NamedTuple):
    """What is drawn at one place."""

    level: float
    """Below zero before anything was measured."""
    strength: int
    is_frozen: bool


def strip(points: Sequence[MoodPoint]) -> Markup:
    """Draws decisions by height and weight, in the list of threads.

    >>> drawn = strip([MoodPoint(0.1, 3, False), MoodPoint(0.9, 1, True)])
    >>> drawn.count("<rect"), 'class="d-must"' in drawn
    (3, True)
    """
    step = min(11.0, 200 / max(1, len(points)))
    wide = f'width="{max(1.0, step * 0.72):.1f}"'
    parts = [
        f'<rect class="{CLASSES[strength]}" x="{at * step + 0.5:.1f}" y="{15 - HEIGHTS[strength]}" '
        f'{wide} height="{HEIGHTS[strength]}"/>'
        for at, (_, strength, _) in enumerate(points)
    ]
    parts += [
        f'<rect class="d-cold" x="{at * step + 0.5:.1f}" y="16.5" {wide} height="2"/>'
        for at, point in enumerate(points)
        if point.is_frozen
    ]
    return markup(
        f'<svg class="mini" viewBox="0 0 200 19" preserveAspectRatio="xMinYMid meet" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )


def chart(points: Sequence[MoodPoint], description: str) -> Markup:
    """Draws the affect of a thread with its decisions below; freezes are shaded. Nothing of very few turns.

    Args:
        points: of the turns, in order.
        description: its text for screen readers.

    >>> levels = [MoodPoint(0.2, 2, False), MoodPoint(0.9, 2, True), MoodPoint(0.3, 3, False)]
    >>> drawn = chart(levels, "rises to <0.9>")
    >>> drawn.count('class="zone"'), drawn.count('class="lin"'), "&lt;0.9&gt;" in drawn, chart(levels[:2], "")
    (1, 1, True, Markup(''))
    """
    if sum(point.level >= 0 for point in points) < LEAST_POINTS:
        return markup("")
    step = (WIDTH - 60) / (len(points) - 1)
    parts = [
        f'<rect class="zone" x="{max(0.0, 30 + first * step - step / 2):.0f}" y="0" '
        f'width="{(last - first + 1) * step:.0f}" height="{HEIGHT}"/>'
        for first, last in _zones(points)
    ]
    parts.append(f'<path class="thr" d="M0 {BASE}H{WIDTH}"/>')
    known = [
        (30 + at * step, BASE - RISE * point.level) for at, point in enumerate(points) if point.level >= 0
    ]
    line = "L".join(f"{x:.0f} {y:.1f}" for x, y in known)
    parts.append(f'<path class="area" d="M{line}L{known[-1][0]:.0f} {BASE}L{known[0][0]:.0f} {BASE}Z"/>')
    parts.append(f'<path class="lin" d="M{line}"/>')
    width = min(18.0, step * 0.8)
    parts += [
        f'<rect class="{CLASSES[strength]}" x="{30 + at * step - width / 2:.1f}" '
        f'y="{HEIGHT - 2 - HEIGHTS[strength]}" width="{width:.1f}" height="{HEIGHTS[strength]}"/>'
        for at, (_, strength, _) in enumerate(points)
    ]
    return markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(description)}">{"".join(parts)}</svg>'
    )


def rail(before: Mood | None, now: Mood, after: Mood | None) -> Markup:
    """Draws the affect beside one message, so that the drawings of a thread are one line.

    >>> drawn = rail(None, Mood(0.5, "rising", "", True), Mood(0.9, "peak"))
    >>> drawn.count("<path"), "tip" in drawn, rail(None, Mood(), None)
    (3, True, Markup(''))
    """
    if not now.phase:
        return markup("")
    x = _across(now)
    top = (x + _across(before)) / 2 if before and before.phase else x
    low = (x + _across(after)) / 2 if after and after.phase else x
    start, stop = (0 if before and before.phase else 50), (100 if after and after.phase else 50)
    line = f"{top:.0f} {start}L{x:.0f} 50L{low:.0f} {stop}"
    tip = f'<path class="lin tip" d="M{x:.0f} 50h.01"/>' if now.is_measured else ""
    return markup(
        '<svg viewBox="0 0 68 100" preserveAspectRatio="none">'
        f'<path class="area" d="M0 {start}L{line}L0 {stop}Z"/><path class="lin" d="M{line}"/>{tip}</svg>'
    )


def _across(mood: Mood) -> float:
    """Where an intensity lies beside a message."""
    return RAIL[0] + RAIL[1] * mood.level


def _zones(points: Sequence[MoodPoint]) -> Iterator[tuple[int, int]]:
    """Yields the first and the last of each row of frozen turns."""
    edges = [
        -1,
        *(at for at, (one, other) in enumerate(pairwise(points)) if one.is_frozen != other.is_frozen),
    ]
    for first, last in pairwise([*edges, len(points) - 1]):
        if points[last].is_frozen:
            yield first + 1, last
