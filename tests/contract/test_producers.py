"""`proctor.Producer` and a service in the test: batches, refusals, callers that leave, odd answers, ends."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from queue import Queue
from time import monotonic, time
from typing import Any, Final, NamedTuple, Self

import pytest

from proctor import AsyncProducer, Decision, ProctorError, ProctorWarning, Producer, QueueFullError, TurnError
from proctor.live import MOST_TURNS
from proctor.turn_service import ServiceAnswer
from tests.support.eventually import eventually
from tests.support.tree import ROOT

TURN = {"threadId": "t", "message": "hm"}
WRONG = {"threadId": "t", "message": ""}
DECIDED: Final = {
    "decision": "skip",
    "rule": 5,
    "reason": "x",
    "etag": "1",
    "memento": {},
    "peakGuardrailActive": False,
}
SHORT_S: Final = 0.6
"""How long a turn may take in tests of what happens then."""
MARGIN_S: Final = 3.0
"""How much later than its deadline a future may end on a busy machine."""


def http(status: str, body: object, head: str = "") -> list[bytes]:
    """Writes an answer, of bytes or of a value as JSON."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return [f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n{head}\r\n".encode(), text]


class FakeService:
    """Answers as `proctor serve`: a turn without a message spoils its request."""

    def __init__(self) -> None:
        self.requests = list[list[dict[str, Any]]]()
        self.refusals = list[int]()
        """Statuses of the next answers."""
        self.goes_on = threading.Event()
        """Answers wait for it."""
        self.goes_on.set()
        self.head = ""
        """Headers of refusals."""
        self.odd: Iterable[bytes] | None = None
        """What it sends instead of any answer, piece by piece, before it closes the connection."""
        self.times_s = list[float]()
        """When requests came."""
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                """Answers one request."""
                turns = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["turns"]
                self.close_connection = service.odd is not None
                for piece in service._pieces(turns):
                    self.wfile.write(piece)
                    if self.close_connection and service._ended.wait(0.01):
                        break

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """Says nothing of producers that have left."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=lambda: self._server.serve_forever(0.01), daemon=True).start()
        return self

    def _pieces(self, turns: list[dict[str, Any]]) -> Iterable[bytes]:
        """Returns the answer to a request."""
        self.requests.append(turns)
        self.times_s.append(monotonic())
        if self.odd is not None:
            return self.odd
        self.goes_on.wait(10)
        status = self.refusals.pop(0) if self.refusals else 200
        if not all(turn["message"] for turn in turns):
            status = 400
        if status == 200:
            return http("200 OK", {"results": [DECIDED for _ in turns]})
        return http(f"{status} x", {"error": {"code": "input", "message": "a turn is wrong"}}, self.head)

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def service() -> Iterator[FakeService]:
    """A service."""
    with FakeService() as running:
        yield running


def test_a_wrong_turn_spoils_no_other(service: FakeService) -> None:
    """Turns that share a request with it are decided, in their order, and a caller may have left."""
    service.goes_on.clear()
    with Producer(service.url, "x") as producer:
        first = producer.send(TURN)
        turns = [TURN | {"clientRequestId": str(at)} for at in range(9)]
        turns[4] |= WRONG
        sent = producer.send_many(turns)
        assert sent[6].cancel()
        service.goes_on.set()
        assert first.result(5).decision == "skip"
        for at, future in enumerate(sent):
            if at == 4:
                with pytest.raises(TurnError, match="a turn is wrong"):
                    future.result(5)
            elif at != 6:
                assert future.result(5).etag == "1"
        assert producer.send(TURN).result(5).decision == "skip", "it lives on"
    decided = [
        turn["clientRequestId"]
        for turns in service.requests
        if WRONG["message"] not in [turn["message"] for turn in turns]
        for turn in turns
    ]
    assert [each for each in decided if len(each) == 1] == [str(at) for at in range(9) if at != 4]


def test_turns_are_sent_again_until_the_service_is_back(service: FakeService) -> None:
    """A full or ending service costs a moment; a refusal is final."""
    service.refusals += [429, 503, 502, 504]
    with Producer(service.url, "x", timeout_s=20) as producer:
        assert producer.send(TURN).result(10).decision == "skip"
        assert len({turn["clientRequestId"] for turns in service.requests for turn in turns}) == 1
        service.refusals.append(401)
        with pytest.raises(TurnError):
            producer.send(TURN).result(5)
    with (
        Producer("http://127.0.0.1:9", "x", timeout_s=0.1) as lonely,
        pytest.raises(ProctorError, match="Connection refused"),
    ):
        lonely.send(TURN).result(5)


def test_what_waits_is_bounded(service: FakeService) -> None:
    """By waiting, or by an error; a closed producer takes nothing, and large turns share no request."""
    service.goes_on.clear()
    hasty = Producer(service.url, "x", max_waiting=2, waits=False)
    hasty.send_many([TURN, TURN])
    with pytest.raises(QueueFullError, match="2 turns wait"):
        hasty.send(TURN)
    assert not hasty.flush(0.01)
    patient = Producer(service.url, "x", max_waiting=1)
    patient.send(TURN)
    waits = threading.Thread(target=patient.send, args=[TURN])
    waits.start()
    assert waits.is_alive()
    service.goes_on.set()
    waits.join(5)
    assert not waits.is_alive()
    large = patient.send_many(TURN | {"message": "x" * (2 << 20)} for _ in range(2))
    assert [future.result(5).decision for future in large] == ["skip"] * 2
    assert {len(turns) for turns in service.requests if len(turns[0]["message"]) > 9} == {1}
    for producer in (hasty, patient):
        producer.close()
        with pytest.raises(ProctorError, match="is closed"):
            producer.send(TURN)
    with pytest.raises(ProctorError, match="is no URL of a service"):
        Producer("127.0.0.1:7358", "x")


def test_a_coroutine_that_is_cancelled_while_it_waits_sends_nothing(service: FakeService) -> None:
    """Room is waited for outside of the loop, and a turn is sent when there is some, or not at all."""

    async def talk() -> None:
        """Sends as much as there is room for, gives one up, and sends another one."""
        service.goes_on.clear()
        async with AsyncProducer(service.url, "x", max_waiting=1) as producer:
            first = await producer.send(TURN)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(producer.send(TURN | {"message": "too late"}), 0.05)
            service.goes_on.set()
            assert (await first).decision == (await (await producer.send(TURN))).decision == "skip"

    asyncio.run(talk())
    assert [turn["message"] for turns in service.requests for turn in turns] == ["hm", "hm"]


def test_coroutines_have_the_same(service: FakeService) -> None:
    """Futures of their loop; a task that is cancelled costs no other its answer."""

    async def talk() -> list[str]:
        """Sends some turns, and gives one up."""
        async with AsyncProducer(service.url, "x") as producer:
            sent = await producer.send_many([TURN] * 3)
            sent[1].cancel()
            assert await producer.flush(5)
            return [(await sent[at]).decision for at in (0, 2)]

    assert asyncio.run(talk()) == ["skip", "skip"]


class Odd(NamedTuple):
    """What a server or a proxy may send instead of a decision, and what the error says then."""

    pieces: Iterable[bytes]
    says: str
    code: str = "unexpected_answer"


BROKEN: Final = "no decision within 0.6 s: http://.*/v1/turns: "
ODD: Final = {
    "an error of a proxy": Odd(http("502 x", {"error": "bad gateway"}), "answered 502 with .*bad gateway"),
    "an error that is text": Odd(http("503 x", "x"), "answered 503"),
    "an error that is a list": Odd(http("503 x", []), "answered 503"),
    "an error that is null": Odd(http("504 x", None), "answered 504"),
    "an error with null": Odd(http("500 x", {"error": None}), "answered 500"),
    "an error with other types": Odd(http("500 x", {"error": {"message": 1}}), "answered 500"),
    "an error with more": Odd(http("409 x", {"error": {"message": "no", "code": 7, "x": 1}}), "^no$", "7"),
    "a page": Odd(http("200 OK", b"<html>" + b"x" * 1000), "answered 200 with '<html>x{94}…'"),
    "nothing": Odd(http("204 x", b""), "answered 204 with ''"),
    "another place": Odd(http("307 x", b"", "Location: /else\r\n"), "answered 307"),
    "a login": Odd(http("407 x", b"sign in"), "answered 407 with 'sign in'"),
    "no results": Odd(http("200 OK", {"results": None}), "answered 200"),
    "results that are an object": Odd(http("200 OK", {"results": {"0": DECIDED}}), "answered 200"),
    "results that are null": Odd(http("200 OK", {"results": [None]}), "answered 200"),
    "results that are text": Odd(http("200 OK", {"results": ["skip"]}), "answered 200"),
    "results without keys": Odd(http("200 OK", {"results": [{"decision": "skip"}]}), "answered 200"),
    "results of other types": Odd(http("200 OK", {"results": [DECIDED | {"rule": "5"}]}), "answered 200"),
    "errors of other types": Odd(http("200 OK", {"results": [{"error": "x"}]}), "answered 200"),
    "too few results": Odd(http("200 OK", {"results": []}), "answered 200"),
    "too many results": Odd(http("200 OK", {"results": [DECIDED] * 2}), "answered 200"),
    "deep JSON": Odd(http("200 OK", b"[" * 100_000), "answered 200"),
    "bytes that are no text": Odd(http("200 OK", b"\xff\xfe{"), "answered 200"),
    "a number without end": Odd(http("200 OK", b"1" * 5_000), "answered 200"),
    "half a body": Odd([b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"resul'], BROKEN, "unreachable"),
    "chunks that are none": Odd(
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"], BROKEN, "unreachable"
    ),
    "a closed connection": Odd([], BROKEN, "unreachable"),
    "no HTTP": Odd([b"SSH-2.0-OpenSSH_9.2\r\n"], BROKEN, "unreachable"),
    "a status that is none": Odd([b"HTTP/1.1 abc\r\n\r\n"], BROKEN, "unreachable"),
    "a head without end": Odd([b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200], BROKEN, "unreachable"),
    "a head letter by letter": Odd(repeat(b"H"), "no answer from http://.*/v1/turns", "deadline"),
    "a body letter by letter": Odd(
        chain([b"HTTP/1.1 200 OK\r\n\r\n"], repeat(b" ")), "no answer from", "deadline"
    ),
    "an answer that never comes": Odd(repeat(b""), "no answer from http://.*/v1/turns", "deadline"),
    "a promise without end": Odd(repeat(b"HTTP/1.1 100 Continue\r\n\r\n"), "no answer from", "deadline"),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
def test_whatever_is_answered_ends_the_future(service: FakeService, odd: Odd) -> None:
    """Within the time of a turn, with an error that says what came from where; later turns are decided."""
    with Producer(service.url, "x", timeout_s=SHORT_S) as producer:
        service.odd = odd.pieces
        with pytest.raises(TurnError, match=odd.says) as raised:
            producer.send(TURN).result(SHORT_S + MARGIN_S)
        assert raised.value.code == odd.code
        service.odd = None
        assert eventually(lambda: producer.send(TURN).result(5)).decision == "skip"


def test_time_runs_from_send_on(service: FakeService) -> None:
    """Turns that wait for others or for a `Retry-After` end no later; nothing is asked before that."""
    service.refusals.append(503)
    service.head = "Retry-After: 30\r\n"
    with Producer(service.url, "x", timeout_s=SHORT_S) as producer:
        futures = producer.send_many([TURN] * (MOST_TURNS + 1))
        for future in futures:
            with pytest.raises(TurnError, match=r"no decision within 0\.6 s: a turn is wrong"):
                future.result(SHORT_S + MARGIN_S)
    assert len(service.requests) == 1


@pytest.mark.parametrize("asks", [lambda: "1", lambda: formatdate(time() + 2, usegmt=True)])
def test_a_service_says_when_to_come_again(service: FakeService, asks: Callable[[], str]) -> None:
    """`Retry-After` in seconds or as a date goes before the pauses of the producer."""
    service.refusals.append(429)
    service.head = f"Retry-After: {asks()}\r\n"
    with Producer(service.url, "x") as producer:
        assert producer.send(TURN).result(10).decision == "skip"
    first_s, second_s = service.times_s
    assert 0.9 < second_s - first_s < 2 + MARGIN_S


def test_no_defect_and_no_callback_ends_the_thread(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect of ours ends the futures; a callback may send where there is no room, and raise anything."""
    with monkeypatch.context() as defect, Producer(service.url, "x", max_waiting=1) as producer:
        defect.setattr(ServiceAnswer, "outcomes", lambda *_: 1 // 0)
        with pytest.raises(TurnError, match="a defect of the producer: ZeroDivisionError"):
            producer.send(TURN).result(5)
        defect.undo()
        sent = Queue[Future[Decision]]()

        def answer(_: Future[Decision]) -> None:
            """Says the next turn, and leaves."""
            sent.put(producer.send(TURN))
            raise SystemExit

        service.goes_on.clear()
        producer.send(TURN).add_done_callback(answer)
        service.goes_on.set()
        assert sent.get(timeout=5).result(5).decision == "skip"


def test_a_closed_producer_says_what_it_gives_up(service: FakeService) -> None:
    """After the time that `close` may take, futures end, and a warning counts them."""
    service.odd = repeat(b"")
    producer = Producer(service.url, "x")
    future = producer.send(TURN)
    with pytest.warns(ProctorWarning, match="1 turns may be lost: no decision from http"):
        producer.close(0.1)
    with pytest.raises(TurnError, match=r"no decision from .* within 0\.1 s of the end"):
        future.result(0)


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("http://", "x"),
        ("http://h:99999", "x"),
        ("http://h:abc", "x"),
        ("http://[::1", "x"),
        ("ftp://h", "x"),
        ("http://h", "a\nb"),
        ("http://h", "ключ"),
    ],
)
def test_what_can_never_be_sent_is_refused_at_once(url: str, token: str) -> None:
    """A wrong URL or token is an error of the first line, not of each turn; the token is not shown."""
    with pytest.raises(ProctorError, match=r"is no URL of a service|^the token has characters that a header"):
        Producer(url, token)


