"""Draws lines and measured points as an SVG file of its own, for the documents."""

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

from producer.report.html.charts import rounded_up

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 40, 50, 50
COLOURS: Final = ("#2563eb", "#d97706", "#059669", "#7c3aed", "#dc2626", "#6b7280")
STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#374151}.head{font-weight:600;font-size:15px}"
    ".grid{stroke:#e5e7eb}.axis{stroke:#6b7280;fill:none}.line{fill:none;stroke-width:2.5}"
)


class Line(NamedTuple):
    """One series."""

    name: str
    points: Sequence[tuple[float, float]]
    is_measured: bool = False
    """Drawn as dots instead of a line."""
    is_dashed: bool = False


def line_chart(title: str, x_label: str, y_label: str, lines: Sequence[Line]) -> str:
    """Returns an SVG document with axes that begin at zero.

    Args:
        title: what is shown.
        x_label: what `x` is, with its unit.
        y_label: what `y` is, with its unit.
        lines: at least one, each with at least one point.

    >>> drawn = line_chart("a < b", "x", "y", [Line("one", [(0, 0), (1, 2)]), Line("two", [(1, 1)], True)])
    >>> drawn.count("<polyline"), drawn.count("<circle"), "a &lt; b" in drawn
    (1, 2, True)
    """
    end = rounded_up(max(x for line in lines for x, _ in line.points))
    top = rounded_up(max(y for line in lines for _, y in line.points))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text class="head" x="{LEFT}" y="20">{escape(title)}</text>',
        *_axes(end, top, x_label, y_label),
    ]
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        places = [(_across(x / end), _up(y / top)) for x, y in line.points]
        parts += _series(line, colour, places)
        parts += _legend(line, colour, number)
    return "\n".join([*parts, "</svg>", ""])


def _series(line: Line, colour: str, places: Sequence[tuple[float, float]]) -> list[str]:
    if line.is_measured:
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>' for x, y in places]
    dashed = ' stroke-dasharray="6 5"' if line.is_dashed else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return [f'<polyline class="line" stroke="{colour}"{dashed} points="{path}"/>']


def _legend(line: Line, colour: str, number: int) -> list[str]:
    """Names a series, top left below the title."""
    y = TOP + 14 + 18 * number
    mark = (
        f'<circle cx="{LEFT + 22}" cy="{y - 4}" r="5" fill="{colour}"/>'
        if line.is_measured
        else f'<path d="M{LEFT + 12} {y - 4}h20" stroke="{colour}" stroke-width="2.5"/>'
    )
    return [mark, f'<text x="{LEFT + 40}" y="{y}">{escape(line.name)}</text>']


def _axes(end: float, top: float, x_label: str, y_label: str) -> list[str]:
    """Both axes with lines at quarters."""
    parts = [
        f'<text x="{LEFT}" y="40">{escape(y_label)}</text>',
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 12}" text-anchor="end">{escape(x_label)}</text>',
    ]
    for quarter in range(5):
        share = quarter / 4
        x, y = _across(share), _up(share)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{top * share:,g}</text>')
        label = f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{end * share:,g}</text>'
        parts.append(label)
    return [*parts, f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>']


def _across(share: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * share


def _up(share: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share
