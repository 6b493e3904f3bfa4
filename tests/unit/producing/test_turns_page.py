"""What the HTML report of turns says: verdict, threads to read first, conversations, mementos, bounds."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any, Final

import pytest

from producer.aggregate.gates import parse_gate
from producer.document import document_of, totals_of
from producer.turns.report import html_threads, to_html
from producer.turns.report.html_affect import MoodPoint, chart, strip
from producer.turns.report.opened_rows import without_text
from shared.codecs.turn_lines import expand
from shared.names import RunState
from shared.runs import TurnRow
from tests.support.conversations import (
    BREAKPOINTS_ONLY,
    POLICY,
    batch,
    felt,
    shape,
    signals,
    turn,
    with_memento,
)
from tests.support.live_rows import ROWS as LIVE_ROWS
from tests.support.live_rows import live_info, rows_of
from tests.support.run_pages import conversation, thread_rows, turns_run, write_page
from worker.breakpoint.live_decisions import ModelAnswer
from worker.breakpoint.thread_decider import RunPolicy, decide_thread
from worker.breakpoint.trace import TracedCall

HOSTILE: Final = "<img src=x onerror=alert(1)></noscript></script><script>alert(1)</script>\u2028\"'`{{ 7 }}"
FACETS: Final = ("show", "decision", "rule", "freeze", "summary", "code", "thread")


def page(tmp_path: Path, rows: list[TurnRow], **changes: Any) -> str:
    """A report as text."""
    path = write_page(tmp_path / "report.html", turns_run(len(rows), **changes), rows)
    return path.read_text(encoding="utf-8")


def test_a_page_that_is_begun_early_says_how_the_run_ended(tmp_path: Path) -> None:
    """A page whose rows are read while the run goes on has the state of the end, not of the beginning."""
    path, rows = tmp_path / "report.html", conversation("boats")
    finished = turns_run(len(rows))
    totals = totals_of(finished.kind)
    totals.add(rows)
    with path.open("wb") as out:
        report = to_html.TurnsHtmlReport(out, turns_run(len(rows), state=RunState.RUNNING))
        report.page(rows)
        report.end(document_of(finished, totals))
    assert f"{finished.run} (finished)" in path.read_text(encoding="utf-8")


def with_input(rows: list[TurnRow], *turns: dict[str, Any]) -> list[TurnRow]:
    """Rows with their lines of the input, as the store reads them for reports."""
    return [
        row._replace(
            payload=json.dumps({"threadId": "boats", "message": f"text {row.index}", **sent}).encode()
        )
        for row, sent in zip(rows, turns, strict=True)
    ]


def articles(text: str) -> dict[str, str]:
    """The rows of a page by their ids, in the order of the page."""
    found = re.findall(r'<article [^>]*id="([^"]+)".*?</article>', text, flags=re.DOTALL)
    parts = re.findall(r"<article .*?</article>", text, flags=re.DOTALL)
    return dict(zip(found, parts, strict=True))


def read(markup: str) -> str:
    """What a reader reads of markup."""
    words = re.sub(r"<span class=\"vh\">.*?</span>", "", markup)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", words)).split())


def index(text: str) -> dict[str, dict[str, list[str]]]:
    """What rows are filtered by, by their ids."""
    found: dict[str, Any] = json.loads(text.split("data-index>")[1].split("</script>", maxsplit=1)[0])
    assert tuple(found["facets"]) == FACETS
    return {
        row[0]: {
            facet: [found["names"][at][number] for number in row[3 + at]] for at, facet in enumerate(FACETS)
        }
        for row in found["rows"]
    }


def threads(text: str) -> list[str]:
    """The list of threads as it is read."""
    listed = text.split("data-threads")[1].split("</nav>", maxsplit=1)[0] if "<nav" in text else ""
    return [read(each) for each in re.findall(r"<li>.*?</li>", listed, flags=re.DOTALL)]


def decided(policy: RunPolicy, *turns: dict[str, Any], state: bytes = b"", first: int = 0) -> list[TurnRow]:
    """Rows of one thread with their input."""
    sent = [{"threadId": "boats", "message": f"text {at}", **each} for at, each in enumerate(turns)]
    batches = [batch(sent, policy, first)]
    [block] = decide_thread(thread="boats", state=state, batches=batches, known={}).blocks
    lines = expand(block.codes, block.lines)
    return [
        TurnRow(first + at, code, line, 1_000, 1_004, 1, json.dumps(sent[at]).encode())
        for at, (code, line) in enumerate(zip(block.codes, lines, strict=True))
    ]


def test_the_first_screen_says_what_counts(tmp_path: Path) -> None:
    """State, turns by outcome, decisions, freezes and errors stand above everything, their shares below."""
    text = page(tmp_path, conversation("boats"), state=RunState.CANCELLED)
    head = text.split('class="verdict"')[1].split("data-tools")[0]
    assert "Cancelled: 6 of 8 turns decided (1 must, 3 should, 2 skip), 1 error, 1 skipped" in read(head)
    assert "incomplete" in head
    assert (
        "were held back on 3 (peak freeze). Errors: etag_conflict 1. Peaks froze turns in 1 of 2 threads."
        in read(head)
    )
    assert "Look first at boats: 1 failed turn, 3 freezes in 7 turns." in read(head)
    assert "cancelled: 8 turns of 2 threads" in head
    assert "should 3 50.0%" in read(text.split('id="decisions"')[1])
    assert "1 summary changed 0 0.0% 2 MUST signal 1 16.7%" in read(text.split('id="decisions"')[1])


def test_a_run_that_goes_on_has_no_verdict_yet(tmp_path: Path) -> None:
    """Neither good nor bad, and it says how far it came."""
    text = page(tmp_path, conversation("boats")[:4], state=RunState.RUNNING, finished_ms=None)
    head = text.split("<h1>")[1].split("</h1>")[0]
    assert not set("✓✗!") & set(head)
    assert "Running: all 4 turns decided" in head


def test_failed_turns_are_found_first(tmp_path: Path) -> None:
    """Threads with failed turns stand above those without, codes above the rows; each says why it failed."""
    text = page(tmp_path, [*thread_rows("calm", [{}, {}]), *conversation("stormy", 2)[:7]])
    assert [each.split()[0] for each in threads(text)] == ["stormy", "calm"]
    assert threads(text)[0].startswith("stormy ! 1")
    assert text.index("<bdi>etag_conflict</bdi>") < text.index("<article")
    rows = articles(text)
    assert next(iter(rows)) == "turn-2"
    assert "! etag_conflict thread_memento_etag is stale: the thread is at 4" in read(rows["turn-6"])
    assert index(text)["turn-6"]["show"] == ["errors"]
    assert index(text)["turn-6"]["code"] == ["etag_conflict"]
    assert 'class="reasons"' not in page(tmp_path, thread_rows("calm", [{}]))


def test_threads_with_the_most_freezes_come_first(tmp_path: Path) -> None:
    """The list says how many there are, and what it is sorted by."""
    upset = felt(0.95)
    calm = thread_rows("calm", [{}, {}])
    one = thread_rows("one", [{"affectSignal": upset}, {}], 2)
    many = thread_rows("many", [{"affectSignal": upset}, {}, {}], 4)
    text = page(tmp_path, [*calm, *one, *many], threads=3)
    assert "3 threads, most freezes first" in text
    assert [each.split()[0] for each in threads(text)] == ["many", "one", "calm"]
    assert list(articles(text)) == [f"turn-{at}" for at in (4, 5, 6, 2, 3, 0, 1)]


def test_a_thread_is_drawn_by_height_and_described_in_words(tmp_path: Path) -> None:
    """Each decision has a height and a weight of its own, freezes are shaded, all is described."""
    levels = ((0.1, 3, 0), (0.9, 2, 1), (0.9, 1, 1), (0.2, 4, 0))
    points = [MoodPoint(level, strength, bool(frozen)) for level, strength, frozen in levels]
    heights = dict(re.findall(r'class="(d-\w+)"[^>]* height="(\d+)"', strip(points)))
    assert heights == {"d-must": "14", "d-should": "9", "d-skip": "4", "d-error": "14", "d-cold": "2"}
    drawn = chart(points, "described")
    assert re.findall(r'class="zone" x="(\d+)" y="0" width="(\d+)"', drawn) == [("187", "627")]
    text = page(tmp_path, conversation("boats"))
    assert 'aria-label="Affect and decisions of the thread: 7 turns, 1 must' in text
    assert "3 turns frozen" in text
    assert "<b>3</b> frozen" in text
    assert "<b>1</b> failed" in text


def test_few_turns_are_not_drawn(tmp_path: Path) -> None:
    """Two turns are no line, and nor are turns without an affect."""
    assert 'class="thr"' not in page(tmp_path, thread_rows("two", [{"affectSignal": felt(0.5)}, {}]))
    plain = page(tmp_path, thread_rows("plain", [{}, {}, {}, {}]))
    assert "<svg viewBox" not in plain.split("data-rows")[1].split("</section>\n<script")[0]
    assert 'class="conversation untimed unfelt"' in plain


def test_the_trace_has_an_event_for_each_decision(tmp_path: Path) -> None:
    """Each turn of a thread has its decision, its event, and what became of the summary."""
    rows = articles(page(tmp_path, conversation("boats")))
    assert len(rows) == 8
    assert "solserver · breakpoint · completed · Breakpoint decision: MUST" in rows["turn-0"]
    assert "rule 2: MUST signal pivot" in read(rows["turn-0"])
    assert "arc boats" in read(rows["turn-0"])
    assert "frozen" in read(rows["turn-3"])
    assert "summary kept" in read(rows["turn-3"])
    assert "etag_conflict " in read(rows["turn-4"])
    assert "Breakpoint decision" not in rows["turn-4"]


def test_every_turn_has_a_row(tmp_path: Path) -> None:
    """Rows carry what they are filtered by; a turn that was never decided has one as well."""
    found = index(page(tmp_path, conversation("boats")))
    assert [
        (*each["decision"], *(word.split()[0] for word in each["rule"]), *each["freeze"], *each["thread"])
        for each in found.values()
    ] == [
        ("must", "2", "t1"),
        ("skip", "5", "t1"),
        ("should", "3", "t1"),
        ("should", "3", "frozen", "t1"),
        ("error", "t1"),
        ("skip", "5", "frozen", "t1"),
        ("should", "6", "frozen", "t1"),
        ("not decided", "t2"),
    ]
    assert found["turn-0"]["summary"] == ["changed"]


def test_messages_stand_beside_their_decisions(tmp_path: Path) -> None:
    """Text, role, time and affect of a turn; one that was never decided has its thread and its text too."""
    sent = [
        {"role": role, "ts": f"2026-03-02T09:0{at}:00Z"} for at, role in enumerate(["user", "assistant"] * 4)
    ]
    rows = articles(page(tmp_path, with_input(conversation("boats"), *sent)))
    assert list(rows) == [f"turn-{at}" for at in (0, 1, 2, 3, 4, 5, 6, 7)]
    assert read(rows["turn-0"]).startswith("1 must · 3 should · 2 skip · 1 not decided · 3 frozen · 1 failed")
    assert 'title="affect 0.10, settled, overwhelm"' in rows["turn-0"]
    assert "03-02 09:00" in read(rows["turn-0"])
    assert "03-02" not in read(rows["turn-1"])
    assert 'class="row turn assistant"' in rows["turn-1"]
    assert "text 1" in rows["turn-1"]
    assert "text 7" in rows["turn-7"]
    assert "not decided" in read(rows["turn-7"])


def test_withheld_messages_leave_everything_else(tmp_path: Path) -> None:
    """Without texts the page says how long each was, and shows decisions, affect and mementos as ever."""
    rows = with_input(conversation("boats"), *[{"message": "secret " * 12}] * 8)
    shown = articles(page(tmp_path, [without_text(row) for row in rows]))
    assert all("text withheld, 84 characters" in row for row in shown.values())
    assert not any("secret" in row for row in shown.values())
    assert "arc boats" in read(shown["turn-0"])


def test_the_memento_is_shown_before_and_after(tmp_path: Path) -> None:
    """What a turn added and removed is marked; a turn that left it alone refers to the one that did not."""
    first = shape("trip", active=["boats", "storm"], next=["call"])
    second = shape("trip", active=["boats"], decisions=["leave on Monday"], next=["call"])
    rows = decided(POLICY, {"modelShape": first}, {}, {"modelShape": second}, {"modelShape": second})
    shown = articles(page(tmp_path, rows))
    assert re.search(r"<dt>arc</dt><dd><div dir=\"auto\"><ins>trip</ins></div></dd>", shown["turn-0"])
    assert "<del>support" not in shown["turn-0"]
    assert 'data-memento="turn-0"' in shown["turn-1"]
    assert '<dl class="fields">' not in shown["turn-1"]
    before_the_fold = shown["turn-2"].split('<details class="technical">')[0]
    assert not any(internal in before_the_fold for internal in ("etag", "stored_latest", "solserver"))
    assert "<del>storm</del>" in shown["turn-2"]
    assert "<ins>leave on Monday</ins>" in shown["turn-2"]
    assert "decisions leave on Monday active storm" in read(shown["turn-2"])
    assert "Technical details thread version (etag) 2 → 3" in read(shown["turn-2"])
    assert "summary replaced by an equal one" in shown["turn-3"]


def test_discarded_proposals_are_shown(tmp_path: Path) -> None:
    """Of a freeze, and of the policy that takes none on skipped turns; a `must` at the peak is explained."""
    storm = shape("storm", active=["boats", "waves"])
    start = {"affectSignal": felt(0.95), "modelShape": shape("trip", active=["boats"])}
    must = {"signals": signals("pivot"), "modelShape": storm}
    rows = decided(POLICY, start, {"modelShape": storm}, must)
    text = page(tmp_path, rows)
    shown, found = articles(text), index(text)
    assert "summary kept, proposal discarded" in shown["turn-1"]
    assert found["turn-1"]["summary"] == ["discarded"]
    cold = re.findall(r'<span class="c">&#10052;&#65038; (\w+)<', shown["turn-1"])
    assert cold == ["storm", "waves"]
    assert "At the peak, yet updated: must outranks the freeze." in shown["turn-2"]
    assert "1 discarded proposal" in text
    [skipped] = decided(BREAKPOINTS_ONLY, {"message": "ok", "modelShape": storm})
    assert "summary kept (policy), proposal discarded" in page(tmp_path, [skipped])


def test_a_turn_is_compared_with_what_it_began_with(tmp_path: Path) -> None:
    """With the client's memento where that was the baseline; not at all after turns of other runs."""
    [own] = decided(POLICY, {"context": with_memento(threadId="boats"), "modelShape": shape("after")})
    shown = articles(page(tmp_path, [own]))["turn-0"]
    assert "<del>before</del>" in shown
    assert "<ins>after</ins>" in shown
    outcome = decide_thread(
        thread="boats", state=b"", batches=[batch([turn(threadId="boats")] * 3)], known={}
    )
    later = decided(POLICY, {"modelShape": shape("late")}, state=outcome.state)
    shown = articles(page(tmp_path, later))["turn-0"]
    assert "Turns of other runs stand before it" in shown
    assert "<ins>" not in shown
    assert "late" in shown


