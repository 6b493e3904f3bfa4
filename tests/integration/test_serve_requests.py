"""Requests to `proctor serve` in this process: deadlines, a Redis that is away, broken bodies."""

import asyncio
import resource
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from producer import http_server
from producer.access import Access
from producer.cli.live_service import _running
from producer.http_server import in_thread
from producer.serve import event_streams
from producer.serve.http_service import ServeOptions
from producer.serve.tokens import Tokens
from shared.errors import InfrastructureError
from shared.ledger import Wake
from shared.settings import Settings
from tests.support.eventually import eventually
from tests.support.inline_worker import InlineWorker
from tests.support.redis_server import RedisServer
from tests.support.service_calls import Reply, ask

TOKEN = "a-token-of-24-characters"  # noqa: S105 - of a server in this process
OTHER = "another-of-24-characters"
TURN = {"threadId": "t", "message": "hm"}
SOON_S = 3.0
"""Well before a frozen Redis is given up."""


class Served:
    """A service on a Redis of its own; turns are decided when the test says so.

    Args:
        url: of the service.
        redis: its server.
        worker: decides turns.
    """

    def __init__(self, url: str, redis: RedisServer, worker: InlineWorker) -> None:
        self.url, self.redis, self.worker = url, redis, worker

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Makes a request."""
        return ask((self.url, TOKEN), method, path, body, headers)

    def decided(self, path: str, body: Any) -> Any:
        """Sends turns, and has them decided meanwhile; returns the document."""
        publish = self.worker.publish

        def work(wakes: Iterable[Wake]) -> None:
            publish(wakes)
            self.worker.publish = publish  # type: ignore[method-assign]  # one call is caught
            self.worker.work()

        self.worker.publish = work  # type: ignore[method-assign]  # as above
        return self.ask("POST", path, body).body

    def stored(self, path: str = "/v1/turns?timeout_s=0.3") -> Reply:
        """Sends a turn that nobody decides yet."""
        return self.ask("POST", path, TURN)


@pytest.fixture
def served(new_redis_server: Callable[..., RedisServer], tmp_path: Path) -> Iterator[Served]:
    """A service, without workers of its own."""
    redis = new_redis_server()
    settings = Settings.from_environment({"PROCTOR_DATA_DIR": str(tmp_path / "data")})
    with Access(settings.override("test", redis_url=redis.url)) as access, redis.client() as client:
        worker = InlineWorker(client)
        access.__dict__["publisher"] = worker
        options = ServeOptions(Tokens({TOKEN: "live", OTHER: "other"}), "guardrail", grace_s=0.1)
        with in_thread(lambda: _running(access.connect(), options, "127.0.0.1", 0), "serve") as url:
            worker.register()
            yield Served(url, redis, worker)


def test_a_turn_whose_caller_has_left_is_found_by_its_id(served: Served) -> None:
    """The 504 has ids only of turns that are stored, and each of them leads to its result."""
    late = served.stored()
    assert late.status == HTTPStatus.GATEWAY_TIMEOUT
    assert late.body["error"]["message"] == "no decision within 0.3 s; the turns count, and are decided later"
    [turn] = late.body["ids"]
    assert served.ask("GET", f"/v1/turns/{turn}").status == HTTPStatus.ACCEPTED
    served.worker.work()

    def folded() -> None:
        with served.redis.client() as client:
            assert client.keys("proctor:run:*") == []

    eventually(folded, 10)
    assert served.ask("GET", f"/v1/turns/{turn}").body["decision"] == "should"


def test_callers_wait_no_longer_than_their_deadline_for_a_frozen_redis(served: Served) -> None:
    """Whatever they ask; and nobody is told that a turn counts of which that is not known."""
    packet = {**TURN, "simulate": True}
    served.redis.freeze()
    try:
        for method, path, body in (
            ("POST", "/v1/turns?wait=0&timeout_s=0.3", TURN),
            ("POST", "/v1/turns?timeout_s=0.3", TURN),
            ("POST", "/v1/chat?timeout_s=0.3", packet),
            ("GET", "/v1/threads/t?timeout_s=0.3", None),
            ("DELETE", "/v1/threads/t?timeout_s=0.3", None),
            ("GET", "/v1/turns/served-x-1.0?timeout_s=0.3", None),
            ("GET", "/v1/runs/r?timeout_s=0.3", None),
            ("GET", "/v1/runs/r/events?timeout_s=0.3", None),
        ):
            began_s = monotonic()
            answer = served.ask(method, path, body)
            assert answer.status == HTTPStatus.GATEWAY_TIMEOUT, path
            assert monotonic() - began_s < SOON_S, path
            assert "ids" not in answer.body, path
            assert "the turns count" not in answer.body["error"]["message"], path
    finally:
        served.redis.thaw()


def test_a_redis_that_is_away_is_an_error_of_the_service(served: Served) -> None:
    """What is asked for is answered with 503, results of turns as well."""
    served.redis.kill()
    for path in ("/v1/threads/t", "/v1/turns/served-x-1.0", "/v1/runs/r"):
        answer = served.ask("GET", path)
        assert (answer.status, answer.headers["Retry-After"]) == (HTTPStatus.SERVICE_UNAVAILABLE, "1"), path
    served.redis.start()


@pytest.mark.parametrize("path", ["/v1/turns", "/v1/chat"])
@pytest.mark.parametrize("depth", [200, 900, 2_000, 20_000])
def test_deep_documents_are_refused_or_taken(served: Served, path: str, depth: int) -> None:
    """At no depth is the service at fault."""
    body = b'{"threadId":"t","message":"m","meta":{"a":' + b"[" * depth + b"]" * depth + b"}}"
    assert served.ask("POST", f"{path}?timeout_s=0.1", body).status in {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.GATEWAY_TIMEOUT,
    }


def test_what_is_not_text_is_refused(served: Served) -> None:
    """A token of other bytes is no known one, and a body that is not encoded as its head says is wrong."""
    unknown = ask((served.url, "\xff"), "GET", "/v1/threads/t")
    assert unknown.status == HTTPStatus.UNAUTHORIZED
    broken = served.ask("POST", "/v1/turns", b"no gzip", **{"Content-Encoding": "gzip"})
    assert (broken.status, broken.body["error"]["code"]) == (HTTPStatus.BAD_REQUEST, "bad_request")


def test_a_repeated_packet_is_a_replay(served: Served) -> None:
    """Same ids, decision, memento and trace, and the trace says so; also where nothing would be stored."""
    packet = {**TURN, "clientRequestId": "c1", "traceConfig": {"level": "debug"}}
    first = served.decided("/v1/chat", packet)
    assert "isReplay" not in first["trace"]
    assert first["trace"]["eventCount"] == 1
    served.decided("/v1/turns", TURN)
    again = served.decided("/v1/chat", packet)
    assert again == first | {"trace": first["trace"] | {"isReplay": True}}
    assert served.ask("POST", "/v1/chat", packet | {"simulate": True}).body == again
    off = served.ask("POST", "/v1/chat", packet | {"thread_context_mode": "off"}).body
    assert (off["transmissionId"], off["trace"]) == (again["transmissionId"], again["trace"])
    other = served.ask("POST", "/v1/chat", packet | {"message": "another", "simulate": True})
    assert (other.status, other.body["error"]["code"]) == (HTTPStatus.CONFLICT, "idempotency_conflict")
    assert served.ask("GET", "/v1/threads/t").body["etag"] == "2"


def test_a_turn_has_its_condition_in_the_body(served: Served) -> None:
    """A packet with the etag of another state is refused, and so is a header that nobody would read."""
    stale = served.decided("/v1/chat", {**TURN, "thread_memento_etag": "7"})
    assert stale["error"]["code"] == "etag_conflict"
    for path in ("/v1/chat", "/v1/turns"):
        refused = served.ask("POST", path, TURN, **{"If-Match": '"7"'})
        assert (refused.status, refused.body["error"]["hint"]) == (
            HTTPStatus.BAD_REQUEST,
            "send thread_memento_etag with the turn or packet",
        )


def test_connections_without_a_request_end(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost an open file each; one that has had a request stays, and one without a token does not."""
    monkeypatch.setattr(http_server, "FIRST_REQUEST_S", 0.0)
    place = urlsplit(served.url)
    address = (place.hostname or "", place.port or 0)
    with closing(HTTPConnection(*address, timeout=10)) as talking, ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(address, 10)) for _ in range(3)]
        silent[0].sendall(b"GET /healthz HT")
        talking.request("GET", "/healthz")
        assert talking.getresponse().read() == b'{"status":"ok"}'
        before = talking.sock
        assert [each.recv(10) for each in silent] == [b""] * 3
        talking.request("GET", "/healthz")
        assert talking.getresponse().read() == b'{"status":"ok"}'
        assert talking.sock is before
    unknown = ask((served.url, "x"), "GET", "/v1/threads/t")
    assert unknown.headers["Connection"] == "close"


