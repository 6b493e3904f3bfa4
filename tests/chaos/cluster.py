"""A Redis server, workers and runs to be disturbed: what the faults of the table act on.

    programs ── TCP ── door ── unix socket ── Redis      the test itself connects to the unix socket

Which programs work on the runs is the `Setup`. Everything that a cluster starts has its data folder in the
environment, so that what outlives it is found.
"""

import random
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import psutil
import redis

from producer.load.source import Source
from producer.submit import submit
from shared.broker import Publisher, make_app
from shared.errors import UnknownRunError
from shared.ledger.ledger import Ledger
from shared.ledger.scripts import compose_all
from shared.ledger.times import Times
from shared.runs import RunInfo, RunStore
from shared.server.client import RedisTarget
from shared.server.embedded import socket_path
from tests.chaos.needs import Needs, Setup, as_is, faketime_library, with_small_disk
from tests.chaos.workloads import TOGETHER, WHOLE, Size, Upstreams, Workload
from tests.support.cli import PROCTOR, Cli
from tests.support.eventually import eventually
from tests.support.processes import Process, Processes
from tests.support.proxy import Door, Trap
from tests.support.redis_server import RedisServer
from tests.support.workers import READY_S

WORKERS: Final = 2
"""Worker processes of a cluster."""
STARTED_S: Final = 60.0
"""How long commands may take to have their workers at work, on a machine that is busy with others."""
LONGEST_S: Final = 240.0
"""When a run that has not ended counts as standing for ever."""


