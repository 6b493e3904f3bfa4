"""What the HTML report of cases says: how much it shows, repeats, problems, replies, what was never asked."""

import json
import re
import tracemalloc
from base64 import b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest

from producer.cases.report import html_rows
from producer.cases.report.to_html import CasesHtmlReport
from producer.document import document_of, totals_of
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload, Mode, encode_case
from shared.kinds import CASES
from tests.support.case_pages import EXPECTED, GOOD, NO_JSON, WRONG, item_row, rows_of, run_info, write_page
from tests.support.checking import judged_by, vote
from tests.support.viewer_pages import unpacked
from worker.executors.case_results import case_document, case_line
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


def rows_of_page(text: str) -> dict[str, str]:
    """The rows of a report by their ids, in the order in which they stand."""
    parts = re.findall(r'<article [^>]*id="(c\d+)".*?>(.*?)</article>', text, re.DOTALL)
    return dict(parts)


def index(text: str) -> dict[str, Any]:
    """The index of a report."""
    found: dict[str, Any] = json.loads(text.split("data-index>")[1].split("</script>", maxsplit=1)[0])
    return found


@pytest.mark.parametrize("mode", ["standard", "freeform"])
def test_pages_are_well_formed(tmp_path: Path, mode: Any) -> None:
    """Every element ends where it should, and none has a style, a source or a handler of its own."""
    outline = Outline()
    rows = list(rows_of(MODELS, 12, (GOOD, WRONG, NO_JSON, None)))
    outline.feed(page(tmp_path, rows, mode=mode))
    outline.close()
    assert outline.wrong == []
    assert [tag for tag in outline.open if tag != "li"] == []
    assert outline.seen.count("style") == 2
    assert outline.seen.count("script") == 3  # the index, what all pages share, and what those of cases do
    assert outline.seen.count("article") == 12


def test_the_policy_allows_the_pages_own_style_and_script_only(tmp_path: Path) -> None:
    """The hashes in the policy are those of what stands in the page, and nothing else is allowed."""
    text = page(tmp_path, list(rows_of(MODELS, 1, (GOOD,))))
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)[0].replace("&#39;", "'")
    assert re.sub(r"sha256-[\w+/=]+", "…", policy) == (
        "default-src 'none'; style-src '…' '…'; script-src '…' '…'; base-uri 'none'; form-action 'none'"
    )
    for content in re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", text, re.DOTALL):
        assert b64encode(sha256(content.encode()).digest()).decode() in policy
    assert "unsafe" not in text


def test_a_page_shows_so_many_cases_failures_before_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit passes are left out first; the counts stay, and the page says what is missing."""
    monkeypatch.setattr(html_rows, "MOST_ROWS", 4)
    text = page(tmp_path, list(rows_of(MODELS, 6, (GOOD, WRONG, GOOD, GOOD, GOOD, GOOD))))
    assert list(rows_of_page(text)) == ["c2", "c1", "c3", "c4"]
    assert "2 cases are not shown. Full results: <code>proctor results run-1 --format jsonl</code>" in text
    assert "10 of 12 passed, 2 failed" in text


@pytest.mark.parametrize("mode", ["standard", "freeform"])
@pytest.mark.parametrize("left", [0, 1])
def test_a_page_says_that_texts_are_cut_only_if_one_is(tmp_path: Path, mode: Any, left: int) -> None:
    """The notice names the command that prints whole results; a page that has everything has no notice."""
    row = item_row(0, CasePayload(0, MODELS[0], "ask"), "a" * (20_000 + left), ms=5, cost=None)
    text = page(tmp_path, [row], mode=mode)
    note = "Texts longer than 20,000 characters are cut. Full results: <code>proctor results run-1"
    assert (note in text) == bool(left)
    assert ("Full results:" in text) == bool(left)


def test_a_freeform_page_shows_so_many_prompts_with_all_their_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts are shown whole or not at all, in their order, whatever order the rows have; costs too."""
    monkeypatch.setattr(html_rows, "MOST_ROWS", 2)
    rows = [
        item_row(at, CasePayload(case, model, f"ask {case}"), f"{model} says {case}", ms=5, cost=None)
        for at, (model, case) in enumerate((model, case) for model in MODELS for case in (2, 0, 1))
    ]
    text = page(tmp_path, rows, mode="freeform")
    found = rows_of_page(text)
    assert list(found) == ["c1", "c2"]
    assert [set(re.findall(r"[\w/]+ says \d", row)) for row in found.values()] == [
        {f"{model} says {case}" for model in MODELS} for case in (0, 1)
    ]
    assert "1 case is not shown" in text
    assert "not checked" in text
    assert "cost " in text.split('<p class="meta">')[1].split("</p>")[0]
    assert {row[1] for row in index(text)["rows"]} == {"nn"}


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
    assert cells[-7:] == ["2", "50.0%", "50.0%", "100.0%", "0.0%", "1 of 1", "100.0%"]
    row = rows_of_page(text)["c1"]
    assert ">1 of 2<" in row
    assert re.findall(r"answer #(\d)", row) == ["2", "1"]
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
    found = rows_of_page(text)
    assert "<td><code>/city</code></td><td><code>type</code></td>" in found["c1"]
    assert "reply: FAIL: another &lt;city&gt;" in found["c2"]
    assert "skipped: " not in found["c1"]
    assert 'not asked: <span dir="auto">the run ended first' in found["c3"]
    assert ">1</span> case without all its answers" in text
    assert "0 of 2 passed, 2 failed, 1 skipped" in text


