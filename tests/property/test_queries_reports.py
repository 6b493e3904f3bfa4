"""Explores the reports with hostile text: no table breaks, no cell runs, no line escapes its place."""

import csv
import io
import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from producer.aggregate.queries import calculate_metrics, metrics_of
from producer.queries.report import console
from producer.queries.report.to_csv import COLUMNS, results_csv
from producer.queries.report.to_json import results_json
from producer.queries.report.to_markdown import report_markdown
from producer.queries.results import AskedQuery
from tests.support.query_results import HOSTILE, timed_out
from worker.queries.checks import query_result
from worker.queries.reply import Reply

SIGNS = st.sampled_from(list("|\\\n\r\t`*[]<>&=+-@#\"',;\x00\x1b\u202e\u2028\ud800 ab"))
TEXTS = st.text(SIGNS, max_size=30) | st.text(max_size=20) | st.just(HOSTILE)
WORDS = st.lists(TEXTS, max_size=3)
BASELINES = st.fixed_dictionaries(
    {
        "id": TEXTS,
        "category": st.sampled_from(["booking", "sla", "edge_case"]),
        "query": TEXTS,
        "is_oos": st.booleans(),
        "expected_docs": WORDS,
        "must_contain": WORDS,
        "must_not_contain": WORDS,
        "oos_decline_signals": WORDS,
    }
)
CONFIDENCE = st.fixed_dictionaries({"level": TEXTS, "reason": TEXTS}) | TEXTS | st.none()
RESPONSES = st.fixed_dictionaries(
    {"answer": TEXTS, "confidence": CONFIDENCE},
    optional={
        "sources": st.lists(TEXTS, max_size=2),
        "metadata": st.fixed_dictionaries({"chunksRetrieved": st.integers(-1, 2)}),
    },
)
REPLIES = RESPONSES.map(lambda response: Reply(response, 5, 200)) | TEXTS.map(
    lambda text: Reply(None, 5, 500, text)
)
RESULTS = st.lists(st.builds(query_result, BASELINES, REPLIES | st.just(timed_out(1))), max_size=6)
BAR = re.compile(r"(?<!\\)(?:\\\\)*\|")
"""A bar that separates cells: one without a backslash that escapes it."""


@given(RESULTS)
def test_every_table_of_the_report_is_whole(results: list[dict[str, Any]]) -> None:
    """Each table row has as many cells as its head, and every line is one that the report wrote."""
    text = report_markdown(list(map(AskedQuery, results)), metrics_of(results), "eval-1", notes=[HOSTILE])
    text.encode()
    assert text.count("\n## ") == 8
    columns = 0
    for line in text.split("\n"):
        assert line.isprintable()
        assert not re.search(r"<[a-z/!]", line, re.IGNORECASE)
        bars = len(BAR.findall(line))
        columns = columns or bars
        assert line.startswith("|") == bool(bars)
        assert not bars or bars == columns
        columns = bars
    raw = text.partition("## Raw Query Results")[2]
    assert raw.count("\n| ") == (len(results) + 2 if results else 0)


@given(RESULTS)
def test_the_csv_file_reads_back(results: list[dict[str, Any]]) -> None:
    """Sixteen cells a row, and none that a spreadsheet would run."""
    table = list(csv.reader(io.StringIO(results_csv(results).decode(), newline="")))
    assert len(table) == 1 + len(results)
    for row in table:
        assert len(row) == len(COLUMNS)
        assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row)
        assert not any(cell.startswith(("\t", "\r", "\n")) for cell in row)


@given(RESULTS)
def test_the_json_file_reads_back(results: list[dict[str, Any]]) -> None:
    """It is UTF-8 and holds the results unchanged."""
    content = results_json(results, calculate_metrics(results), {}, run_id="r", began_ms=0)
    assert json.loads(content.decode())["results"] == results


@given(RESULTS)
def test_console_lines_stay_lines(results: list[dict[str, Any]]) -> None:
    """One line a query, without a control character."""
    for result in results:
        line = console.query_line(AskedQuery(result), number=1, of=len(results))
        assert line.endswith("\n")
        assert line[:-1].isprintable()
