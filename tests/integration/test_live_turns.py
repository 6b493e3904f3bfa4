"""Real worker processes have turns answered by a real endpoint: in order, once each, as the run allows."""

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from producer.document import run_document
from shared import keys
from shared.names import RunState
from shared.upstream.prices import GivenPrice
from tests.support.conversations import shape
from tests.support.documents import printed, summary_text
from tests.support.eventually import eventually
from tests.support.live_desk import LiveDesk, LiveModel, parrot, reply, talks
from tests.support.model_server import Say
from tests.support.processes import Processes
from tests.support.workers import start_supervisor, start_worker

if TYPE_CHECKING:
    import redis

LATE = 4.0
"""Seconds within which a stop has to have had its effect; it takes about one."""


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str, tmp_path: Path) -> LiveDesk:
    """A producer on the session's server."""
    return LiveDesk(redis_client, redis_url, tmp_path)


def test_a_killed_worker_costs_no_answer_twice(desk: LiveDesk, processes: Processes) -> None:
    """After kill -9 nothing committed is asked again, at most one turn a thread is, and the order holds."""
    victim = start_worker(processes, "-Q", "turns")
    with LiveModel(lambda message, _nth: Say(reply(f"re: {message}"), after_s=0.25)) as model:
        run = desk.submit_live(talks(12, 6, skips=1), chunk_turns=21, api_base=model.api_base)
        eventually(lambda: _hold(desk.info(run).done >= 20), 20)
        victim.kill()
        committed = {json.loads(row.line)["messageId"] for row in desk.store.rows(run)}
        start_supervisor(processes, 2, "-Q", "turns")
        rows = desk.ended(run)
    times = model.times()
    assert len(rows) == 84
    assert set(times) == {f"question {thread}.{number}" for thread in range(12) for number in range(6)}
    again = {message.split()[1] for message, count in times.items() if count > 1}
    assert max(times.values()) <= 2
    assert len({name.split(".")[0] for name in again}) == len(again)
    asked_again = {f"t{name.split('.')[0]}#{_index(name)}" for name in again}
    assert not asked_again & committed
    order = defaultdict(list)
    for each in model.asked:
        thread, number = each.message.split()[1].split(".")
        order[thread].append(int(number))
    assert all(numbers == sorted(numbers) for numbers in order.values())
    assert [json.loads(row.line)["response"] for row in rows[:2]] == ["re: question 0.0", "re: question 0.1"]
    calls = printed(run_document(desk.store, run))["summary"]["calls"]
    assert (calls["made"], calls["avoided"], calls["prompt_tokens"]) == (72, 12, 720)
    assert desk.info(run).tally["avoided"] == 12


def _index(name: str) -> int:
    """The position in the input of a question of the test above."""
    thread, number = map(int, name.split("."))
    return thread * 7 + number


def test_every_prompt_tells_what_was_said_before(desk: LiveDesk, processes: Processes) -> None:
    """A thread's second question holds its first answer; two workers never have two questions of a thread."""
    start_supervisor(processes, 2, "-Q", "turns")
    with LiveModel(lambda message, _nth: Say(reply(f"re: {message}"), after_s=0.05)) as model:
        desk.ended(desk.submit_live(talks(8, 3), chunk_turns=6, api_base=model.api_base))
    assert all(count == 1 for count in model.times().values())
    for each in model.asked:
        thread, number = each.message.split()[1].split(".")
        for before in range(int(number)):
            assert f'assistant: "re: question {thread}.{before}"' in each.prompt
    assert model.most_in_flight > 1


def test_a_run_keeps_to_its_width(desk: LiveDesk, processes: Processes) -> None:
    """`-j` bounds the questions of a run over the whole fleet."""
    start_supervisor(processes, 2, "-Q", "turns")
    with LiveModel(lambda message, _nth: Say(reply(message), after_s=0.1)) as model:
        desk.ended(desk.submit_live(talks(12, 2), chunk_turns=4, api_base=model.api_base, concurrency=3))
    assert model.most_in_flight == 3


