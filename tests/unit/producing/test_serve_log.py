"""The log of `proctor serve` has nothing of what callers have sent."""

import logging

import msgspec
import pytest

from producer.serve.log_lines import LogLines


def record(message: str, **more: object) -> logging.LogRecord:
    """What is logged."""
    return logging.makeLogRecord({"msg": message, "levelname": "ERROR", "created": 0, **more})


def test_a_failure_is_logged_without_its_text() -> None:
    """With its type and where it was raised; its text may be what a caller has sent."""
    with pytest.raises(ValueError, match="invalid literal") as caught:
        int("my secret")
    failure = (caught.type, caught.value, caught.tb)
    line = msgspec.json.decode(LogLines().format(record("request failed", exc_info=failure)))
    assert line["exception"].endswith("ValueError")
    assert "test_serve_log.py" in line["exception"]
    assert "invalid literal" not in line["exception"]


def test_values_that_asyncio_shows_are_not_logged() -> None:
    """They stand in further lines of its messages."""
    line = LogLines().format(
        record("Task exception was never retrieved\nfuture: <Task exception=E('secret')>")
    )
    assert msgspec.json.decode(line)["event"] == "Task exception was never retrieved"
