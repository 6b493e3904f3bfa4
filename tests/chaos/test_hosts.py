"""A fleet on several hosts with a network: hosts join, leave, die and are cut off, and no turn suffers."""

import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from shared import keys
from shared.kinds import TURNS
from shared.settings import LEASE_S
from tests.support.cli import PROCTOR, Cli
from tests.support.eventually import eventually, stays
from tests.support.hosts import Host, Network
from tests.support.live_desk import MODEL, LiveModel, reply, talks
from tests.support.model_server import Say
from tests.support.processes import Process, Processes
from tests.support.redis_server import RedisServer
from tests.support.thread_oracle import Row, check_etags
from tests.support.trial import Trial
from tests.support.turn_files import write_turns
from tests.support.workers import READY_S

if TYPE_CHECKING:
    from aiohttp import web

pytestmark = [
    pytest.mark.slow,
    pytest.mark.chaos,
    pytest.mark.skipif(sys.platform != "linux", reason="not permitted here: network namespaces need Linux"),
]

logger = logging.getLogger(__name__)

LOGIN: Final = "a password of the test"
PORT: Final = 6379
BLIP_S: Final = 4.0
"""A cut that is over before any lease is."""


class CountingModel(LiveModel):
    """A model that remembers which hosts ask it, and how much each has under way."""

    def __init__(self) -> None:
        super().__init__(lambda message, _nth: Say(reply(f"re: {message}"), after_s=self.thinks_s))
        self.thinks_s = 0.1
        self.by_host: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()

    async def _answer(self, request: "web.Request") -> "web.StreamResponse":
        """Counts one question."""
        address = str(request.remote)
        self.by_host[address] += 1
        self.under_way[address] += 1
        try:
            return await super()._answer(request)
        finally:
            self.under_way[address] -= 1


class Fleet:
    """A producer, Redis, a model and two hosts for workers.

    Args:
        network: with these hosts.
        server: Redis, on its host.
        model: on its host.
        trial: whose commands run on the producer's host.
    """

    def __init__(self, network: Network, server: RedisServer, model: CountingModel, trial: Trial) -> None:
        self.network, self.server, self.model, self.trial = network, server, model, trial
        self.one, self.two = network.hosts["one"], network.hosts["two"]

    def submit(self, turns: list[dict[str, Any]]) -> str:
        """Submits turns for the model from the producer's host."""
        file = write_turns(self.trial.processes.folder / "turns.jsonl", turns)
        options = ("--model", MODEL, "--api-base", self.model.api_base, "--no-cache")
        done = self.trial.cli("submit", file, *options)
        assert done.code == 0, done
        return done.out.strip()

    def start(self, host: Host) -> Process:
        """Starts the workers of a host, as its service would."""
        processes = self.trial.processes
        env = {**processes.env, "PROCTOR_DATA_DIR": str(processes.folder / host.namespace)}
        options = ("-Q", "turns", "--processes", "1", "-j", "20")
        worker = processes.start(*host.command(*PROCTOR, "worker", *options), env=env)
        worker.wait_for("ready ", READY_S)
        return worker

    def works(self, host: Host) -> None:
        """Waits until a host asks the model anew."""
        before = self.model.by_host[host.address]

        def asks() -> None:
            assert self.model.by_host[host.address] > before
            assert self.model.under_way[host.address] > 0

        eventually(asks, 40)

    def threads(self, run: str, worker: str) -> int:
        """Counts the threads that a worker has locked: each has one question under way, or its answer."""
        tokens = set(self.trial.held(run, worker).values())
        owners: Any = self.trial.client.hvals(keys.owners_key(self.trial.info(run).namespace))
        return sum(owner.decode().split()[2] in tokens for owner in owners)

    def stays_silent(self, host: Host, under_way: int) -> None:
        """Asserts for a while that a host that is cut off asks nothing beyond what had left it before."""
        most = self.model.by_host[host.address] + under_way

        def is_silent() -> None:
            assert self.model.by_host[host.address] <= most

        stays(is_silent, BLIP_S)

    def check(self, run: str, turns: list[dict[str, Any]], *, asked_again: int) -> None:
        """Asserts that each turn was answered, once and in its thread's order, and asked few times again."""
        rows = self.trial.check_outputs(run)
        assert [row["index"] for row in rows] == list(range(len(turns)))
        for row, turn in zip(rows, turns, strict=True):
            assert row["outcome"] == "decided", row
            assert row["result"]["response"] == f"re: {turn['message']}", row
        check_etags(rows)
        self._check_questions(rows, asked_again)

    def _check_questions(self, rows: list[Row], asked_again: int) -> None:
        times = self.model.times()
        assert len(times) == len(rows)
        again = times.total() - len(rows)
        logger.info(
            "%d of %d questions were asked again, at most %d may be: %s",
            again,
            len(rows),
            asked_again,
            Counter(times.values()),
        )
        assert again <= asked_again
        order = defaultdict(list)
        for question in self.model.asked:
            thread, number = question.message.split()[1].split(".")
            order[thread].append(int(number))
        assert all(numbers == sorted(numbers) for numbers in order.values())


