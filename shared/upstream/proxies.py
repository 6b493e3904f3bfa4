"""Finds the proxy that a request goes through: the usual variables, for workers with PROCTOR_TRUST_ENV=1.

    HTTP_PROXY, HTTPS_PROXY, ALL_PROXY      http://[user:password@]host:port, by the scheme of the request
    NO_PROXY                                hosts and ends of hosts that are called directly; `*`: all

Small letters go before capitals. This machine itself is never called through a proxy. Unlike aiohttp's
`trust_env`, nothing is taken from `.netrc`: which credentials are sent where is decided elsewhere.
"""

from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

SCHEMES: Final = ("http", "https")
_HOSTS: Final = 1024
"""Places whose proxy a process keeps in memory."""


class Proxy(NamedTuple):
    """One proxy."""

    url: str
    """Its address, without credentials."""
    host: str
    """Its host."""
    authorization: str
    """Value of the header `Proxy-Authorization`; empty for none."""


class Proxies:
    """The proxies of an environment.

    Args:
        environment: of the worker.

    >>> proxies = Proxies({"HTTPS_PROXY": "http://me:pw@proxy.example:3128", "NO_PROXY": ".corp.example"})
    >>> proxies.of("https", "api.example.com", 443)
    Proxy(url='http://proxy.example:3128', host='proxy.example', authorization='Basic bWU6cHc=')
    >>> proxies.of("http", "api.example.com", 80), proxies.of("https", "a.corp.example", 443)
    (None, None)
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._addresses = {
            scheme: _variable(environment, f"{scheme}_proxy") or _variable(environment, "all_proxy")
            for scheme in SCHEMES
        }
        self._direct = _variable(environment, "no_proxy")
        self.of = lru_cache(_HOSTS)(self._of)

    def _of(self, scheme: str, host: str, port: int | None) -> Proxy | None:
        """Returns the proxy of a place; None where it is called directly.

        Raises:
            ValueError: a variable names no proxy that can be used.
        """
        address = self._addresses.get(scheme, "")
        if not address or _is_loopback(host) or _is_listed(host, port, self._direct):
            return None
        return _proxy_at(address, f"{scheme.upper()}_PROXY")


def proxy_problem(error: BaseException, url: str) -> str:
    """Describes what is wrong with the proxy of a request; empty where that is not what went wrong.

    Args:
        error: as the HTTP client raised it.
        url: what was called; empty where that is not known.
    """
    import aiohttp  # noqa: PLC0415 - start-up: 90 ms and 9 MB that a worker of turns does not need

    if isinstance(error, aiohttp.ClientHttpProxyError):
        place = urlsplit(url).netloc.rpartition("@")[2] or "the server"
        return f"the proxy does not connect to {place}: HTTP {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        is_proxy = bool(url) and error.host != urlsplit(url).hostname
    else:
        is_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
    if not is_proxy or not isinstance(error, aiohttp.ClientConnectorError):
        return ""
    why = error.os_error.strerror or type(error.os_error).__name__
    return f"the proxy {error.host}:{error.port} cannot be reached: {why}"


def _variable(environment: Mapping[str, str], name: str) -> str:
    return (environment.get(name) or environment.get(name.upper()) or "").strip()


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name or address.

    >>> _is_loopback("localhost"), _is_loopback("127.0.0.2"), _is_loopback("::1"), _is_loopback("a.example")
    (True, True, True, False)
    """
    name = host.lower().rstrip(".")
    with suppress(ValueError):
        return ip_address(name).is_loopback
    return name == "localhost" or name.endswith(".localhost")


def _is_listed(host: str, port: int | None, names: str) -> bool:
    """Whether a host is one of `NO_PROXY`, or below one.

    >>> [_is_listed("api.corp.example", 80, names) for names in (".corp.example", "corp.example:80", "*", "")]
    [True, True, True, False]
    >>> _is_listed("badcorp.example", 80, "corp.example, corp.example:80")
    False
    """
    for name in names.lower().replace(",", " ").split():
        end = name.removesuffix(f":{port}").removeprefix("*").removeprefix(".").strip("[]")
        if not end or host.lower() == end or host.lower().endswith(f".{end}"):
            return True
    return False


def _proxy_at(address: str, variable: str) -> Proxy:
    """Reads the address of a proxy.

    Raises:
        ValueError: it is none; says so without the password in it.
    """
    parts = urlsplit(address if "://" in address else f"http://{address}")
    host = parts.hostname or ""
    if parts.scheme not in SCHEMES or not host:
        raise ValueError(f"{variable} names no HTTP proxy; write it as http://proxy.example:3128")
    place = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    return Proxy(f"{parts.scheme}://{place}{port}", host, _basic(parts.username, parts.password))


def _basic(user: str | None, password: str | None) -> str:
    """Writes credentials as a header has them."""
    if user is None:
        return ""
    return "Basic " + b64encode(f"{unquote(user)}:{unquote(password or '')}".encode()).decode()
