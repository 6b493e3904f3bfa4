"""Opens the HTTP session of a worker: it keeps to the egress policy, and resends what met a dead connection.

Servers close connections that stay idle, and do so without notice: the close and the next request may cross
on the way. Such a request was not worked on, so it is no attempt that failed. What counts is a connection
that was used before and ends before there is a reply, soon after the request went out; a server that takes
longer has perhaps begun to work, and what it costs is not to be paid twice.
"""

import socket
from contextvars import ContextVar
from functools import lru_cache
from ipaddress import ip_address
from time import monotonic
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from shared.upstream.egress import EgressError, EgressPolicy, address_of
from shared.upstream.proxies import Proxy

HOSTS: Final = 1_024
"""Hosts of which a session remembers that they may be called."""
SOON_S: Final = 1.0
"""Seconds from sending to the end of a reused connection within which the request is sent again."""
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


def trace_reuse() -> aiohttp.TraceConfig:
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
        await request.close()  # its body is read from the start again when it is not read any more
        _SENDING.set(_Sending(is_fresh=True))
        response = await handler(request)
    finally:
        _SENDING.reset(token)
    return response


def open_session(policy: EgressPolicy, names: AbstractResolver | None = None) -> aiohttp.ClientSession:
    """Opens an HTTP session that keeps to a policy; only on a loop.

    How many requests are under way is decided before they come here, so the session sets no limit.
    Cookies are not kept: one item's answer must not change another's.

    Args:
        policy: which places may be called.
        names: looks up hosts; None: as the system does.
    """
    check_host = lru_cache(HOSTS)(policy.check_host)  # a refusal is an exception, which is not remembered

    async def check(request: aiohttp.ClientRequest, handler: Any) -> aiohttp.ClientResponse:
        """Looks at the host of each request, redirected ones included."""
        check_host(request.url.host or "")
        if proxy := policy.proxy_of(request.url):
            _use_proxy(proxy, request)
        response: aiohttp.ClientResponse = await handler(request)
        return response

    resolver = _policy_resolver(names or aiohttp.DefaultResolver(), policy)
    connector = Connector(limit=0, ttl_dns_cache=60, resolver=resolver, socket_factory=_make_socket)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        middlewares=(check, resend),
        trace_configs=[trace_reuse()],
    )


def _use_proxy(proxy: Proxy, request: aiohttp.ClientRequest) -> None:
    """Sends a request through a proxy."""
    name = "Proxy-Authorization"
    is_tunnelled = request.url.scheme == "https"  # then the proxy sees headers of its own
    request.update_proxy(
        URL(proxy.url), None, {name: proxy.authorization} if proxy.authorization and is_tunnelled else None
    )
    if proxy.authorization and not is_tunnelled:
        request.headers[name] = proxy.authorization


def _policy_resolver(names: AbstractResolver, policy: EgressPolicy) -> AbstractResolver:
    """Makes a resolver that hands on those addresses of a name that may be called."""

    class Resolver(AbstractResolver):
        """Looks up names."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            """Looks up a name.

            Raises:
                EgressError: none of its addresses may be called.
            """
            good, refused = [], None
            for found in await names.resolve(host, port, family):
                try:
                    policy.check_address(host, ip_address(found["host"].partition("%")[0]))
                    good.append(found)
                except EgressError as error:
                    refused = error
            if not good and refused is not None:
                raise refused
            return good

        async def close(self) -> None:
            """Ends it."""
            await names.close()

    return Resolver()


def _make_socket(place: tuple[Any, ...]) -> socket.socket:
    """Makes the socket of a connection: the last moment, whatever led here."""
    family, kind, protocol, _, (host, *_) = place
    if isinstance(host, str) and (address := address_of(host)) is not None:
        EgressPolicy().check_address(host, address)
    return socket.socket(family, kind, protocol)