def test_the_limit_of_open_files_is_raised() -> None:
    """As far as it may be, up to a bound."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 512), hard))
    try:
        assert http_server.raise_open_files() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, http_server.MOST_FILES)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_service_listens_on_ipv6_and_refuses_hosts_that_are_none() -> None:
    """Its URL can be asked as it is printed."""

    async def url_of(host: str) -> str:
        async with http_server.listening(web.AppRunner(web.Application()), host, 0) as url:
            return url

    assert asyncio.run(url_of("::1")).startswith("http://[::1]:")
    with pytest.raises(InfrastructureError, match=r"cannot listen on no\.such\.invalid: "):
        asyncio.run(url_of("no.such.invalid"))


def test_nobody_is_told_of_the_runs_and_the_redis_of_others(served: Served) -> None:
    """A run of another namespace is as unknown as one that never was; names have a bound."""
    lines = '{"threadId": "a", "message": "one"}\n'
    run = served.ask("POST", "/v1/runs", lines).body["run_id"]
    other = [ask((served.url, OTHER), "GET", f"/v1/runs/{each}") for each in (run, "x" * len(run))]
    assert [each.status for each in other] == [HTTPStatus.NOT_FOUND] * 2
    assert other[0].body["error"]["message"].replace(run, "x" * len(run)) == other[1].body["error"]["message"]
    long = served.ask("POST", f"/v1/runs?name={'n' * 201}", lines)
    assert long.body["error"]["message"] == "name: 201 characters"
    served.redis.kill()
    away = served.ask("GET", "/v1/threads/t").body["error"]
    assert away["message"] == "Redis does not answer, or refuses what it is asked for"
    served.redis.start()


def test_events_of_a_run_that_waits_keep_their_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment comes where no event does, and the events go on after it."""
    monkeypatch.setattr(event_streams, "KEEP_ALIVE_S", 0.05)
    run = served.ask("POST", "/v1/runs", '{"threadId": "a", "message": "one"}\n').body["run_id"]
    place = urlsplit(served.url)
    with closing(HTTPConnection(place.hostname or "", place.port, timeout=20)) as connection:
        connection.request("GET", f"/v1/runs/{run}/events", headers={"Authorization": f"Bearer {TOKEN}"})
        lines = connection.getresponse()
        while lines.readline() != b": waiting\n":
            pass
        served.worker.work()
        assert b'"finished"' in lines.read()
