"""The answer to a turn as server-sent events, while a model writes it.

    decision ──► delta, delta, … ──► done        the result, as a request without events has it
                 restart: the text so far         error       what such a request would be told
                 is void, the model is asked
                 again, or a piece was lost

The deltas since the last restart are always the whole response when `done` comes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Final, NamedTuple, TypeVar

import msgspec
from aiohttp import hdrs, web
from msgspec import Struct

from producer.serve.gatherer import Waiting
from producer.serve.micro_runs import ServedTurn
from producer.serve.replies import of_error
from shared.codecs.live_pieces import LivePiece
from shared.errors import ProctorError

EVENTS: Final = "text/event-stream"
KEEP_ALIVE_S: Final = 15.0
"""After so long without an event a comment keeps proxies from closing the connection."""
KEEP_ALIVE: Final = b": waiting\n\n"
MOST_PIECES: Final = 1_000
"""Pieces that wait for a caller who reads slowly; the text of those that are dropped comes at the end."""

Event = bytes
T = TypeVar("T")


class DecisionEvent(Struct, frozen=True):
    """The event `decision`: what a turn is worth, before the model has written anything."""

    decision: str


class DeltaEvent(Struct, frozen=True):
    """The event `delta`: the next words of the answer."""

    text: str


class _Result(Struct):
    decision: str
    response: str | None = None


_encode: Final = msgspec.json.Encoder().encode
_result: Final = msgspec.json.Decoder(_Result).decode


def wants_events(request: web.Request) -> bool:
    """Returns whether a caller asks for events instead of one document."""
    return EVENTS in request.headers.get(hdrs.ACCEPT, "")


def event(name: str, data: bytes) -> Event:
    r"""Writes an event.

    >>> event("delta", b'{"text":"Hi"}')
    b'event: delta\ndata: {"text":"Hi"}\n\n'
    """
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def event_of(name: str, document: web.Response) -> Event:
    """Writes the event of a document that would have been the answer."""
    assert isinstance(document.body, bytes)  # noqa: S101 - `reply` makes it of bytes
    return event(name, document.body)


class SentAnswer:
    r"""What a caller has been sent of an answer.

    >>> answer = SentAnswer()
    >>> [*answer.events_of(LivePiece("r", 0, "should", 0, "You "))][1:]
    [b'event: delta\ndata: {"text":"You "}\n\n']
    >>> [*answer.rest(b'{"decision":"should","response":"You said"}')]
    [b'event: delta\ndata: {"text":"said"}\n\n']
    """

    def __init__(self) -> None:
        self._is_decided = False
        self._text = ""

    def events_of(self, piece: LivePiece) -> Iterator[Event]:
        """Yields what a caller is sent of a piece; after one that was lost, nothing."""
        yield from self._decided(piece.decision)
        if piece.text and piece.at == 0:
            yield from self._restarted()
        if piece.text and piece.at == len(self._text):
            yield self._said(piece.text)

    def rest(self, result: bytes) -> Iterator[Event]:
        """Yields what is missing when the result has come."""
        found = _result(result)
        yield from self._decided(found.decision)
        response = found.response or ""
        if not response.startswith(self._text):
            yield from self._restarted()
        if rest := response[len(self._text) :]:
            yield self._said(rest)

    def _decided(self, decision: str) -> Iterator[Event]:
        if not self._is_decided:
            self._is_decided = True
            yield event("decision", _encode(DecisionEvent(decision)))

    def _restarted(self) -> Iterator[Event]:
        if self._text:
            self._text = ""
            yield event("restart", b"{}")

    def _said(self, text: str) -> Event:
        self._text += text
        return event("delta", _encode(DeltaEvent(text)))


async def with_pauses(events: AsyncIterator[T]) -> AsyncIterator[T | None]:
    """Yields events, and None whenever none has come for `KEEP_ALIVE_S`."""
    coming = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            done, _ = await asyncio.wait([coming], timeout=KEEP_ALIVE_S)
            if done and coming.result() is None:
                return
            yield coming.result() if done else None
            if done:
                coming = asyncio.ensure_future(anext(events, None))
    finally:
        coming.cancel()


class StreamedTurn(NamedTuple):
    """A turn whose caller is sent events."""

    waiting: Waiting
    pieces: "PieceQueue"
    """Of its answer; `Waiting.on_piece` puts them."""
    deadline_s: float
    """How long the caller waits."""
    finished: Callable[[ServedTurn], web.Response]
    """Makes the response of the result."""
    late: Callable[[], web.Response]
    """Makes the response to a caller who has waited long enough."""


class PieceQueue:
    """The pieces of one answer, until its caller has been sent them."""

    def __init__(self) -> None:
        self._pieces = asyncio.Queue[LivePiece | None]()

    def put(self, piece: LivePiece) -> None:
        """Adds a piece; drops it where its caller does not read."""
        if self._pieces.qsize() < MOST_PIECES:
            self._pieces.put_nowait(piece)

    def end(self) -> None:
        """Adds the end."""
        self._pieces.put_nowait(None)

    async def next(self, within_s: float) -> LivePiece | None:
        """Waits for a piece; None at the end.

        Raises:
            TimeoutError: nothing came.
        """
        return await asyncio.wait_for(self._pieces.get(), within_s)


async def stream(request: web.Request, turn: StreamedTurn) -> web.StreamResponse:
    """Sends the events of one turn; the turn counts whether or not its caller stays.

    Nothing is sent before the first event, so that a turn that is refused at once has its own status.
    """
    response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: EVENTS, hdrs.CACHE_CONTROL: "no-store"})
    turn.waiting.results.add_done_callback(lambda _: turn.pieces.end())
    answer, until_s = SentAnswer(), monotonic() + turn.deadline_s
    last: web.Response | None = None
    with suppress(ConnectionResetError):
        while last is None:
            left_s = until_s - monotonic()
            try:
                piece = await turn.pieces.next(min(left_s, KEEP_ALIVE_S))
            except TimeoutError:
                if left_s <= KEEP_ALIVE_S:
                    last = turn.late()
                elif response.prepared:
                    await response.write(KEEP_ALIVE)
                continue
            if piece is not None:
                events = answer.events_of(piece)
            else:
                last, events = _last(turn, answer)
            for each in events:
                if not response.prepared:
                    await response.prepare(request)
                await response.write(each)
        if not response.prepared:
            return last
        await response.write(event_of("done" if last.status == web.HTTPOk.status_code else "error", last))
        await response.write_eof()
    return response


def _last(turn: StreamedTurn, answer: SentAnswer) -> tuple[web.Response, Iterator[Event]]:
    """Returns the last response of a turn that has ended, and the events before it."""
    try:
        [found] = turn.waiting.results.result()
    except ProctorError as error:
        return of_error(error), iter(())
    return turn.finished(found), iter(()) if found.problem else answer.rest(bytes(found.result))
