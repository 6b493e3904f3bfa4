"""Why a query did not pass, wherever people and programs read it: the HTTP status, and the checks by name."""

import json
from pathlib import Path
from typing import Final

import msgspec
import pytest

from producer.aggregate.queries import metrics_of
from producer.cli.main import run
from producer.items.report.to_jsonl import line_writer
from producer.queries.report.check_reasons import found_by_checks
from producer.queries.report.failed_queries import QueryFailures
from producer.queries.report.opened_rows import opened, poisoned
from producer.queries.report.shown_queries import shown_queries
from producer.queries.report.terminal import table_rows
from producer.queries.report.to_junit import query_test
from producer.queries.report.to_markdown import report_markdown
from producer.queries.results import AskedQuery
from producer.report.to_terminal import FailureText
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from tests.support.query_desk import numbered
from tests.support.query_results import answered, baseline
from tests.support.run_pages import queries_run, write_page
from worker.executors.queries import result_line
from worker.queries.checks import query_result
from worker.queries.fields import FieldMap, in_document_form
from worker.queries.reply import Reply, read_reply

REFUSED: Final = read_reply(status_code=404, body=b"no such path", latency_ms=7)
TURNS: Final = '{"threadId": "t", "message": "Hi"}\n'


def row_of(reply: Reply) -> ItemRow:
    """The row of a query that failed."""
    result = query_result(baseline("Q-01"), reply)
    return ItemRow(0, "x", result_line(result, reply.code, reply.status_code), 1_000, 2_000, 1, 7)


def test_the_http_status_of_a_failed_query_is_shown(tmp_path: Path) -> None:
    """The record keeps it, and table, page and JUnit show it; the document's nine keys stay as they are."""
    row, info = row_of(REFUSED), queries_run(1)
    line = json.loads(line_writer(info, poisoned=poisoned)(row))
    assert line["error"] == {"code": "api_refused", "message": "no such path", "status": 404}
    assert line["result"]["error"] == "no such path"
    assert len(line["result"]) == 9
    assert table_rows([row])[0][-1] == "api_refused (HTTP 404): no such path"
    page = write_page(tmp_path / "report.html", info, [row]).read_text()
    assert "api_refused (HTTP 404): no such path" in page
    [query] = opened([row])
    assert query_test(query).message == "HTTP 404: no such path"
    assert "HTTP 404: no such path</b>" in page


def test_a_path_that_is_not_found_is_named_with_the_options_that_mend_it() -> None:
    """The end of a run and a single item name the URL that was called; another status has no such hint."""
    run = QueryRun(api_url="http://h:1/v2", path="/wrong")
    info = queries_run(1, snapshot={"queries": msgspec.to_builtins(run)})
    explained = "api_refused (HTTP 404 from http://h:1/v2/wrong; check --path and --api-url): no such path"
    details = FailureText(QueryFailures(run))
    details.page([row_of(REFUSED)])
    assert details.text().startswith(f"✗ 1 query: {explained}\n")
    assert shown_queries(info)(row_of(REFUSED)).reason == explained
    rejected = row_of(read_reply(status_code=400, body=b"no", latency_ms=7))
    assert shown_queries(info)(rejected).reason == "api_refused (HTTP 400): no"


def test_a_failure_without_a_reply_has_no_status() -> None:
    """Nothing is shown where there was none, and a status that the text names is not written twice."""
    lost = Reply(None, 5, 0, "Timeout after 30s", REFUSED.failure)
    assert "status" not in json.loads(row_of(lost).line)["error"]
    assert "HTTP" not in table_rows([row_of(lost)])[0][-1]
    limited = read_reply(status_code=429, body=b"", latency_ms=1)
    [query] = opened([row_of(limited)])
    assert query.shown.error == "Rate limited (429)"


def test_the_table_says_which_checks_failed() -> None:
    """Each failed check is named with what it found, also those that have no column of their own."""
    result = answered("Q-01", "no", expected_docs=["BK-02"])
    row = ItemRow(0, "f", json.dumps(result).encode(), 1_000, 2_000, 1, 7)
    assert table_rows([row])[0][-1] == (
        'must_contain: lacks "yes" (0 of 1 keyword found); expected_docs: did not retrieve BK-02'
    )
    metrics = metrics_of([result])
    assert (
        report_markdown([AskedQuery(result)], metrics, "run")
        .rstrip()
        .endswith("| FAIL: must_contain, expected_docs |")
    )
    good = report_markdown([AskedQuery(answered("Q-01"))], metrics, "run")
    assert good.rstrip().endswith("| PASS |")


def test_documents_without_an_id_are_told_from_documents_that_are_not_the_expected_ones() -> None:
    """The reason has the option that says where the ids are, unless the reply has an id, or no document."""
    told = (
        "did not retrieve doc-1; 2 related documents in the reply, but no id as text at the pointer doc_id"
        " (default /docId): set it, such as --field doc_id=/id"
    )
    reply = {"answer": "yes", "hits": [{"id": "doc-1"}, {"id": "doc-2"}]}
    for places, expected in (
        (FieldMap(related_docs="/hits"), told),
        (FieldMap(related_docs="/hits", doc_id="/id"), ""),
        (FieldMap(related_docs="/none"), "did not retrieve doc-1"),
    ):
        response = in_document_form(reply, places)
        result = query_result(baseline("Q-01", expected_docs=["doc-1"]), Reply(response, 1, 200))
        [found] = [check for check in found_by_checks(AskedQuery(result)) if check.name == "expected_docs"]
        assert found.reason == (expected or "retrieved doc-1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--category", "sla"], "--category is for queries, and"),
        (["--timeout-s", "5"], "--timeout-s is for queries, and"),
        (["-k", "Hi"], "-k is for queries and cases, and"),
        (["--first", "1"], "--first is for queries and cases, and"),
    ],
)
def test_options_of_queries_do_not_fit_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    """They are refused instead of ignored."""
    path = tmp_path / "turns.jsonl"
    path.write_text(TURNS)
    assert run(["run", str(path), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_dry_run_counts_what_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`-k` and `--first` are heeded before anything is sent; help names the document's five categories."""
    path = tmp_path / "few.jsonl"
    path.write_text("".join(json.dumps(query) + "\n" for query in numbered(6)))
    assert run(["run", str(path), "--first", "4", "-k", "query", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["total"] == 4
    assert run(["run", "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "(booking, customs, carrier, sla, edge_case, or your own)" in printed
