"""Tables keep what is short whole and cut what is long, in cells of a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from producer.tables import NEVER_CUT, aligned_lines, boxed_table, drop_columns, fitted_table

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


@pytest.mark.parametrize("width", [60, 72, 80, 140])
def test_figures_stand_in_one_table_or_in_words(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """No line is wider than the terminal; names keep both ends, spare columns go, and `-` is not repeated."""
    monkeypatch.setenv("COLUMNS", str(width))
    name = "a-provider-with-a-long-name/claude-haiku-4-5"
    columns = ("Model", "Pass rate", "95% interval", "Passed", "P95", "Tokens/s", "Cost", "Judged")
    row = (name, "100.0%", "56.5-100.0%", "15 of 15", "0.16s", "1,618.9", "$0.0010", "-")
    lines = fitted_table(columns, [row, row], spare=("Tokens/s", "95% interval"))
    assert max(map(cell_len, lines)) <= width
    assert "Judged" not in "".join(lines)
    if width < 72:
        assert lines[:2] == [name, "  Pass rate 100.0% · 95% interval 56.5-100.0%"]
        return
    heading, first, _ = lines
    assert heading.split()[0] == "Model"
    assert first.startswith("a-prov")
    assert first.split("  ")[0].endswith("-4-5")
    assert ("Tokens/s" in heading) is (width > 72)
    assert all(figure in first for figure in ("100.0%", "15 of 15", "$0.0010"))


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=5), st.integers(60, 200))
def test_a_last_column_gives_way_before_names(rows: list[tuple[str, str, str]], width: int) -> None:
    """Results fit too: what stands last is cut first, then the names, and nothing leaves the terminal."""
    columns, cells = drop_columns(("A", "B", "C"), rows, spare=("B",), width=width, middle=("A",), tail=30)
    lines = aligned_lines(columns, cells, width=width, middle=("A", "B"), tail=30)
    assert all(cell_len(line) <= width for line in lines)


def test_boxes_cut_the_name_before_they_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long name beside an output is cut in its middle, so that the output still stands in its column."""
    monkeypatch.setenv("COLUMNS", "60")
    name = "a-provider-with-a-long-name/claude-haiku-4-5"
    text = boxed_table(("Model", "Output", "Cost"), [(name, "word " * 20, "$0.10")], wraps="Output")
    assert max(map(len, text.splitlines())) <= 60
    assert "│ a-provid" in text
    assert "-4-5 │ word" in text
