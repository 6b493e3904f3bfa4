"""Sends a request again whose reused connection had died in the meantime: once, on a new connection.

Servers close connections that stay idle, and do so without notice: the close and the next request may cross
on the way. Such a request was not worked on, so it is no attempt that failed. What counts is a connection
that was used before and ends before there is a reply, soon after the request went out; a server that takes
longer has perhaps begun to work, and what it costs is not to be paid twice.
"""

from contextvars import ContextVar
from time import monotonic
from typing import Any, Final

import aiohttp

SOON_S: Final = 1.0
"""From sending to the end of the connection."""
_NOT_SENT: Final = (
    aiohttp.ServerDisconnectedError,
    aiohttp.ClientOSError,
    aiohttp.ClientConnectionResetError,
)


class _Sending:
    """One sending of a request."""

    __slots__ = ("began_s", "is_fresh", "is_reused")

    def __init__(self, *, is_fresh: bool) -> None:
        self.is_fresh = is_fresh
        """Whether it needs a new connection."""
        self.is_reused = False
        self.began_s = 0.0


_SENDING: Final[ContextVar[_Sending | None]] = ContextVar("sending", default=None)


class Connector(aiohttp.TCPConnector):
    """Hands out connections, new ones where that is asked for.

    Args:
        options: of `aiohttp.TCPConnector`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._new = aiohttp.TCPConnector(**options, force_close=True)

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own signature
    ) -> Any:
        """Returns a connection for a request."""
        sending = _SENDING.get()
        if sending is not None and sending.is_fresh:
            return await self._new.connect(req, traces, timeout)
        connection = await super().connect(req, traces, timeout)
        if sending is not None:
            sending.began_s = monotonic()
        return connection

    async def close(self, **options: Any) -> None:
        """Ends all connections."""
        await self._new.close(**options)
        await super().close(**options)


def watched_reuse() -> aiohttp.TraceConfig:
    """Makes what a session notes with each connection: whether it was used before."""

    async def note(*_: object) -> None:
        """Notes that the request has a connection that was used before."""
        sending = _SENDING.get()
        if sending is not None:
            sending.is_reused = True

    config = aiohttp.TraceConfig()
    config.on_connection_reuseconn.append(note)
    return config


async def resend(request: aiohttp.ClientRequest, handler: Any) -> aiohttp.ClientResponse:
    """Sends a request, and again where its reused connection was dead; middleware of a session."""
    sending = _Sending(is_fresh=False)
    token = _SENDING.set(sending)
    try:
        response: aiohttp.ClientResponse = await handler(request)
    except aiohttp.ClientConnectorError:
        raise  # a new connection was tried
    except _NOT_SENT:
        if not sending.is_reused or monotonic() - sending.began_s > SOON_S:
            raise
        await request.close()  # its body is read from the start again when nobody reads it any more
        _SENDING.set(_Sending(is_fresh=True))
        response = await handler(request)
    finally:
        _SENDING.reset(token)
    return response
