"""Draws a scatter of models as SVG: two figures of each, on axes that begin at zero."""

from collections.abc import Sequence
from html import escape
from math import floor, log10
from typing import Final, NamedTuple

WIDTH: Final = 560
HEIGHT: Final = 260
MARGIN: Final = 48
STEPS: Final = (1, 2, 5, 10)
LABEL_CHARS: Final = 32


class Point(NamedTuple):
    """One model."""

    name: str
    x: float
    y: float


def scatter(points: Sequence[Point], *, x_label: str, y_label: str) -> str:
    """Returns an SVG element; a line that says so where there is nothing to draw.

    Args:
        points: one for each model.
        x_label: what `x` is, with its unit.
        y_label: what `y` is, with its unit.

    >>> scatter([], x_label="seconds", y_label="US dollars")
    '<p class="none">Nothing to draw: no model has both figures.</p>'
    >>> "<svg" in scatter([Point("<a>", 0.5, 2.0)], x_label="s", y_label="$")
    True
    """
    if not points:
        return '<p class="none">Nothing to draw: no model has both figures.</p>'
    right, top = rounded_up(max(p.x for p in points)), rounded_up(max(p.y for p in points))
    title = f"{y_label} against {x_label}"
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f'<path class="axis" d="M{MARGIN} 12V{HEIGHT - MARGIN}H{WIDTH - 12}"/>',
        _text(WIDTH - 12, HEIGHT - 12, x_label, "end"),
        _text(MARGIN, 10, y_label, "start"),
        _text(WIDTH - 12, HEIGHT - MARGIN + 16, f"{right:g}", "end"),
        _text(MARGIN - 4, 22, f"{top:g}", "end"),
        _text(MARGIN - 4, HEIGHT - MARGIN + 16, "0", "end"),
    ]
    for point in points:
        x = MARGIN + (WIDTH - 12 - MARGIN) * point.x / right
        y = HEIGHT - MARGIN - (HEIGHT - MARGIN - 12) * point.y / top
        told = f"{point.name}: {point.x:g}, {point.y:g}"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{escape(told)}</title></circle>')
        anchor = "end" if x > WIDTH * 0.7 else "start"
        parts.append(_text(x + (-8 if anchor == "end" else 8), y + 4, point.name[:LABEL_CHARS], anchor))
    return "".join([*parts, "</svg>"])


def rounded_up(value: float) -> float:
    """Returns the end of an axis: one, two or five times a power of ten.

    >>> rounded_up(0.0), rounded_up(0.034), rounded_up(7)
    (1.0, 0.05, 10.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    scale = next(step for step in STEPS if step * power >= value * (1 - 1e-9))
    return float(f"{scale * power:.6g}")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    """A label."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
