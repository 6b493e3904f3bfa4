"""What the HTML page of queries says: verdict, metrics once, failures first, each query with its sources."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any, Final

import pytest

from producer.aggregate.queries import metrics_of
from producer.queries.report import to_html
from producer.queries.report.check_reasons import REASON_OF_CHECK, found_by_checks
from producer.queries.report.to_markdown import report_markdown
from producer.queries.results import AskedQuery
from shared.codecs.item_rows import POISON_CODE, ItemRow
from shared.names import RunState
from tests.support.query_results import HOSTILE, answered, baseline, one_of_each
from tests.support.run_pages import queries_run, query_rows, write_page
from worker.queries.checks import query_result
from worker.queries.reply import Reply

MARKUP: Final = "<img src=x onerror=alert(1)></noscript></script><script>alert(1)</script>{{ 7 }}<!--row-->"
DOCUMENT_SECTIONS: Final = {
    "must_contain Failures": ("reason", REASON_OF_CHECK["must_contain"]),
    "Hallucination Detections": ("reason", REASON_OF_CHECK["must_not_contain"]),
    "OOS Handling Failures": ("reason", REASON_OF_CHECK["oos_handling"]),
    "Citation N/A": ("tag", "nothing to cite"),
    "Citation Missing": ("reason", REASON_OF_CHECK["citation_present"]),
}
"""Sections of the document's report, and the filter of the page that shows the same queries."""


def page(tmp_path: Path, rows: list[ItemRow], **changes: Any) -> str:
    """A report as text."""
    path = write_page(tmp_path / "report.html", queries_run(len(rows), **changes), rows)
    return path.read_text(encoding="utf-8")


def details(text: str) -> list[str]:
    """The queries, each with what only the panel shows."""
    return re.findall(r'<article class="row" data-row.*?</article>', text, flags=re.DOTALL)


def names(pieces: list[str]) -> list[str]:
    """The ids of queries."""
    return [unescape(found[1]) for piece in pieces if (found := re.search(r'data-title="([^"]*)"', piece))]


def words(markup: str) -> str:
    """The text of markup in one line."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", markup)).split())


def index(text: str) -> dict[str, Any]:
    """The page's index."""
    found = re.search(r'<script type="application/json" data-index>(.*?)</script>', text, flags=re.DOTALL)
    assert found
    read: dict[str, Any] = json.loads(found[1])
    return read


def filtered(text: str, facet: str, value: str) -> list[str]:
    """The ids of queries that a filter of the page shows."""
    found = index(text)
    column, titles = 3 + found["facets"].index(facet), dict(zip(ids(text), names(details(text)), strict=True))
    known = found["names"][found["facets"].index(facet)]
    if value not in known:
        return []
    return [titles[row[0]] for row in found["rows"] if known.index(value) in row[column]]


def ids(text: str) -> list[str]:
    """The elements of queries."""
    return re.findall(r'<article class="row" data-row id="(i\d+)"', text)


def card(text: str, name: str) -> str:
    """What the strip says of one metric."""
    cards = {
        words(each).partition(" ")[0]: words(each)
        for each in re.findall(r'<li class="metric">.*?</li>', text, re.DOTALL)
    }
    return next(card_text for card_text in cards.values() if card_text.startswith(name))


def test_filters_show_the_queries_that_the_document_lists(tmp_path: Path) -> None:
    """For each section of failures in Markdown one filter of the page shows the same queries."""
    results = one_of_each()
    text = page(tmp_path, query_rows(results))
    markdown = report_markdown(list(map(AskedQuery, results)), metrics_of(results), "run")
    for title, (facet, value) in DOCUMENT_SECTIONS.items():
        twin = markdown.split(f"## {title}\n")[1].split("\n## ")[0]
        wanted = re.findall(r"^\| (Q-\d+)", twin, flags=re.MULTILINE)
        assert wanted, title
        assert sorted(filtered(text, facet, value)) == wanted
    assert sorted(filtered(text, "tag", "no keyword required")) == ["Q-09"]
    assert sorted(filtered(text, "tag", "out of scope")) == ["Q-04", "Q-05"]
    assert filtered(text, "category", "edge_case") == ["Q-05"]


