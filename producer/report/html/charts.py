"""Draws the charts of HTML reports as SVG, without a script: colours come from the page's style."""

from collections.abc import Sequence
from html import escape
from math import floor, log10
from typing import Final, NamedTuple

WIDTH: Final = 560
HEIGHT: Final = 290
LEFT: Final = 52
RIGHT: Final = 16
TOP: Final = 30
BOTTOM: Final = 44
STEPS: Final = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10)
"""Ends of axes whose quarters are short numbers, as multiples of a power of ten."""
LABEL_CHARS: Final = 28
CHAR_WIDTH: Final = 6.4
"""Of a label, on average."""
LINE_HEIGHT: Final = 13
TONES: Final = 6
"""Colours that the style has for things without a meaning of their own."""
NOTHING: Final = '<p class="none">Nothing to draw: no model has both figures.</p>'


class Point(NamedTuple):
    """One model."""

    name: str
    x: float
    y: float
    low: float | None = None
    """Lower end of the interval of `y`, if it is known."""
    high: float | None = None
    """Upper end."""
    right: float | None = None
    """How far `x` reaches, such as its 95th percentile."""
    tone: str = ""
    """Its colour, `t0` to `t5`, where it has to be the same in several charts; empty takes the next."""


class Series(NamedTuple):
    """One layer of a stacked chart."""

    name: str
    values: Sequence[float]
    tone: str = ""
    """`good`, `bad`, `warn`, `quiet`; empty takes the next colour."""


class Box(NamedTuple):
    """Where a label or a point is."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Returns whether two overlap."""
        return not (
            self.right < other.left
            or other.right < self.left
            or self.bottom < other.top
            or other.bottom < self.top
        )


def scatter(points: Sequence[Point], *, x_label: str, y_label: str, top: float | None = None) -> str:
    """Returns an SVG element with axes that begin at zero; a line that says so where nothing is to draw.

    Labels do not overlap: a point that has no room for one has its name under the pointer only.

    Args:
        points: one for each model.
        x_label: what `x` is, with its unit.
        y_label: what `y` is, with its unit.
        top: where the axis of `y` ends; None: above the highest.

    >>> scatter([], x_label="seconds", y_label="US dollars")
    '<p class="none">Nothing to draw: no model has both figures.</p>'
    >>> "<svg" in scatter([Point("<a>", 0.5, 2.0)], x_label="s", y_label="$")
    True
    """
    if not points:
        return NOTHING
    end = rounded_up(max(max(p.x, p.right or 0) for p in points))
    top = top or rounded_up(max(max(p.y, p.high or 0) for p in points))
    parts = [_opened(f"{y_label} against {x_label}"), *_axes(end, top, x_label, y_label)]
    places = [(_across(p.x / end), _up(p.y / top)) for p in points]
    taken, lines = [Box(0, 0, LEFT + len(y_label) * CHAR_WIDTH, TOP - 8)], list[Box]()
    for number, (point, (x, y)) in enumerate(zip(points, places, strict=True)):
        taken.append(Box(x - 4, y - 4, x + 4, y + 4))
        if point.low is not None and point.high is not None:
            lines.append(Box(x, _up(point.high / top), x, _up(point.low / top)))
            parts.append(_line("whisker", x, _up(point.low / top), x, _up(point.high / top)))
        if point.right is not None:
            lines.append(Box(x, y, _across(point.right / end), y))
            parts.append(_line("whisker", x, y, _across(point.right / end), y))
        label = f"{point.name}: {point.x:g}, {point.y:g}"
        tone = point.tone or f"t{number % TONES}"
        parts.append(
            f'<circle class="{tone}" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{escape(label)}</title></circle>'
        )
    for point, (x, y) in zip(points, places, strict=True):
        right = _across((point.right or point.x) / end)
        parts += _label(point.name, (x, y, right), taken, lines)
    return "".join([*parts, "</svg>"])


