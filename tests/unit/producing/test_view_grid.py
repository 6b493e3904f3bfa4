"""Several runs beside a baseline: which rows come first, what became of them, what each check passed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from msgspec import convert

from producer import kinds
from producer.aggregate.compared_items import items_of
from producer.report.html.viewer import Letter
from producer.view.grid import Grid, Grids
from producer.view.grid_page import PAGE, About, GridQuery, GridView, grid_page, grid_view
from producer.view.links import Links
from shared.errors import UsageError
from shared.kinds import CASES, QUERIES, Kind
from shared.runs import RunInfo, RunStore
from tests.support.comparisons import case_line
from tests.support.run_infos import info

LINKS = Links("t")
ABOUT = About(5_000, lambda info: {"temperature": info.run})
HOSTILE = "</title><script>window.pwned = 1</script>\x1b\u202e"
Line = Mapping[str, Any]


def run(name: str, *, kind: Kind = CASES, total: int = 100) -> RunInfo:
    """A run as the store reads it."""
    return replace(info(total=total), run=name, kind=kind, snapshot={"name": name})


def numbered() -> Callable[[Any], int]:
    """Says of each line which one it is."""
    places = count()
    return lambda _line: next(places)


def grid_of(*runs: Sequence[Line], names: Sequence[str] = ("a", "b", "c")) -> Grid:
    """The grid of runs with these lines, the baseline first."""
    grid = Grid([run(name) for name, _ in zip(names, runs, strict=False)])
    comparing = kinds.of(CASES).compared().comparing
    read = [
        items_of(comparing, ((convert(line, comparing.line), None) for line in lines), keep=numbered())
        for lines in runs
    ]
    for each, items in zip(grid.runs, read, strict=True):
        grid.add(each, read[0], items)
    grid.finish()
    return grid


def shown(grid: Grid, **query: Any) -> GridView:
    """What the page shows."""
    return grid_view(grid, GridQuery(**query), LINKS, ABOUT)


def test_rows_about_which_runs_disagree_come_first() -> None:
    """Then those that all failed, then those that all passed; filters find what happened, also in one run."""
    a = [
        case_line(0, "x"),
        case_line(1, "x", is_good=False),
        case_line(2, "x"),
        case_line(3, "x", is_good=False),
    ]
    b = [
        case_line(0, "y"),
        case_line(1, "x", is_good=False),
        case_line(2, "y", is_good=False),
        case_line(3, "z"),
    ]
    c = [*b[:3], case_line(3, None)]
    grid = grid_of(a, b, c)
    view = shown(grid)
    assert [row.name for row in view.rows] == ["case-2", "case-3", "case-1", "case-0"]
    assert ["".join(cell.letter for cell in row.cells if cell) for row in view.rows] == [
        "pff",
        "fpe",
        "fff",
        "ppp",
    ]
    assert [row.about for row in view.runs] == [
        ["4 s ago"],
        ["temperature a → b", "4 s ago"],
        ["temperature a → c", "4 s ago"],
    ]
    assert [(sort, number) for sort, _, number in view.chips] == [
        ("broken", 1),
        ("fixed", 1),
        ("changed", 1),
        ("text", 1),
    ]
    assert [row.name for row in shown(grid, show="fixed").rows] == ["case-3"]
    assert shown(grid, show="fixed", of="c").rows == []
    assert [row.name for row in shown(grid, q="CASE 3").rows] == ["case-3"]
    assert shown(grid, show="broken", q="case-3").rows == []
    cell = view.rows[1].cells[1]
    assert cell
    assert (cell.place, cell.sort) == ("/run/b/item/case-3?token=t", "fixed")


def test_repeats_are_a_share_and_models_align() -> None:
    """One cell has all repeats of a case and leads to one that failed; the model of each run is left out."""
    a = [case_line(0, "x", model="old"), case_line(0, "x", model="old", repeat_index=1, is_good=False)]
    b = [case_line(0, "x", model="new"), case_line(0, "x", model="new", repeat_index=1)]
    [row] = shown(grid_of(a, b)).rows
    assert (row.name, row.more, row.letter) == ("case-0", "", Letter.FAILED)
    assert [(cell.share, cell.is_mixed, cell.place) for cell in row.cells if cell] == [
        ("1/2", True, "/run/a/item/case-1?token=t"),
        ("2/2", False, "/run/b/item/case-0?token=t"),
    ]


def test_checks_are_tested_like_outcomes() -> None:
    """A change of a check is coloured where McNemar's test finds it, over the cases that both runs have."""

    def checked(number: int, *, passed: bool) -> Line:
        checks = [{"name": "brief", "passed": passed, "score": float(passed)}]
        return case_line(number, "x", checks=checks, stages=[{"stage": "schema", "outcome": "pass"}])

    a = [checked(at, passed=True) for at in range(10)]
    few, many = ([checked(at, passed=at >= bad) for at in range(12)] for bad in (3, 6))
    view = shown(grid_of(a, few, many))
    [(name, brief), (stage, schema)] = view.checks
    assert (name, stage) == ("brief", "schema")
    assert [(each.text, each.delta and each.delta[:2]) for each in brief if each] == [
        ("100.0%", None),
        ("70.0%", ("-30.0 pts", "")),
        ("40.0%", ("-60.0 pts", "f")),
    ]
    assert [each.text for each in schema if each] == ["100.0%"] * 3
    assert view.title == "No run differs from a by more than chance"


def test_a_page_has_some_rows_and_texts_are_only_text() -> None:
    """A page of many rows says where the next one begins; hostile names and models are escaped."""
    lines = [case_line(at, "x", model=f"m{at % 2} {HOSTILE}") for at in range(PAGE + 10)]
    grid = grid_of(lines, lines, names=(HOSTILE, "b"))
    assert (shown(grid).after, len(shown(grid, number=PAGE + 1).rows)) == (PAGE + 1, 10)
    page = grid_page(grid, GridQuery(), LINKS, ABOUT).decode()
    assert "<script>window" not in page
    assert "\x1b" not in page
    assert page.count("m0 &lt;/title&gt;") == PAGE // 2


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([run("a")], "2 to 8 runs"),
        ([run(f"{at}") for at in range(9)], "2 to 8 runs"),
        ([run("a"), run("b", kind=QUERIES)], "a has cases and b has queries"),
        ([run("a"), run("b", total=250_001)], "more than 250,000"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(runs: list[RunInfo], said: str) -> None:
    """Before anything is read."""
    grids = Grids()
    with pytest.raises(UsageError, match=said):
        grids.get(RunStore(None), runs)  # type: ignore[arg-type] # it is not asked
    grids.close()