def test_the_first_screen_says_what_counts(tmp_path: Path) -> None:
    """The verdict as a sentence, rates of answered and of all, the run, and what makes it partial."""
    rows = query_rows(one_of_each(), never_sent=2)
    text = page(tmp_path, rows, state=RunState.CANCELLED)
    head = words(text.split('<div class="verdict">')[1].split('<ul class="strip')[0])
    assert head.startswith(
        "! incomplete Cancelled: 4 of 9 passed, 4 failed, 1 error, 2 skipped; 1 of 5 targets missed: OOS"
    )
    assert "Pass rate 44.4% of all, 50.0% of 8 answered." in head
    assert "1 in-scope query requires no keyword and counts as deflected" in head
    assert "cancelled: 11 queries to http://localhost:3000 in 2.0 s · " in head
    about = words(text.split('id="about"')[1].split("</details>")[0])
    assert "API POST http://localhost:3000/api/query delay, concurrency 2 s, 1" in about
    assert "eval-2026-02-10T14-30-00" in text.split("</header>")[0]
    assert re.search(r"<title>! baselines.json · Cancelled: 4 of 9", text)


def test_notices_stand_only_where_they_are_true(tmp_path: Path) -> None:
    """A good run has no reasons, no chips of failures, no doubts, no notes of what is cut or left out."""
    text = page(tmp_path, query_rows([answered(f"Q-{at}") for at in range(60)]))
    assert words(text.split("<h1>")[1].split('<p class="meta">')[0]) == (
        "✓ passed 60 of 60 passed; all 4 targets met Pass rate 100.0%, 95% interval 94.0-100.0%."
    )
    shown = text.split("<body>")[1].split("<script")[0]
    for notice in (
        "Failed",
        "Errors",
        'class="reason ',
        "N/A",
        "characters more",
        "sent again",
        "keyword required",
    ):
        assert notice not in shown.split("The six checks")[0], notice


def test_metrics_stand_once_with_interval_and_target(tmp_path: Path) -> None:
    """A rate has its interval, its target and what it is a share of; a mean has percentiles."""
    text = page(tmp_path, query_rows(one_of_each(), never_sent=2))
    assert (
        card(text, "Deflection")
        == "Deflection rate 83.3% 95%: 44 to 97 target ≥ 40% ✓ met n = 6 in-scope answers"
    )
    assert card(text, "Citation") == (
        "Citation accuracy 80.0% 95%: 38 to 96 target ≥ 80% ✓ met n = 5 citable answers 66.7% with the 1 N/A"
    )
    assert (
        card(text, "OOS")
        == "OOS handling 50.0% 95%: 9 to 91 target ≥ 90% ✗ missed n = 2 out-of-scope answers"
    )
    assert card(text, "Hallucination").startswith("Hallucination rate 12.5%")
    assert card(text, "Average") == (
        "Average latency 1,200 ms measured 1,234 ms target < 5,000 ms "
        "✓ met P50 1,234 ms, P95 1,234 ms 100.0% under 5 s"
    )
    assert card(text, "Passed") == (
        "Passed 50.0% 95%: 22 to 78 4 of 8 passed 44.4% of all 9 sent ✗ 4 failed ! 1 no answer"
    )
    cards = text.split('<ul class="strip')[1].split("</ul>")[0]
    assert cards.count("Average latency") == text.count("Citation accuracy") == 1
    assert 'aria-label="83.3%, 95% interval 43.6 to 97.0%"' in text


def test_the_columns_of_checks_have_a_legend(tmp_path: Path) -> None:
    """What a check demands is a hint of its head, and what a `?` beside them opens, for paper and touch."""
    text = page(tmp_path, query_rows(one_of_each()))
    assert 'title="must_contain, required keywords found: 7 of 8 passed">must<' in text
    assert '<button type="button" class="opener" popovertarget="legend"' in text
    legend = words(text.split('id="legend">')[1].split("</dl>")[0])
    for part in (
        "must (must_contain) required keywords found",
        "scope (oos_handling) out-of-scope query declined",
        "\u2713 \u2717 \u2013 passed, failed, not applicable",
    ):
        assert part in legend


def test_the_headline_names_what_decides(tmp_path: Path) -> None:
    """Where all targets are met, failed answers come first; a missed target is named beside them."""
    results = [answered("Q-0", "no"), *(answered(f"Q-{at}") for at in range(1, 50))]
    head = page(tmp_path, query_rows(results)).split("<h1>")[1].split("</h1>")[0]
    assert words(head) == "✗ failed 1 of 50 answers failed; all 4 targets met"
    head = page(tmp_path, query_rows(one_of_each())).split("<h1>")[1].split("</h1>")[0]
    assert words(head).startswith("✗ failed 4 of 9 passed, 4 failed, 1 error; 1 of 5 targets missed")


