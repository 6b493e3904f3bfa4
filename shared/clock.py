"""Wall-clock time in the two stored forms: epoch milliseconds and ISO 8601 UTC."""

from datetime import UTC, datetime
from functools import lru_cache
from time import time


def now_ms() -> int:
    """Returns the wall clock in milliseconds since the epoch."""
    return int(time() * 1000)


def iso_utc(epoch_ms: int) -> str:
    """Writes a time as ISO 8601 in UTC with milliseconds and `Z`.

    >>> iso_utc(0)
    '1970-01-01T00:00:00.000Z'
    """
    second_s, ms = divmod(epoch_ms, 1000)
    return f"{_iso_second(second_s)}.{ms:03}Z"


@lru_cache(1_024)
def _iso_second(epoch_s: int) -> str:
    """Writes a time without its milliseconds and zone; neighbouring rows share their second."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="seconds").removesuffix("+00:00")


def parse_iso_ms(text: str) -> int:
    """Reads an ISO 8601 time with zone as epoch milliseconds.

    Raises:
        ValueError: the text is no ISO time, or names no zone.

    >>> parse_iso_ms("1970-01-01T00:00:01Z")
    1000
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time without zone: {text!r}")
    return round(moment.timestamp() * 1000)