def test_failures_end_their_turn_and_no_other(desk: LiveDesk, processes: Processes) -> None:
    """A refused question is its turn's error with the upstream's code; what passes by itself is retried."""

    def script(message: str, nth: int) -> Say:
        if message == "question 0.1":
            return Say("no such thing", 400)
        if message == "question 1.0" and nth == 1:
            return Say("sorry", 500)
        return Say("plain text" if message == "question 1.1" else reply(f"re: {message}"))

    start_worker(processes, "-Q", "turns")
    with LiveModel(script) as model:
        run = desk.submit_live(talks(2, 3), api_base=model.api_base)
        rows = desk.ended(run)
        assert [row.code[0] for row in rows] == ["s", "x", "s", "s", "s", "s"]
        lines = [json.loads(row.line) for row in rows]
        assert lines[1]["error"]["code"] == "upstream_refused"
        assert [line["etag"] for line in lines if "error" not in line] == ["1", "2", "1", "2", "3"]
        assert lines[3]["call"]["attempts"] == 2
        assert lines[4]["response"] == "plain text"
    document = run_document(desk.store, run)
    calls = document.summary.calls
    assert (document.exit, calls.given_up, calls.unread) == (1, 1, 1)
    assert desk.client.zcard(keys.DEAD_KEY) == 1


def test_replies_are_read_as_the_outputs_of_cases_are(desk: LiveDesk, processes: Processes) -> None:
    """Prose, a tag in capitals, a byte order mark and thoughts hide no object; what is none is counted."""
    good = reply("found", shape=shape("arc"))
    forms = {
        "question 0.0": f"Sure!\n```JSON\n{good}\n```\nAnything else?",
        "question 0.1": f"\ufeff{good}",
        "question 0.2": f"<think>Shall I say {reply('no')}?</think>\n{good}",
        "question 0.3": f"Here it is: {good}. Bye.",
        "question 0.4": "Just text.",
        "question 0.5": reply("found", shape={"arc": ""}),
    }
    start_worker(processes, "-Q", "turns")
    with LiveModel(lambda message, _nth: Say(forms[message])) as model:
        run = desk.submit_live(talks(1, 6), api_base=model.api_base)
        rows = desk.ended(run)
    responses = [json.loads(row.line)["response"] for row in rows]
    assert responses == ["found"] * 4 + ["Just text.", "found"]
    assert [row.code for row in rows] == ["s6ul"] * 4 + ["s6l"] * 2
    document = run_document(desk.store, run)
    calls = document.summary.calls
    assert (calls.made, calls.unread, calls.invalid_shapes) == (6, 1, 1)
    assert "replies without a JSON object 1 · invalid summaries proposed 1" in summary_text(document)


def test_a_wrong_key_ends_the_run(desk: LiveDesk, processes: Processes) -> None:
    """The first 401 aborts: its turn is an error, the others have no result, nobody asks on."""
    start_worker(processes, "-Q", "turns")
    denied = Say("bad key", 401, after_s=0.1)
    with LiveModel(
        lambda message, _nth: denied if message == "question 0.1" else parrot(message, 1)
    ) as model:
        run = desk.submit_live(talks(1, 40), api_base=model.api_base)
        rows = desk.ended(run, RunState.ABORTED)
        assert len(model.asked) == 2
    assert [row.code[:1] for row in rows] == ["s", "x", *[""] * 38]
    assert json.loads(rows[1].line)["error"]["code"] == "upstream_unauthorised"
    assert run_document(desk.store, run).exit == 3


def test_a_cost_cap_ends_the_run_as_incomplete(desk: LiveDesk, processes: Processes) -> None:
    """What the cap pays for is answered, and the run exits 4 with what it has."""
    start_worker(processes, "-Q", "turns")
    prices = {"test/parrot": GivenPrice(0.0, 1_000.0)}
    with LiveModel() as model:
        run = desk.submit_live(talks(1, 40), api_base=model.api_base, prices=prices, max_cost=0.1)
        rows = desk.ended(run, RunState.INCOMPLETE)
    answered = [row for row in rows if row.code]
    assert 0 < len(answered) == len(model.asked) < 40
    document = run_document(desk.store, run)
    assert document.exit == 4
    assert document.summary.calls.cost_usd <= 0.1