def test_a_run_without_answers_has_no_rates(tmp_path: Path) -> None:
    """What was not answered has no rate, no percentage and no tables."""
    lost = one_of_each()[7]
    text = page(tmp_path, query_rows([lost], never_sent=2), state=RunState.ABORTED)
    assert "Aborted: no answers, 1 error, 2 skipped" in words(text.split("<h1>")[1].split("</h1>")[0])
    assert card(text, "Deflection") == "Deflection rate no answers target ≥ 40%"
    assert card(text, "Average") == "Average latency no answers target < 5,000 ms"
    strip = text.split('<ul class="strip')[1].split("</ul>")[0]
    assert "0.0%" not in strip
    assert "The six checks" not in text
    assert filtered(text, "reason", "Timeout after 30s") == ["Q-08"]
    assert filtered(text, "reason", "never sent") == ["Q-90", "Q-91"]


def test_the_six_checks_are_counted(tmp_path: Path) -> None:
    """Of queries with an answer: passed, failed and not applicable, and failed ones lead to their queries."""
    table = page(tmp_path, query_rows(one_of_each())).split("The six checks")[1].split("</table>")[0]
    cells = {
        name: re.findall(r'data-value="(\d+)"', row)[:3]
        for name, row in re.findall(r"<tr><th><bdi>(\w+)</bdi></th>(.*?)</tr>", table, flags=re.DOTALL)
    }
    assert cells["must_contain"] == ["7", "1", "0"]
    assert cells["must_not_contain"] == ["7", "1", "0"]
    assert cells["citation_present"] == ["5", "1", "2"]
    assert cells["oos_handling"] == ["1", "1", "6"]
    assert 'href="#reason=required%20keywords%20missing"' in table


def test_categories_that_occur_are_listed(tmp_path: Path) -> None:
    """With answers, what did not pass, and rates only where there is something to rate."""
    table = page(tmp_path, query_rows(one_of_each())).split("By category")[1].split("</table>")[0]
    rows = [words(row) for row in re.findall(r"<tr><th>.*?</tr>", table, flags=re.DOTALL)][1:]
    assert rows == ["booking 7 4 83.3% 80.0% 14.3% 1,200 ms", "edge_case 1 1 - - 0.0% 1,200 ms"]


def test_failures_stand_first(tmp_path: Path) -> None:
    """Failed queries come before those without an answer, never sent and passed, each under its heading."""
    text = page(tmp_path, query_rows(one_of_each(), never_sent=1))
    assert names(details(text)) == [
        "Q-02",
        "Q-03",
        "Q-05",
        "Q-07",
        "Q-08",
        "Q-90",
        "Q-01",
        "Q-04",
        "Q-06",
        "Q-09",
    ]
    assert "".join(row[1] for row in index(text)["rows"]) == "ffffenpppp"
    assert [words(each) for each in re.findall(r'<h2 class="group">.*?</h2>', text)] == [
        "4 queries that failed",
        "1 query without an answer",
        "1 query that was never sent",
        "4 queries that passed",
    ]
    lost, never = details(text)[4:6]
    assert "Timeout after 30s" in lost.split('<div class="body">')[0]
    assert "api_timeout: Timeout after 30s" in lost.split('<div class="body">')[1]
    assert "the run ended before it was sent" in never


def test_a_row_has_answer_sources_and_six_marks(tmp_path: Path) -> None:
    """In a closed row: the reason, the answer, what it cites, and a mark for each check, spoken too."""
    missing, invented, undeclined, uncited = details(page(tmp_path, query_rows(one_of_each())))[:4]
    closed = missing.split('<div class="body">')[0]
    assert "lacks &#34;yes&#34; (0 of 1 keyword found)" in closed
    assert '<span class="out" dir="auto">no</span>' in closed
    assert '<span class="src"><span dir="auto">S</span></span>' in closed
    assert "1,200 ms" in closed
    marks = [re.findall(r'<i class="(\w)">', row) for row in (missing, invented, undeclined, uncited)]
    assert ["".join(found) for found in marks] == ["fpppnp", "pfppnp", "ppppfp", "pppfnp"]
    assert 'aria-label="4 checks passed, failed: must_contain"' in closed
    assert "no sources" in uncited


