"""Validates addresses of models and APIs before they are stored with a run, and joins paths; pure."""

from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from shared.scrubbing import SECRET_PARAMETER

NO_ADDRESS: Final = "it is no web address"
ADDRESSES: Final = 256
"""Joined addresses that a process keeps in memory: a run calls a few of them thousands of times."""


def address_problem(url: str) -> str:
    """Returns why a URL cannot be called, or must not be stored; empty if it can.

    >>> address_problem("http://localhost:8000/v1"), address_problem("localhost:8000")
    ('', 'it is no web address')
    >>> address_problem("https://me:secret@api.example.com/v1")
    'a password in it would be stored with the run'
    >>> address_problem("https://api.example.com/v1?api-key=1234")
    'the value of api-key in it would be stored with the run'
    """
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return NO_ADDRESS
    if not is_good or not url.isprintable() or " " in url or parts.fragment:
        return NO_ADDRESS
    if "@" in parts.netloc:
        return "a password in it would be stored with the run"
    names = (name for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    secret = next(filter(SECRET_PARAMETER.search, names), "")
    return f"the value of {secret} in it would be stored with the run" if secret else ""


@lru_cache(ADDRESSES)
def with_path(base: str, path: str) -> str:
    """Puts a path to the end of an address's path, before its query, and its own query behind that.

    >>> with_path("http://localhost:8000/v1/", "/chat/completions")
    'http://localhost:8000/v1/chat/completions'
    >>> with_path("https://me.example.com/openai?api-version=1", "/chat/completions")
    'https://me.example.com/openai/chat/completions?api-version=1'
    >>> with_path("http://h?a=1", "/chat?b=2")
    'http://h/chat?a=1&b=2'
    """
    parts, (below, _, query) = urlsplit(base), path.partition("?")
    queries = "&".join(filter(None, (parts.query, query)))
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + below, query=queries))


def shown_url(url: str) -> str:
    """Writes an address for people, without what may be secret in it.

    >>> shown_url("https://me:secret@api.example.com/v1?key=1")
    'https://api.example.com/v1'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
