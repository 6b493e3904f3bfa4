"""What the HTML report of cases says: how much it shows, repeats, problems, replies, what was never asked."""

import re
import tracemalloc
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest

from producer.document import document_of, totals_of
from producer.report.cases import html_lists
from producer.report.cases.to_html import CasesHtmlReport
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload, Mode, encode_case
from shared.kinds import CASES
from tests.support.case_pages import EXPECTED, GOOD, NO_JSON, WRONG, item_row, rows_of, run_info, write_page
from worker.executors.case_results import case_document, case_line
from worker.validation.case_verdict import JudgeReply
from worker.validation.panel import Vote, with_votes
from worker.validation.pipeline import before_judge, validate

MODELS: Final = ("acme/quick", "acme/careful")
VOID: Final = frozenset({"meta", "input"})
"""Elements without an end."""


class Outline(HTMLParser):
    """Follows the elements of a page; a `noscript` is markup to it, as to a reader without scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element that begins."""
        self.seen.append(tag)
        if any(name in {"style", "src", "action"} or name.startswith("on") for name, _ in attrs):
            self.wrong.append(f"{tag} {attrs}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element that begins and ends at once, as those of a drawing do."""
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Notes an element that ends: what is open inside it may only be a list's item."""
        while self.open and self.open[-1] == "li" and tag == "ol":
            self.open.pop()
        if self.open and self.open[-1] == "li" and tag != "li":
            self.wrong.append(f"</{tag}> in a list's item")
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")


def page(tmp_path: Path, rows: list[ItemRow], **run: Any) -> str:
    """A report as text."""
    cases = len({row.index for row in rows})
    path = write_page(tmp_path / "report.html", run_info(MODELS, cases, **run), rows)
    return path.read_text(encoding="utf-8")


def section(text: str, name: str) -> str:
    """The list under a heading of a report."""
    return text.split(f'id="{name}"')[1].split("</section>", maxsplit=1)[0]


@pytest.mark.parametrize("mode", ["standard", "freeform"])
def test_pages_are_well_formed(tmp_path: Path, mode: Any) -> None:
    """Every element ends where it should, and none has a style, a source or a handler of its own."""
    outline = Outline()
    rows = list(rows_of(MODELS, 12, (GOOD, WRONG, NO_JSON, None)))
    outline.feed(page(tmp_path, rows, mode=mode))
    outline.close()
    assert outline.wrong == []
    assert [tag for tag in outline.open if tag != "li"] == []
    assert outline.seen.count("script") == outline.seen.count("style") == 1


def test_the_policy_allows_the_pages_own_style_and_script_only(tmp_path: Path) -> None:
    """The hashes in the policy are those of what stands in the page, and nothing else is allowed."""
    text = page(tmp_path, list(rows_of(MODELS, 1, (GOOD,))))
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)[0]
    assert re.sub(r"sha256-[\w+/=]+", "…", policy) == (
        "default-src 'none'; style-src '…'; script-src '…'; base-uri 'none'; form-action 'none'"
    )
    assert "unsafe" not in text


def test_a_page_shows_so_many_cases_failures_before_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit passes are left out first; the counts stay, and the page says what is missing."""
    monkeypatch.setattr(html_lists, "MOST_CASES", 5)
    text = page(tmp_path, list(rows_of(MODELS, 6, (GOOD, WRONG, GOOD, GOOD))))
    assert section(text, "failures").count("<details") == 3
    assert section(text, "passed").count("<details") == 2
    assert "7 cases are not shown. Whole: <code>proctor results run-1 --format jsonl</code>" in text
    assert "9 of 12 passed, 3 failed" in text


def test_a_freeform_page_shows_so_many_prompts_with_all_their_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts are shown whole or not at all, in their order, whatever the order of the rows."""
    monkeypatch.setattr(html_lists, "MOST_CASES", 5)
    rows = [
        item_row(at, CasePayload(case, model, f"ask {case}"), f"{model} says {case}", ms=5, cost=None)
        for at, (model, case) in enumerate((model, case) for model in MODELS for case in (2, 0, 1))
    ]
    text = page(tmp_path, rows, mode="freeform")
    assert re.findall(r"says \d", text) == ["says 0", "says 0", "says 2", "says 2"]
    assert re.findall(r"<h3>(Prompt \d)", text) == ["Prompt 1", "Prompt 3"]
    assert "2 cases are not shown" in text


def test_repeats_have_a_table_of_their_own(tmp_path: Path) -> None:
    """Where cases were asked more than once, the page tells pass@k, the mean's error, and flaky cases."""
    rows = [
        item_row(
            at, CasePayload(0, MODELS[0], "ask", at, criteria={"expected": EXPECTED}), output, ms=5, cost=0.0
        )
        for at, output in enumerate((GOOD, WRONG))
    ]
    text = page(tmp_path, rows, repeat=2)
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", text.split('id="repeats"')[1].split("</table>")[0])
    assert cells[-8:] == ["1", "2", "50.0%", "50.0%", "100.0%", "0.0%", "1", "100.0%"]
    assert "case 1 #2" in text
    assert 'id="repeats"' not in page(tmp_path, list(rows_of(MODELS, 1, (GOOD,))))


