"""What the HTML page of a kind without a page of its own says: verdict, outcomes, one row an item."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any, Final

import pytest

from producer.document import document_of
from producer.items.report.to_html import ItemsHtmlReport
from producer.items.totals import ItemTotals
from shared.codecs.item_rows import POISON_CODE, ItemRow
from shared.names import RunState
from tests.support.query_results import HOSTILE
from tests.support.run_pages import queries_run

MARKUP: Final = "</noscript></script><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 }}<!--row-->"


def item(index: int, code: str, result: Any, **changes: Any) -> ItemRow:
    """The row of one item."""
    stored = {"error": {"code": "no_word", "message": result}, "result": None} if code == "x" else result
    return ItemRow(index, code, json.dumps(stored).encode(), 1_000, 2_000, 1, 40 + index)._replace(**changes)


def four() -> list[ItemRow]:
    """One of each outcome, and one that never ran."""
    return [
        item(0, "p", {"word": "otto", "reversed": "otto"}),
        item(1, "f", {"word": "Ada", "reversed": "adA"}, attempts=3),
        item(2, "x", "42 is a number"),
        ItemRow(3, "", b'{"word": "late"}'),
    ]


def page(tmp_path: Path, rows: list[ItemRow], **changes: Any) -> str:
    """The page as text."""
    info = queries_run(len(rows), **changes)
    totals = ItemTotals()
    totals.add(rows)
    with (tmp_path / "items.html").open("wb") as out:
        report = ItemsHtmlReport(out, info, ("word", "reversed"))
        report.page(rows)
        report.end(document_of(info, totals))
    return (tmp_path / "items.html").read_text(encoding="utf-8")


def words(markup: str) -> str:
    """The text of markup in one line."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", markup)).split())


def verdict(text: str) -> str:
    """The heading of a page."""
    return words(text.split("<h1>")[1].split("</h1>", maxsplit=1)[0])


def details(text: str) -> list[str]:
    """The items, each with what only the panel shows."""
    return re.findall(r'<article class="row" data-row.*?</article>', text, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("rows", "state", "sentence"),
    [
        (four()[:3], "finished", "✗ failed 1 of 3 passed, 1 failed, 1 error"),
        (four()[:1], "finished", "✓ passed 1 of 1 passed"),
        ([four()[0], four()[2]], "finished", "✗ failed 1 of 2 passed, 1 error"),
        (
            four(),
            "cancelled",
            "! incomplete Cancelled: 1 of 3 passed, 1 failed, 1 error, 1 skipped",
        ),
        (four()[3:], "aborted", "✗ failed Aborted: no answers, 1 skipped"),
        ([four()[0], four()[3]], "running", "Running: 1 of 1 passed"),
    ],
)
def test_the_verdict_is_one_sentence(tmp_path: Path, rows: list[ItemRow], state: str, sentence: str) -> None:
    """What failed, what has no result, and whether the run came to its end."""
    assert verdict(page(tmp_path, rows, state=RunState(state))) == sentence


def test_items_stand_with_failures_first(tmp_path: Path) -> None:
    """One row an item: failed, without a result, never worked on, passed; with values, error and figures."""
    text = page(tmp_path, four())
    found = [words(row) for row in details(text)]
    assert [row.split()[0] for row in found] == ["query-1", "query-2", "query-3", "query-0"]
    assert "Values word Ada reversed adA" in found[0]
    assert "tried 3 times · 41 ms" in found[0]
    assert '{"word": "Ada", "reversed": "adA"}' in found[0]
    assert "Error no_word 42 is a number" in found[1]
    assert "! 42 is a number 1" in words(text.split('class="reasons"')[1].split("</div>")[0])
    card = words(text.split('<li class="metric">')[1].split("</li>")[0])
    assert card == "Passed 50.0% 95%: 9 to 91 1 of 2 with a result ✗ 1 failed ! 1 without"


def test_a_run_without_results_has_no_rate(tmp_path: Path) -> None:
    """Nothing is 0% that was never measured."""
    strip = page(tmp_path, four()[3:]).split('<ul class="strip')[1].split("</ul>")[0]
    assert "%" not in words(strip)


@pytest.mark.parametrize("text", [MARKUP, HOSTILE])
def test_hostile_results_are_only_text(tmp_path: Path, text: str) -> None:
    """Markup in values, errors and the name of the input is shown and not obeyed."""
    rows = [item(0, "f", {"word": text, "reversed": [text]}), item(1, "x", text)]
    plain, found = page(tmp_path, four()[1:3]), page(tmp_path, rows, source=f"{text}\udcff")
    for tag in ("<script", "</script", "<noscript", "</noscript", "<!--"):
        assert found.count(tag) == plain.count(tag), tag
    assert "<img" not in found
    assert "\x1b" not in found


def test_an_item_that_no_worker_survived_is_there(tmp_path: Path) -> None:
    """It is an error with its reason."""
    [row] = details(page(tmp_path, [ItemRow(0, POISON_CODE, b"{}")]))
    assert "no worker survived it" in row