def test_turns_stand_in_the_order_of_their_decisions(tmp_path: Path) -> None:
    """A turn that was retried was decided after the others of its thread, whatever its place in the input."""
    rows = thread_rows("boats", [{}, {"thread_memento_etag": "99"}, {}, {}])
    last = rows[3]._replace(index=1)
    assert list(articles(page(tmp_path, [rows[0], last, rows[2]._replace(index=2)]))) == [
        "turn-0",
        "turn-2",
        "turn-1",
    ]


def test_calls_of_a_live_run_are_shown(tmp_path: Path) -> None:
    """Calls avoided stand on the first screen, cost and latency below, answers and events with the turns."""
    path = write_page(tmp_path / "live.html", live_info(len(LIVE_ROWS)), LIVE_ROWS)
    text = path.read_text(encoding="utf-8")
    assert "1 model call avoided, 2 made." in text.split("data-tools")[0]
    assert "$0.25 and 1 call of unknown price" in text
    assert "p95 40 ms" in text
    rows = articles(text)
    assert "model · model_call · completed · Model m answered in 40 ms" in rows["turn-0"]
    assert "m · 40 ms · $0.25 · 10 tokens in, 5 out · 2 attempts" in rows["turn-0"]
    assert "Model m answered from the cache" in rows["turn-3"]
    assert "call avoided" in rows["turn-1"]
    assert "answer <b>Yes</b>" in read(rows["turn-0"])
    assert "repeated request, first answer again" in rows["turn-5"]
    assert "Model calls" not in page(tmp_path, conversation("boats"))


