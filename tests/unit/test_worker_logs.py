"""What a worker logs: events with fields, one line each, no secret, no content, one traceback for a cause."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from structlog.contextvars import bound_contextvars

from shared.errors import RedisUnreachableError
from shared.settings import Settings
from shared.upstream.failure_reasons import FailureReason
from worker.logs import MOST_A_SECOND, make_handler
from worker.upstream.failures import UpstreamError

NAME: Final = "cases-1.4711@host"
PROMPT: Final = "Which of my pills may I take with wine?"
HIDDEN: Final = "geheim-4711"

Written = Callable[[], list[dict[str, Any]]]


class Terminal(io.StringIO):
    """A stream that people look at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger of a worker's module, whose records nobody else gets."""
    made = logging.getLogger("worker.under_test")
    made.propagate = False
    made.setLevel(logging.DEBUG)
    yield made
    made.handlers.clear()


@pytest.fixture
def written(logger: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Sets up logs as off a terminal, with secrets in the environment; reads what was written."""
    monkeypatch.setenv("MY_API_KEY", HIDDEN)
    monkeypatch.setenv("PROXY", "http://me:pass%40word@proxy.example")
    stream = io.StringIO()
    redis_url = "redis://:of-the-file@db.example"
    logger.addHandler(make_handler(NAME, Settings(data_dir=Path("/x"), redis_url=redis_url), stream))
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_an_event_with_fields(logger: logging.Logger, written: Written) -> None:
    """Time, level, event and worker come first; then what is bound, and what the event brings."""
    with bound_contextvars(run="r1", chunk="4"):
        logger.info("item retried", extra={"item": "3", "attempt": 1, "pause_s": 1.5})
    [line] = written()
    assert list(line)[:4] == ["timestamp", "level", "event", "worker"]
    assert line["timestamp"].endswith("Z")
    del line["timestamp"]
    assert line == {
        "level": "info",
        "event": "item retried",
        "worker": NAME,
        "run": "r1",
        "chunk": "4",
        "item": "3",
        "attempt": 1,
        "pause_s": 1.5,
    }


def test_a_librarys_line_names_its_logger(logger: logging.Logger, written: Written) -> None:
    """Celery's own lines have the same form, their text as the event."""
    celery = logging.getLogger("celery.worker.under_test")
    celery.propagate = False
    celery.addHandler(logger.handlers[0])
    celery.warning("Connected to %s", "redis://me:secret1@db//")
    celery.handlers.clear()
    [line] = written()
    assert (line["event"], line["logger"]) == ("Connected to redis://me:***@db//", "celery.worker.under_test")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"key {HIDDEN} is refused", HIDDEN),
        ("cannot reach redis://:p/w@rd!@db.example:6379/0", "p/w@rd!"),
        ("cannot reach rediss://me:it's-me@db", "it's-me"),
        ("cannot reach redis://only-a-word@db", "only-a-word"),
        ("the server at db.example wants of-the-file", "of-the-file"),
        ("proxy sent pass@word", "pass@word"),
        ("proxy sent pass%40word", "pass%40word"),
        ("Authorization: Bearer abc.def-123", "abc.def-123"),
        ("authorization=Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
        ("Incorrect API key provided: sk-proj-4f9aB2c8", "sk-proj-4f9aB2c8"),
        ("token ghp_0123456789abcdefghij", "ghp_0123456789abcdefghij"),
        ("AKIAIOSFODNN7EXAMPLE was used", "AKIAIOSFODNN7EXAMPLE"),
        ("jwt eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl", "eyJzdWIiOi"),
        ("GET http://api.example/x?n=1&api_key=zzz9&m=2", "zzz9"),
        ('{"password": "zzz9", "n": 1}', "zzz9"),
        ("{'client_secret': 'zzz9'}", "zzz9"),
        (f"https://api.example/?q=%67%65heim {HIDDEN[:3]}\x00{HIDDEN}", HIDDEN),
    ],
)
def test_no_secret_is_written(text: str, secret: str, logger: logging.Logger, written: Written) -> None:
    """Wherever it stands, as the event, in a field, in a nested one or in an exception, it is masked."""
    logger.warning(text)
    logger.warning("event", extra={"reason": text, "more": {"deep": [text, {"deeper": text.encode()}]}})
    logger.error("failed", exc_info=OSError(text))
    lines = json.dumps(written(), ensure_ascii=False)
    assert len(written()) == 3
    assert secret not in lines
    assert "***" in lines


@pytest.mark.parametrize("name", ["api_key", "Authorization", "token", "redis_password", "cookie"])
def test_a_field_that_is_named_like_a_secret_is_masked(
    name: str, logger: logging.Logger, written: Written
) -> None:
    """Its value need not look like one."""
    logger.info("event", extra={name: "zzz", "inner": {name: "zzz"}})
    [line] = written()
    assert (line[name], line["inner"]) == ("***", {name: "***"})


