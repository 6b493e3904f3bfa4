"""Real worker processes put queries to a real API: in order, at the pace and width that the run asks for."""

import json
import socket
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from producer.dead_set import read_dead
from producer.load import chunks
from producer.queries.kind import QueryRuns
from shared import keys
from shared.ledger.bounds import FIRST_LAYOUT, PACKED_LAYOUT
from shared.names import RunState
from tests.support.eventually import eventually
from tests.support.processes import Processes
from tests.support.query_desk import QueryDesk, numbered
from tests.support.redis_server import RedisServer
from tests.support.scripted_api import ScriptedApi, Step
from tests.support.workers import ready, start_supervisor, start_worker

if TYPE_CHECKING:
    import redis


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str, tmp_path: Path) -> QueryDesk:
    """A producer on the session's server."""
    return QueryDesk(redis_client, redis_url, tmp_path)


def test_queries_go_one_at_a_time_in_the_order_of_their_ids(desk: QueryDesk, processes: Processes) -> None:
    """By default two processes send every query once, in order, never two at a time."""
    start_supervisor(processes, 2, "-Q", "queries")
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.02)) as api:
        rows = desk.ended(desk.submit_queries(list(reversed(numbered(30))), api_url=api.url))
    assert [request.query for request in api.requests] == [f"query {number}" for number in range(1, 31)]
    assert api.most_in_flight == 1
    assert [(row.index, row.code, row.attempts) for row in rows] == [(at, "p", 1) for at in range(30)]


def test_two_processes_over_tcp_share_a_run(
    new_redis_server: Callable[..., RedisServer], processes: Processes, tmp_path: Path
) -> None:
    """Two processes that find Redis over TCP send each query once, as many at a time as the run allows."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    server = new_redis_server("--port", str(port))
    url = f"redis://127.0.0.1:{port}/0"
    desk = QueryDesk(server.client(), url, tmp_path)
    env = {**processes.env, "PROCTOR_REDIS_URL": url}
    start_supervisor(processes, 2, "-Q", "queries", env=env)
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.05)) as api:
        rows = desk.ended(desk.submit_queries(numbered(400), api_url=api.url, concurrency=20))
    assert set(api.asked().values()) == {1}
    assert len(rows) == 400
    assert 10 <= api.most_in_flight <= 20


def test_the_delay_is_kept_by_the_whole_fleet(desk: QueryDesk, processes: Processes) -> None:
    """However many may be under way, two sends are never closer than the delay, and hardly further apart."""
    start_supervisor(processes, 2, "-Q", "queries")
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.5)) as api:
        desk.ended(desk.submit_queries(numbered(12), api_url=api.url, concurrency=6, delay_s=0.25))
    times = sorted(request.at_s for request in api.requests)
    # A send may be noted some moments after its leave, and the next one at once.
    early = [number * 0.25 - (at - times[0]) for number, at in enumerate(times)]
    assert max(early) < 0.2, times
    assert times[-1] - times[0] < 12 * 0.25 + 2.5


def test_four_processes_keep_the_pace_and_width_of_one_run(desk: QueryDesk, processes: Processes) -> None:
    """However many processes there are, no moment has more sends than the delay and the width allow."""
    start_supervisor(processes, 4, "-Q", "queries")
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.4)) as api:
        rows = desk.ended(desk.submit_queries(numbered(60), api_url=api.url, concurrency=8, delay_s=0.1))
    times = sorted(request.at_s for request in api.requests)
    assert len(rows) == len(times) == 60
    assert api.most_in_flight <= 8
    # A send may be noted some moments after its leave, the next one at once.
    assert all(times[at + 10] - times[at] >= 1.0 - 0.2 for at in range(50))


def test_waits_that_are_longer_than_a_slot_is_held_keep_the_pace(
    desk: QueryDesk, processes: Processes
) -> None:
    """With a delay of seconds each query is parked until its turn, and comes on time."""
    start_worker(processes, "-Q", "queries")
    with ScriptedApi() as api:
        desk.ended(desk.submit_queries(numbered(3), api_url=api.url, delay_s=3.0))
    times = [request.at_s for request in api.requests]
    # A send may be noted some moments after its leave, and the next one at once.
    assert all(later - earlier >= 3.0 - 1.0 for earlier, later in pairwise(times)), times
    assert times[-1] - times[0] < 2 * 3.0 + 3.0, times


def test_an_api_that_is_not_there_ends_the_run(desk: QueryDesk, processes: Processes) -> None:
    """The first refused connection is a failed result with the document's text; resuming sends it again."""
    with ScriptedApi() as api:
        url = api.url
    start_worker(processes, "-Q", "queries")
    run = desk.submit_queries(numbered(10), api_url=url)
    rows = desk.ended(run, RunState.ABORTED)
    assert [row.code for row in rows] == ["x"] + [""] * 9
    [found] = desk.results(run)
    assert found["error"] == {
        "code": "api_unreachable",
        "message": f"Connection refused - backend not running on {url}",
    }
    assert found["result"]["overall_pass"] is False
    assert QueryRuns().retry()(desk.ledger, desk.publisher, desk.store, run, errors=False).items == 10
    desk.ended(run, RunState.ABORTED)
    forbidden = desk.submit_queries(numbered(3), api_url="http://169.254.169.254")
    desk.ended(forbidden, RunState.ABORTED)
    assert QueryRuns().retry()(desk.ledger, desk.publisher, desk.store, forbidden, errors=False).items == 3


