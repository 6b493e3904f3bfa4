"""Callers of `proctor serve` that never give up: each says its turns one by one until all have answers."""

import json
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from time import monotonic
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

from tests.support.cli import PROCTOR
from tests.support.eventually import eventually
from tests.support.processes import Process, Processes

DEADLINE_S: Final = 6.0
"""How long a caller lets the service take for a decision."""
MARGIN_S: Final = 4.0
"""How much later an answer may come on a busy machine."""
PAUSE_S: Final = 0.1
READY_S: Final = 60.0


class Server(NamedTuple):
    """A running `proctor serve`."""

    process: Process
    url: str
    token: str

    @classmethod
    def started(cls, processes: Processes, *arguments: str) -> Self:
        """Starts a server, and waits until it takes turns."""
        process = processes.start(*PROCTOR, "serve", "--port", "0", "--json", *arguments)
        process.wait_for("\n", READY_S)
        eventually(lambda: json.loads(process.output), READY_S)
        first = json.loads(process.output)
        return cls(process, first["url"], first["token"])

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        place = urlsplit(self.url)
        return place.hostname or "", place.port or 0

    def ask(
        self, method: str, path: str, body: object = None, within_s: float = DEADLINE_S + MARGIN_S
    ) -> tuple[int, Any]:
        """Makes one request on a connection of its own; returns status and document."""
        headers = {"Authorization": f"Bearer {self.token}"}
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
        with closing(HTTPConnection(*self.address, timeout=within_s)) as connection:
            connection.request(method, path, sent, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")


@dataclass
class Callers:
    """People who talk, each in a thread of their own; `with Callers(servers, 8) as callers: …`.

    A turn is sent again, with the same `clientRequestId` and to the next server, until it has an answer. So
    the etags of a thread are 1, 2, 3 … exactly if no turn was lost that was answered, none was decided twice,
    and their order was kept.
    """

    servers: Sequence[Server]
    count: int
    waits: bool = True
    """Whether they wait for the decision; otherwise each fetches it with the id that it gets."""
    etags: dict[str, list[str]] = field(default_factory=dict)
    """Of the answers of each thread, in the order of its turns."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """How requests ended."""
    slowest_s: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _pause: threading.Event = field(default_factory=threading.Event)
    """Never set."""

    def __enter__(self) -> Self:
        self._threads = [
            threading.Thread(target=self._talk, args=(f"thread-{at}", at), daemon=True)
            for at in range(self.count)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(3 * (DEADLINE_S + MARGIN_S))
            assert not thread.is_alive(), "a caller waits for ever"

    def await_more(self, turns: int, within_s: float = 60.0) -> None:
        """Waits until every caller has had some more answers."""
        before = {thread: len(etags) for thread, etags in self.etags.items()}

        def have_more() -> None:
            fewest = min(len(etags) - before.get(thread, 0) for thread, etags in self.etags.items())
            assert len(self.etags) == self.count, "not everybody talks yet"
            assert fewest >= turns, f"{fewest} turns, {self.outcomes}"

        eventually(have_more, within_s)

    def server(self, at: int) -> Server:
        """Returns one of the servers."""
        return self.servers[at % len(self.servers)]

    def check(self) -> None:
        """Asserts what must hold whatever happened, once nobody calls any more."""
        for thread, etags in self.etags.items():
            assert etags == [str(at + 1) for at in range(len(etags))], f"{thread}: {etags}"
        assert "late" not in self.outcomes, self.outcomes
        for thread, etags in self.etags.items():
            status, document = self.servers[0].ask("GET", f"/v1/threads/{thread}")
            assert (status, document["etag"]) == (200, str(len(etags))), f"{thread}: {document}"

    def _talk(self, thread: str, at: int) -> None:
        """Says one turn after the other; ends only between two turns."""
        said = self.etags[thread] = []
        while not self._stop.is_set():
            turn = {"threadId": thread, "message": f"number {len(said)}"}
            said.append(self._said(turn | {"clientRequestId": f"{thread}/{len(said)}"}, at))

    def _said(self, turn: dict[str, str], at: int) -> str:
        """Sends one turn until it has an answer."""
        while True:
            began_s = monotonic()
            query = f"timeout_s={DEADLINE_S}" if self.waits else f"timeout_s={DEADLINE_S}&wait=0"
            try:
                status, document = self.server(at).ask("POST", f"/v1/turns?{query}", turn)
            except TimeoutError:
                self.outcomes["late"] += 1
            except (OSError, HTTPException, ValueError):
                self.outcomes["broken"] += 1
            else:
                self.outcomes[str(status)] += 1
                self.slowest_s = max(self.slowest_s, monotonic() - began_s)
                if status == HTTPStatus.OK:
                    return str(document["etag"])
                if status == HTTPStatus.ACCEPTED and (etag := self._fetched(document["ids"][0], at)):
                    return etag
            at += 1
            self._pause.wait(PAUSE_S)

    def _fetched(self, turn: str, at: int) -> str | None:
        """Asks for a turn that was acknowledged until it has its result; None if it is lost."""
        while True:
            try:
                status, document = self.server(at).ask("GET", f"/v1/turns/{turn}")
            except (OSError, HTTPException, ValueError):
                self.outcomes["broken"] += 1
            else:
                self.outcomes[f"fetched {status}"] += 1
                if status == HTTPStatus.OK:
                    return str(document["etag"])
                if status == HTTPStatus.NOT_FOUND:
                    return None
            at += 1
            self._pause.wait(PAUSE_S)
