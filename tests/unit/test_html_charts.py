"""The charts of HTML reports, whatever they report."""

import random
import re
from typing import Final

from producer.report.html.charts import HEIGHT, LEFT, WIDTH, Point, Series, bars, scatter, stacked

WIDEST_SIGN: Final = 6.4
"""Units of an axis that a sign of a label takes, on average at most."""


def test_names_in_a_scatter_stay_apart() -> None:
    """However points lie, no name covers another one, and all stay inside the drawing."""
    seeded = random.Random(5)
    for _ in range(30):
        points = [
            Point(f"model {at}", seeded.random(), seeded.random(), 0.1, 0.9, 1.2)
            for at in range(seeded.randint(1, 25))
        ]
        drawn = scatter(points, x_label="s", y_label="$")
        found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">(model \d+)<', drawn)
        spans = []
        for x, y, anchor, name in found:
            left = float(x) - (len(name) * WIDEST_SIGN if anchor == "end" else 0)
            assert left >= LEFT
            assert left + len(name) * WIDEST_SIGN <= WIDTH
            assert 0 <= float(y) <= HEIGHT
            spans.append((left, left + len(name) * WIDEST_SIGN, float(y)))
        for at, (left, right, y) in enumerate(spans):
            for other_left, other_right, other_y in spans[at + 1 :]:
                assert right < other_left or other_right < left or abs(y - other_y) >= 12
        assert len(found) >= min(3, len(points))


def test_columns_and_bars_add_up() -> None:
    """Layers stand on each other without a gap, and the longest bar takes the width there is."""
    layers = [Series("a", [1, 2, 0]), Series("b", [3, 2, 0]), Series("c", [0, 4, 0], "bad")]
    drawn = stacked(layers, ["1", "2", "3"], title="t", y_label="n")
    places = re.findall(r'y="([\d.]+)" width="[\d.]+" height="([\d.]+)"><title>(\d) · (\w)', drawn)
    tops = {(column, name): (float(y), float(y) + float(height)) for y, height, column, name in places}
    assert len(tops) == 5
    assert tops["2", "a"][0] == tops["2", "b"][1]
    assert tops["2", "b"][0] == tops["2", "c"][1]
    widths = re.findall(r'width="([\d.]+)"', bars(["x", "y"], [Series("s", [1.0, 4.0])], title="t"))
    assert [float(width) for width in widths] == [118.5, 474.0]
