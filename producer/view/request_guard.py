"""Who may see pages and act: whoever has the token, from this machine; acts come only from our own pages."""

from collections.abc import Awaitable, Callable, Mapping
from hmac import compare_digest
from typing import Final
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from producer.view.links import TOKEN_KEY

TOKEN_HEADER: Final = "X-Proctor-Token"  # noqa: S105 - the name of a header
HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names of this machine: a page of another name that resolves to it gets nothing."""
FETCH_SITE: Final = "Sec-Fetch-Site"
SAME_ORIGIN: Final = "same-origin"
SAFE: Final = frozenset({"GET", "HEAD"})
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""What pages may load: their own files, and nothing that stands in them."""
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NO_TOKEN: Final = "Open the address that `proctor view` printed: it has a token.\n"  # noqa: S105 - a sentence
NOT_OURS: Final = "Only a page of this server may do that.\n"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def refusal(method: str, host: str, headers: Mapping[str, str], given: str, token: str) -> str:
    """Returns why a request is refused; empty if it is not.

    An action needs the token in a header, which no form and no image of another page can set.

    Args:
        method: of the request.
        host: that it names, with its port.
        headers: of the request.
        given: the token in its address.
        token: of this server.

    >>> refusal("GET", "127.0.0.1:80", {}, "t", "t")
    ''
    >>> refusal("GET", "evil.example", {}, "t", "t") == NOT_OURS
    True
    >>> refusal("POST", "localhost", {}, "t", "t") == NO_TOKEN
    True
    """
    if urlsplit(f"//{host}").hostname not in HOSTS:
        return NOT_OURS
    is_read = method in SAFE
    found = headers.get(TOKEN_HEADER) or (given if is_read else "")
    if not compare_digest(found.encode(), token.encode()):
        return NO_TOKEN
    if is_read:
        return ""
    origin, site = headers.get(hdrs.ORIGIN), headers.get(FETCH_SITE, SAME_ORIGIN)
    return "" if origin in (None, f"http://{host}") and site == SAME_ORIGIN else NOT_OURS


def guard(token: str) -> Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]:
    """Returns what stands before all handlers."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuses what has no token, or comes from elsewhere."""
        given = request.query.get(TOKEN_KEY, "")
        if why := refusal(request.method, request.host, request.headers, given, token):
            return web.Response(text=why, status=403, headers=HEADERS)
        return await handler(request)

    return guarded


async def dress(_request: web.Request, response: web.StreamResponse) -> None:
    """Adds what every answer says to the browser, but for what it says itself."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
