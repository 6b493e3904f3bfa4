"""A small run of each kind, from `proctor submit` through a real worker to its results, on any servers."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from shared.runs import RunInfo, RunStore
from shared.server.client import RedisTarget
from tests.support.case_runs import VALIDATORS, bench, echo
from tests.support.cli import PROCTOR
from tests.support.eventually import eventually
from tests.support.model_server import ModelServer
from tests.support.processes import Process, Processes
from tests.support.query_desk import numbered
from tests.support.scripted_api import ScriptedApi, always
from tests.support.turn_files import turn_lines, write_turns
from tests.support.workers import start_worker

TURNS: Final = 60
QUERIES: Final = 4
CASES: Final[list[dict[str, Any]]] = [
    {"id": "equal", "input": '{"n": 1}', "expected": {"n": 1}, "regex_pattern": "n"},
    {"id": "judged", "input": '{"n": 1.0}', "expected": {"n": 1}},
    {"id": "custom", "input": '{"n": 1}', "validator": "is_short"},
]


class Smoke:
    """The programs and upstreams of one test.

    Args:
        processes: starts the programs; their environment names the servers.
        redis_url: the ledger's server.
        broker_url: another server for the queue; empty: the same.
    """

    def __init__(self, processes: Processes, redis_url: str, broker_url: str = "") -> None:
        self.processes = processes
        processes.env["PROCTOR_REDIS_URL"] = redis_url
        if broker_url:
            processes.env["PROCTOR_BROKER_URL"] = broker_url
        self.store = RunStore(RedisTarget.parse(redis_url).client(), patience_s=20.0)

    def worker(self, *options: str) -> Process:
        """Starts a worker process for all kinds."""
        return start_worker(self.processes, *options)

    def start(self, *arguments: str | Path) -> Process:
        """Starts one command."""
        return self.processes.start(*PROCTOR, *arguments)

    def turns_file(self, name: str, threads: int = 6, turns: int = 10) -> Path:
        """Writes a file of turns."""
        return write_turns(self.processes.folder / f"{name}.jsonl", turn_lines(threads, turns))

    def submit(self, *arguments: str | Path) -> str:
        """Submits a file; returns the run's id."""
        return self._submitted(self.start("submit", *arguments))

    def finished(self, run: str, within_s: float = 30.0) -> RunInfo:
        """Waits until a run has all its results."""

        def is_over() -> RunInfo:
            info = self.store.info(run)
            assert info.state == "finished", f"{info.state}: {info.done} of {info.total}\n{self._said()}"
            return info

        return eventually(is_over, within_s)

    def all_kinds(self) -> Mapping[str, RunInfo]:
        """Runs turns, cases (with model, judge, pattern and validator) and queries at the same time."""
        folder = self.processes.folder
        with ExitStack() as stack:
            api = stack.enter_context(ScriptedApi(always))
            model = stack.enter_context(ModelServer(echo))
            (folder / "validators.py").write_text(VALIDATORS)
            queries = folder / "baselines.json"
            queries.write_text(json.dumps({"version": "1.0", "queries": numbered(QUERIES)}))
            cases = bench(folder, model, CASES, validators_file="validators.py")
            turns = self.turns_file("turns", 6, TURNS // 6)
            started = [
                self.start("submit", turns),
                self.start("submit", cases),
                self.start("submit", queries, "--api-url", api.url),
            ]
            infos = [self.finished(self._submitted(each)) for each in started]
        return {info.kind.name: info for info in infos}

    def check_all_kinds(self, *, with_worker: bool = False) -> None:
        """Runs each kind and asserts what came of it.

        Args:
            with_worker: start one first.
        """
        if with_worker:
            self.worker()
        runs = self.all_kinds()
        assert sum(runs["turns"].tally.get(word, 0) for word in ("must", "should", "skip")) == TURNS
        assert runs["cases"].tally["passed"] == runs["cases"].total == 2 * len(CASES)
        assert runs["queries"].tally["passed"] == QUERIES

    def _submitted(self, command: Process) -> str:
        assert command.wait(30) == 0, command.output_text()
        return command.output.strip()

    def _said(self) -> str:
        return "\n".join(each.errors[-2000:] for each in self.processes)
