"""Sets up what a worker process logs: events with fields, readable on a terminal, JSON everywhere else.

    12:30:05 [info ] item retried     run=r1 item=3 attempt=1 reason=upstream_timeout pause_s=1.3
    {"timestamp": "…", "level": "info", "event": "item retried", "worker": "cases-1.4711@host", …}

Modules log with the standard library, `logger.info("item retried", extra={"reason": …})`, and structlog
renders: so libraries' lines, Celery's included, look the same, and nothing but a worker loads structlog.
Names of events and fields are an interface: docs/operations.md lists them.

Celery's own lines about every single task are left out: Flower shows tasks, and a line for each chunk would
be thousands a second.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterable, Mapping, MutableMapping
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TextIO

from shared.observability import tracing
from shared.scrubbing import MASK, SECRET_NAME, forms_of, scrubbed
from shared.settings import Settings
from worker.tracebacks import Tracebacks

if TYPE_CHECKING:
    import structlog
else:
    # Imported without rich, which structlog loads wherever it is installed, to draw tracebacks. Workers draw
    # none, and rich takes 90 ms of processor time in each process.
    loaded = sys.modules.get("rich")
    sys.modules["rich"] = None  # an import of it fails, which structlog takes for its absence
    structlog = import_module("structlog")
    if loaded is None:
        del sys.modules["rich"]
    else:
        sys.modules["rich"] = loaded

__all__ = ["keep_logs", "make_handler", "set_up_logs", "structlog"]

LEAST: Final = {
    "celery.worker.strategy": logging.WARNING,
    "celery.app.trace": logging.WARNING,
    # Acknowledgements that fail while the broker is away: the ledger decides, not they.
    "celery.worker.request": logging.CRITICAL + 1,
    "celery.worker.consumer.consumer": logging.ERROR,  # our consumer logs this itself
    "celery.apps.worker": logging.WARNING,
    # It warns each second, with a traceback, while the broker refuses writes, and tries again by itself.
    "kombu.transport.redis": logging.ERROR,
    # Warnings for programmers; one of them complains of root, which JSON messages make moot.
    "py.warnings": logging.ERROR,
}
"""Minimum levels of verbose loggers."""
OURS: Final = ("shared", "worker")
"""Loggers that follow `PROCTOR_LOG_LEVEL` below `info`; libraries do not."""
EVENT_WIDTH: Final = 18
"""Cells of a terminal that an event's name takes at least."""
MOST_A_SECOND: Final = 50
"""Lines of one event and process per second below `error`; the next line has the number suppressed."""
MOST_OF_LIBRARIES: Final = 5
"""The same for repeated messages of libraries."""
WITHHELD: Final = "[withheld]"
"""Stands for content."""
MOST_CHARS: Final = 2_000
"""Longer texts are cut, a traceback excepted."""
MOST_DEPTH: Final = 4
"""Deeper values are withheld."""
CONTENT: Final = frozenset(
    {
        "prompt",
        "prompts",
        "message",
        "messages",
        "input",
        "output",
        "outputs",
        "raw_output",
        "content",
        "text",
    }
    | {"system_prompt", "response", "reply", "answer", "query", "question", "expected", "payload", "body"}
)
"""Fields that hold what people or models have written."""
MULTILINE: Final = frozenset({"exception"})
"""Fields that keep their line ends."""

Event = MutableMapping[str, Any]


class Flood(logging.Filter):
    """Limits how often one event is written, so that many refusals do not become many lines."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._second = 0
        self._counts: dict[str, int] = {}
        self._left_out: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Admits a line, with the number of suppressed ones before it."""
        if record.levelno >= logging.ERROR:
            return True
        with self._lock:
            second, name = int(monotonic()), str(record.msg)
            if second != self._second:
                self._second, self._counts = second, {}
            count = self._counts[name] = self._counts.get(name, 0) + 1
            if count > (MOST_A_SECOND if _is_ours(record) else MOST_OF_LIBRARIES):
                self._left_out[name] = self._left_out.get(name, 0) + 1
                return False
            left_out = self._left_out.pop(name, 0)
        if left_out:
            record.left_out = left_out
        return True


def set_up_logs(name: str, settings: Settings) -> None:
    """Sends every record of this process to standard error.

    Args:
        name: the node name.
        settings: format and level, and the URLs whose passwords must not be shown.
    """
    handler = make_handler(name, settings, sys.stderr)
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.INFO))
    logging.captureWarnings(capture=True)
    for ours in OURS:
        logging.getLogger(ours).setLevel(level)
    for logger, least in LEAST.items():
        logging.getLogger(logger).setLevel(max(level, least))


