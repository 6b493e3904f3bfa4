"""Reads from a reply's headers how long to wait before the next call.

APIs under test are held to what HTTP defines, `Retry-After` (`read_retry_after`). Model providers use several
headers (`requested_wait_s`); the first of these that can be read counts:

    retry-after-ms: 1500
    retry-after: 20                              seconds, also 0.5, or an HTTP date
    x-ratelimit-remaining-requests: 0            what is used up ...
    x-ratelimit-reset-requests: 1m6.5s           ... and when it is there again; the longest of them
    x-ratelimit-reset: 1700000000                the same for a whole key, in seconds or as a moment

>>> requested_wait_s({"retry-after": "0.5"}, now_s=0)
0.5
"""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

MAX_WAIT_S: Final = 86_400.0
"""No wait is longer: a server that asks for more than a day is not believed."""
NUMBER: Final = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)
DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|h|m|s)", re.ASCII)
UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
RESET: Final = "x-ratelimit-reset"
REMAINING: Final = "x-ratelimit-remaining"
MOMENT_S: Final = 1e9
"""A larger number of seconds is a moment, not a duration."""


def requested_wait_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """Returns how long to wait by the headers of a reply, from 0 s to a day; None where they do not say.

    Args:
        headers: of the reply; names in lower case, or a case-insensitive mapping.
        now_s: seconds since the epoch, for dates.

    >>> requested_wait_s({"retry-after-ms": "1500", "retry-after": "9"}, now_s=0)
    1.5
    >>> requested_wait_s({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, now_s=15)
    45.0
    >>> requested_wait_s({"retry-after": "soon"}, now_s=0) is None
    True
    """
    waits = (
        _number(headers.get("retry-after-ms"), 0.001),
        _number(headers.get("retry-after"), 1.0),
        read_retry_after(headers.get("retry-after"), now_s=now_s),
        _until_reset(headers, now_s),
    )
    found = next((wait for wait in waits if wait is not None), None)
    return None if found is None else min(max(found, 0.0), MAX_WAIT_S)


def read_retry_after(header: str | None, *, now_s: float) -> float | None:
    """Reads a `Retry-After` header: whole seconds or an HTTP date.

    Args:
        header: its value; None when the reply had none.
        now_s: seconds since the epoch, for dates.

    Returns:
        Seconds from 0 to a day, or None for what is neither.

    >>> read_retry_after("120", now_s=0), read_retry_after("soon", now_s=0), read_retry_after("-3", now_s=0)
    (120.0, None, None)
    >>> read_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now_s=15)
    45.0
    """
    text = (header or "").strip()
    if not text.isascii() or not text:
        return None
    if text.isdigit():
        return MAX_WAIT_S if len(text) > len("86400") else min(float(text), MAX_WAIT_S)
    try:
        seconds = parsedate_to_datetime(text).timestamp() - now_s
    except (ValueError, OverflowError, OSError):
        return None
    return min(max(seconds, 0.0), MAX_WAIT_S)


def read_duration(text: str | None) -> float | None:
    """Reads a duration such as `6m0s`, `1.5s`, `17ms`, or a plain number of seconds.

    >>> read_duration("1m6.5s"), read_duration("17ms"), read_duration("3"), read_duration("1 week")
    (66.5, 0.017, 3.0, None)
    """
    text = (text or "").strip()
    number = _number(text, 1.0)
    if number is not None:
        return number
    parts = DURATION.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        return None
    return sum(float(amount) * UNITS_S[unit] for amount, unit in parts)


def _number(text: str | None, unit_s: float) -> float | None:
    text = (text or "").strip()
    return float(text) * unit_s if NUMBER.fullmatch(text) else None


def _until_reset(headers: Mapping[str, str], now_s: float) -> float | None:
    """The longest wait among what is used up; a limit that is not reached does not count."""
    waits = []
    for name in headers:
        what = name.lower()
        if not what.startswith(RESET):
            continue
        remaining = headers.get(REMAINING + what.removeprefix(RESET))
        wait = read_duration(headers[name])
        if wait is None or (remaining is not None and _number(remaining, 1.0) != 0):
            continue
        waits.append(wait - now_s if wait > MOMENT_S else wait)
    return max(waits, default=None)
