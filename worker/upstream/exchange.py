"""One HTTP exchange: a request, and its reply or why there is none; the same for models and APIs.

The one rule for what a failed connection is, and the one that bounds what is read.
"""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import aiohttp

from shared.upstream.egress import EgressError
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.proxies import proxy_problem
from worker.upstream.failures import UpstreamError

T = TypeVar("T")

MAX_ERROR_BYTES: Final = 64_000
"""Bytes that are read of a body that only describes an error."""
NO_TIMEOUT: Final = aiohttp.ClientTimeout()
"""The whole exchange has one time limit, which is not aiohttp's."""
_TRUST_HINT: Final = (
    "to trust it, add it or its authority to the file that SSL_CERT_FILE names where the workers run"
)
_CERTIFICATE_HINTS: Final = {
    10: "renew it",
    62: "call it by a name that the certificate has",
    64: "call it by a name that the certificate has",
}
"""What helps, by OpenSSL's number of the problem (X509_V_ERR_…): expired, other host, other address."""


async def exchange(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    read: Callable[[aiohttp.ClientResponse], Awaitable[T]],
    *,
    headers: Mapping[str, str],
    timeout_s: float,
    **content: Any,
) -> T:
    """Sends a request and reads its reply; redirects are not followed, which could carry a key elsewhere.

    Args:
        session: the process's.
        method: of HTTP.
        url: where it goes.
        read: reads the reply.
        headers: of the request.
        timeout_s: most time for all of it.
        content: `data` or `params`, as aiohttp takes them.

    Raises:
        UpstreamError: there is no reply, or `read` does not take it.
    """
    status = 0
    try:
        async with (
            asyncio.timeout(timeout_s),
            session.request(
                method, url, headers=headers, timeout=NO_TIMEOUT, allow_redirects=False, **content
            ) as response,
        ):
            status = response.status
            return await read(response)
    except TimeoutError:
        text = f"{place_of(url)} gave no answer within {timeout_s:g} s"
        raise UpstreamError(FailureReason.TIMEOUT, text) from None
    except (EgressError, aiohttp.ClientError, OSError, ValueError) as error:
        raise failure_of(error, url, status=status) from None


async def read_body(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """Reads a body until it is longer than allowed: what comes after that is not even read."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > most_bytes:
            response.close()
            break
    return bytes(body)


def since_ms(began_s: float) -> int:
    """Returns the whole milliseconds since a time of `perf_counter`."""
    return round(1000 * (perf_counter() - began_s))


def failure_of(error: BaseException, url: str, *, status: int = 0, place: str = "") -> UpstreamError:
    """Names why an exchange failed.

    Args:
        error: as the HTTP client raised it.
        url: what was called; empty where that is not known.
        status: of the reply, if there was one.
        place: what to call it; empty: by its host.

    >>> failure_of(OSError("reset"), "http://h/v1", status=200).message
    'the connection to h broke: OSError'
    """
    place = place or place_of(url)
    if isinstance(error, EgressError):
        return UpstreamError(FailureReason.FORBIDDEN, str(error))
    if isinstance(error, aiohttp.ClientConnectorError | ssl.SSLError) and (
        problem := tls_problem(error, place)
    ):
        return UpstreamError(FailureReason.INSECURE, problem)
    if isinstance(error, ValueError):  # also aiohttp's own InvalidURL
        return UpstreamError(FailureReason.REFUSED, f"{place} cannot be called: {type(error).__name__}")
    if problem := proxy_problem(error, url):
        return UpstreamError(FailureReason.UNREACHABLE, problem, is_proxy=True)
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        why = os.strerror(number) if number > 0 else error.os_error.strerror or type(error).__name__
        return UpstreamError(FailureReason.UNREACHABLE, f"{place} cannot be reached: {why}")
    text = f"the connection to {place} broke: {type(error).__name__}"
    return UpstreamError(FailureReason.CONNECTION_LOST, text, status=status)


def place_of(url: str) -> str:
    """Names an endpoint for people, without what may be secret in its URL.

    >>> place_of("http://me:secret@localhost:8000/v1?key=1"), place_of("http://[")
    ('localhost:8000', 'the endpoint')
    """
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "the endpoint"
    except ValueError:
        return "the endpoint"


def tls_problem(error: BaseException, place: str) -> str:
    """Explains why there is no secure connection, and what helps; empty where that is not what went wrong.

    Args:
        error: as the HTTP client raised it.
        place: host and port that were called.

    >>> error = ssl.SSLCertVerificationError(1, "x")
    >>> error.verify_code, error.verify_message = 10, "certificate has expired"
    >>> tls_problem(error, "localhost:1"), tls_problem(OSError(), "localhost:1")
    ('the certificate of localhost:1 is not trusted: certificate has expired; renew it', '')
    """
    found = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    if isinstance(found, ssl.SSLCertVerificationError):
        why = getattr(found, "verify_message", "") or found.reason or "unknown reason"
        hint = _CERTIFICATE_HINTS.get(getattr(found, "verify_code", 0), _TRUST_HINT)
        return f"the certificate of {place} is not trusted: {why.rstrip('.')}; {hint}"
    if isinstance(found, ssl.SSLError):
        why = (found.reason or "unknown reason").lower().replace("_", " ")
        return f"no TLS connection to {place}: {why}; an address without TLS begins with http://"
    return ""
