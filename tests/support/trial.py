"""A run through the real command line and real workers, to be disturbed in the middle and judged at the end.

What goes in is a file and what is judged is what a person gets: `results` and `runs show`, held against the
oracle of `tests.support.thread_oracle`, and an empty Redis.
"""

import json
import logging
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared import keys
from shared.broker import Publisher, make_app
from shared.ledger.ledger import Ledger
from shared.ledger.times import Times
from shared.runs import RunInfo, RunStore
from shared.server.client import RedisTarget
from tests.support.cli import Cli
from tests.support.eventually import eventually
from tests.support.invariants import deliver_again, nothing_is_left
from tests.support.processes import Process, Processes
from tests.support.redis_server import RedisServer
from tests.support.thread_oracle import Row, check_document, check_run, check_traces
from tests.support.turn_files import write_turns
from tests.support.workers import READY_S

if TYPE_CHECKING:
    import redis

logger = logging.getLogger(__name__)

RECOVERY_S: Final = 5.0
"""How long the loss of a worker may hold a run up beyond its lease, beside the work that is left."""
MESSAGES: Final = ("ok", "I am afraid that the flight is gone", "thanks", "please change the hotel to Rome")
SIGNALS: Final = ("decision_made", "answer_provided", "pivot", "open_loop_created")


def woven_turns(threads: int, turns: int, *, width: int = 10, tag: str = "") -> list[dict[str, Any]]:
    """Makes conversations that leave something behind: summaries, emotions up to the peak, signals.

    Args:
        threads: how many conversations.
        turns: of each.
        width: so many conversations go on at a time, turn by turn, so that chunks share them.
        tag: in front of the messages' ids, for several files about the same threads.
    """
    return [
        _turn(thread, turn, tag)
        for first in range(0, threads, width)
        for turn in range(turns)
        for thread in range(first, min(first + width, threads))
    ]


def _turn(thread: int, turn: int, tag: str) -> dict[str, Any]:
    message_id = f"{tag}t{thread}-{turn}"
    made: dict[str, Any] = {"threadId": f"t{thread}", "messageId": message_id}
    made["message"] = MESSAGES[(thread + turn) % len(MESSAGES)]
    made["role"] = "user" if turn % 2 == 0 else "assistant"
    if turn % 2 == 0:
        texts = {"active": [f"a{turn}"], "parked": [], "decisions": [f"d{thread}"], "next": []}
        made["modelShape"] = {"arc": f"arc {turn}", **texts}
    if turn % 3 == 0:
        intensity = (thread + turn) % 10 / 10
        made["affectSignal"] = {"label": "resolve", "intensity": intensity, "confidence": "high"}
    if turn % 5 == 0:
        kind = SIGNALS[(thread + turn) % len(SIGNALS)]
        item = {"endMessageId": message_id, "kind": kind, "confidence": "high", "source": "model"}
        made["signals"] = {"updatedAt": "2026-02-01T00:00:00Z", "items": [item]}
    return made


