"""What reports of queries begin with: the verdict, its doubts, and what failed with its sources."""

import tracemalloc
from io import BytesIO
from typing import Any

import pytest

from producer.aggregate.gates import parse_gate
from producer.document import document_of, report_of, totals_of
from producer.documents import AnyRun
from producer.queries.report.failed_queries import QueryFailures
from producer.queries.report.sources import sources_of
from producer.report.formats import format_of
from producer.report.run_verdict import Verdict
from producer.report.to_terminal import FailureText
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.names import RunState
from tests.support.query_results import HOSTILE, answered, baseline, one_of_each, timed_out
from tests.support.run_pages import queries_run, query_rows
from worker.queries.checks import query_result

LOST = query_result(baseline("Q-08"), timed_out(30_004))
MIXED = [answered("Q-1"), answered("Q-2", "no")]


def verdict(rows: list[ItemRow], **changes: Any) -> Verdict:
    """The verdict of some rows."""
    return report_of(document(rows, **changes)).verdict


def document(rows: list[ItemRow], **changes: Any) -> AnyRun:
    """The document of some rows."""
    info = queries_run(len(rows), **changes)
    totals = totals_of(info.kind)
    totals.add(rows)
    return document_of(info, totals)


def markdown(rows: list[ItemRow]) -> str:
    """The report of some rows."""
    info, out = queries_run(len(rows)), BytesIO()
    report = format_of(info.kind, "md")(out, info)
    report.page(rows)
    report.end(document(rows))
    return out.getvalue().decode()


@pytest.mark.parametrize(
    ("results", "never_sent", "state", "sentence"),
    [
        (
            one_of_each(),
            0,
            "finished",
            (
                "✗ 4 of 9 passed (44.4% of all, 50.0% of 8 answered), 4 failed, 1 error; "
                "1 of 5 targets missed: OOS handling 50.0% (needs ≥ 90%)"
            ),
        ),
        (
            [answered("Q-1"), answered("Q-2")],
            0,
            "finished",
            "✓ 2 of 2 passed (100.0%, 95% interval 34.2-100.0%); all 4 targets met",
        ),
        (
            MIXED,
            0,
            "finished",
            "✗ 1 of 2 passed (50.0%, 95% interval 9.4-90.5%), 1 failed; all 4 targets met",
        ),
        (
            [answered("Q-1"), LOST],
            0,
            "finished",
            "✗ 1 of 2 passed (50.0% of all, 100.0% of 1 answered), 1 error; all 4 targets met",
        ),
        ([LOST], 2, "aborted", "✗ Aborted: no answers, 1 error, 2 skipped"),
        (
            [answered("Q-1")],
            1,
            "cancelled",
            "! Cancelled: 1 of 1 passed (100.0%, 95% interval 20.6-100.0%), 1 skipped; all 4 targets met",
        ),
        (
            [answered("Q-1", "no")],
            1,
            "running",
            (
                "● Running: 0 of 1 passed (0.0%, 95% interval 0.0-79.3%), 1 failed; "
                "1 of 4 targets missed: deflection rate 0.0% (needs ≥ 40%)"
            ),
        ),
    ],
)
def test_the_verdict_is_one_sentence(
    results: list[dict[str, Any]], never_sent: int, state: str, sentence: str
) -> None:
    """A cut run says so first; then what passed, failed, ended in error or was skipped, and the targets."""
    rows = query_rows(results, never_sent=never_sent)
    assert str(verdict(rows, state=RunState(state))) == sentence


def test_rates_say_what_they_are_a_share_of() -> None:
    """Of answered and of all where these differ; none at all without an answer."""
    clauses = verdict(query_rows(one_of_each(), never_sent=2), state=RunState.CANCELLED).clauses
    assert clauses[0] == "Pass rate 44.4% of all, 50.0% of 8 answered."
    assert verdict(query_rows(MIXED)).clauses[0] == "Pass rate 50.0%, 95% interval 9.4-90.5%."
    assert verdict(query_rows([LOST], never_sent=2), state=RunState.ABORTED).clauses == []


def test_the_doubt_is_said_and_only_where_there_is_one() -> None:
    """A rate whose interval holds its target is named; with many queries none is."""
    few = " ".join(verdict(query_rows([answered("Q-1")])).why)
    assert "Too few queries to be sure" in few
    assert "deflection rate 21% to 100%" in few
    assert verdict(query_rows([answered(f"Q-{at}") for at in range(60)])).why == ()
    vacuous = verdict(query_rows([answered(f"Q-{at}", must_contain=[]) for at in range(60)])).why
    assert vacuous[-1] == "60 in-scope queries require no keyword and count as deflected."


