"""What the HTML report of turns says: verdict, errors first, threads with traces, what it leaves out."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from producer.aggregate.gates import parse_gate
from producer.report.turns import html_threads, to_html
from shared.names import RunState
from shared.runs import TurnRow
from tests.support.conversations import batch, shape, signals, turn
from tests.support.live_rows import ROWS as LIVE_ROWS
from tests.support.live_rows import live_info
from tests.support.run_pages import conversation, thread_rows, turns_run, write_page

HOSTILE: Final = "<img src=x onerror=alert(1)></noscript></script><script>alert(1)</script>\u2028\"'`{{ 7 }}"


def page(tmp_path: Path, rows: list[TurnRow], **changes: Any) -> str:
    """A report as text."""
    path = write_page(tmp_path / "report.html", turns_run(len(rows), **changes), rows)
    return path.read_text(encoding="utf-8")


def table(text: str) -> list[str]:
    """The rows of the table of turns."""
    return re.findall(r"<tr data-item.*", text)


def threads(text: str) -> list[str]:
    """The threads, each with its trace."""
    return re.findall(r'<details data-item id="t\d+">.*?</details>', text, flags=re.DOTALL)


def test_the_first_screen_says_what_counts(tmp_path: Path) -> None:
    """State, turns by outcome, decisions with their share, freezes and errors stand above everything."""
    text = page(tmp_path, conversation("boats"), state=RunState.CANCELLED)
    head = text.split("<main>", maxsplit=1)[0]
    verdict = "cancelled, 6 of 8 turns decided, 1 must, 3 should, 2 skip, 1 error, 1 skipped"
    assert f'<p class="verdict bad"><span aria-hidden="true">✗</span> {verdict}</p>' in head
    assert re.search(r"<dt>should</dt><dd>.*?>3</a><small>50.0 %</small>", head)
    assert re.search(r"<dt>peak freezes</dt><dd>.*?>3</a>", head)
    assert re.search(r'<div class="bad"><dt>errors</dt><dd><a href="#errors">1</a>', head)


def test_a_run_that_goes_on_has_no_verdict_yet(tmp_path: Path) -> None:
    """Neither good nor bad, and it says how far it came."""
    text = page(tmp_path, conversation("boats")[:4], state=RunState.RUNNING, finished_ms=None)
    assert '<p class="verdict neutral">' in text
    assert "running, 4 of 4 turns decided" in text


def test_errors_stand_first(tmp_path: Path) -> None:
    """The list of errors is above the decisions, and threads with errors above those without."""
    text = page(tmp_path, [*thread_rows("calm", [{}, {}]), *conversation("stormy", 2)])
    assert text.index('id="errors"') < text.index("<h2>Decisions</h2>")
    assert re.search(r"turn-6.*stormy.*etag_conflict.*the thread is at 4", text)
    assert [re.findall(r'class="name">(\w+)<', each) for each in threads(text)] == [["stormy"], ["calm"]]
    assert "✗ 1 error" in threads(text)[0]
    assert 'id="errors"' not in page(tmp_path, thread_rows("calm", [{}]))


def test_a_thread_is_drawn_by_height_and_described_in_words(tmp_path: Path) -> None:
    """Each decision has a height of its own, errors and freezes have signs, and all of it is said."""
    [thread] = threads(page(tmp_path, conversation("boats")))
    assert 'aria-label="7 turns, 1 must, 3 should, 2 skip, 3 freezes, 1 error"' in thread
    drawn = dict(re.findall(r'<path class="(\w+)" d="([^"]+)"', thread))
    assert {tone: path.count("M") for tone, path in drawn.items()} == {
        "t1": 1,
        "t5": 2,
        "t0": 3,
        "frost": 3,
        "cross": 1,
    }
    assert "v-14" in drawn["t1"]
    assert "v-9" in drawn["t0"]
    assert "v-4" in drawn["t5"]


def test_the_trace_has_an_event_for_each_decision(tmp_path: Path) -> None:
    """Each turn of a thread has its decision, its event, and what became of the summary."""
    [thread] = threads(page(tmp_path, conversation("boats")))
    steps = thread.split("<li")[1:]
    assert len(steps) == 7
    assert "solserver · breakpoint · completed · Breakpoint decision: MUST" in steps[0]
    assert "summary updated: boats" in steps[0]
    assert "peak guardrail active, summary frozen" in steps[3]
    assert "etag_conflict: " in steps[4]
    assert "Breakpoint decision" not in steps[4]


def test_every_turn_is_in_the_table(tmp_path: Path) -> None:
    """Rows carry what they are filtered by; a turn that was never decided has one as well."""
    rows = table(page(tmp_path, conversation("boats")))
    keys = re.compile(
        r'data-decision="([^"]*)" data-rule="([^"]*)" data-freeze="([^"]*)" data-thread="([^"]*)"'
    )
    assert [found.groups() for row in rows if (found := keys.search(row))] == [
        ("must", "2", "not", "t1"),
        ("skip", "5", "not", "t1"),
        ("should", "3", "not", "t1"),
        ("should", "3", "frozen", "t1"),
        ("error", "", "not", "t1"),
        ("skip", "5", "frozen", "t1"),
        ("should", "6", "frozen", "t1"),
        ("skipped", "", "not", ""),
    ]


def test_calls_of_a_live_run_are_shown(tmp_path: Path) -> None:
    """Calls avoided stand on the first screen, cost and latency below, and each event in the trace."""
    path = write_page(tmp_path / "live.html", live_info(len(LIVE_ROWS)), LIVE_ROWS)
    text = path.read_text(encoding="utf-8")
    assert re.search(r"<dt>model calls avoided</dt><dd>1<small>of 5 possible</small>", text)
    assert "<dt>cost</dt><dd>$0.2500<small>2 calls, 1 of unknown price</small>" in text
    assert "$0.2500 and 1 call of unknown price" in text
    assert "p95 40 ms" in text
    [thread] = threads(text)
    assert "model · model_call · completed · Model m answered in 40 ms" in thread
    assert "Model m answered from the cache" in thread
    assert "call avoided" in thread
    assert "answer: &lt;b&gt;Yes&lt;/b&gt;" in thread
    assert "Model calls" not in page(tmp_path, conversation("boats"))


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    """Threads, messages, summaries, file and run names are text; half a surrogate pair is its number."""
    rows = thread_rows(
        HOSTILE,
        [{"messageId": HOSTILE, "signals": signals("pivot"), "modelShape": shape(HOSTILE)}],
    )
    poisoned = batch([turn(HOSTILE, threadId=HOSTILE)]).payload.split(b"\n", 1)[1]
    rows.append(TurnRow(1, "x0p", poisoned + b"\n", 1_000, 1_000, 1))
    snapshot = {"v": 1, "source": f"{HOSTILE}\udcff.jsonl"}
    text = page(tmp_path, rows, snapshot=snapshot, namespace=HOSTILE)
    assert text.count("<script") == text.count("</script") == 1
    assert text.count("</noscript>") == 1
    assert "<img" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "\\udcff.jsonl" in text
    assert "every worker that tried this turn was lost" in text


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    """Nothing was decided, and it says so."""
    text = page(tmp_path, [], threads=0)
    assert "0 of 0 turns decided" in text
    assert threads(text) == table(text) == []


def test_a_large_run_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its bounds the page has no turn, thread, cell or error, and each place names what is missing."""
    monkeypatch.setattr(to_html, "MOST_TURNS", 20)
    monkeypatch.setattr(to_html, "MOST_ERRORS", 2)
    monkeypatch.setattr(html_threads, "MOST_THREADS", 2)
    monkeypatch.setattr(html_threads, "MOST_CELLS", 5)
    rows = [row for at in range(4) for row in conversation(f"thread-{at}", 8 * at)]
    text = page(tmp_path, rows, threads=4)
    assert len(table(text)) == 20
    assert "The first 20 turns; 12 turns left out" in text
    assert len(threads(text)) == 2
    assert all(thread.count("<li") == 5 for thread in threads(text))
    assert "and 2 more turns of this thread" in text
    assert "The first 2 of 4 threads are drawn. Only turns of the table below are in it." in text
    assert "The first 2 are listed." in text
    assert "1 must, 3 should" not in text.split("<main>", maxsplit=1)[0]
    assert "24 of 32 turns decided, 4 must, 12 should, 8 skip, 4 errors, 4 skipped" in text


def test_a_missed_gate_is_shown(tmp_path: Path) -> None:
    """A run without an error that misses a gate is no good one, and the gate is named."""
    rows = thread_rows("boats", [{}, {}])
    path = write_page(tmp_path / "r.html", turns_run(2), rows, gates=[parse_gate("must_share<0.5")])
    text = path.read_text(encoding="utf-8")
    assert '<p class="verdict bad">' in text
    assert "2 of 2 turns decided, 2 should, 1 gate failed" in text
    assert '<p class="verdict good">' in page(tmp_path, rows)