class Trial:
    """One server, its workers, and the runs of a test.

    Args:
        client: of the server.
        url: of the same server.
        processes: starts the programs, which use it too.
    """

    def __init__(self, client: "redis.Redis", url: str, processes: Processes) -> None:
        self.client: Any = client  # redis-py's own annotations mix str and bytes
        self.processes = processes
        self.cli = Cli(processes)
        self.times = Times.of(float(processes.env["PROCTOR_LEASE_S"]))
        """Of the protocol, as the programs have them."""
        self.ledger = Ledger(client, patience_s=30.0, times=self.times)
        self.store = RunStore(client, patience_s=30.0)
        self.publisher = Publisher(make_app(RedisTarget.parse(url)), patience_s=10.0)
        self._numbers = count(1)

    @classmethod
    @contextmanager
    def on(cls, server: RedisServer, processes: Processes, *, url: str | None = None) -> Iterator[Self]:
        """Uses a server of the test's own.

        Args:
            server: the server.
            processes: starts the programs.
            url: how programs reach the server; by default directly.
        """
        processes.env["PROCTOR_REDIS_URL"] = url or server.url
        with server.client() as client:
            yield cls(client, server.url, processes)

    def file(self, turns: Sequence[Mapping[str, Any]]) -> Path:
        """Writes an input file."""
        return write_turns(self.processes.folder / f"turns-{next(self._numbers)}.jsonl", map(dict, turns))

    def submit(self, file: Path, **options: Any) -> str:
        """Submits a file as `proctor submit` does, and returns the run's id; chunks may be small."""
        return submit(self.ledger, self.publisher, Source(file), options=SubmitOptions(**options)).run

    def workers(self, *names: str) -> dict[str, Process]:
        """Starts worker processes with these node names, and waits until all take messages."""
        command = (sys.executable, "-m", "worker", "-Q", "turns", "--name")
        started = {name: self.processes.start(*command, name) for name in names}
        for worker in started.values():
            worker.wait_for("ready ", READY_S)
        return started

    def worker(self, name: str) -> Process:
        """Starts one worker process."""
        return self.workers(name)[name]

    def info(self, run: str) -> RunInfo:
        """Looks at a run."""
        return self.store.info(run)

    def only_run(self) -> str:
        """Waits until a command that works on this server has made its run, and returns the run's id."""

        def is_there() -> str:
            [info] = self.store.list()
            return info.run

        return eventually(is_there, 20.0)

    @property
    def lease_s(self) -> float:
        """How long a claim lasts."""
        return self.times.lease_ms / 1000

    @property
    def overdue_s(self) -> float:
        """When a wake-up that nobody claimed counts as lost."""
        return self.times.overdue_ms / 1000

    def middle(self, run: str, share: float = 0.1, within_s: float = 30.0) -> RunInfo:
        """Waits until a share of a run is decided, and looks at it."""

        def is_under_way() -> RunInfo:
            info = self.store.info(run)
            assert info.total > 0
            assert info.done >= share * info.total
            return info

        info = eventually(is_under_way, within_s)
        assert not info.is_final, "it was over before anything could go wrong"
        return info

    def held(self, run: str, worker: str | None = None) -> dict[str, str]:
        """Lists the chunks of a run that a worker, or any worker, holds now, with their claim tokens."""
        found = {}
        for chunk in self.client.smembers(keys.admitted_key(run)):
            state, name, token = self.client.hmget(keys.chunk_key(run, chunk.decode()), ["st", "w", "own"])
            if state == b"L" and (worker is None or name == worker.encode()):
                found[chunk.decode()] = token.decode()
        return found

    def freeze_at_work(self, workers: Mapping[str, Process], *runs: str) -> tuple[str, dict[str, str]]:
        """Stops one of some workers at a moment when it holds chunks; returns its name and what it holds."""
        while not all(self.store.info(run).is_final for run in runs):
            for name, worker in workers.items():
                worker.freeze()
                # Twice: what it had sent before it was stopped is done by then.
                if self._held(runs, name) and (held := self._held(runs, name)):
                    return name, held
                worker.thaw()
        raise AssertionError("it was over before anything could go wrong")

    def _held(self, runs: Sequence[str], name: str) -> dict[str, str]:
        return {chunk: token for run in runs for chunk, token in self.held(run, name).items()}

    def finished(self, run: str, within_s: float = 60.0, state: str = "finished") -> RunInfo:
        """Waits until a run has ended."""

        def has_ended() -> RunInfo:
            info = self.store.info(run)
            assert info.state == state, (
                f"{info.state}: {info.done} of {info.total}, {self.store.wait_reason(run)}"
            )
            return info

        return eventually(has_ended, within_s)

    def rows(self, run: str) -> list[Row]:
        """Reads a run's results as a person does."""
        return _lines(self._results(run))

    def check(
        self, run: str, file: Path, *, poisoned: Collection[int] = (), retried: Sequence[int] = ()
    ) -> list[Row]:
        """Asserts that a finished run says of each turn, once and in order, what it must."""
        rows = self.check_outputs(run)
        check_run(rows, file.read_bytes().splitlines(), poisoned=poisoned, retried=retried)
        return rows

    def check_outputs(self, run: str) -> list[Row]:
        """Asserts that results, trace and document of a finished run agree; returns the results."""
        results = self._results(run)
        traces = self.cli.start("results", run, "--traces")
        document = self.cli.start("runs", "show", run, "--json")
        rows = _lines(results)
        check_traces(_lines(traces), rows)
        [found] = _lines(document)
        check_document(found, rows)
        return rows

    def _results(self, run: str) -> Process:
        return self.cli.start("results", run, "--format", "jsonl")

    def nothing_is_left(self, *, fetched: bool = False) -> None:
        """Waits until nothing is left in Redis; the last acknowledgements come after the last results."""
        eventually(lambda: nothing_is_left(self.client, fetched=fetched), 15.0)

    def wakes_of_the_dead_do_nothing(self, run: str, rows: Sequence[Row]) -> None:
        """Delivers what killed processes had fetched an hour later: it goes, and no result changes."""
        deliver_again(self.client)
        self.worker("latecomer@test")
        self.nothing_is_left()
        assert self.rows(run) == rows


def _lines(command: Process) -> list[Row]:
    """The objects that a command prints, one a line."""
    assert command.wait(60) == 0, command.output_text()
    return [json.loads(line) for line in command.output.splitlines()]


class Stopwatch:
    """Measures how long a run needed after a fault, and what it may have needed.

    Args:
        trial: the run's.
        run: its id; it is under way.
        started_at: when its work began, by the monotonic clock.
    """

    def __init__(self, trial: Trial, run: str, started_at: float) -> None:
        info = trial.info(run)
        self.at = monotonic()
        self.left = info.total - info.done
        rate_s = info.done / (self.at - started_at)
        self.work_s = self.left / rate_s
        self._recovery_s = trial.lease_s + RECOVERY_S

    def check(self, limit_s: float | None = None) -> None:
        """Asserts that it took no longer than allowed, and the work left at half the speed of before.

        Args:
            limit_s: how long the fault may hold the run up; by default as the loss of a worker.
        """
        limit_s = limit_s or self._recovery_s
        took_s = monotonic() - self.at
        logger.info("%d turns were left, %.1f s of work: done %.1f s after", self.left, self.work_s, took_s)
        assert took_s < limit_s + 2 * self.work_s, f"{self.left} turns took {took_s:.1f} s"
