"""Reports hold every row once, in every format, and hostile text does no harm in any of them."""

import csv
import io
import json
from typing import Any

import pytest

from producer.document import document_of, report_of
from producer.documents import AnyRun
from producer.report.formats import format_of
from producer.turns.report.opened_rows import without_text
from producer.turns.report.terminal import table_rows
from producer.turns.report.to_jsonl import TurnLines
from producer.turns.report.to_markdown import TURNS_SHOWN
from producer.turns.totals import TurnTotals
from shared.kinds import TURNS
from shared.names import RunState
from shared.runs import TurnRow
from tests.support.conversations import decide, shape, signals, turn
from tests.support.documents import printed, summary_text
from tests.support.run_infos import info

HOSTILE = "=cmd|' /C calc'!A0 \x1b[31m<script>|`x`\n"
ENVELOPE = [
    "run_id",
    "item_id",
    "kind",
    "index",
    "outcome",
    "attempts",
    "cached",
    "started_at",
    "finished_at",
    "latency_ms",
    "cost_usd",
    "error",
    "result",
]
RESULT = [
    "threadId",
    "messageId",
    "decision",
    "rule",
    "peakGuardrailActive",
    "summaryUpdated",
    "reason",
    "source",
    "etag",
    "memento",
    "response",
]


def rows_of(*turns: dict[str, Any]) -> list[TurnRow]:
    """Rows of decided turns, as the worker's own code writes them."""
    [block] = decide(*turns).outcome.blocks
    return [
        TurnRow(at, code, line, 1_000, 1_004, 1)
        for at, (code, line) in enumerate(zip(block.codes, block.lines, strict=True))
    ]


@pytest.fixture
def rows() -> list[TurnRow]:
    """A decision, an error, a poisoned turn and one that was never decided, with hostile names."""
    decided, refused = rows_of(
        turn(messageId=HOSTILE, signals=signals("pivot"), modelShape=shape(HOSTILE)),
        turn("again", thread_memento_etag="7"),
    )
    poisoned = json.dumps(turn("boom", messageId="m-2")).encode() + b"\n"
    return [
        decided,
        refused,
        TurnRow(2, "x0p", poisoned, 1_000, 1_000, 1),
        TurnRow(3, "", b"", 0, 0, 0),
    ]


def document(rows: list[TurnRow]) -> AnyRun:
    """The document of a run with these rows."""
    totals = TurnTotals()
    totals.add(rows)
    return document_of(info(RunState.CANCELLED, total=len(rows)), totals)


def written(form: str, rows: list[TurnRow]) -> bytes:
    """The report in a format, its rows given in two pages."""
    out = io.BytesIO()
    report = format_of(TURNS, form)(out, info(RunState.CANCELLED, total=len(rows)))
    report.page(rows[:1])
    report.page(rows[1:])
    report.end(document(rows))
    return out.getvalue()


def test_json_lines_have_the_agreed_envelope(rows: list[TurnRow]) -> None:
    """Every line has all keys in order; what a turn has not got is null."""
    found = [json.loads(line) for line in written("jsonl", rows).splitlines()]
    assert all(list(line) == ENVELOPE for line in found)
    assert [line["outcome"] for line in found] == ["decided", "error", "error", "skipped"]
    assert [line["index"] for line in found] == [0, 1, 2, 3]
    assert [line["item_id"] for line in found] == ["turn-0", "turn-1", "turn-2", "turn-3"]
    assert all(list(line["result"]) == RESULT for line in found[:3])
    assert found[3]["result"] is found[3]["error"] is found[3]["started_at"] is None
    assert found[0]["result"]["messageId"] == HOSTILE
    assert (found[0]["started_at"], found[0]["latency_ms"]) == ("1970-01-01T00:00:01.000Z", 4)
    assert found[1]["error"]["code"] == "etag_conflict"
    assert found[1]["result"]["decision"] is None


def with_messages(rows: list[TurnRow], *messages: str) -> list[TurnRow]:
    """The same rows with their messages, as the store reads them for reports."""
    return [
        row._replace(payload=json.dumps(turn(message)).encode())
        for row, message in zip(rows, messages, strict=True)
    ]


