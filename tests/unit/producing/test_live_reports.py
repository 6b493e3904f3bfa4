"""What reports, summaries and traces say of turns that a model answered."""

import csv
import io
import json
import re
from typing import Any, Final

import pytest

from producer.cli.live.progress import decisions, plain_line
from producer.document import document_of
from producer.documents import AnyRun
from producer.following import Progress
from producer.report.formats import format_of
from producer.turns.totals import TurnTotals
from shared.kinds import TURNS
from shared.names import RunState
from shared.runs import TurnRow
from tests.support.conversations import turn
from tests.support.documents import printed, summary_text
from tests.support.live_rows import CACHED, FREE, PAID, ROWS, live_info, rows_of
from tests.support.run_infos import info
from worker.breakpoint.live_decisions import ModelAnswer

CALLS: Final = {
    "made": 2,
    "from_cache": 1,
    "avoided": 1,
    "given_up": 1,
    "unread": 0,
    "invalid_shapes": 0,
    "cost_usd": 0.25,
    "cost_unknown": 1,
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "latency_ms": {"p50": 40, "p90": 40, "p95": 40, "p99": 40, "max": 40},
    "latency_n": 2,
}


def document(rows: list[TurnRow]) -> AnyRun:
    """The document of a finished live run of these rows."""
    totals = TurnTotals()
    totals.add(rows)
    return document_of(live_info(len(rows)), totals)


def written(name: str, rows: list[TurnRow]) -> str:
    """A report of these rows."""
    out = io.BytesIO()
    report = format_of(TURNS, name)(out, live_info(len(rows)))
    report.page(rows)
    report.end(document(rows))
    return out.getvalue().decode()


def test_calls_are_counted_from_rows() -> None:
    """Made, cached, avoided and given up; a repeated request and a cached answer cost nothing again."""
    summary = printed(document(ROWS))["summary"]
    assert summary["calls"] == CALLS
    assert (summary["model"], summary["live"]) == ("m", "should")


def test_a_live_run_without_results_tells_zeros() -> None:
    """The keys are there from the start, and of recorded runs never."""
    calls = printed(document([]))["summary"]["calls"]
    assert (calls["made"], calls["avoided"], calls["cost_usd"]) == (0, 0, None)
    totals = TurnTotals()
    assert not document_of(info(state=RunState.FINISHED, total=0), totals).summary.calls


def test_json_lines_hold_cost_latency_and_answer() -> None:
    """Figures of the call stand on the item, its trace events do not."""
    lines = [json.loads(line) for line in written("jsonl", ROWS).splitlines()]
    first = lines[0]
    assert (first["attempts"], first["cached"], first["latency_ms"], first["cost_usd"]) == (
        2,
        False,
        40,
        0.25,
    )
    assert first["result"]["response"] == "<b>Yes</b>"
    assert first["result"]["call"]["prompt_tokens"] == 10
    assert all("events" not in (line["result"] or {}) for line in lines)
    assert [line["cached"] for line in lines] == [False, False, False, True, False, True]
    assert [line["outcome"] for line in lines] == ["decided"] * 4 + ["error", "decided"]
    assert lines[1]["result"]["response"] is None
    assert list(lines[0])[:-1] == list(lines[1])[:-1]


def test_traces_of_all_phases_keep_the_order_of_the_flow() -> None:
    """The decision comes first, then retrieval and call, as in the document; without it one event a turn."""
    events = [json.loads(line) for line in written("all traces", ROWS).splitlines()]
    first = [event for event in events if event["transmissionId"].endswith(":0")]
    assert [(event["phase"], event["status"], event["actor"]) for event in first] == [
        ("breakpoint", "completed", "solserver"),
        ("retrieval", "started", "solserver"),
        ("retrieval", "completed", "solserver"),
        ("model_call", "completed", "model"),
    ]
    assert len({tuple(event) for event in events}) == 1
    plain = [json.loads(line) for line in written("traces", ROWS).splitlines()]
    assert [event["phase"] for event in plain] == ["breakpoint"] * 4
    assert [event for event in events if event["phase"] == "breakpoint"] == plain


@pytest.mark.parametrize("write", [summary_text, lambda summary: written("md", ROWS) if summary else ""])
def test_people_read_what_it_cost(write: Any) -> None:
    """Summary and Markdown name calls made and avoided, and what is not known of the cost."""
    text = write(document(ROWS))
    for words in ("calls made", "calls avoided", "calls given up", "$0.25 and 1 call of unknown price"):
        assert words in text
    assert "<b>" not in text


def test_progress_counts_calls() -> None:
    """Watching shows calls and cost as they come, and nothing of them for recorded runs."""
    tally = {"should": 3, "skip": 1, "asked": 3, "from_cache": 1, "avoided": 1, "cost_micro_usd": 250_000}
    assert decisions(tally)[3:] == [("calls", "2"), ("avoided", "1")]
    assert decisions({"should": 3})[3:] == []
    line = plain_line(Progress("run", "running", 4, 9, tally, 1.0, 1, 0))
    assert "calls 2 avoided 1" in line
    assert "paid $0.25" in line


def test_csv_has_the_same_columns_for_live_turns() -> None:
    """Every row is there with every column."""
    lines = list(csv.reader(io.StringIO(written("csv", ROWS))))
    assert len(lines) == len(ROWS) + 1
    assert len({len(line) for line in lines}) == 1


def test_what_could_not_be_read_is_reported_everywhere() -> None:
    """Replies without an object and summaries that break the contract are counted, and shown to people."""
    prose, bad = (
        ModelAnswer("No, just text.", PAID),
        ModelAnswer('{"response": "Hi", "shape": {"arc": ""}}', CACHED),
    )
    rows = rows_of((turn("Rome?"), prose), (turn("When?"), bad), (turn("Where?"), FREE))
    calls = printed(document(rows))["summary"]["calls"]
    assert (calls["unread"], calls["invalid_shapes"]) == (1, 1)
    for text in (summary_text(document(rows)), written("md", rows), written("html", rows)):
        assert re.search(r"replies without a JSON object\W+(\w+\W+){0,2}?1\b", text)
        assert re.search(r"invalid summaries proposed\W+(\w+\W+){0,2}?1\b", text)
    assert [json.loads(line)["result"]["call"]["unread"] for line in written("jsonl", rows).splitlines()] == [
        True,
        False,
        False,
    ]
    assert [event["metadata"]["shape"] for event in traced(rows) if event["phase"] == "model_call"] == [
        "none",
        "invalid",
        "none",
    ]


def traced(rows: list[TurnRow]) -> list[dict[str, Any]]:
    """All trace events of rows."""
    return [json.loads(line) for line in written("all traces", rows).splitlines()]
