"""The colors, sizes and contrasts of pages: the style is what docs/pages.md says, and can be read."""

import re
from typing import Final

import pytest

from tests.support.tree import ROOT

STYLE: Final = (ROOT / "producer" / "report" / "html" / "viewer.css").read_text(encoding="utf-8")
DOCUMENT: Final = (ROOT / "docs" / "pages.md").read_text(encoding="utf-8")
LIGHT_STYLE, DARK_STYLE = STYLE.split("\n}\n")[:2]
"""The blocks at the top: the tokens, and those that differ in the dark."""

TEXTS: Final = ("ink", "ink2", "link", "pass", "fail", "err", "cold")
GROUNDS: Final = ("page", "card", "sunk")
TINTED: Final = (
    ("pass", "pass-bg"),
    ("fail", "fail-bg"),
    ("err", "err-bg"),
    ("cold", "cold-bg"),
    ("link", "link-bg"),
)
"""Texts on tints; `ink` and `ink2` stand on all of them too."""
DECISION_COLORS: Final = frozenset({"ink", "ink2", "card", "sunk", "line", "line2", "t2", "r1", "s1"})
"""Of text, grounds and lines."""
PAIRS: Final = [
    *((text, ground) for text in TEXTS for ground in GROUNDS),
    *TINTED,
    *((text, tint) for text in ("ink", "ink2") for _, tint in TINTED),
]


def tokens(style: str) -> dict[str, str]:
    """The first value of each custom property."""
    found: dict[str, str] = {}
    for name, value in re.findall(r"--([\w-]+): ([^;]+);", style):
        found.setdefault(name, value)
    return found


LIGHT, DARK = tokens(LIGHT_STYLE), tokens(DARK_STYLE)


def pixels(size: str) -> float:
    """A size in pixels, where a reader has not changed the size of text."""
    number = float(size.removesuffix("rem").removesuffix("px"))
    return 16 * number if size.endswith("rem") else number


def luminance(color: str) -> float:
    """The relative luminance of a color (WCAG 2.2)."""
    digits = color.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colors (WCAG 2.2)."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_can_be_read_on_every_ground(theme: dict[str, str]) -> None:
    """Every text color has a contrast of 4.5 on every ground and tint that it stands on."""
    pairs = {(text, ground): contrast(theme[text], theme[ground]) for text, ground in PAIRS}
    assert {pair: ratio for pair, ratio in pairs.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_controls_have_visible_borders(theme: dict[str, str]) -> None:
    """Borders of controls have a contrast of 3 on the grounds of controls."""
    assert min(contrast(theme["line2"], theme[ground]) for ground in ("page", "card")) >= 3


def test_decisions_have_no_hue() -> None:
    """Decisions are drawn in the colors of text and lines, not in those of outcomes and actions."""
    style = (ROOT / "producer" / "turns" / "report" / "page.css").read_text(encoding="utf-8")
    rules = re.findall(r"\.[kd]-(?:must|should|skip|none) \{[^}]*\}", style)
    assert len(rules) == 8
    assert {name for rule in rules for name in re.findall(r"--(\w[\w-]*)", rule)} <= DECISION_COLORS


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_decisions_can_be_read(theme: dict[str, str]) -> None:
    """A must is card on ink, a should is ink on its tint: both have a contrast of 4.5."""
    assert min(contrast(theme["card"], theme["ink"]), contrast(theme["ink"], theme["sunk"])) >= 4.5


def test_the_document_names_the_colors_of_the_style() -> None:
    """Each color of docs/pages.md is that of the style, in both themes."""
    rows = re.findall(r"^\| `--([\w-]+)` \| `(#\w+)` \| `(#\w+)` \|", DOCUMENT, re.MULTILINE)
    assert rows == [(name, LIGHT[name], DARK[name]) for name, *_ in rows]
    assert {name for name, *_ in rows} == {name for name in DARK if not re.match(r"c\d|shadow", name)}


def test_the_document_names_the_sizes_of_the_style() -> None:
    """Each size of docs/pages.md is that of the style."""
    rows = re.findall(r"^\| `--([tsr]\d)` \| (\d+) px \|", DOCUMENT, re.MULTILINE)
    sizes = {name: pixels(value) for name, value in LIGHT.items() if re.fullmatch(r"[tsr]\d", name)}
    assert {name: float(size) for name, size in rows} == sizes