def keep_logs(**_options: object) -> None:
    """Answers Celery's `setup_logging` signal, so that it leaves the loggers as they are.

    A plain `celery worker` comes here without `set_up_logs` before; it logs in the same way.
    """
    if not any(
        isinstance(each.formatter, structlog.stdlib.ProcessorFormatter)
        for each in logging.getLogger().handlers
    ):
        set_up_logs(f"worker.{os.getpid()}", Settings.from_environment())


def make_handler(name: str, settings: Settings, stream: TextIO) -> logging.Handler:
    """Makes what writes the records of a process.

    Args:
        name: the node name; on a console without its host.
        settings: as `set_up_logs` takes them.
        stream: where to.
    """
    is_terminal = stream.isatty()
    is_console = settings.log_format == "console" or (settings.log_format == "auto" and is_terminal)
    scrub = Scrubber(forms_of(os.environ, settings.redis_url, settings.broker_url))
    handler = logging.StreamHandler(stream)
    handler.addFilter(Flood())
    time: dict[str, Any] = {"fmt": "%H:%M:%S", "utc": False} if is_console else {"fmt": "iso", "utc": True}
    render: Any = structlog.processors.JSONRenderer()
    if is_console:
        colors = is_terminal and not os.environ.get("NO_COLOR")
        render = structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=EVENT_WIDTH, sort_keys=False)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.stdlib.ExtraAdder(),
                structlog.stdlib.add_log_level,
                _Origin(name, is_console=is_console),
                Tracebacks(),
                structlog.processors.TimeStamper(key="timestamp", **time),
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _in_order,
                scrub,  # last, so that nothing comes in behind it
                render,
            ]
        )
    )
    return handler


class Scrubber:
    """A structlog processor that keeps secrets, content and control characters out of events.

    Args:
        secrets: how they may be written, see `forms_of`.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secrets)

    def __call__(self, _logger: object, _method: str, event: Event) -> Event:
        """Scrubs an event; keys that begin with an underscore are structlog's own."""
        for name, value in event.items():
            if not name.startswith("_"):
                event[name] = self._field(name, value, 0)
        return event

    def _field(self, name: str, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if SECRET_NAME.search(name):
            return MASK
        if name.lower() in CONTENT or depth > MOST_DEPTH:
            return WITHHELD
        if name in MULTILINE and isinstance(value, str):
            return "\n".join(scrubbed(line, self._secrets) for line in value.splitlines())
        return self._value(value, depth)

    def _value(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {
                self._cut(str(name)): self._field(str(name), inner, depth + 1)
                for name, inner in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self._value(inner, depth + 1) if depth < MOST_DEPTH else WITHHELD for inner in value]
        return self._cut(value.decode(errors="replace") if isinstance(value, bytes) else str(value))

    def _cut(self, text: str) -> str:
        # Scrubbed before it is cut: half of a secret would not be recognised.
        clean = scrubbed(text[: 4 * MOST_CHARS], self._secrets)
        return clean if len(clean) <= MOST_CHARS else f"{clean[:MOST_CHARS]}…"


class _Origin:
    """A structlog processor that adds the origin of a line: process, library, trace."""

    def __init__(self, name: str, *, is_console: bool) -> None:
        self._name = name.partition("@")[0] if is_console else name
        self._least = logging.WARNING if is_console else logging.NOTSET

    def __call__(self, _logger: object, _method: str, event: Event) -> Event:
        record: logging.LogRecord = event["_record"]
        for left_behind in ("message", "asctime"):  # of another handler's formatter, on the record
            event.pop(left_behind, None)
        event["worker"] = self._name
        if not _is_ours(record) and record.levelno >= self._least:
            event["logger"] = record.name
        return {**event, **tracing.identity()}


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in OURS


def _in_order(_logger: object, _method: str, event: Event) -> Event:
    """Puts first what every line has.

    >>> list(_in_order(None, "", {"run": "r1", "event": "e", "level": "info", "timestamp": "t"}))
    ['timestamp', 'level', 'event', 'run']
    """
    first = {name: event.pop(name) for name in ("timestamp", "level", "event", "worker") if name in event}
    return {**first, **event}