def stacked(series: Sequence[Series], labels: Sequence[str], *, title: str, y_label: str) -> str:
    """Returns an SVG element: a column for each label, and in it what each series has there.

    Args:
        series: layers, the lowest first; each has a value for each label.
        labels: what the columns are, such as times; as many as fit are written.
        title: what is shown, for those who hear it.
        y_label: what is counted.

    >>> layers = [Series("must", [1, 2]), Series("skip", [3, 0])]
    >>> drawn = stacked(layers, ["10:00", "10:01"], title="over time", y_label="turns")
    >>> drawn.count("<rect"), stacked([], [], title="over time", y_label="turns")
    (5, '<p class="none">Nothing to draw.</p>')
    """
    sums = [sum(each.values[at] for each in series) for at in range(len(labels))]
    if not sums or not max(sums):
        return '<p class="none">Nothing to draw.</p>'
    top = rounded_up(max(sums))
    parts = [_opened(title), *_axes(None, top, "", y_label)]
    step = (WIDTH - LEFT - RIGHT) / len(labels)
    gap = min(2.0, step / 5)
    floors = [0.0] * len(labels)
    for number, each in enumerate(series):
        tone = each.tone or f"t{number % TONES}"
        for at, value in enumerate(each.values):
            if value:
                low, floors[at] = floors[at], floors[at] + value
                label = f"{labels[at]} · {each.name}: {value:,g}"
                place = Box(
                    LEFT + at * step, _up(floors[at] / top), LEFT + (at + 1) * step - gap, _up(low / top)
                )
                parts.append(_rect(tone, place, label))
    every = max(1, -(-len(labels) * 70 // (WIDTH - LEFT - RIGHT)))
    parts += [
        _text(LEFT + (at + 0.5) * step, HEIGHT - BOTTOM + 16, labels[at], "middle", "tick")
        for at in range(0, len(labels), every)
    ]
    parts += _legend(series)
    return "".join([*parts, "</svg>"])


def bars(names: Sequence[str], series: Sequence[Series], *, title: str, ends: Sequence[str] = ()) -> str:
    """Returns an SVG element: a bar for each name, and along it what each series has there.

    Args:
        names: one for each bar.
        series: parts of the bars, from the left; each has a value for each name.
        title: what is shown, for those who hear it.
        ends: what is written at the end of each bar.

    >>> bars(["a"], [Series("prompt", [1.0]), Series("completion", [3.0])], title="tokens").count("<rect")
    4
    >>> bars([], [], title="tokens")
    '<p class="none">Nothing to draw.</p>'
    """
    sums = [sum(each.values[at] for each in series) for at in range(len(names))]
    if not sums or not max(sums):
        return '<p class="none">Nothing to draw.</p>'
    height = len(names) * 34 + (28 if len(series) > 1 else 4)
    parts = [_opened(title, height)]
    whole = WIDTH - RIGHT - 70
    for at, name in enumerate(names):
        top, left = at * 34 + 8, 0.0
        parts.append(_text(0, top + 8, _short(name, 80), "start"))
        for number, each in enumerate(series):
            right = left + whole * each.values[at] / max(sums)
            place = Box(left, top + 13, right, top + 25)
            parts.append(
                _rect(each.tone or f"t{number % TONES}", place, f"{name} · {each.name}: {each.values[at]:,g}")
            )
            left = right
        parts.append(_text(left + 6, top + 23, ends[at] if ends else f"{sums[at]:,g}", "start"))
    if len(series) > 1:
        parts += _legend(series, height - 6)
    return "".join([*parts, "</svg>"])


def rounded_up(value: float) -> float:
    """Returns the end of an axis: the next value whose quarters are short numbers.

    >>> rounded_up(0.0), rounded_up(0.034), rounded_up(7)
    (1.0, 0.04, 8.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    scale = next(step for step in STEPS if step * power >= value * (1 - 1e-9))
    return float(f"{scale * power:.6g}")


def _opened(title: str, height: int = HEIGHT) -> str:
    """The beginning of a chart."""
    label, view = escape(title), f"0 0 {WIDTH} {height}"
    return f'<svg class="chart" viewBox="{view}" role="img" aria-label="{label}"><title>{label}</title>'


def _axes(end: float | None, top: float, x_label: str, y_label: str) -> list[str]:
    """Both axes with lines at quarters."""
    parts = [_text(0, 11, y_label, "start", "tick"), _text(WIDTH - RIGHT, HEIGHT - 8, x_label, "end", "tick")]
    for quarter in range(5):
        share = quarter / 4
        parts.append(_line("grid", LEFT, _up(share), WIDTH - RIGHT, _up(share)))
        parts.append(_text(LEFT - 6, _up(share) + 4, f"{top * share:,g}", "end", "tick"))
        if end is not None:
            parts.append(_text(_across(share), HEIGHT - BOTTOM + 16, f"{end * share:,g}", "middle", "tick"))
    return [*parts, f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>']


def _label(name: str, place: tuple[float, float, float], taken: list[Box], lines: Sequence[Box]) -> list[str]:
    """Writes a name where nothing else is, or else no other name; `place` ends with where its line does."""
    x, y, right = place
    text = _short(name, LABEL_CHARS)
    width = len(text) * CHAR_WIDTH
    spots = [
        (right + 9, y + 4, "start", right + 9),
        (x + 6, y - 6, "start", x + 6),
        (x + 6, y + 14, "start", x + 6),
        (x - 9 - width, y + 4, "end", x - 9),
        (x - 6 - width, y - 6, "end", x - 6),
        (x - 6 - width, y + 14, "end", x - 6),
        (right - width, y - 6, "end", right),
        (right - width, y + 14, "end", right),
    ]
    for avoided in ([*taken, *lines], list(taken)):
        for left, low, anchor, at in spots:
            box = Box(left, low - LINE_HEIGHT + 3, left + width, low + 2)
            inside = (
                box.left >= LEFT and box.right <= WIDTH and 0 <= box.top < box.bottom <= HEIGHT - BOTTOM + 2
            )
            if inside and not any(box.meets(other) for other in avoided):
                taken.append(box)
                return [_text(at, low, text, anchor)]
    return []


def _legend(series: Sequence[Series], y: float = HEIGHT - 10) -> list[str]:
    """Names the colours."""
    parts, x = [], float(LEFT if y == HEIGHT - 10 else 0)
    for number, each in enumerate(series):
        name = _short(each.name, LABEL_CHARS)
        parts.append(_rect(each.tone or f"t{number % TONES}", Box(x, y - 9, x + 10, y + 1), each.name))
        parts.append(_text(x + 15, y, name, "start"))
        x += 30 + len(name) * CHAR_WIDTH
    return parts


def _across(share: float) -> float:
    """Where a share of the width lies."""
    return LEFT + (WIDTH - LEFT - RIGHT) * share


def _up(share: float) -> float:
    """Where a share of the height lies."""
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share


def _short(text: str, most: int) -> str:
    """Cuts a label."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _text(x: float, y: float, text: str, anchor: str, tone: str = "") -> str:
    """A label."""
    named = f' class="{tone}"' if tone else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(tone: str, x: float, y: float, to_x: float, to_y: float) -> str:
    """A line."""
    return f'<path class="{tone}" d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>'


def _rect(tone: str, box: Box, label: str) -> str:
    """A part of a bar, with what it is under the pointer."""
    size = f'width="{max(0, box.right - box.left):.1f}" height="{max(0, box.bottom - box.top):.1f}"'
    where = f'x="{box.left:.1f}" y="{box.top:.1f}" {size}'
    return f'<rect class="{tone}" {where}><title>{escape(label)}</title></rect>'
