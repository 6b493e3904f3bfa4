"""Sends turns to `proctor serve` over raw sockets, cheaply enough not to be what is measured.

    python -m tests.benchmarks.http_load URL TOKEN --connections 50 --seconds 5 [--rate 1000] [--turns 500]

Without a rate every connection sends its next request when it has the answer to the last; with one, requests
are begun at that pace, whatever the answers do, and their times count from when they should have begun.
Prints one line of JSON.
"""

import argparse
import asyncio
import os
from collections import deque
from collections.abc import Iterator
from itertools import islice
from random import Random
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

import msgspec

from tests.benchmarks.make_turns import made_dialogue

TICK_S: Final = 0.002
"""How often requests of a given rate are begun."""
END: Final = b"\r\n\r\n"
LENGTH: Final = b"content-length: "
OK: Final = b"HTTP/1.1 200"


class Load(msgspec.Struct, frozen=True):
    """What the answers were."""

    turns: int
    """Decided within the time."""
    wall_s: float
    p50_ms: float
    p99_ms: float
    most_ms: float
    cpu_s: float
    """Of this program."""
    refused: int
    """Requests with another status."""


class Connection(asyncio.Protocol):
    """One connection that is kept alive, with threads of its own."""

    def __init__(self, load: "Sending", number: int) -> None:
        self._load, self._received, self._began_s = load, bytearray(), 0.0
        self._requests = load.requests(number)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self, began_s: float) -> None:
        """Sends the next request."""
        self._began_s = began_s
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        """Collects an answer."""
        received = self._received
        received += data
        head = received.find(END)
        if head < 0:
            return
        at = received[:head].lower().find(LENGTH) + len(LENGTH)
        size = int(received[at : received.find(b"\r", at)])
        if len(received) >= head + len(END) + size:
            is_ok = received.startswith(OK)
            received.clear()
            self._load.answered(self, perf_counter() - self._began_s, is_ok=is_ok)


class Sending:
    """All connections, and the times of their answers.

    Args:
        asked: the command line.
    """

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self._idle = deque[Connection]()
        self._due = deque[float]()
        self._took_s = list[float]()
        self._refused = 0
        self._is_over = False

    def requests(self, number: int) -> Iterator[bytes]:
        """Makes the requests of a connection: dialogue after dialogue, turn after turn."""
        asked, random = self._asked, Random(number)
        turns = (
            msgspec.json.encode(turn | {"threadId": f"{number}/{dialogue}", "messageId": f"{dialogue}/{at}"})
            for dialogue in range(1 << 30)
            for at, turn in enumerate(made_dialogue(dialogue, random))
        )
        head = f"POST /v1/turns HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {asked.token}\r\n"
        while True:
            some = list(islice(turns, asked.turns))
            body = some[0] if asked.turns == 1 else b'{"turns":[' + b",".join(some) + b"]}"
            yield f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def answered(self, connection: Connection, took_s: float, *, is_ok: bool) -> None:
        """Counts an answer, and lets the connection go on."""
        if is_ok and not self._is_over:
            self._took_s.append(took_s)
        self._refused += not is_ok
        if self._asked.rate is None and not self._is_over:
            connection.send(perf_counter())
        elif self._due:
            connection.send(self._due.popleft())
        else:
            self._idle.append(connection)

    async def run(self) -> Load:
        """Sends for as long as was asked for."""
        loop, place, asked = asyncio.get_running_loop(), urlsplit(self._asked.url), self._asked
        for number in range(asked.connections):
            made = await loop.create_connection(
                lambda number=number: Connection(self, number),  # type: ignore[misc]  # the loop's own number
                place.hostname,
                place.port,
            )
            self._idle.append(made[1])
        began_s, cpu_s = perf_counter(), sum(_times())
        if asked.rate is None:
            while self._idle:
                self._idle.popleft().send(perf_counter())
            await asyncio.sleep(asked.seconds)
        else:
            await self._at_rate(began_s)
        wall_s = perf_counter() - began_s
        self._is_over = True
        took = sorted(self._took_s)
        return Load(
            turns=len(took) * asked.turns,
            wall_s=wall_s,
            p50_ms=1000 * took[len(took) // 2],
            p99_ms=1000 * took[len(took) * 99 // 100],
            most_ms=1000 * took[-1],
            cpu_s=sum(_times()) - cpu_s,
            refused=self._refused,
        )

    async def _at_rate(self, began_s: float) -> None:
        """Begins requests at the given rate."""
        begun = 0
        while (passed_s := perf_counter() - began_s) < self._asked.seconds:
            while begun < passed_s * self._asked.rate:
                due_s = began_s + begun / self._asked.rate
                begun += 1
                if self._idle:
                    self._idle.popleft().send(due_s)
                else:
                    self._due.append(due_s)
            await asyncio.sleep(TICK_S)


def _times() -> tuple[float, float]:
    used = os.times()
    return used.user, used.system


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="http_load", description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float, help="requests a second")
    parser.add_argument("--turns", type=int, default=1, help="of each request")
    print(msgspec.json.encode(asyncio.run(Sending(parser.parse_args()).run())).decode())


if __name__ == "__main__":
    main()