@dataclass
class Cluster:
    """One cluster: `with Cluster(folder, env, needs, chance) as cluster: …`.

    Args:
        folder: for everything it writes.
        env: of the programs, without the server's URL.
        needs: which parts it has.
        chance: decides what a fault leaves open.
    """

    folder: Path
    env: Mapping[str, str]
    needs: Needs
    chance: random.Random
    upstreams: Upstreams = field(default_factory=Upstreams)
    supervisors: list[Process] = field(default_factory=list)
    """Of `proctor worker`."""
    commands: dict[str, Process] = field(default_factory=dict)
    """`proctor run` by the names of their workloads."""
    workloads: list[Workload] = field(default_factory=list)
    runs: dict[str, str] = field(default_factory=dict)
    """Ids of runs by the names of their workloads."""
    victims: list[psutil.Process] = field(default_factory=list)
    """Processes that the last fault has stopped or killed."""
    begun: Counter[str] = field(default_factory=Counter)
    """Calls under way at the last strike, by workload: begun, and without a result."""

    _inputs: int = 0

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._open = ExitStack()
        self._open.enter_context(self.upstreams)
        self.processes = Processes(self.folder, self.env)
        self._open.callback(self.processes.close)
        self.cli = Cli(
            self.processes, partial(with_small_disk, self.small_disk) if self.needs.full_disk else as_is
        )
        self.times = Times.of(float(self.env["PROCTOR_LEASE_S"]))
        if self.is_embedded:
            self._server: RedisServer | None = None
        else:
            self._start_server()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _start_server(self) -> None:
        """Starts Redis, and the proxy that programs reach it through."""
        # A server that a signal would end when its disk is full could not refuse writes.
        wrap = ["env", "--ignore-signal=XFSZ"]
        if self.needs.clock:
            self.clock.write_text("+0\n")
            wrap += ["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"]
            wrap += [f"LD_PRELOAD={faketime_library()}", f"FAKETIME_TIMESTAMP_FILE={self.clock}"]
        self._server = self._open.enter_context(RedisServer(host=lambda *command: (*wrap, *command)))
        self.door = self._open.enter_context(Door(self._server.socket))
        self.processes.env["PROCTOR_REDIS_URL"] = self.door.url
        broker = self.server.url
        if self.needs.broker:
            self.broker = self._open.enter_context(RedisServer())
            broker = self.processes.env["PROCTOR_BROKER_URL"] = self.broker.url
        self.client: Any = self._open.enter_context(self.server.client())
        self.store = RunStore(self.client, patience_s=30.0)
        self._ledger = Ledger(self.client, patience_s=30.0, times=self.times)
        self._publisher = Publisher(make_app(RedisTarget.parse(broker)), patience_s=10.0)

    @property
    def is_embedded(self) -> bool:
        """Whether programs start their server themselves."""
        return self.needs.setup is Setup.EMBEDDED

    @property
    def server(self) -> RedisServer:
        """The server, unless it is an embedded one."""
        assert self._server is not None, "the server is an embedded one"
        return self._server

    @property
    def data_dir(self) -> Path:
        """The data folder of all programs."""
        return Path(self.env["PROCTOR_DATA_DIR"])

    @property
    def small_disk(self) -> Path:
        """Where commands write reports if there is to be no room for them."""
        return self.folder / "small-disk"

    @property
    def clock(self) -> Path:
        """Holds the offset of the clock of a server that runs under libfaketime."""
        return self.folder / "faketime"

    def connect(self, socket_timeout: float = 5.0) -> redis.Redis:
        """Makes a client of the server, whichever it is; close it."""
        where = socket_path(self.data_dir) if self.is_embedded else self.server.socket
        return redis.Redis(unix_socket_path=str(where), socket_timeout=socket_timeout)

    def inputs(self, names: Sequence[str], size: Size = WHOLE) -> list[Workload]:
        """Writes inputs of these names; the second of a name is called so."""
        made, seen = [], Counter[str]()
        for name in names:
            self._inputs += 1
            seen[name] += 1
            workload = self.upstreams.workload(name, self.folder / "inputs", f"r{self._inputs}", size)
            made.append(workload if seen[name] == 1 else replace(workload, name=f"{name} {seen[name]}"))
        return made

    def start_workers(self, **env: str) -> Process:
        """Starts a supervisor with worker processes, and waits until they take messages."""
        command = (*PROCTOR, "worker", "--processes", str(WORKERS))
        supervisor = self.processes.start(*command, env={**self.processes.env, **env})

        def are_ready() -> None:
            assert supervisor.errors.count("ready ") >= WORKERS, supervisor.output_text()

        eventually(are_ready, READY_S)
        self.supervisors.append(supervisor)
        return supervisor

    def retire_workers(self) -> None:
        """Ends what faults have left of supervisors beside the newest, and forgets past rounds."""
        running = [supervisor for supervisor in self.supervisors if supervisor.is_running()]
        for supervisor in running[:-1]:
            assert supervisor.stop(40) == 0, supervisor.output_text()
        self.supervisors = running[-1:]
        self.upstreams.clear()

    def begin(self, workloads: Sequence[Workload]) -> None:
        """Brings runs under way, in the way of the setup."""
        self.workloads, self.runs = list(workloads), {}
        if not self.supervisors and self.needs.setup in {Setup.WORKERS, Setup.LOADING, Setup.BORROWED}:
            self.start_workers()
        for workload in workloads:
            if self.needs.setup is Setup.WORKERS:
                self.submit(workload)
                self.await_share(workload, 0.0)
            elif self.needs.setup is not Setup.LOADING:
                self.run(workload)
        if self.is_embedded:
            self.client = eventually(self._connected, READY_S)
            self.store = RunStore(self.client, patience_s=30.0)
        if self.needs.setup not in {Setup.WORKERS, Setup.LOADING}:
            self.find_runs()

    def _connected(self) -> redis.Redis:
        client = self.connect()
        assert client.ping()
        self._open.callback(client.close)
        return client

    def submit(self, workload: Workload) -> None:
        """Submits one input as `proctor submit` does."""
        source = Source(workload.file)
        run = submit(self._ledger, self._publisher, source, options=workload.options).run
        self.runs[workload.name] = run

    def run(self, workload: Workload) -> Process:
        """Starts `proctor run` on one input."""
        options = ["--processes", "1", "-j", str(TOGETHER), *workload.arguments]
        if self.needs.full_disk:
            options += ["-o", str(self.small_disk / f"{workload.kind}.jsonl")]
        process = self.cli.start("run", workload.file, *options)
        self.commands[workload.name] = process
        return process

    def find_runs(self) -> None:
        """Waits until the server has a run of each workload, and notes their ids."""

        def are_there() -> dict[str, str]:
            """Reads ids by the folders of their inputs."""
            known = {workload.file.name + workload.kind.name: workload.name for workload in self.workloads}
            listed = {info.source + info.kind.name: info.run for info in self.store.list()}
            found = {name: listed[source] for source, name in known.items() if source in listed}
            missing = {workload.name for workload in self.workloads} - set(found)
            assert not missing, "\n".join(each.output_text() for each in self.commands.values())
            return found

        self.runs = eventually(are_there, READY_S)

    def info(self, workload: Workload) -> RunInfo:
        """Looks at a run."""
        return self.store.info(self.runs[workload.name])

    def await_share(self, workload: Workload, share: float) -> None:
        """Waits until more than a share of a run has results."""

        def is_under_way() -> None:
            info = self.info(workload)
            assert info.done > share * workload.items, f"{info.done} of {info.total}, {self._why(workload)}"

        eventually(is_under_way, STARTED_S)

    def await_middle(self) -> None:
        """Waits until every run is under way, and none is over."""
        for workload in self.workloads:
            self.await_share(workload, 0.05)
        over = [workload.name for workload in self.workloads if self.info(workload).is_final]
        assert not over, f"over before anything could go wrong: {over}"

    def count_begun(self) -> None:
        """Counts the calls that are under way now: each was begun and has no result yet."""
        self.begun = Counter()
        for workload in filter(lambda each: each.asked, self.workloads):
            with suppress(Exception):  # Redis is away: an earlier strike has counted them
                begun = len(workload.calls()) - self.info(workload).done
                self.begun[workload.name] = max(0, begun)

    def finished(self, workload: Workload) -> RunInfo:
        """Waits until a run has ended well."""

        def has_ended() -> RunInfo:
            info = self.info(workload)
            assert info.is_final, f"{info.done} of {info.total}, {self._why(workload)}"
            return info

        return eventually(has_ended, LONGEST_S)

    def _why(self, workload: Workload) -> str:
        return f"{workload.name}: {self.store.wait_reason(self.runs[workload.name])}"

    def is_gone(self, workload: Workload) -> bool:
        """Whether the server no longer has the run."""
        try:
            self.info(workload)
        except UnknownRunError:
            return True
        return False

    def kill_at_seal(self, workload: Workload, *, after: bool) -> None:
        """Starts `proctor submit` and kills it just before, or just after, its run is sealed."""
        script = compose_all(times=self.times)["seal"]
        self.client.script_load(script.text)
        process: list[Process] = []
        self.door.trap = Trap(script.sha.encode(), lambda: process[0].send(signal.SIGKILL), after=after)
        process.append(self._submit_command(workload))
        assert process[0].wait() == -signal.SIGKILL, process[0].output_text()
        assert self.door.trap.sprung.is_set()

    def submit_again(self) -> None:
        """Submits everything once more, with the same keys."""
        started = {workload.name: self._submit_command(workload) for workload in self.workloads}
        for name, process in started.items():
            assert process.wait(60) == 0, process.output_text()
            self.runs[name] = process.output.strip()

    def _submit_command(self, workload: Workload) -> Process:
        key = ("--idempotency-key", workload.options.idempotency_key)
        return self.cli.start("submit", workload.file, *key, *workload.arguments)