PROGRAM: Final = """
import asyncio, os, sys
from proctor import AsyncProducer, Producer, live

live.EXIT_S = float(sys.argv[2])
talk = Producer(sys.argv[1], "token of a file\\n")
talk.send_many({{"threadId": "t", "message": str(at)}} for at in range(300))
{more}
"""
FORKED: Final = """
child = os.fork()
if child == 0:
    print(talk.send({"threadId": "t", "message": "child"}).result().decision, flush=True)
else:
    os.waitpid(child, 0)
"""
COROUTINE: Final = """
talk.close()

async def main():
    many = AsyncProducer(sys.argv[1], "x")
    for at in range(10):
        await many.send({"threadId": "t", "message": "async"})

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("more", "turns", "out"),
    [("", 300, ""), (FORKED, 301, "skip\n"), (COROUTINE, 310, "")],
    ids=["sync", "forked", "coroutine"],
)
def test_the_end_of_a_program_loses_no_turn(service: FakeService, more: str, turns: int, out: str) -> None:
    """Producers that were not closed send what waits; a child that was forked sends its own."""
    ended = _run(service, more, 60)
    assert (ended.stdout, ended.stderr) == (out, "")
    ids = {turn["clientRequestId"] for request in service.requests for turn in request}
    assert (len(ids), sum(map(len, service.requests))) == (turns, turns)


def test_the_end_of_a_program_is_not_for_ever(service: FakeService) -> None:
    """What a service does not decide in time is said to be lost."""
    service.odd = repeat(b"")
    began_s = monotonic()
    ended = _run(service, "", 0.2)
    assert "ProctorWarning: 300 turns may be lost: no decision from http://" in ended.stderr
    assert monotonic() - began_s < 20


def _run(service: FakeService, more: str, exit_s: float) -> subprocess.CompletedProcess[str]:
    """Runs a program that closes no producer."""
    command = [sys.executable, "-c", PROGRAM.format(more=more), service.url, str(exit_s)]
    return subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