def test_judges_are_distinguished(tmp_path: Path) -> None:
    """A panel has a section: how far it agrees, and a row for each judge; people's word is at the case."""
    item = CasePayload(0, MODELS[0], "one", criteria={"expected": EXPECTED, "label": "fail"})
    votes = [
        vote(f"judge/{name}", word, {"model": f"judge/{name}", "cost_usd": 0.5})
        for name, word in (("a", "PASS"), ("b", "FAIL"), ("<c>", "FAIL"))
    ]
    result = judged_by(before_judge({"expected": EXPECTED}, WRONG), *votes)
    line = case_line(case_document(item, result))
    text = page(tmp_path, [ItemRow(0, "f", line, 1, 2, 1, 5, 0.0, encode_case(item))])
    table = text.split('id="judges"')[1].split("</table>", maxsplit=1)[0]
    assert re.findall(r"<bdi>(.*?)</bdi>", table) == ["judge/a", "judge/b", "judge/&lt;c&gt;"]
    assert "Krippendorff" in text
    assert "of it for the judge: $1.50 in 3 calls" in text
    assert "human label: fail" in rows_of_page(text)["c1"]
    assert 'id="judges"' not in page(tmp_path, list(rows_of(MODELS, 1, (GOOD,))))


def test_cases_stand_against_models(tmp_path: Path) -> None:
    """A row has a cell for each model, the best first; the hardest cases first, the reason in the cell."""
    text = page(tmp_path, list(rows_of(MODELS, 3, (GOOD, WRONG, GOOD, GOOD, None, WRONG))))
    assert re.findall(r'class="name" dir="auto"><small>acme</small><button[^>]*>([\w/]+)<', text) == [
        "quick",
        "careful",
    ]
    assert [row[:2] for row in index(text)["rows"]] == [["c2", "fe"], ["c3", "pf"], ["c1", "pp"]]
    row = rows_of_page(text)["c2"]
    assert re.findall(r'class="reasontext (\w)" dir="auto">(.*?)</b>', row) == [
        ("f", "/city is &#34;Lyon&#34;, expected &#34;Paris&#34;, and 1 more"),
        ("e", "no answer within 120 s"),
    ]
    assert re.findall(r'data-name="([\w/]+)"', row) == list(MODELS)
    assert re.findall(r'class="group"><span class="num">(\d)</span> ([\w ]+)<', text) == [
        ("2", "cases with a failure or an error"),
        ("1", "case passed by every model"),
    ]


