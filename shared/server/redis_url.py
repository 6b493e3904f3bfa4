"""Parses URLs of Redis servers, masks their passwords, and converts them for redis-py and kombu.

    redis://[USER:PASSWORD@]HOST[:PORT][/DB]        rediss:// with TLS
    unix:///PATH/TO/SOCKET[?db=DB]                  redis+socket:// is the same
    sentinel://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…]/MASTER[/DB]

Pure and without redis-py, so that a wrong URL is an error in milliseconds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, NoReturn
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from shared.errors import ConfigError

DEFAULT_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
MASK: Final = "***"
EXAMPLES: Final = (
    "write redis://[USER:PASSWORD@]HOST[:PORT][/DB], rediss://… for TLS, unix:///PATH/TO/SOCKET, "
    "or sentinel://HOST[:PORT][,HOST[:PORT]]/MASTER[/DB]"
)
TLS_OPTIONS: Final = frozenset(
    {"ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname"}
)
SENTINEL_OPTIONS: Final = frozenset({"sentinel_username", "sentinel_password"})


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """The parts of a Redis URL, unquoted."""

    scheme: str
    """`redis`, `rediss`, `unix` or `sentinel`."""
    hosts: tuple[tuple[str, int], ...] = ()
    """Host and port; several only for sentinels, none for a unix socket."""
    path: str = ""
    """The unix socket, or the name of the sentinels' master."""
    db: int = 0
    """Number of the database."""
    username: str | None = None
    """User of Redis, not of the sentinels."""
    password: str | None = field(default=None, repr=False)
    """Password of Redis, not of the sentinels."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Query options left: TLS files, the sentinels' own user and password."""

    @property
    def for_redis_py(self) -> str:
        """The URL as redis-py reads it; for sentinels the URL as we read it."""
        login, query = _login(self.username, self.password), dict(self.options)
        if self.scheme == "unix":
            return _url("unix", login, "", quote(self.path), {"db": self.db} if self.db else {})
        if self.scheme == "sentinel":
            path = f"/{quote(self.path, safe='')}/{self.db}"
            return _url("sentinel", login, ",".join(map(_host_port, self.hosts)), path, query)
        return _url(self.scheme, login, _host_port(self.hosts[0]), f"/{self.db}", query)

    @property
    def for_kombu(self) -> str:
        """The URL as kombu reads it."""
        login = _login(self.username, self.password)
        if self.scheme == "unix":
            return _url("redis+socket", login, "", quote(self.path), {"virtual_host": self.db})
        if self.scheme == "sentinel":
            # kombu uses login and database of one URL only, but each may become the first.
            return ";".join(_url("sentinel", login, _host_port(h), f"/{self.db}", {}) for h in self.hosts)
        # Without an ssl option kombu connects without checking the certificate.
        secure = {"ssl_cert_reqs": "required"} if self.scheme == "rediss" else {}
        return _url(self.scheme, login, _host_port(self.hosts[0]), f"/{self.db}", {**secure, **self.options})


def mask_password(url: str) -> str:
    """Masks what may be secret in a URL, also in one that cannot be parsed.

    >>> mask_password("redis://alice:geheim@db.example:6379/0")
    'redis://alice:***@db.example:6379/0'
    >>> mask_password("redis://geheim@db/0")
    'redis://***@db/0'
    >>> mask_password("unix:///run/redis.sock")
    'unix:///run/redis.sock'
    """
    hidden = re.sub(r"(?i)((?:password|passwd|secret|token)[^=&]*=)[^&]*", rf"\g<1>{MASK}", url)
    return re.sub(r"(?s)^([^:/@]*://)([^:@]*:)?.*@", rf"\g<1>\g<2>{MASK}@", hidden)


def parse_redis_url(url: str) -> RedisUrl:
    """Reads a Redis URL.

    Raises:
        ConfigError: it is no Redis URL; the message contains it with its password masked.

    >>> parse_redis_url("redis://db.example").hosts
    (('db.example', 6379),)
    >>> parse_redis_url("unix:///run/redis.sock?db=3").db
    3
    """
    url = url.strip()
    scheme, _, rest = url.partition("://")
    scheme = {"redis+socket": "unix"}.get(scheme.lower(), scheme.lower())
    if not rest or scheme not in _READERS:
        _refuse(url, "it has no known scheme, or no host")
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        _refuse(url, "it cannot be read")  # Python's message may contain the password
    if "@" in parts.query + parts.fragment or ("@" in parts.path and (parts.netloc or scheme != "unix")):
        _refuse(url, "in a password, `/` is written %2F, `?` %3F, `#` %23 and `@` %40")
    if parts.fragment:
        _refuse(url, "`#` in it is written %23")
    return _READERS[scheme](url, parts, query)


