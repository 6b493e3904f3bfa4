"""`proctor.Producer` and a service in the test: batches, refusals, restarts, callers that leave."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest

from proctor import AsyncProducer, ProctorError, Producer, QueueFullError, TurnError

TURN = {"threadId": "t", "message": "hm"}
WRONG = {"threadId": "t", "message": ""}


class FakeService:
    """Answers as `proctor serve`: a turn without a message spoils its request."""

    def __init__(self) -> None:
        self.requests = list[list[dict[str, Any]]]()
        self.refusals = list[int]()
        """Statuses of the next answers."""
        self.goes_on = threading.Event()
        """Answers wait for it."""
        self.goes_on.set()

    def __enter__(self) -> Self:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                """Answers one request."""
                turns = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["turns"]
                service.requests.append(turns)
                service.goes_on.wait(10)
                status = service.refusals.pop(0) if service.refusals else 200
                if not all(turn["message"] for turn in turns):
                    status = 400
                answer: dict[str, Any] = {"error": {"code": "input", "message": "a turn is wrong"}}
                if status == 200:
                    answer = {"results": [{"decision": "skip", "etag": "1"} for _ in turns]}
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=lambda: self._server.serve_forever(0.01), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
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