def test_reports_show_what_was_said(rows: list[TurnRow]) -> None:
    """Every format has the message of each turn, also of those in error and those never decided."""
    messages = ["Rome?", "Ça va\u2009?", "boom", "never"]
    shown = with_messages(rows, *messages)
    lines = [json.loads(line) for line in written("jsonl", shown).splitlines()]
    assert all(list(line) == [*ENVELOPE, "message"] for line in lines)
    assert [line["message"] for line in lines] == messages
    header, *cells = csv.reader(io.StringIO(written("csv", shown).decode()))
    assert header[-1] == "message"
    assert [line[-1] for line in cells] == messages
    text = written("md", shown).decode()
    assert text.count("| Rome? |") == 1
    assert text.count("| boom |") == 2
    page = written("html", shown).decode()
    assert page.count(">Rome?</p>") == 1
    assert page.count(">never</p>") == 1


def test_reports_without_text_have_none_of_it(rows: list[TurnRow]) -> None:
    """Rows that come without their input leave no trace of it: no key, an empty cell, no column."""
    assert all("message" not in json.loads(line) for line in written("jsonl", rows).splitlines())
    assert [line[-1] for line in csv.reader(io.StringIO(written("csv", rows).decode()))][1:] == [""] * 4
    assert "| text |" not in written("md", rows).decode()
    assert '<p class="text"' not in written("html", rows).decode()


def test_withheld_messages_are_named_by_their_length(rows: list[TurnRow]) -> None:
    """With `--no-text` every format says how long a message was, and has no word of it."""
    messages = ["x" * 84, "Ça va\u2009?", "boom", "never"]
    shown = [without_text(row) for row in with_messages(rows, *messages)]
    lines = [json.loads(line) for line in written("jsonl", shown).splitlines()]
    assert all(list(line) == [*ENVELOPE, "message_chars"] for line in lines)
    assert [line["message_chars"] for line in lines] == [84, 7, 4, 5]
    header, *cells = csv.reader(io.StringIO(written("csv", shown).decode()))
    assert header[-1] == "message"
    assert [line[-1] for line in cells] == [f"text withheld, {len(text)} characters" for text in messages]
    texts = [written(form, shown).decode() for form in ("md", "html", "jsonl", "csv")]
    assert texts[0].count("text withheld, 84 characters") == 1
    assert texts[1].count("text withheld, 84 characters") >= 1
    assert not any(word in text for text in texts for word in ("xxxx", "Ça va", "never decided it", "boom"))


def test_markdown_begins_with_the_verdict(rows: list[TurnRow]) -> None:
    """The first line says how the run ended and what was decided, the next ones why and which run it was."""
    first, _, why, _, run, *_ = written("md", rows).decode().splitlines()
    assert first == "# ! Cancelled: 1 of 4 turns decided (1 must), 2 errors, 1 skipped"
    assert why.startswith("Summaries changed on 1 turn; no peak freezes. Errors: etag")
    assert run.endswith(" · run `run-1`")


def test_long_and_hostile_messages_do_no_harm(rows: list[TurnRow]) -> None:
    """A message is cut after 2,000 characters, stays one cell, and is nothing but text."""
    long = "\u20ac" * 20_000
    shown = with_messages(rows, HOSTILE, long, "\\u003c\u2028", "=1")
    lines = [json.loads(line)["message"] for line in written("jsonl", shown).splitlines()]
    assert lines[0] == HOSTILE
    assert lines[1] == long[:1_999] + "…"
    cells = [line[-1] for line in csv.reader(io.StringIO(written("csv", shown).decode()))]
    assert cells[1].startswith("'=cmd")
    assert cells[4] == "'=1"
    text = written("md", shown).decode()
    assert "<script>" not in text
    assert max(map(len, text.splitlines())) < 600
    page = written("html", shown).decode()
    assert "<script>|" not in page
    assert 1_000 <= page.count("\u20ac") <= 2_000


def test_a_poisoned_turn_has_a_whole_result(rows: list[TurnRow]) -> None:
    """Its result names the turn and shows the thread as it stood, though no worker wrote it."""
    line = json.loads(TurnLines("r").page([rows[2]]))
    assert line["error"]["code"] == "poison"
    assert (line["result"]["threadId"], line["result"]["messageId"]) == ("t", "m-2")
    assert (line["result"]["etag"], line["result"]["memento"]["arc"]) == ("0", "support")
    outcome = decide(turn(modelShape=shape("boats"))).outcome
    later = TurnRow(5, "x0p", json.dumps(turn("boom")).encode() + b"\n" + outcome.state, 0, 0, 1)
    result = json.loads(TurnLines("r").page([later]))["result"]
    assert (result["messageId"], result["etag"], result["memento"]["arc"]) == ("t#5", "1", "boats")


