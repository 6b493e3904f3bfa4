"""Fixtures of tests that load and read runs with a worker inside the test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from producer.cli.main import run
from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from tests.support.inline_worker import InlineWorker
from tests.support.turn_files import write_turns

if TYPE_CHECKING:
    import redis


@pytest.fixture
def inline_worker(redis_client: "redis.Redis") -> Iterator[InlineWorker]:
    """Ledger, store, publisher and worker on an empty server that is never waited for because of its disk."""
    redis_client.config_set("appendfsync", "always")
    yield InlineWorker(redis_client)
    redis_client.config_set("appendfsync", "everysec")


@pytest.fixture
def submitted(inline_worker: InlineWorker, tmp_path: Path) -> Callable[..., str]:
    """Submits turns and returns the run's id: `submitted(turns, chunk_turns=…)`."""

    def send(turns: list[dict[str, Any]], **options: Any) -> str:
        source = Source(write_turns(tmp_path / "turns.jsonl", turns))
        return submit(inline_worker.ledger, inline_worker, source, options=SubmitOptions(**options)).run

    return send


@pytest.fixture
def printed(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs one command line here and returns what it printed."""
    monkeypatch.setenv("PROCTOR_REDIS_URL", redis_url)
    monkeypatch.setenv("PROCTOR_DATA_DIR", str(tmp_path))

    def call(*arguments: str) -> str:
        capsys.readouterr()
        run(list(arguments))
        return capsys.readouterr().out

    return call
