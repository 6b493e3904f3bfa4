"""Runs the contract of clients against that of this package, beside a server that behaves as it is told."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from proctor_manners import SupportDesk, polite

from proctor.testing.client_contract import CONTRACT, Behaviour, Clause


class Desk:
    """The client with its upstream."""

    def __init__(self) -> None:
        self._behaviour, self._asked, self.ended = Behaviour(), list[str](), threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    def client(self) -> SupportDesk:
        return SupportDesk({"url": f"http://127.0.0.1:{self.server.server_port}/"})

    def behave(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._asked.clear()

    def asked(self) -> list[str]:
        return list(self._asked)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        desk = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["query"]
                told = desk._behaviour
                desk._asked.append(query)
                desk.ended.wait(told.after_s)
                reply: dict[str, Any] = {"answer" if told.is_answer else "other": told.text or query}
                if told.has_usage:
                    reply["usage"] = {"input": 11, "output": 3}
                if told.status != 200:
                    reply = {"error": told.text}
                body = json.dumps(reply).encode()
                self.send_response(told.status)
                if told.wait_s is not None:
                    self.send_header("Retry-After", f"{told.wait_s:g}")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    threading.Thread(target=made.server.serve_forever, args=(0.02,), daemon=True).start()
    yield made
    made.ended.set()
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_the_client_keeps_the_contract(clause: Clause, desk: Desk) -> None:
    asyncio.run(clause(desk))


def test_politeness() -> None:
    assert polite("What a stupid question", None, {}) == (0.0, "stupid is rude")
