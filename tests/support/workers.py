"""Starts workers as real processes, gives them runs of turns, and reads what became of them."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shared.broker import Publisher, make_app
from shared.codecs.turn_batches import pack_batch
from shared.ledger import ChunkPlan, Wake
from shared.ledger.ledger import Ledger
from shared.runs import RunInfo, RunStore, TurnRow
from shared.server.client import RedisTarget
from tests.support.eventually import eventually
from tests.support.processes import Process, Processes

if TYPE_CHECKING:
    import redis

READY_S: Final = 60.0
"""How long a worker may take to be ready on a busy machine; by itself it takes one second."""
SNAPSHOT: Final = {"v": 1, "submitted_ms": 0, "source": "test.jsonl", "summary_policy": "guardrail"}


class Desk:
    """A producer in miniature: puts turns into the ledger, publishes, and looks at results.

    Args:
        client: of the server that the workers use.
        url: the same server's URL.
    """

    def __init__(self, client: "redis.Redis", url: str) -> None:
        self.client = client
        self.ledger = Ledger(client, patience_s=10.0)
        self.store = RunStore(client)
        self.app = make_app(RedisTarget.parse(url))
        self.publisher = Publisher(self.app, patience_s=10.0)

    def close(self) -> None:
        """Lets go of the server; an embedded one would never be idle otherwise."""
        pool: Any = self.app.pool  # the stubs do not know what kombu's pools can do
        pool.force_close_all()
        self.client.close()

    def load(
        self, run: str, threads: Mapping[str, Sequence[Mapping[str, object]]], *, chunk_threads: int = 10
    ) -> list[Wake]:
        """Loads and seals a run without publishing it; input order is thread by thread."""
        names = list(threads)
        slices = [
            {name: threads[name] for name in names[first : first + chunk_threads]}
            for first in range(0, len(names), chunk_threads)
        ]
        return self.load_slices(run, slices)

    def load_slices(
        self, run: str, slices: Sequence[Mapping[str, Sequence[Mapping[str, object]]]]
    ) -> list[Wake]:
        """Loads and seals a run of which each slice is one chunk."""
        self.ledger.open(
            run,
            kind="turns",
            namespace="",
            key="",
            token=f"load-{run}",
            snapshot=json.dumps(SNAPSHOT).encode(),
            ttl_s=3600,
        )
        index = 0
        for number, threads in enumerate(slices):
            items, parts = {}, []
            for place, (name, turns) in enumerate(threads.items()):
                lines = [json.dumps({"threadId": name, **turn}).encode() for turn in turns]
                batch = f"{number}.{place}"
                items[batch] = pack_batch(range(index, index + len(lines)), lines)
                parts.append((batch, name, len(lines)))
                index += len(lines)
            self.ledger.load(run, f"load-{run}", items, {str(number): ChunkPlan(next(iter(threads)), parts)})
        return self.ledger.seal(run, f"load-{run}", index, "digest")

    def submit(
        self, run: str, threads: Mapping[str, Sequence[Mapping[str, object]]], *, chunk_threads: int = 10
    ) -> None:
        """Loads, seals and publishes a run."""
        self.publisher.publish(self.load(run, threads, chunk_threads=chunk_threads))

    def submit_slices(self, run: str, slices: Sequence[Mapping[str, Sequence[Mapping[str, object]]]]) -> None:
        """Loads, seals and publishes a run of which each slice is one chunk."""
        self.publisher.publish(self.load_slices(run, slices))

    def finished(self, run: str, within_s: float = 30.0) -> list[TurnRow]:
        """Waits until a run has all its results and returns them in input order."""

        def is_finished() -> None:
            info = self.store.info(run)
            assert info.state == "finished", f"{info.state}: {info.done} of {info.total}"

        eventually(is_finished, within_s)
        return list(self.store.rows(run))

    def info(self, run: str) -> RunInfo:
        """Looks at a run."""
        return self.store.info(run)


def conversation(threads: int, turns: int) -> dict[str, list[dict[str, object]]]:
    """Makes threads of turns whose decisions differ."""
    messages = ("ok", "I am afraid that the flight is gone", "thanks", "please change the hotel to Rome")
    return {
        f"thread-{thread}": [{"message": messages[(thread + turn) % len(messages)]} for turn in range(turns)]
        for thread in range(threads)
    }


def start_worker(processes: Processes, *options: str, env: Mapping[str, str] | None = None) -> Process:
    """Starts one worker process and waits until it takes messages."""
    process = processes.start(sys.executable, "-P", "-m", "worker", *options, env=env)
    process.wait_for("ready ", READY_S)
    return process


def start_supervisor(
    processes: Processes, count: int, *options: str, env: Mapping[str, str] | None = None
) -> Process:
    """Starts a supervisor and waits until all its processes take messages."""
    process = processes.start(
        sys.executable, "-P", "-m", "worker", "--supervise", "--processes", str(count), *options, env=env
    )
    ready(process, count)
    return process


def ready(process: Process, times: int) -> None:
    """Waits until worker processes have written `ready` so often."""

    def are_ready() -> None:
        assert process.errors.count("ready ") >= times, process.output_text()

    eventually(are_ready, READY_S)


def heartbeat_folder(env: Mapping[str, str]) -> Path:
    """Where the worker processes of this environment keep their heartbeat files."""
    return Path(env["PROCTOR_DATA_DIR"]) / "workers"