def _read_tcp(url: str, parts: SplitResult, query: dict[str, str]) -> RedisUrl:
    tls = parts.scheme == "rediss"
    _check_options(url, query, {"db"} | (TLS_OPTIONS if tls else frozenset()))
    if tls and query.get("ssl_cert_reqs", "required") not in {"required", "optional", "none"}:
        _refuse(url, "ssl_cert_reqs is required, optional or none")
    host = _read_host(url, parts.netloc.rpartition("@")[2], DEFAULT_PORT)
    db = _read_db(url, query.pop("db", "") or parts.path.removeprefix("/"))
    return RedisUrl(parts.scheme, (host,), "", db, *_read_login(parts), query)


def _read_unix(url: str, parts: SplitResult, query: dict[str, str]) -> RedisUrl:
    _check_options(url, query, {"db", "virtual_host"})
    if parts.netloc.rpartition("@")[2] or len(parts.path) < 2:  # noqa: PLR2004 - a slash and a name
        _refuse(url, "a socket has an absolute path: three slashes after `unix:`")
    db = _read_db(url, query.get("db", query.get("virtual_host", "")))
    return RedisUrl("unix", (), unquote(parts.path), db, *_read_login(parts))


def _read_sentinel(url: str, parts: SplitResult, query: dict[str, str]) -> RedisUrl:
    _check_options(url, query, SENTINEL_OPTIONS)
    netloc = parts.netloc.rpartition("@")[2]
    hosts = tuple(_read_host(url, each, SENTINEL_PORT) for each in netloc.split(","))
    master, _, db = parts.path.removeprefix("/").partition("/")
    if not master:
        _refuse(url, "it names no master")
    return RedisUrl("sentinel", hosts, unquote(master), _read_db(url, db), *_read_login(parts), query)


_READERS: Final = {
    "redis": _read_tcp,
    "rediss": _read_tcp,
    "unix": _read_unix,
    "sentinel": _read_sentinel,
}


def _read_login(parts: SplitResult) -> tuple[str | None, str | None]:
    login = parts.netloc.rpartition("@")[0]
    username, _, password = login.partition(":")
    return unquote(username) or None, unquote(password) or None


def read_host(text: str, default_port: int) -> tuple[str, int]:
    """Reads `HOST` or `HOST:PORT`; an IPv6 address stands in brackets.

    Raises:
        ValueError: it is neither; the message has the reason.

    >>> read_host("[::1]:7000", 6379)
    ('::1', 7000)
    """
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^\[\]:/\s]+))(?::(\d{1,5}))?", text)
    if found is None:
        raise ValueError(f"{text!r} is no HOST or HOST:PORT" if text else "it names no host")
    port = int(found.group(3) or default_port)
    if not 0 < port < 2**16:
        raise ValueError(f"there is no port {port}")
    return unquote(found.group(1) or found.group(2)), port


def _read_host(url: str, text: str, default_port: int) -> tuple[str, int]:
    try:
        return read_host(text, default_port)
    except ValueError as error:
        _refuse(url, str(error))


def _read_db(url: str, text: str) -> int:
    if text and not re.fullmatch(r"[0-9]{1,5}", text):
        _refuse(url, f"the database is a number, not {text!r}")
    return int(text or 0)


def _check_options(url: str, query: Mapping[str, str], known: frozenset[str] | set[str]) -> None:
    for name in query:
        if name not in known:
            near = get_close_matches(name, known, 1)
            did_you_mean = f", did you mean {near[0]}?" if near else ""
            _refuse(url, f"it knows no option {name!r}{did_you_mean}")


def _refuse(url: str, why: str) -> NoReturn:
    raise ConfigError(f"{mask_password(url)!r} names no Redis server: {why}", hint=EXAMPLES)


def _host_port(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _login(username: str | None, password: str | None) -> str:
    if password is None:
        return f"{quote(username, safe='')}@" if username else ""
    return f"{quote(username or '', safe='')}:{quote(password, safe='')}@"


def _url(scheme: str, login: str, netloc: str, path: str, query: Mapping[str, object]) -> str:
    return f"{scheme}://{login}{netloc}{path}" + (f"?{urlencode(query)}" if query else "")