@pytest.fixture
def fleet(tmp_path: Path, bare_env: dict[str, str]) -> Iterator[Fleet]:
    """The hosts, with Redis and the model at work and no workers yet."""
    with Network("redis", "producer", "model", "one", "two") as network:
        redis, producer = network.hosts["redis"], network.hosts["producer"]
        options = ("--port", str(PORT), "--bind", redis.address)
        url = f"redis://:{LOGIN.replace(' ', '%20')}@{redis.address}:{PORT}/0"
        folder = tmp_path / "fleet"
        folder.mkdir()
        processes = Processes(folder, {**bare_env, "PROCTOR_REDIS_URL": url, "PROCTOR_LEASE_S": str(LEASE_S)})
        model = CountingModel()
        model.listener = network.hosts["model"].listener()
        try:
            with RedisServer(*options, host=redis.command, password=LOGIN) as server, model:
                with server.client() as client:
                    trial = Trial(client, url, processes)
                    trial.cli = Cli(processes, producer.command)
                    yield Fleet(network, server, model, trial)
                processes.close()
        finally:
            processes.close()


def test_hosts_join_and_leave_a_run(fleet: Fleet) -> None:
    """A host joins, another is cut off for moments and leaves by SIGTERM: nothing is even asked twice."""
    turns = talks(120, 20)
    first = fleet.start(fleet.one)
    run = fleet.submit(turns)
    fleet.works(fleet.one)
    fleet.start(fleet.two)
    fleet.works(fleet.two)
    fleet.one.unplug()
    under_way = fleet.model.under_way[fleet.one.address]
    fleet.stays_silent(fleet.one, under_way)
    fleet.one.plug()
    fleet.works(fleet.one)
    first.terminate()
    assert first.wait(30) == 0, first.output_text()
    assert not fleet.trial.info(run).is_final, "it was over before the host left"
    fleet.trial.finished(run)
    fleet.check(run, turns, asked_again=0)
    fleet.trial.nothing_is_left()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_hosts_die_and_are_cut_off(fleet: Fleet) -> None:
    """A host dies, another is cut off for longer than its leases and comes back: one result a turn, in order.

    Asked again is at most what each of them had asked when it was lost.
    """
    trial, turns = fleet.trial, talks(240, 40)
    first = fleet.start(fleet.one)
    [name] = [worker.name for worker in trial.store.workers(TURNS)]
    run = fleet.submit(turns)
    fleet.works(fleet.one)
    second = fleet.start(fleet.two)
    fleet.works(fleet.two)
    [other] = [worker.name for worker in trial.store.workers(TURNS) if worker.name != name]
    second.kill_tree()
    lost = fleet.threads(run, other)
    second = fleet.start(fleet.two)
    fleet.works(fleet.two)

    fleet.works(fleet.one)
    fleet.one.unplug()
    lost += fleet.threads(run, name)
    held = trial.held(run, name)
    assert held

    def is_given_up() -> None:
        assert name not in {worker.name for worker in trial.store.workers(TURNS)}
        assert not trial.held(run, name)

    eventually(is_given_up, LEASE_S + 10)
    fleet.works(fleet.two)
    assert first.is_running()
    fleet.one.plug()

    def is_back() -> None:
        assert trial.held(run, name), "it was not given a chunk again"

    eventually(is_back, 60)
    assert not set(held.values()) & set(trial.held(run).values())
    trial.finished(run, within_s=120)
    fleet.check(run, turns, asked_again=lost)
    trial.nothing_is_left(fetched=True)
    assert "Traceback" not in first.errors + second.errors