@pytest.mark.parametrize("name", ["prompt", "messages", "output", "response", "query", "payload", "content"])
def test_a_field_that_holds_content_is_withheld(name: str, logger: logging.Logger, written: Written) -> None:
    """Whoever logs a prompt by mistake logs that there was one."""
    logger.info("event", extra={name: PROMPT, "inner": {name: [PROMPT]}})
    assert PROMPT not in json.dumps(written())
    assert written()[0][name] == "[withheld]"


def test_an_exception_is_written_without_words_that_may_quote_content(
    logger: logging.Logger, written: Written
) -> None:
    """Type and place are there, also of its cause; the words of a parser or an upstream are not."""
    try:
        try:
            json.loads(PROMPT)
        except ValueError as error:
            raise UpstreamError(FailureReason.INVALID_REPLY, f"the reply is not JSON: {PROMPT}") from error
    except UpstreamError:
        logger.exception("engine failed")
    [line] = written()
    assert PROMPT not in json.dumps(line)
    assert line["error"] == "UpstreamError"
    assert line["at"].startswith("unit/test_worker_logs.py:")
    assert "JSONDecodeError\nwhich led to:" in line["exception"]
    assert "raise UpstreamError(" in line["exception"]


def test_what_infrastructure_reports_is_written(logger: logging.Logger, written: Written) -> None:
    """A full disk or a Redis that is away can be mended only by who reads about it."""
    for error in (OSError(28, "No space left on device"), RedisUnreachableError("Redis does not answer")):
        logger.error("round failed", exc_info=error)
    assert [line["reason"] for line in written()] == [
        "[Errno 28] No space left on device",
        "Redis does not answer",
    ]


def test_one_cause_has_one_traceback(logger: logging.Logger, written: Written) -> None:
    """The second failure of one line of code names it; another line has a traceback of its own."""

    def fail(divisor: int) -> float:
        return 1 / divisor

    for attempt in range(3):
        try:
            fail(0)
        except ZeroDivisionError:
            logger.exception("chunk failed", extra={"failures": attempt})
    try:
        int(PROMPT)
    except ValueError:
        logger.exception("chunk failed")
    lines = written()
    assert ["exception" in line for line in lines] == [True, False, False, True]
    assert {(line["error"], line["at"]) for line in lines[:3]} == {("ZeroDivisionError", lines[0]["at"])}


def test_a_line_is_one_line_and_harmless(logger: logging.Logger, written: Written) -> None:
    """Line ends, escapes, half characters and endless texts cannot forge lines or harm a terminal."""
    hostile = '\x1b[2Jx\r\n{"event": "forged"}\udc80\u2028' + "y" * 10_000
    logger.warning(hostile, extra={"reason": hostile, "deep": [[[[[[hostile]]]]]]})
    [line] = written()
    for text in (line["event"], line["reason"]):
        assert text.isprintable()
        assert len(text) < 2_100
    assert "[withheld]" in json.dumps(line["deep"])


def test_a_storm_is_bounded(logger: logging.Logger, written: Written) -> None:
    """Of one event a bounded number is written in a second, other events and errors are not held back."""
    for _ in range(10 * MOST_A_SECOND):
        logger.info("item retried")
    logger.info("worker draining")
    for _ in range(2 * MOST_A_SECOND):
        logger.error("chunk failed")
    events = [line["event"] for line in written()]
    # The second may have changed once or twice meanwhile.
    assert MOST_A_SECOND <= events.count("item retried") <= 5 * MOST_A_SECOND
    assert events.count("worker draining") == 1
    assert events.count("chunk failed") == 2 * MOST_A_SECOND


def test_people_get_a_readable_line(logger: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal: the time of day, colours unless they are not wanted, and the name without the host."""
    settings = Settings(data_dir=Path("/x"))
    plain = Terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    logger.addHandler(make_handler(NAME, settings, plain))
    monkeypatch.delenv("NO_COLOR")
    coloured = Terminal()
    logger.addHandler(make_handler(NAME, settings, coloured))
    logger.warning("worker ended", extra={"reason": "was ended by SIGKILL"})
    assert plain.getvalue()[8:] == (
        " [warning  ] worker ended       worker=cases-1.4711 reason='was ended by SIGKILL'\n"
    )
    assert "\x1b[" in coloured.getvalue()


@pytest.mark.parametrize(("chosen", "is_json"), [("auto", False), ("json", True), ("console", False)])
def test_the_format_can_be_chosen(chosen: str, is_json: bool, logger: logging.Logger) -> None:  # noqa: FBT001 - a parameter of the test
    """`PROCTOR_LOG_FORMAT` goes before what the stream is."""
    stream = Terminal()
    logger.addHandler(make_handler(NAME, Settings(data_dir=Path("/x"), log_format=chosen), stream))
    logger.info("worker stopped")
    assert stream.getvalue().startswith("{") is is_json
