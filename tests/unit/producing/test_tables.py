"""Tables keep what is short whole and cut what is long, in cells of a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from producer.tables import NEVER_CUT, aligned_lines

TEXT = st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=120)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_long_texts_give_way_to_ids(width: int) -> None:
    """In a narrow terminal every id and number stays whole, and the longest text is cut."""
    rows = [("run-1m7y2jbm0c41pgz", "must", "x" * 90, "y" * 50)]
    heading, line = aligned_lines(("RUN", "DECISION", "MESSAGE", "WHY"), rows, width=width)
    assert max(len(heading), len(line)) <= width
    assert line.split()[:2] == ["run-1m7y2jbm0c41pgz", "must"]
    assert "…" in line
    assert "must" in line


def test_wide_letters_count_twice() -> None:
    """Cells line up on the screen also where letters take two columns."""
    lines = aligned_lines(("A", "B"), [("東京", "1"), ("x", "2")])
    assert [cell_len(line) for line in lines] == [7, 7, 7]


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=5), st.integers(70, 200))
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, str, str]], width: int) -> None:
    """Whatever the cells hold, no line leaves the terminal, and no cell that is short is cut."""
    lines = aligned_lines(("A", "B", "C"), rows, width=width)
    assert all(cell_len(line) <= width for line in lines)
    for row, line in zip(rows, lines[1:], strict=True):
        for cell in row:
            assert cell_len(cell) > NEVER_CUT or cell in line
