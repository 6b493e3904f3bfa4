"""What the HTML report of queries says: the sections of the document, checks with reasons, failures first."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from producer.aggregate.queries import calculate_metrics
from producer.report.queries import to_html
from producer.report.queries.check_reasons import found_by_checks
from producer.report.queries.to_markdown import report_markdown
from shared.codecs.item_rows import POISON_CODE, ItemRow
from shared.names import RunState
from tests.support.query_results import HOSTILE, answered, one_of_each
from tests.support.run_pages import queries_run, query_rows, write_page
from worker.queries.reply import Reply
from worker.queries.verdict import query_result

MARKUP: Final = "<img src=x onerror=alert(1)></noscript></script><script>alert(1)</script>{{ 7 }}"


def page(tmp_path: Path, rows: list[ItemRow], **changes: Any) -> str:
    """A report as text."""
    path = write_page(tmp_path / "report.html", queries_run(len(rows), **changes), rows)
    return path.read_text(encoding="utf-8")


def headings(text: str) -> list[str]:
    """The headings of a report, the title first."""
    return re.findall(r"<h[12][^>]*>(.*?)</h[12]>", text)


def section(text: str, title: str) -> str:
    """What stands under a heading."""
    return re.split(r"<h2[^>]*>" + re.escape(title) + "</h2>", text)[1].split("<h2", maxsplit=1)[0]


def details(text: str) -> list[str]:
    """The queries, each with what is folded away."""
    return re.findall(r'<details data-item id="i\d+".*?</details>', text, flags=re.DOTALL)


def names(pieces: list[str]) -> list[str]:
    """The ids of queries."""
    return [found[1] for piece in pieces if (found := re.search(r'data-name="([^"]*)"', piece))]


def test_the_sections_are_those_of_the_document(tmp_path: Path) -> None:
    """Title and eight headings are word for word those of Markdown, also of a run without results."""
    for results in (one_of_each(), []):
        markdown = report_markdown(results, calculate_metrics(results), "run")
        wanted = re.findall(r"^##? (.*)$", markdown, flags=re.MULTILINE)
        assert headings(page(tmp_path, query_rows(results))) == wanted
        assert len(wanted) == 9


def test_listed_queries_are_those_of_the_document(tmp_path: Path) -> None:
    """Each section names the same queries as its Markdown twin, and leads to each of them."""
    results = one_of_each()
    text = page(tmp_path, query_rows(results))
    markdown = report_markdown(results, calculate_metrics(results), "run")
    for title in headings(text)[3:8]:
        twin = markdown.split(f"## {title}\n")[1].split("\n## ")[0]
        wanted = re.findall(r"^\| (Q-\d+)", twin, flags=re.MULTILINE)
        found = re.findall(r'<a href="#(i\d+)">(Q-\d+)', section(text, title))
        assert [name for _, name in found] == wanted
        assert all(f'<details data-item id="{place}"' in text for place, _ in found)
    assert "In scope, and so left out of citation accuracy: 1 of 2." in section(text, "Citation N/A")
    assert "so count as deflected: 1." in section(text, "must_contain Failures")


def test_the_first_screen_says_what_counts(tmp_path: Path) -> None:
    """Targets with verdicts, outcomes, the run and the notes of a partial one stand above everything."""
    rows = query_rows(one_of_each(), never_sent=2)
    head = page(tmp_path, rows, state=RunState.CANCELLED).split("<main>", maxsplit=1)[0]
    verdict = "cancelled, 4 of 5 targets met, 4 of 11 queries passed, 4 failed, 1 error, 2 skipped"
    assert re.search(rf'<p class="verdict bad"><span aria-hidden="true">✗</span> {verdict}</p>', head)
    assert "Date: 2026-02-10 14:30:00 UTC · Run ID: eval-2026-02-10T14-30-00" in head
    assert "Queries: 9 · Successful: 8/9" in head
    assert re.search(r"<dt>OOS Handling</dt><dd>50.0%<small>FAIL, target &gt;= 90%</small>", head)
    assert re.search(r"<dt>Avg Latency</dt><dd>1200ms<small>PASS, target &lt; 5000ms</small>", head)


def test_metrics_have_their_intervals(tmp_path: Path) -> None:
    """A rate has the interval and the number that it is a share of; a mean has none."""
    table = section(page(tmp_path, query_rows(one_of_each())), "Aggregate Metrics")
    rate = table.split("Deflection Rate")[1].split("</tr>")[0]
    assert re.search(r"83\.3%.*&gt;= 40%.*✓ PASS.*n = 6", rate, flags=re.DOTALL)
    assert "<td>-</td>" in table.split("Avg Latency")[1].split("</tr>")[0]
    assert re.search(r"api_timeout</th><td[^>]*>1<", table)
    assert re.search(r"<th class=\"n\">p95</th>.*<td class=\"n\">1,200 ms</td>", table, flags=re.DOTALL)


def test_the_six_checks_are_counted(tmp_path: Path) -> None:
    """Of queries with an answer: passed, failed and not applicable, and failed ones lead to their queries."""
    table = section(page(tmp_path, query_rows(one_of_each())), "Aggregate Metrics")
    cells = {
        name: re.findall(r'data-value="(\d+)"', row)[:3]
        for name, row in re.findall(r"<tr><th>(\w+)</th>(.*?)</tr>", table, flags=re.DOTALL)
    }
    assert cells["must_contain"] == ["7", "1", "0"]
    assert cells["must_not_contain"] == ["7", "1", "0"]
    assert cells["citation_present"] == ["5", "1", "2"]
    assert cells["oos_handling"] == ["1", "1", "6"]
    assert 'href="#q=%E2%9C%97%20must_contain"' in table


def test_failures_stand_first(tmp_path: Path) -> None:
    """What did not pass is above what did: failed, without an answer, and never sent."""
    found = details(page(tmp_path, query_rows(one_of_each(), never_sent=1)))
    assert names(found) == ["Q-02", "Q-03", "Q-05", "Q-07", "Q-08", "Q-90", "Q-01", "Q-04", "Q-06", "Q-09"]
    outcomes = [re.findall(r'data-outcome="([^"]*)"', each)[0] for each in found]
    assert outcomes == ["failed"] * 4 + ["error", "skipped"] + ["passed"] * 4
    assert "api_timeout: Timeout after 30s" in found[4]
    assert "the run ended before" in found[5]


def test_a_query_is_shown_with_all_that_came_back(tmp_path: Path) -> None:
    """Query, answer, confidence, sources and each check with its reason."""
    missing = details(page(tmp_path, query_rows(one_of_each())))[0]
    assert "<h4>Query</h4><pre>What about Q-02?</pre>" in missing
    assert "<h4>Answer</h4><pre>no</pre>" in missing
    assert "High - found" in missing
    assert "<h4>Sources</h4><pre>{&#34;title&#34;: &#34;S&#34;}</pre>" in missing
    assert "✗ must_contain: lacks &#34;yes&#34; (0 of 1 keyword found)" in missing.split("<noscript>")[0]
    checks = [" ".join(re.sub("<[^>]*>", " ", each).split()) for each in missing.split("<li")[1:]]
    assert [check.partition("> ")[2] for check in checks][:2] == [
        "must_contain fail lacks &#34;yes&#34; (0 of 1 keyword found)",
        "must_not_contain pass no sign of invention",
    ]


def test_checks_say_what_they_found() -> None:
    """Each verdict of each check has a reason in words."""
    declined = answered("Q-1", "I cannot help.", chunks=0, is_oos=True, must_contain=[])
    reasons = {check.name: (check.word, check.reason) for check in found_by_checks(declined)}
    assert reasons == {
        "must_contain": ("pass", "no keyword required"),
        "must_not_contain": ("pass", "no sign of invention"),
        "expected_docs": ("pass", "no document expected"),
        "citation_present": ("N/A", "No chunks retrieved — citation N/A"),
        "oos_handling": ("pass", 'declined with "cannot help"'),
        "latency": ("pass", "1,200 ms, limit 5,000 ms"),
    }
    invented = answered("Q-2", "yes, a guess", expected_docs=["BK-01"], is_oos=True)
    reasons = {check.name: (check.word, check.reason) for check in found_by_checks(invented)}
    assert reasons["must_contain"] == ("pass", "its keyword found")
    assert reasons["must_not_contain"] == ("fail", 'contains "guess"')
    assert reasons["expected_docs"] == ("fail", "did not retrieve BK-01")
    assert reasons["citation_present"] == ("pass", "1 source, 0 citations")
    assert reasons["oos_handling"] == ("fail", "out of scope, but not declined")


@pytest.mark.parametrize("text", [MARKUP, HOSTILE])
def test_hostile_answers_are_only_text(tmp_path: Path, text: str) -> None:
    """Markup of queries, answers, sources, categories and names is shown and not obeyed."""
    reply = Reply({"answer": text, "sources": [{text: text}], "confidence": text}, 5, 200)
    baseline = {"id": text, "category": text, "query": text, "is_oos": True, "oos_decline_signals": [text]}
    rows = query_rows([query_result(baseline, reply), answered(text, "no", must_contain=[text])])
    found = page(tmp_path, rows, source=f"{text}\udcff.json")
    assert found.count("<script") == found.count("</script") == 1
    assert found.count("</noscript>") == 2
    assert "<img" not in found
    assert "\x1b" not in found
    assert "\\udcff.json" in found


def test_a_poisoned_query_is_there(tmp_path: Path) -> None:
    """A query that no worker survived is an error with its input."""
    poisoned = query_rows([], never_sent=1)[0]._replace(code=POISON_CODE)
    [found] = details(page(tmp_path, [poisoned]))
    assert "poison: no worker survived it" in found
    assert "What about Q-90?" in found


def test_a_large_run_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its bounds the page shows failures before passes, and names what is missing."""
    monkeypatch.setattr(to_html, "MOST_QUERIES", 6)
    monkeypatch.setattr(to_html, "MOST_LISTED", 2)
    results = [answered(f"Q-{at}", "no" if at % 2 else "yes") for at in range(10)]
    text = page(tmp_path, query_rows(results))
    assert names(details(text)) == ["Q-1", "Q-3", "Q-5", "Q-7", "Q-9", "Q-0"]
    assert "Texts are cut after 20,000 characters, 4 queries left out; all of it:" in text
    failures = section(text, "must_contain Failures")
    assert failures.count("<a href") == 2
    assert "… and 3 more" in failures
    assert "5 of 10 queries passed, 5 failed" in text


def test_long_answers_are_cut(tmp_path: Path) -> None:
    """An answer of a megabyte does not make a page of a megabyte, and it says how much is missing."""
    text = page(tmp_path, query_rows([answered("Q-1", "yes " * 250_000)]))
    assert len(text) < 100_000
    assert "… and 980,000 characters more" in text
