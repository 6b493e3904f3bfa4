"""Between the acceptance of turns and their decision: clients are killed, servers end, and queues fill up."""

import json
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from time import monotonic
from typing import Any, Final

import pytest

from proctor import Producer
from tests.support.callers import Callers, Server
from tests.support.eventually import eventually
from tests.support.processes import Processes
from tests.support.redis_server import RedisServer
from tests.support.workers import start_worker

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

ALONE: Final = ("--processes", "0")
"""The server starts no workers."""
TURNS: Final = 100
GRACE_S: Final = 10.0
"""How long a server that ends waits for turns."""
MARGIN_S: Final = 15.0
"""How much longer it may take on a busy machine."""
PATIENCE_S: Final = 60.0
"""Longer than any deadline of the service."""
MOST_WAITING: Final = 10_000
MOST_BYTES: Final = 4 << 20
CLIENT: Final = """
import sys
from urllib.request import Request, urlopen

url, token, body = sys.argv[1:]
urlopen(Request(url + "/v1/turns", body.encode(), {"Authorization": "Bearer " + token}))
"""


@pytest.fixture
def processes(server: RedisServer, processes: Processes) -> Processes:
    """Programs on a Redis of the test's own."""
    processes.env["PROCTOR_REDIS_URL"] = server.url
    return processes


def numbered(thread: str, count: int = TURNS) -> list[dict[str, str]]:
    """Makes turns of a thread that can be sent again."""
    return [
        {"threadId": thread, "message": f"number {at}", "clientRequestId": f"{thread}/{at}"}
        for at in range(count)
    ]


def etags(count: int) -> list[str]:
    """What turns of a thread have that were all decided once, in order."""
    return [str(at + 1) for at in range(count)]


def await_in_flight(server: Server, count: int) -> None:
    """Waits until a server has accepted so many turns that are not decided."""

    def has_them() -> None:
        with closing(HTTPConnection(*server.address, timeout=10)) as connection:
            connection.request("GET", "/metrics")
            assert f"proctor_serve_in_flight {count:.1f}\n" in connection.getresponse().read().decode()

    eventually(has_them, 30)


def decided_again(server: Server, thread: str, count: int = TURNS) -> None:
    """Asserts that turns of a thread count once: sent again, they have the answers of the first time."""
    with Producer(server.url, server.token) as producer:
        assert [future.result().etag for future in producer.send_many(numbered(thread, count))] == etags(
            count
        )
    assert server.ask("GET", f"/v1/threads/{thread}")[1]["etag"] == str(count)


def test_turns_of_a_killed_client_count_once(processes: Processes) -> None:
    """A client that is killed before its answers come finds the same decisions when it starts again."""
    server = Server.started(processes, *ALONE)
    body = json.dumps({"turns": numbered("killed")})
    client = processes.start(sys.executable, "-c", CLIENT, server.url, server.token, body)
    await_in_flight(server, TURNS)
    client.kill()
    start_worker(processes, "-Q", "turns")
    await_in_flight(server, 0)
    assert server.ask("GET", "/v1/threads/killed")[1]["etag"] == str(TURNS)
    decided_again(server, "killed")


def _in_flight(server: Server, pool: ThreadPoolExecutor) -> list[Future[tuple[int, Any]]]:
    """Has callers wait for a turn each, after a list was acknowledged for which nobody waits."""
    status, _ = server.ask("POST", "/v1/turns?wait=0", {"turns": numbered("kept")})
    assert status == HTTPStatus.ACCEPTED
    waiting = [
        pool.submit(server.ask, "POST", "/v1/turns", numbered(f"waits-{at}", 1)[0], PATIENCE_S)
        for at in range(8)
    ]
    await_in_flight(server, TURNS + len(waiting))
    return waiting


def test_a_server_that_ends_answers_what_it_has_accepted(processes: Processes) -> None:
    """With workers, SIGTERM costs no caller its answer, and another server has what was acknowledged."""
    ends = Server.started(processes, *ALONE)
    with ThreadPoolExecutor(8) as pool:
        waiting = _in_flight(ends, pool)
        ends.process.terminate()
        start_worker(processes, "-Q", "turns")
        assert [(status, found["etag"]) for status, found in (each.result() for each in waiting)] == [
            (200, "1")
        ] * 8
    assert ends.process.wait(GRACE_S + MARGIN_S) == 0
    decided_again(Server.started(processes, *ALONE), "kept")


def test_a_server_that_ends_without_workers_leaves_nobody_waiting(processes: Processes) -> None:
    """Callers have an error after the grace; their turns and those that were acknowledged count, once."""
    ends = Server.started(processes, *ALONE)
    with ThreadPoolExecutor(8) as pool:
        waiting = _in_flight(ends, pool)
        began_s = monotonic()
        ends.process.terminate()
        for each in waiting:
            try:
                status, document = each.result(GRACE_S + MARGIN_S)
            except (OSError, HTTPException, ValueError):
                continue  # the connection was closed
            assert (status >= HTTPStatus.INTERNAL_SERVER_ERROR, "error" in document) == (True, True)
        assert ends.process.wait(GRACE_S + MARGIN_S) == 0
        assert monotonic() - began_s < 2 * GRACE_S + MARGIN_S
    start_worker(processes, "-Q", "turns")
    other = Server.started(processes, *ALONE)
    decided_again(other, "kept")
    for at in range(8):
        decided_again(other, f"waits-{at}", 1)


def test_a_full_queue_asks_to_come_again(processes: Processes) -> None:
    """Turns beyond the bound are refused with 429 and `Retry-After`; when there is room, they are decided."""
    server = Server.started(processes, *ALONE)
    for at in range(MOST_WAITING // 500):
        assert server.ask("POST", "/v1/turns?wait=0", {"turns": numbered(f"full-{at}", 500)})[0] == 202
    with closing(HTTPConnection(*server.address, timeout=10)) as connection:
        headers = {"Authorization": f"Bearer {server.token}"}
        connection.request("POST", "/v1/turns", json.dumps(numbered("late")[0]), headers)
        refused = connection.getresponse()
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        assert json.loads(refused.read())["error"]["code"] == "queue_full"
    with Producer(server.url, server.token) as producer:
        late = producer.send_many(numbered("late"))
        start_worker(processes, "-Q", "turns")
        assert [future.result().etag for future in late] == etags(TURNS)
    for at in range(MOST_WAITING // 500):
        assert server.ask("GET", f"/v1/threads/full-{at}")[1]["etag"] == "500"


@pytest.mark.parametrize("letter", ["x", "\N{OWL}"])
def test_the_largest_batches_cost_nobody_else_an_answer(processes: Processes, letter: str) -> None:
    """Lists of nearly 4 MiB are decided whole and in order while people talk and a worker is killed."""
    killed, _ = (start_worker(processes, "-Q", "turns") for _ in range(2))
    server = Server.started(processes, *ALONE)
    turn = {"threadId": "large", "message": 20_000 * letter}
    size = len(json.dumps(turn, ensure_ascii=False).encode())
    count = min(500, (MOST_BYTES - 100) // (size + 2))
    with Callers([server], 4) as callers:
        callers.await_more(5)
        with Producer(server.url, server.token) as producer:
            large = producer.send_many([turn] * count)
            killed.kill()
            body = json.dumps({"turns": [turn | {"threadId": "raw"}] * count}, ensure_ascii=False).encode()
            status, found = server.ask("POST", "/v1/turns", body, PATIENCE_S)
            assert (status, [each["etag"] for each in found["results"]]) == (200, etags(count))
            assert [future.result().etag for future in large] == etags(count)
        callers.await_more(5)
    callers.check()