def test_a_large_run_is_stored_packed_and_reads_the_same(
    desk: QueryDesk, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results, inputs and dead items of a packed run are those of a plain one, in a fifth of the bytes."""

    def script(query: str, nth: int) -> Step:
        return Step(status=400) if query == "query 7" and nth <= 2 else Step()

    start_worker(processes, "-Q", "queries")
    with ScriptedApi(script) as api:
        plain = desk.submit_queries(numbered(20), api_url=api.url)
        desk.ended(plain)
        monkeypatch.setattr(chunks, "FEWEST_ITEMS", 20)
        packed = desk.submit_queries(numbered(20), api_url=api.url)
        desk.ended(packed)
        assert [desk.info(run).layout for run in (plain, packed)] == [FIRST_LAYOUT, PACKED_LAYOUT]
        assert read_run(desk, packed) == read_run(desk, plain)
        [[dead], [other]] = ([*read_dead(desk.client, run=run)] for run in (packed, plain))
        assert (dead.name, dead.error, dead.item.payload) == (other.name, other.error, other.item.payload)
        assert stored_bytes(desk, packed) < stored_bytes(desk, plain) / 5
        assert QueryRuns().retry()(desk.ledger, desk.publisher, desk.store, packed, errors=True).items == 1
        assert [row.code for row in desk.ended(packed)] == ["p"] * 20
    assert not [*read_dead(desk.client, run=packed)]


def read_run(desk: QueryDesk, run: str) -> list[tuple[str, dict[str, Any], bytes]]:
    """Code, result without its latency, and input of each item."""
    rows = (row for page in desk.store.item_pages(run, with_payload=True) for row in page)
    found = [(row.code, json.loads(row.line), row.payload) for row in rows]
    return [
        (code, {**line.get("result", line), "client_latency_ms": 0, "checks": None}, payload)
        for code, line, payload in found
    ]


def stored_bytes(desk: QueryDesk, run: str) -> int:
    """Bytes of all inputs and results of a run."""
    keys_of_run = (keys.items_key(run), keys.results_key(run))
    return sum(len(value) for key in keys_of_run for value in desk.client.hvals(key))


def test_pause_and_cancel_act_within_seconds(desk: QueryDesk, processes: Processes) -> None:
    """What is under way at a pause ends and is kept, at a cancel it is left; nothing new begins."""
    start_worker(processes, "-Q", "queries")
    with ScriptedApi(lambda query, _nth: Step(after_s=60.0 if query == "query 3" else 1.0)) as api:
        run = desk.submit_queries(numbered(6), api_url=api.url)
        eventually(lambda: _asserted(len(api.requests) == 1), 20)
        desk.ledger.control(run, "pause")
        eventually(lambda: _asserted(desk.info(run).done == 1), 4)
        _, wakes = desk.ledger.control(run, "resume")
        desk.publisher.publish(wakes)
        eventually(lambda: _asserted(len(api.requests) == 3), 10)
        desk.ledger.control(run, "cancelled")
        rows = desk.ended(run, RunState.CANCELLED, within_s=4)
    assert [row.code for row in rows] == ["p", "p", "", "", "", ""]
    assert set(api.asked().values()) == {1}


def test_sigterm_lets_what_is_under_way_end(desk: QueryDesk, processes: Processes) -> None:
    """A worker that gets SIGTERM keeps the answer it waits for, and gives back the rest."""
    worker = start_worker(processes, "-Q", "queries")
    with ScriptedApi(lambda _query, _nth: Step(after_s=1.5)) as api:
        run = desk.submit_queries(numbered(3), api_url=api.url)
        eventually(lambda: _asserted(len(api.requests) == 1), 20)
        assert worker.stop() == 0
        assert desk.info(run).done == 1
        start_worker(processes, "-Q", "queries")
        desk.ended(run)
    assert set(api.asked().values()) == {1}


def test_turns_and_queries_share_a_process(desk: QueryDesk, processes: Processes) -> None:
    """One process works on both kinds: slow queries do not keep turns from being decided."""
    worker = processes.start(*_worker(), "-Q", "turns,queries", "-j", "4")
    ready(worker, 1)
    with ScriptedApi(lambda _query, _nth: Step(after_s=6.0)) as api:
        run = desk.submit_queries(numbered(4), api_url=api.url, concurrency=4)
        eventually(lambda: _asserted(api.in_flight == 4), 20)
        desk.submit("t1", {"a": [{"message": "ok"}]})
        desk.finished("t1", within_s=6)
        assert api.in_flight == 4, "no query has been answered yet"
        desk.ended(run)


def _worker() -> tuple[str, ...]:
    return sys.executable, "-m", "worker"


def _asserted(holds: bool) -> None:  # noqa: FBT001 - a condition to be waited for
    assert holds
