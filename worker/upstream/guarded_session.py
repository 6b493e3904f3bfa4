"""Guards the HTTP exchanges that litellm makes, and keeps what came back as it was.

litellm follows redirects with key and prompt, decompresses without a bound and changes replies. So the
session that it gets refuses redirects, bounds what comes back also when it is compressed, and keeps bytes and
times of the exchange, from which a reply in OpenAI's form is read as every other client reads it.
"""

import zlib
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Final, Self

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy

from shared.upstream.failure_reasons import OK, FailureReason
from worker.upstream.completion import MAX_REPLY_BYTES, too_large
from worker.upstream.exchange import MAX_ERROR_BYTES
from worker.upstream.failures import UpstreamError

REDIRECTS: Final = range(300, 400)
ENCODING: Final = "gzip"
"""How a reply may be compressed."""
_GZIP_BITS: Final = 31
_PIECE_BYTES: Final = 65_536
_CHANGED: Final = ("Content-Encoding", "Content-Length")


class HttpExchange:
    """What one call sent and got."""

    __slots__ = ("began_s", "body", "charset", "ended_s", "is_whole", "status")

    def __init__(self) -> None:
        self.body = bytearray()
        self.status = 0
        self.charset: str | None = None
        """As the reply declares it."""
        self.began_s = perf_counter()
        """Time when the request was sent."""
        self.ended_s: float | None = None
        """Time when the last byte of the reply was there."""
        self.is_whole = False

    @property
    def latency_ms(self) -> int:
        """Time from sending to the last byte."""
        ended_s = perf_counter() if self.ended_s is None else self.ended_s
        return round(1000 * (ended_s - self.began_s))


CURRENT_EXCHANGE: Final[ContextVar[HttpExchange | None]] = ContextVar("exchange", default=None)


class _Content:
    """A body, decompressed and bounded."""

    def __init__(self, content: aiohttp.StreamReader, encoding: str, exchange: HttpExchange) -> None:
        self._content = content
        self._exchange = exchange
        self._unpack = zlib.decompressobj(_GZIP_BITS) if encoding else None

    def __getattr__(self, name: str) -> Any:
        """Whatever else aiohttp asks of a body."""
        return getattr(self._content, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Yields the body in pieces.

        Raises:
            UpstreamError: an answer is larger than we take, or cannot be decompressed.
        """
        exchange = self._exchange
        async for packed in self._content.iter_chunked(size):
            for piece in self._unpacked(packed):
                exchange.body += piece
                if len(exchange.body) > MAX_REPLY_BYTES:
                    raise too_large()
                if exchange.status != OK and len(exchange.body) > MAX_ERROR_BYTES:
                    return  # the status says enough
                is_first = len(exchange.body) == len(piece)
                # litellm would lose the first event of a stream that begins with a mark.
                yield piece.removeprefix(BOM_UTF8) if is_first else piece
        exchange.is_whole, exchange.ended_s = True, perf_counter()

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        """Decompresses piece by piece: never more than a piece is in memory."""
        if self._unpack is None:
            yield packed
            return
        try:
            while packed and not self._unpack.eof:
                piece = self._unpack.decompress(packed, _PIECE_BYTES)
                packed = self._unpack.unconsumed_tail
                yield piece
        except zlib.error:
            raise UpstreamError(FailureReason.CONNECTION_LOST, "the reply cannot be decompressed") from None


class GuardedResponse(aiohttp.ClientResponse):
    """A reply that does not lead elsewhere and has a bound."""

    async def start(self, connection: Any) -> Self:
        """Reads the head of the reply.

        Raises:
            UpstreamError: it is a redirect, or compressed in a way that was not asked for.
        """
        await super().start(connection)
        if self.status in REDIRECTS:
            text = f"HTTP {self.status}: {self.reason or 'a redirect'}"
            raise UpstreamError(FailureReason.REFUSED, text, status=self.status)
        encoding = super().headers.get("Content-Encoding", "").lower().strip()
        if encoding not in {"", "identity", ENCODING}:
            raise UpstreamError(FailureReason.INVALID_REPLY, f"the reply is compressed as {encoding[:40]!r}")
        exchange = CURRENT_EXCHANGE.get() or HttpExchange()
        exchange.status, exchange.charset = self.status, self.charset
        exchange.body.clear()
        packed = encoding if encoding == ENCODING else ""
        self.content = _Content(self.content, packed, exchange)  # type: ignore[assignment]  # as far as it is read
        return self

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """The headers, of the body as it is handed on."""
        kept = CIMultiDict(super().headers)
        for name in _CHANGED:
            kept.popall(name, None)
        return CIMultiDictProxy(kept)


async def _note(request: aiohttp.ClientRequest, handler: Any) -> aiohttp.ClientResponse:
    """Notes when a request is sent, and asks for what can be decompressed; middleware of a session."""
    request.headers["Accept-Encoding"] = ENCODING
    exchange = CURRENT_EXCHANGE.get()
    if exchange is not None:
        exchange.began_s = perf_counter()
    response: aiohttp.ClientResponse = await handler(request)
    return response


def open_guarded_session(session: aiohttp.ClientSession) -> aiohttp.ClientSession:
    """Opens a session with the same connections and checks as another one, for litellm."""
    return aiohttp.ClientSession(
        connector=session.connector,
        connector_owner=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=GuardedResponse,
        middlewares=(_note, *session._middlewares),  # noqa: SLF001 - there is no public name for them
        trace_configs=session.trace_configs,
    )