def test_failures_are_grouped_by_reason(tmp_path: Path) -> None:
    """Reasons that differ in values only are one; each counts its answers, errors stand last."""
    text = page(tmp_path, list(rows_of(MODELS, 4, (WRONG, NO_JSON, None, None, WRONG, GOOD, None, NO_JSON))))
    found = re.findall(
        r'class="reason (\w)" data-facet="reason" data-value="([^"]*)".*?data-number>(\d)', text
    )
    no_json = "no JSON object in the output"
    assert sorted(found[:2]) == [("f", "/city differs", "2"), ("f", no_json, "2")]
    assert found[2:] == [("e", "no answer within … s", "3")]
    labels = re.findall(r'class="reason \w".*?<bdi>(.*?)</bdi>', text)
    assert labels[2] == "no answer within 120 s"  # in words: the kind itself has a gap
    assert "4 failed answers, 3 errors:" in text


def test_a_command_asks_one_answer_again(tmp_path: Path) -> None:
    """Each answer has the command that asks only it again, with the ids of run and case."""
    found = rows_of_page(page(tmp_path, list(rows_of(MODELS, 2, (GOOD, WRONG)))))
    commands = re.findall(r"proctor retry [^<\"]+", unescape(found["c2"]))
    assert sorted(set(commands)) == [
        f"proctor retry run-1 --item 'ticket-2 · {model}'" for model in sorted(MODELS)
    ]


def test_chance_is_named(tmp_path: Path) -> None:
    """The lead of the best model is tested on the same cases; few cases do not tell two models apart."""
    outputs = [GOOD] * 12 + [GOOD, WRONG, *[GOOD] * 10]
    text = page(tmp_path, list(rows_of(MODELS, 12, outputs)))
    assert (
        "acme/quick leads with 12 of 12, ahead of acme/careful with 11 of 12, "
        "but 12 cases cannot tell them apart (p = 0.50)."
    ) in text
    text = page(tmp_path, list(rows_of(MODELS, 12, [GOOD] * 12 + [WRONG] * 12)))
    assert "more than chance explains (p = 0.001)." in text


def test_many_columns_scroll_below_their_head(tmp_path: Path) -> None:
    """Up to five columns share the page's width; more are a matrix, whose head scrolls with them."""
    for number, wanted in (
        (4, "rows n4"),
        (5, "rows n5"),
        (6, "matrix n6"),
        (7, "matrix n7"),
        (12, "matrix n9"),
    ):
        models = [f"acme/m{at}" for at in range(number)]
        info = run_info(models, 2)
        path = write_page(tmp_path / "report.html", info, list(rows_of(models, 2, (GOOD, WRONG))))
        text = path.read_text(encoding="utf-8")
        assert f'<div class="{wanted}">' in text or f'<section class="{wanted}" data-rows' in text
        assert text.index("data-rows") < text.index('id="models"')
        assert text.count('class="headcell"') == number
        assert ('<div class="headscroll" data-headscroll>' in text) == (number > 5)


def test_charts_stand_where_they_say_something(tmp_path: Path) -> None:
    """From three models on; the cost of each model is in a table whatever their number."""
    for number in (2, 3):
        models = [f"acme/m{at}" for at in range(number)]
        path = write_page(
            tmp_path / "report.html", run_info(models, 2), list(rows_of(models, 2, (GOOD, WRONG)))
        )
        text = path.read_text(encoding="utf-8")
        assert ("Latency vs. accuracy" in text) == ("Speed vs. Price" in text) == (number > 2)
        assert 'id="cost"' in text


@pytest.mark.parametrize("mode", ["standard", "freeform"])
def test_outputs_wait_on_disk(tmp_path: Path, mode: Mode) -> None:
    """Memory does not grow with the outputs: 8 MB of shown outputs pass through an eighth of that."""
    info = run_info(MODELS[:1], 600, mode=mode)
    output = "all work and no play " * 1_000
    with (tmp_path / "report.html").open("wb") as out:
        report = CasesHtmlReport(out, info)
        totals = totals_of(CASES)
        report.page([item_row(0, CasePayload(0, MODELS[0], "ask"), output, ms=5, cost=None)])
        tracemalloc.start()
        try:
            for at in range(1, 600):
                row = item_row(at, CasePayload(at, MODELS[0], "ask"), output, ms=5, cost=None)
                totals.add([row])
                report.page([row])
            report.end(document_of(info, totals))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert len(unpacked((tmp_path / "report.html").read_text(encoding="utf-8"))) > 7_500_000
    assert peak < 1_000_000
