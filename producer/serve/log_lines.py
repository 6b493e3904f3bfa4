"""Lines of the service's log: JSON, with requests by their route, and nothing of what callers have sent."""

import logging
from datetime import UTC, datetime
from traceback import format_tb
from typing import Any, Final

import msgspec
from msgspec import Struct


class LogLine(Struct, omit_defaults=True):
    """One line."""

    timestamp: datetime
    level: str
    event: str
    reason: str = ""
    method: str = ""
    route: str = ""
    """The path of a request as the description has it, without ids."""
    namespace: str = ""
    status: int = 0
    ms: float = 0.0
    exception: str = ""


class LogLines(logging.Formatter):
    r"""Writes what is logged as lines.

    >>> record = logging.makeLogRecord({"msg": "request", "levelname": "INFO", "created": 0, "status": 200})
    >>> LogLines().format(record)
    '{"timestamp":"1970-01-01T00:00:00Z","level":"info","event":"request","status":200}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Writes one."""
        line = msgspec.convert(
            vars(record)
            | {
                "timestamp": datetime.fromtimestamp(record.created, UTC),
                "level": record.levelname.lower(),
                "event": record.getMessage().partition("\n")[0],  # asyncio shows values in the other lines
                "exception": _where(record.exc_info),
            },
            LogLine,
        )
        return _encode(line).decode()


_encode: Final = msgspec.json.Encoder().encode
_TALKATIVE: Final = ("aiohttp.server", "aiohttp.web")
"""They log requests that are not HTTP, which anybody can send as often as they like, with their bytes."""


def _where(failure: Any) -> str:
    """Writes where an exception was raised, and its type; its text may be what a caller has sent."""
    if not failure:
        return ""
    kind, _, frames = failure
    return f"{''.join(format_tb(frames))}{kind.__name__}"


def log_to_stderr(*, with_requests: bool) -> None:
    """Writes warnings of this process to stderr, and on demand a line for each request."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogLines())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addHandler(handler)
    logging.getLogger("producer.serve").setLevel(logging.INFO if with_requests else logging.WARNING)