def test_a_repeated_request_is_marked() -> None:
    """A turn that got the first answer again says so."""
    first, again = rows_of(turn(clientRequestId="c"), turn(clientRequestId="c"))
    lines = [json.loads(line) for line in TurnLines("r").page([first, again]).splitlines()]
    assert [line["cached"] for line in lines] == [False, True]
    assert lines[0]["result"] == lines[1]["result"]


def test_json_is_one_document(rows: list[TurnRow]) -> None:
    """The numbers and every result are one JSON object, also for a run without results."""
    found = json.loads(written("json", rows))
    assert found.pop("results") == [json.loads(line) for line in written("jsonl", rows).splitlines()]
    assert found == printed(document(rows))
    assert json.loads(written("json", []))["results"] == []


def test_csv_has_a_line_for_each_row_and_runs_nothing(rows: list[TurnRow]) -> None:
    """Columns are stable, text stays one cell, and what a spreadsheet would run is defused."""
    header, *lines = csv.reader(io.StringIO(written("csv", rows).decode()))
    assert header[:4] == ["run_id", "item_id", "index", "outcome"]
    found = [dict(zip(header, line, strict=True)) for line in lines]
    assert [line["outcome"] for line in found] == ["decided", "error", "error", "skipped"]
    assert found[0]["message_id"].startswith("'=cmd")
    assert found[0]["arc"].startswith("'=cmd")
    assert (found[0]["rule"], found[0]["summary_updated"]) == ("2", "true")
    assert found[1]["error_code"] == "etag_conflict"
    assert found[3]["thread_id"] == ""


def test_markdown_escapes_everything(rows: list[TurnRow]) -> None:
    """Hostile text breaks no table, makes no HTML and no code."""
    text = written("md", rows).decode()
    assert "<script>" not in text
    assert "\x1b" not in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.count("|") - line.count("\\|") in (3, 4, 6, 9) for line in tables)
    assert "## Errors" in text
    assert "| etag\\_conflict" in text or "| etag_conflict" in text


def test_markdown_lists_the_first_turns_only() -> None:
    """A large run has a short report that says where the rest is."""
    many = [row._replace(index=at) for at, row in enumerate(rows_of(turn()) * 120)]
    text = written("md", many).decode()
    assert sum(line.startswith("| turn-") for line in text.splitlines()) == TURNS_SHOWN
    assert "70 more turns: `proctor results run-1`\n" in text


def test_traces_hold_one_event_for_each_decision(rows: list[TurnRow]) -> None:
    """Decided turns have the document's event; errors and repetitions have none."""
    repeated = rows_of(turn(clientRequestId="c"), turn(clientRequestId="c"))
    [event, other] = [json.loads(line) for line in written("traces", [*rows, *repeated]).splitlines()]
    assert event["transmissionId"] == "run-1:0"
    assert event["summary"] == "Breakpoint decision: MUST"
    assert event["metadata"] == {
        "kind": "breakpoint_engine",
        "decision": "must",
        "peakGuardrailActive": False,
        "source": "stored_latest",
    }
    assert event["ts"].startswith("2026-01-01T00:00:00")
    assert other["metadata"]["decision"] == "should"


def test_the_terminal_shows_the_numbers(rows: list[TurnRow]) -> None:
    """The summary names decisions, rules, freezes, summaries, errors by code and what was left out."""
    text = summary_text(document(rows))
    assert "must          1  100.0%  ███" in text
    assert "2 MUST signal" in text
    assert "peak freezes 0 · summaries updated 1 · skipped 1 · errors 2" in text
    assert "errors by code: etag_conflict 1, poison 1" in text
    assert "cancelled: 4 turns of 2 threads" in report_of(document(rows)).headline
    assert summary_text(document([]))


def test_the_table_is_safe_to_print(rows: list[TurnRow]) -> None:
    """Cells hold one line of printable text each."""
    cells = table_rows(rows)
    assert [line[0] for line in cells] == ["turn-0", "turn-1", "turn-2", "turn-3"]
    assert [line[3] for line in cells] == ["decided", "error", "error", "skipped"]
    assert all(cell.isprintable() for line in cells for cell in line)
    assert cells[1][-1].startswith("etag_conflict: ")