def test_a_models_discarded_proposal_is_shown(tmp_path: Path) -> None:
    """What it was is not stored, but that there was one is."""
    answer = ModelAnswer(json.dumps({"response": "yes", "shape": shape("storm")}), TracedCall("m"))
    rows = rows_of((turn("Rome?", affectSignal=felt(0.95)), TracedCall("m")), (turn("When?"), answer))
    path = write_page(tmp_path / "live.html", live_info(2), rows)
    shown = articles(path.read_text(encoding="utf-8"))["turn-1"]
    assert "summary kept, proposal discarded" in shown
    assert "the model&#39;s proposal was discarded and is not stored" in shown


def test_hostile_names_are_only_text(tmp_path: Path) -> None:
    """Threads, messages, summaries, file and run names are text; half a surrogate pair is its number."""
    hostile = {
        "messageId": HOSTILE,
        "signals": signals("pivot"),
        "modelShape": shape(HOSTILE, active=[HOSTILE]),
    }
    rows = [
        row._replace(payload=json.dumps({"threadId": HOSTILE, "message": HOSTILE}).encode())
        for row in thread_rows(HOSTILE, [hostile])
    ]
    poisoned = batch([turn(HOSTILE, threadId=HOSTILE)]).payload.split(b"\n", 1)[1]
    rows.append(TurnRow(1, "x0p", poisoned + b"\n", 1_000, 1_000, 1))
    rows += thread_rows("calm", [{}], 2)
    snapshot = {"v": 1, "source": f"{HOSTILE}\udcff.jsonl"}
    text = page(tmp_path, rows, snapshot=snapshot, namespace=HOSTILE)
    assert text.count("<script") == text.count("</script") == 3
    assert text.count("<noscript") == text.count("</noscript>") == 1
    assert "<img" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "\\udcff.jsonl" in text
    assert "every worker that tried this turn was lost" in text


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    """Nothing was decided, and it says so."""
    text = page(tmp_path, [], threads=0)
    assert "No turns" in text.split("<h1>")[1]
    assert articles(text) == {}
    assert threads(text) == []