def test_a_long_wait_is_parked_with_what_it_has_been_through(desk: LiveDesk, processes: Processes) -> None:
    """A `Retry-After` of seconds leaves the chunk to others; the turn comes back, and no answer is lost."""
    busy = Say("slow down", 503, {"Retry-After": "3"})
    start_worker(processes, "-Q", "turns")
    with LiveModel(lambda message, nth: busy if nth == 1 else parrot(message, nth)) as model:
        run = desk.submit_live(talks(1, 1, skips=1), api_base=model.api_base)
        eventually(lambda: _hold(desk.client.hlen(keys.tries_key(run)) == 1), 20)
        rows = desk.ended(run)
        first, second = model.asked
    assert second.at_s - first.at_s >= 2.9
    assert [row.code for row in rows] == ["s6l", "k5a"]
    assert json.loads(rows[0].line)["call"]["attempts"] == 2


def test_pause_resume_and_cancel_act_within_seconds(desk: LiveDesk, processes: Processes) -> None:
    """What is under way at a pause is kept, and the thread goes on from there; a cancel leaves it."""
    start_worker(processes, "-Q", "turns")
    with LiveModel(
        # The first answer takes longer than a busy machine needs to ask for the pause.
        lambda message, _nth: Say(
            reply("yes"), after_s={"question 0.0": 3.0, "question 0.2": 60.0}.get(message, 0.1)
        )
    ) as model:
        run = desk.submit_live(talks(1, 6), api_base=model.api_base)
        eventually(lambda: _hold(len(model.asked) == 1), 20)
        desk.ledger.control(run, "pause")
        eventually(lambda: _hold(desk.info(run).done == 1), LATE)
        _, wakes = desk.ledger.control(run, "resume")
        desk.publisher.publish(wakes)
        eventually(lambda: _hold(len(model.asked) == 3), 10)
        desk.ledger.control(run, "cancelled")
        rows = desk.ended(run, RunState.CANCELLED, within_s=LATE)
        eventually(lambda: _hold(not model.in_flight), LATE)
    assert [row.code for row in rows] == ["s6l", "s6l", "", "", "", ""]
    assert set(model.times().values()) == {1}


def test_sigterm_keeps_the_answer_that_is_under_way(desk: LiveDesk, processes: Processes) -> None:
    """A worker that gets SIGTERM commits what it waits for, asks no further, and gives the rest back."""
    worker = start_worker(processes, "-Q", "turns")
    with LiveModel(lambda _message, _nth: Say(reply("yes"), after_s=0.6)) as model:
        run = desk.submit_live(talks(2, 2), api_base=model.api_base)
        eventually(lambda: _hold(len(model.asked) == 2), 20)
        assert worker.stop() == 0
        assert desk.info(run).done == 2
        start_worker(processes, "-Q", "turns")
        desk.ended(run)
    assert set(model.times().values()) == {1}


def test_recorded_and_live_turns_share_a_thread(desk: LiveDesk, processes: Processes) -> None:
    """In a shared namespace runs with and without a model go on with each other's threads, in order."""
    start_worker(processes, "-Q", "turns")
    with LiveModel() as model:
        first = desk.submit_live(talks(1, 1), api_base=model.api_base, namespace="both")
        desk.ended(first)
        second = desk.submit_live(talks(1, 2), api_base=model.api_base, namespace="both", live="must")
        rows = desk.ended(second)
    assert [json.loads(row.line)["etag"] for row in rows] == ["2", "3"]
    assert [row.code for row in rows] == ["s6a", "s6a"]


def _hold(condition: bool) -> None:  # noqa: FBT001 - an assertion as a function
    assert condition