def test_a_query_is_shown_with_all_that_came_back(tmp_path: Path) -> None:
    """Checks with reasons, failed first; query, answer, confidence, what was expected, times, command."""
    rows = query_rows([answered("Q-02", "no", expected_docs=["BK-01"])])
    asked = baseline("Q-02", expected_docs=["BK-01"], difficulty="hard", notes="One fact.")
    rows = [rows[0]._replace(payload=json.dumps(asked).encode(), attempts=3)]
    [row] = details(page(tmp_path, rows))
    body = row.split('<div class="body">')[1]
    checks = [
        words(each) for each in re.findall("<li>.*?</li>", body.split("<h3>Checks")[1].split("</ul>")[0])
    ]
    assert checks[:3] == [
        '✗ failed must_contain lacks "yes" (0 of 1 keyword found)',
        "✗ failed expected_docs did not retrieve BK-01",
        "✓ passed must_not_contain no forbidden keyword",
    ]
    text = words(body)
    assert "Not applicable: oos_handling (in scope)" in text
    assert "query What about Q-02? answer no confidence High - found" in text
    assert "Sources 1 cited S" in text
    assert (
        "required ✗ yes forbidden guess documents BK-01 signs of declining cannot help notes One fact."
        in text
    )
    assert "whole request 1,234 ms server 1,200 ms sent 3 times, within 1.0 s" in text
    assert "proctor run baselines.json --start-from Q-02 --first 1 --api-url http://localhost:3000" in text
    assert [words(tag) for tag in re.findall(r'<span class="tag">.*?</span>', row)] == [
        "hard",
        "sent again",
    ]
    assert '<b dir="auto">Q-02</b> <span class="small dim">booking</span>' in row
    assert "sent 3 times · 1,234 ms · server 1,200 ms" in row


def test_sources_are_readable(tmp_path: Path) -> None:
    """Title, section, id, score and text of what is cited; what was only retrieved is named apart."""
    response = {
        "answer": "yes",
        "sources": [{"title": "LCL guide", "section": "Cut-off", "text": "4 working days before."}],
        "citations": [{"title": "LCL guide", "section": "Cut-off", "docId": "BK-02", "score": 0.91}],
        "relatedDocs": [{"title": "Tariffs", "docId": "CU-01", "url": "https://kb.example/t"}],
    }
    [row] = details(page(tmp_path, query_rows([query_result(baseline("Q-1"), Reply(response, 5, 200))])))
    closed, body = row.split('<div class="body">')
    assert '<span class="src"><span dir="auto">LCL guide, Cut-off</span></span>' in closed
    card_text = words(body)
    assert "1 cited LCL guide Cut-off · BK-02 · score 0.91 4 working days before." in card_text
    assert "Retrieved, not cited Tariffs CU-01" in card_text
    assert "href" not in row, "addresses of hostile replies are text"


def test_checks_say_what_they_found() -> None:
    """Each verdict of each check has a reason in words."""
    declined = answered("Q-1", "I cannot help.", chunks=0, is_oos=True, must_contain=[])
    reasons = {check.name: (check.word, check.reason) for check in found_by_checks(AskedQuery(declined))}
    assert reasons == {
        "must_contain": ("pass", "no keyword required"),
        "must_not_contain": ("pass", "no forbidden keyword"),
        "expected_docs": ("pass", "no document expected"),
        "citation_present": ("N/A", "No chunks retrieved — citation N/A"),
        "oos_handling": ("pass", 'declined with "cannot help"'),
        "latency": ("pass", "1,200 ms, limit 5,000 ms"),
    }
    invented = answered("Q-2", "yes, a guess", expected_docs=["BK-01"], is_oos=True)
    reasons = {check.name: (check.word, check.reason) for check in found_by_checks(AskedQuery(invented))}
    assert reasons["must_contain"] == ("pass", "1 of 1 keyword found")
    assert reasons["must_not_contain"] == ("fail", 'contains "guess"')
    assert reasons["expected_docs"] == ("fail", "did not retrieve BK-01")
    assert reasons["citation_present"] == ("pass", "1 source, 0 citations")
    assert reasons["oos_handling"] == ("fail", "out of scope, but not declined")


