"""Wall-clock time in the two stored forms: epoch milliseconds and ISO 8601 UTC."""

from datetime import UTC, datetime
from time import time


def now_ms() -> int:
    """Returns the wall clock in milliseconds since the epoch."""
    return int(time() * 1000)


def iso_utc(epoch_ms: int) -> str:
    """Writes a time as ISO 8601 in UTC with milliseconds and `Z`.

    >>> iso_utc(0)
    '1970-01-01T00:00:00.000Z'
    """
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


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