def test_problems_replies_and_what_was_never_asked_are_shown(tmp_path: Path) -> None:
    """Schema errors stand in a table, a judge's reply beside its stage, and lost cases among the failures."""
    schema = {"type": "object", "properties": {"city": {"type": "integer"}}}
    broken, judged = (
        CasePayload(0, MODELS[0], "one"),
        CasePayload(1, MODELS[0], "two", criteria={"expected": EXPECTED}),
    )
    results = [
        (broken, validate({"expected": EXPECTED, "schema": schema}, GOOD)),
        (judged, validate({"expected": EXPECTED}, WRONG, judge=lambda *_: "FAIL: another <city>")),
    ]
    rows = [
        ItemRow(at, "f", case_line(case_document(item, result)), 1, 2, 1, 5, 0.0, encode_case(item))
        for at, (item, result) in enumerate(results)
    ]
    rows.append(ItemRow(2, "", b"", payload=encode_case(CasePayload(2, MODELS[0], "three"))))
    text = page(tmp_path, rows)
    failures = section(text, "failures")
    assert "<td><code>/city</code></td><td><code>type</code></td>" in failures
    assert "reply: FAIL: another &lt;city&gt;" in failures
    assert failures.count("skipped") >= 1
    assert "the run ended first" in failures
    assert "0 of 2 passed, 2 failed, 1 skipped" in text


def test_judges_are_distinguished(tmp_path: Path) -> None:
    """A panel has a section: how far it agrees, and a row for each judge; people's word is at the case."""
    item = CasePayload(0, MODELS[0], "one", criteria={"expected": EXPECTED, "label": "fail"})
    votes = [
        Vote(f"judge/{name}", JudgeReply(word, {"model": f"judge/{name}", "cost_usd": 0.5}))
        for name, word in (("a", "PASS"), ("b", "FAIL"), ("<c>", "FAIL"))
    ]
    result = with_votes(before_judge({"expected": EXPECTED}, WRONG), votes)
    line = case_line(case_document(item, result))
    text = page(tmp_path, [ItemRow(0, "f", line, 1, 2, 1, 5, 0.0, encode_case(item))])
    table = text.split('id="judges"')[1].split("</table>", maxsplit=1)[0]
    assert re.findall(r"<bdi>(.*?)</bdi>", table) == ["judge/a", "judge/b", "judge/&lt;c&gt;"]
    assert "Krippendorff" in text
    assert "of it for the judge: $1.50 in 3 calls" in text
    assert "human label: fail" in section(text, "failures")
    assert 'id="judges"' not in page(tmp_path, list(rows_of(MODELS, 1, (GOOD,))))


def test_cases_stand_against_models(tmp_path: Path) -> None:
    """Cases that not every model passed stand in a table, the hardest first, each verdict a link."""
    text = page(tmp_path, list(rows_of(MODELS, 3, (GOOD, WRONG, GOOD, GOOD, None, WRONG))))
    table = text.split('id="matrix"')[1].split("</table>", maxsplit=1)[0]
    assert re.findall(r"<bdi>(.*?)</bdi>", table) == [*MODELS, "2 · ticket-2", "3 · ticket-3"]
    links = re.findall(r'<a class="(\w+)" href="#(\w+)">(.)</a>', table)
    assert links == [("bad", "i2", "✗"), ("bad", "i5", "✗"), ("good", "i3", "✓"), ("bad", "i6", "✗")]
    assert all(f'<details data-item id="{place}"' in text for _, place, _ in links)
    assert 'id="matrix"' not in page(tmp_path, list(rows_of(MODELS, 3, (GOOD,))))


@pytest.mark.parametrize("mode", ["standard", "freeform"])
def test_outputs_wait_on_disk(tmp_path: Path, mode: Mode) -> None:
    """Memory does not grow with what models said: 16 MB of shown outputs pass through an eighth of that."""
    info = run_info(MODELS[:1], 1_200, mode=mode)
    output = "all work and no play " * 1_000
    with (tmp_path / "report.html").open("wb") as out:
        report = CasesHtmlReport(out, info)
        totals = totals_of(CASES)
        report.page([item_row(0, CasePayload(0, MODELS[0], "ask"), output, ms=5, cost=None)])
        tracemalloc.start()
        try:
            for at in range(1, 1_200):
                row = item_row(at, CasePayload(at, MODELS[0], "ask"), output, ms=5, cost=None)
                totals.add([row])
                report.page([row])
            report.end(document_of(info, totals))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (tmp_path / "report.html").stat().st_size > 15_000_000
    assert peak < 2_000_000