@pytest.mark.parametrize("text", [MARKUP, HOSTILE])
def test_hostile_answers_are_only_text(tmp_path: Path, text: str) -> None:
    """Markup of queries, answers, sources, categories and names is shown and not obeyed."""
    reply = Reply({"answer": text, "sources": [{text: text}, text], "confidence": text}, 5, 200)
    asked = {"id": text, "category": text, "query": text, "is_oos": True, "oos_decline_signals": [text]}
    rows = query_rows([query_result(asked, reply), answered(text, "no", must_contain=[text])])
    rows = [
        row._replace(payload=json.dumps({**asked, text: text, "tags": [text, {}]}).encode()) for row in rows
    ]
    plain = page(tmp_path, query_rows([answered("Q-1"), answered("Q-2")]), source="b.json")
    found = page(tmp_path, rows, source=f"{text}\udcff.json")
    for tag in ("<script", "</script", "<noscript", "</noscript", "<!--"):
        assert found.count(tag) == plain.count(tag), tag
    assert "<img" not in found
    assert "\x1b" not in found
    assert "\\udcff.json" in found


def test_a_poisoned_query_is_there(tmp_path: Path) -> None:
    """A query that no worker survived is an error with its input."""
    poisoned = query_rows([], never_sent=1)[0]._replace(code=POISON_CODE)
    [found] = details(page(tmp_path, [poisoned]))
    assert "poison: no worker survived it" in found
    assert "What about Q-90?" in found


def test_repeats_are_told_apart(tmp_path: Path) -> None:
    """Each answer to a query that was asked several times has its number."""
    info = queries_run(4)
    info.snapshot["queries"]["repeat"] = 2
    rows = query_rows([answered(name) for name in ("Q-1", "Q-1", "Q-2", "Q-2")])
    text = write_page(tmp_path / "report.html", info, rows).read_text(encoding="utf-8")
    assert names(details(text)) == ["Q-1 #1", "Q-1 #2", "Q-2 #1", "Q-2 #2"]
    assert "Each query was asked 2 times." in text


def test_many_values_are_a_list_to_choose_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Categories are one field; a few traits are chips with their counts, many a field of their own."""
    results = [answered(f"Q-{at}", category=f"c{at % 3}", is_oos=at > 6) for at in range(9)]
    text = page(tmp_path, query_rows(results))
    assert '<select data-facet="category">' in text
    assert 'class="chip" data-facet="tag" data-value="out of scope"' in text
    monkeypatch.setattr(to_html, "MOST_CHIPS", 1)
    results[0] = answered("Q-0", must_contain=[])
    text = page(tmp_path, query_rows(results))
    assert 'class="chip" data-facet="tag"' not in text
    assert '<select data-facet="tag">' in text


def test_latencies_are_drawn_only_where_they_say_something(tmp_path: Path) -> None:
    """Many answers that differ have a distribution; few, or all alike, have none."""

    def timed(number: int, slowest: int) -> str:
        results = [answered(f"Q-{at}") for at in range(number)]
        for at, result in enumerate(results):
            took = result["client_latency_ms"] = slowest if at % 10 == 0 else 1_000
            result["checks"]["latency"] = {"pass": took < 5_000, "latency_ms": took, "threshold_ms": 5_000}
        return page(tmp_path, query_rows(results))

    drawn = timed(40, 9_000)
    assert '<svg class="chart"' in drawn
    assert "too slow: 4" in drawn
    assert '<svg class="chart"' not in timed(40, 1_100)
    assert '<svg class="chart"' not in timed(9, 9_000)


def test_a_large_run_shows_passed_queries_briefly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a bound every query is still there; passed ones have answer and sources, failed ones all."""
    rows = query_rows([answered(f"Q-{at}", "no" if at % 2 else "yes") for at in range(10)])
    assert "shown briefly" not in page(tmp_path, rows)
    monkeypatch.setattr(to_html, "MOST_WHOLE", 6)
    text = page(tmp_path, rows)
    found = details(text)
    assert names(found) == [f"Q-{at}" for at in (1, 3, 5, 7, 9, 0, 2, 4, 6, 8)]
    assert ["<h3>Checks" in row for row in found] == [True] * 5 + [False] * 5
    assert "answer yes" in words(found[-1])
    assert "Sources 1 cited S" in words(found[-1])
    assert "Passed queries are shown briefly, all of it: proctor results eval-2026" in words(text)


def test_long_answers_are_cut(tmp_path: Path) -> None:
    """An answer of a megabyte does not make a page of a megabyte, and it says how much is missing."""
    text = page(tmp_path, query_rows([answered("Q-1", "yes " * 250_000)]))
    assert len(text) < 130_000
    assert "… and 980,000 characters more" in text
    assert "proctor results eval-2026-02-10T14-30-00 --format jsonl" in text