def test_a_large_run_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its bound the page has no turn and says how many are missing; counts are of the whole run."""
    monkeypatch.setattr(to_html, "MOST_TURNS", 20)
    monkeypatch.setattr(to_html, "THREADS_AT_ONCE", 2)
    rows = [row for at in range(4) for row in conversation(f"thread-{at}", 8 * at)]
    text = page(tmp_path, rows, threads=4)
    assert len(articles(text)) == 20
    assert "The first 20 turns; 12 turns left out." in text
    assert "proctor results run-1 --format jsonl" in text
    assert "24 of 32 turns decided (4 must, 12 should, 8 skip), 4 errors, 4 skipped" in text
    assert len(threads(text)) == 4
    assert text.split("data-threads")[1].count("<noscript>") == 1


def test_long_threads_are_drawn_in_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many turns several are one point, which keeps the strongest of them."""
    monkeypatch.setattr(html_threads, "MOST_POINTS", 10)
    turns: list[dict[str, Any]] = [{"message": "ok", "affectSignal": felt(0.2)} for _ in range(100)]
    turns[42] = {"signals": signals("pivot")}
    text = page(tmp_path, thread_rows("long", turns))
    drawn = text.split('class="affect"')[1].split("</header>")[0]
    assert drawn.count("<rect") == 10
    assert drawn.count('class="d-must"') == 1
    assert len(articles(text)) == 100


def test_a_missed_gate_is_shown(tmp_path: Path) -> None:
    """A run without an error that misses a gate is no good one, and the gate is named."""
    rows = thread_rows("boats", [{}, {}])
    path = write_page(tmp_path / "r.html", turns_run(2), rows, gates=[parse_gate("must_share<0.5")])
    head = path.read_text(encoding="utf-8").split('class="verdict"')[1].split("data-tools")[0]
    assert "✗" in head
    assert "All 2 turns decided: 2 should" in head
    assert "must share" in head
    assert "✓" in page(tmp_path, rows).split("<h1>")[1].split("</h1>")[0]
