"""Celery's own tools on our app: inspect, events as Flower reads them, shutdown, a plain Celery worker."""

import ast
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from shared.broker import make_app
from shared.kinds import TURNS
from shared.server.client import RedisTarget
from tests.support.eventually import eventually
from tests.support.processes import Processes
from tests.support.tree import ROOT
from tests.support.workers import READY_S, Desk, conversation, start_worker

if TYPE_CHECKING:
    import redis

CELERY: Final = (sys.executable, "-m", "celery", "-A", "worker.app")


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str) -> Desk:
    """A producer on the session's server."""
    return Desk(redis_client, redis_url)


def celery(env: Mapping[str, str], *arguments: str) -> Any:
    """Runs a command of Celery's own and reads its JSON."""
    done = subprocess.run(
        [*CELERY, *arguments, "--json"], env=dict(env), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@contextmanager
def task_events(url: str) -> Iterator[list[dict[str, Any]]]:
    """Collects the events of tasks, as Flower does."""
    seen: list[dict[str, Any]] = []
    app = make_app(RedisTarget.parse(url))
    is_listening = threading.Event()
    receivers: list[Any] = []

    def note(event: dict[str, Any]) -> None:
        is_listening.set()
        seen.append(event)

    def listen() -> None:
        with app.connection() as connection:
            receivers.append(app.events.Receiver(connection, handlers={"*": note}))
            receivers[0].capture(limit=None, timeout=None)

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        assert is_listening.wait(READY_S)  # the worker's heartbeat
        yield seen
    finally:
        receivers[0].should_stop = True
        thread.join()


def test_inspect_finds_the_worker(processes: Processes) -> None:
    """`celery -A worker.app inspect ping` answers, and so do queues, tasks and pool."""
    name = "turns-1@here"
    start_worker(processes, "-Q", "turns", "--name", name)
    assert celery(processes.env, "inspect", "ping") == {name: {"ok": "pong"}}
    inspect: Any = make_app(RedisTarget.parse(processes.env["PROCTOR_REDIS_URL"])).control.inspect(
        [name], timeout=5
    )
    [queue] = inspect.active_queues()[name]
    assert queue["name"] == "turns"
    assert "proctor.turns.evaluate" in inspect.registered()[name]
    pool = inspect.stats()[name]["pool"]
    assert pool["max-concurrency"] == 2
    assert pool["implementation"] == "celery.concurrency.thread:TaskPool"


def test_events_tell_what_a_chunk_was_and_what_came_of_it(
    desk: Desk, processes: Processes, redis_url: str
) -> None:
    """Without a result backend, Flower still has arguments, state and a readable value of each task."""
    start_worker(processes, "-Q", "turns")
    with task_events(redis_url) as events:
        desk.submit("r1", conversation(threads=10, turns=5))
        desk.finished("r1")

        def all_of_one_task() -> dict[str, dict[str, Any]]:
            by_type = {event["type"]: event for event in events if event["type"].startswith("task-")}
            assert set(by_type) == {"task-sent", "task-received", "task-started", "task-succeeded"}
            return by_type

        by_type = eventually(all_of_one_task)
    assert by_type["task-sent"]["queue"] == "turns"
    assert by_type["task-received"]["name"] == "proctor.turns.evaluate"
    expected = "{'run': 'r1', 'first': 'thread-0', 'chunk': '0', 'items': 50}"
    assert by_type["task-received"]["kwargs"] == expected
    value = ast.literal_eval(by_type["task-succeeded"]["result"])
    assert {"must", "should", "skip", "errors"} <= value.keys()
    assert (value["decided"], value["threads"], value["retried"], value["chunk"]) == (50, 10, 0, "0")
    assert value["must"] + value["should"] + value["skip"] == 50
    assert list(value)[:4] == ["errors", "must", "should", "skip"], "what a cut cell still shows"


def test_a_shutdown_from_afar_is_a_drain(desk: Desk, processes: Processes) -> None:
    """The shutdown button of Flower ends a worker as SIGTERM does."""
    worker = start_worker(processes, "-Q", "turns", "--name", "turns-1@here")
    make_app(RedisTarget.parse(processes.env["PROCTOR_REDIS_URL"])).control.shutdown()
    assert worker.wait(within_s=10) == 0
    assert desk.store.workers(TURNS) == []


def test_a_plain_celery_worker_works_too(desk: Desk, processes: Processes) -> None:
    """`celery -A worker.app worker` has our pool, our kinds, our drain."""
    worker = processes.start(*CELERY, "worker", "-n", "plain@here", "-c", "2", cwd=ROOT)
    worker.wait_for("ready plain@here", READY_S)
    desk.submit("r1", conversation(threads=10, turns=5))
    desk.finished("r1")
    assert worker.stop() == 0
    assert desk.store.workers(TURNS) == []


@pytest.mark.parametrize("serializer", ["pickle", "yaml"])
def test_only_json_is_read(desk: Desk, processes: Processes, serializer: str) -> None:
    """A message in a form that could carry code is thrown away, and the worker goes on."""
    worker = start_worker(processes, "-Q", "turns")
    app = make_app(RedisTarget.parse(processes.env["PROCTOR_REDIS_URL"]))
    app.send_task(
        "proctor.turns.evaluate", kwargs={"run": "r", "chunk": "0"}, serializer=serializer, queue="turns"
    )
    desk.submit("r1", conversation(threads=2, turns=2))
    desk.finished("r1")
    assert worker.is_running()
    assert f"application/x-{'python-serialize' if serializer == 'pickle' else 'yaml'}" in worker.errors