def test_failed_gates_are_named() -> None:
    """A gate that failed is counted in the sentence and named below it."""
    rows = query_rows(MIXED)
    info, totals = queries_run(2), totals_of(queries_run(2).kind)
    totals.add(rows)
    found = report_of(document_of(info, totals, gates=[parse_gate("pass_rate<0.9")])).verdict
    assert found.heading == "1 of 2 passed, 1 failed, 1 gate failed; all 4 targets met"
    assert any(
        sentence.startswith("Gate failed: pass rate 50.0%, at least 90% needed") for sentence in found.why
    )


def test_markdown_keeps_rows_and_no_results() -> None:
    """The memory of a Markdown report does not grow with the answers, and hardly with their number."""
    info = queries_run(600)
    report = format_of(info.kind, "md")(BytesIO(), info)
    pages = [query_rows([answered(f"Q-{at}-{n}", "yes " * 1_000) for n in range(10)]) for at in range(60)]
    tracemalloc.start()
    try:
        for page in pages:
            report.page(page)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 600 * 400


def test_markdown_begins_with_what_failed() -> None:
    """The verdict, then equal errors as one line and each failed query with reason, answer and sources."""
    lost = [query_result(baseline(f"Q-{at}"), timed_out(30_004)) for at in range(20, 33)]
    text = markdown(query_rows([*one_of_each(), *lost]))
    head, _, rest = text.partition("\n## Aggregate Metrics\n")
    assert head.startswith(
        "# Evaluation Report: ✗ 4 of 22 passed (18.2% of all, 50.0% of 8 answered), 4 failed, 14 errors;"
    )
    assert (
        "- **14 queries:** api_timeout: Timeout after 30s\n  - Q-08\n  - Q-20\n  - Q-21\n  - and 11 more"
        in head
    )
    assert '| Q-02: What about Q-02? | must_contain: lacks "yes" (0 of 1 keyword found) | no | S |' in head
    assert "| Q-07: What about Q-07? | citation_present: cites nothing | yes | none |" in head
    assert [line for line in head.splitlines() if line.startswith("| Q-")][2].startswith("| Q-05")
    assert rest.count("\n## ") == 7, "the sections of the document follow"
    assert "What failed" not in markdown(query_rows([answered("Q-1")]))


def test_the_screen_groups_failures_as_the_page_does() -> None:
    """Each group is a reason with its number of queries and their answers; errors have their first ids."""
    lost = [query_result(baseline(f"Q-{at}"), timed_out(30_004)) for at in range(20, 24)]
    details = FailureText(QueryFailures(QueryRun()))
    details.page(query_rows([*one_of_each(), *lost]))
    lines = details.text().splitlines()
    assert [line for line in lines if line.startswith("✗")] == [
        "✗ 1 query: required keywords missing",
        "✗ 1 query: forbidden keyword found",
        "✗ 1 query: out of scope, but not declined",
        "✗ 1 query: nothing cited",
        "✗ 5 queries: api_timeout: Timeout after 30s",
    ]
    lacks = next(number for number, line in enumerate(lines) if line.startswith('    Q-02 lacks "yes"'))
    assert lines[lacks + 1].startswith("      → ")
    assert lines[-1] == "    Q-08, Q-20, Q-21 and 2 more"


def test_hostile_text_stays_in_its_cell() -> None:
    """A hostile id, answer or source breaks no table and starts no markup."""
    head = markdown(query_rows([answered(HOSTILE, HOSTILE, query=HOSTILE)])).partition("\n## Aggregate")[0]
    [row] = [line for line in head.splitlines() if "must_contain: lacks" in line]
    assert row.replace("\\|", "").count("|") == 5
    assert "<script>" not in head
    assert "\x1b" not in head


def test_sources_are_found_whatever_they_are() -> None:
    """Strings, objects with keys of their own, and nonsense; the same place is one source, cited first."""
    reply: dict[str, Any] = {
        "sources": ["Handbook", {"document": "Guide", "page": 3, "metadata": {"chunk_id": "c7"}}],
        "citations": [{"title": "Handbook", "similarity": 0.8125, "page_content": "All of it."}],
        "relatedDocs": [{"docId": "c7", "title": "Guide"}, {"url": "https://x.example/a"}, 7, None, ["x"]],
    }
    found = sources_of(reply)
    assert [(each.name, each.is_cited) for each in found] == [
        *(("Handbook", True), ("Guide", True), ("https://x.example/a", False)),
        *(("7", False), ("null", False), ("x", False)),
    ]
    assert (found[0].score, found[0].text) == ("0.812", "All of it.")
    assert (found[1].id, found[1].section, found[1].short) == ("c7", "3", "Guide, 3")
    nonsense: tuple[Any, ...] = (None, {"sources": 0, "citations": {}}, {"sources": {}}, "text")
    for reply_of_another_kind in nonsense:
        assert sources_of(reply_of_another_kind) == []
