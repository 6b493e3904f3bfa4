"""The two environment variables of the harness specification, read on demand, with a clear error."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from shared.contracts.query_vocabulary import DEFAULT_API_URL, DEFAULT_DELAY_S
from shared.errors import ConfigError
from shared.server.redis_url import mask_password
from shared.upstream.addresses import NO_ADDRESS, address_problem

DELAY_VARIABLE: Final = "EVAL_DELAY_SECONDS"
API_URL_VARIABLE: Final = "EVAL_API_URL"
MAX_DELAY_S: Final = 86_400
"""A day between two queries; more is a mistake."""


def delay_s(flag: int | None, environment: Mapping[str, str], *, default: int = DEFAULT_DELAY_S) -> int:
    """Decides the seconds between queries: the flag, else EVAL_DELAY_SECONDS, else the default.

    Raises:
        ConfigError: the value is no whole number from 0 to a day.

    >>> delay_s(None, {}), delay_s(None, {"EVAL_DELAY_SECONDS": "5"}), delay_s(0, {"EVAL_DELAY_SECONDS": "5"})
    (30, 5, 0)
    """
    written = environment.get(DELAY_VARIABLE, "").strip()
    if flag is not None:
        origin, value = "--delay", str(flag)
    elif written:
        origin, value = DELAY_VARIABLE, written
    else:
        return default
    is_whole = value.isascii() and value.isdigit() and len(value) <= len(str(MAX_DELAY_S))
    if not is_whole or int(value) > MAX_DELAY_S:
        raise ConfigError(
            f"{origin}: {value[:40]!r} is no number of seconds between queries",
            hint=f"give a whole number from 0 to {MAX_DELAY_S}",
        )
    return int(value)


def api_url(flag: str | None, environment: Mapping[str, str], *, default: str = DEFAULT_API_URL) -> str:
    """Decides the API's base URL: the flag, else EVAL_API_URL, else the default; slashes at its end are cut.

    Raises:
        ConfigError: the value is no http or https URL with a host.

    >>> api_url("http://localhost:4000/", {}), api_url(None, {"EVAL_API_URL": " "})
    ('http://localhost:4000', 'http://localhost:3000')
    """
    if flag is not None:
        origin, value = "--api-url", flag
    else:
        origin, value = API_URL_VARIABLE, environment.get(API_URL_VARIABLE, "").strip() or default
    url = value.strip().rstrip("/")
    problem = address_problem(url)
    if problem and problem != NO_ADDRESS:
        raise ConfigError(
            f"{origin}: {problem}",
            hint="set a variable where the workers run, and name it: --bearer-env NAME, or --header",
        )
    if not _is_http(url):
        raise ConfigError(
            f"{origin}: {mask_password(value)[:200]!r} is no address of an API",
            hint=f"give a base URL such as {DEFAULT_API_URL}",
        )
    return url


def _is_http(url: str) -> bool:
    """Returns whether a URL can be called: scheme, host, a port in range, nothing after the path."""
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    clean = url.isprintable() and " " not in url and not parts.query and not parts.fragment
    return usable and clean and parts.scheme in {"http", "https"}
