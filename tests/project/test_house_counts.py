"""Keeps what makes code hard to follow from growing; whoever makes a figure smaller lowers its bound here."""

from typing import Final

import pytest

from tests.project.house_counts import COUNTS

BOUNDS: Final = {
    "keys read by text in producer/": 224,
    "TYPE_CHECKING blocks": 36,
    "imports in functions": 196,
    "import circles, all imports counted": 0,
    "conditions written as products": 0,
    "public class names with two meanings": 0,
    "modules": 682,
    "lines of producer/schemas": 403,
}
"""The most that each figure may be; the others are for information."""


@pytest.mark.parametrize("name", BOUNDS)
def test_no_figure_grows(name: str) -> None:
    """A change leaves no more of this than there was."""
    found = COUNTS[name]()
    help_text = "the table is that of `python -m tests.project.house_counts`; CONTRIBUTING says what may grow"
    assert found <= BOUNDS[name], f"{name}: {found}, at most {BOUNDS[name]}; {help_text}"
