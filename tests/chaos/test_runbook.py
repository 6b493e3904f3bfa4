"""What the runbook of docs/operations.md says is done here, command by command, while a run is under way."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest

from tests.support.case_runs import bench
from tests.support.eventually import eventually, stays
from tests.support.invariants import let_ledger_time_pass
from tests.support.model_server import ModelServer, Request, Say
from tests.support.ports import free_port
from tests.support.processes import Process, Processes
from tests.support.redis_server import RedisServer
from tests.support.runbook import entries, follow
from tests.support.tools import require_tool
from tests.support.trial import Trial, woven_turns
from tests.support.workers import start_supervisor, start_worker

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

THREADS, TURNS, CHUNK_TURNS = 60, 50, 10
"""3,000 turns in chunks so small that the run has a middle."""
OVERDUE_S: Final = 30.0
"""When a wake-up that nobody claimed counts as lost."""
CASES: Final = 200
"""Two seconds of work, ten at a time."""
BACKUP: Final = "Back up and restore the append-only file"
ROTATION: Final = "Rotate the Redis password"
EXECUTED: Final = {BACKUP: 2, ROTATION: 2}
"""Entries with shell blocks, and how many of them the tests of this file run."""
OLD, NEW = "old-secret", "new-secret"


def test_no_command_of_the_runbook_goes_untested() -> None:
    """Each shell block of the runbook is run by a test of this file."""
    assert {title: len(blocks) for title, blocks in entries().items() if blocks} == EXECUTED


def on_tcp(
    new_redis_server: Callable[..., RedisServer], *options: str, program: str | None = None
) -> tuple[RedisServer, int]:
    """Starts a server that redis-cli reaches by a URL, and returns its port."""
    port = free_port()
    return new_redis_server("--port", str(port), "--bind", "127.0.0.1", *options, program=program), port


class KeyedModel(ModelServer):
    """A model that answers only who has a key that holds now."""

    def __init__(self) -> None:
        super().__init__(self._say)
        self.keys = {OLD}

    def _say(self, _prompt: str, _nth: int) -> Say:
        asked: Request = self.requests[-1]
        is_known = asked.headers["Authorization"].removeprefix("Bearer ") in self.keys
        return Say("ok", after_s=0.1) if is_known else Say("no such key", status=401)


@pytest.fixture
def model() -> Iterator[KeyedModel]:
    """A model that answers after a while, and only to keys of `model.keys`."""
    with KeyedModel() as server:
        yield server


def keyed_run(trial: Trial, model: KeyedModel) -> str:
    """Submits cases whose model wants a key, ten at a time."""
    cases = [{"input": f"question {number}", "regex_pattern": "ok"} for number in range(CASES)]
    place = {"api_base": model.api_base, "api_key_env": "TEST_API_KEY"}
    config = {"judge_model": None, "concurrency": 10, "cache": False}
    more: dict[str, Any] = {"model_configs": {"alpha": place}, "config": config}
    path = bench(trial.processes.folder, model, cases, models=["alpha"], **more)
    done = trial.cli("submit", path)
    assert done.code == 0, done
    return done.out.strip()


def worker_with(key: str, trial: Trial) -> Process:
    """Starts a worker that has this key."""
    return start_worker(trial.processes, "-Q", "cases", env={**trial.processes.env, "TEST_API_KEY": key})


def test_a_full_redis_holds_the_run_up_and_no_more(own_trial: Trial) -> None:
    """While Redis takes no writes nothing is lost, `doctor` says why, and with room the run goes on."""
    trial = own_trial
    start_supervisor(trial.processes, 1, "-Q", "turns")
    file = trial.file(woven_turns(THREADS, TURNS))
    run = trial.submit(file, chunk_turns=CHUNK_TURNS)
    trial.middle(run)
    trial.client.config_set("maxmemory", "1mb")
    eventually(lambda: _stands_still(trial, run))
    report = trial.cli("doctor")
    assert report.code == 3, report
    assert "make room: `proctor runs rm RUN`" in report.out
    assert f"{run} (running) holds " in report.out
    assert not trial.info(run).is_final
    trial.client.config_set("maxmemory", "0")
    # Worker processes may have ended for it: their leases and wake-ups run out now.
    let_ledger_time_pass(trial.client, OVERDUE_S)
    trial.finished(run)
    trial.check(run, file)
    trial.nothing_is_left(fetched=True)


def test_a_full_redis_is_relieved_by_cancel_and_remove(own_trial: Trial) -> None:
    """Every command says that Redis is full and who holds it; to cancel and remove that run makes room."""
    trial = own_trial
    supervisor = start_supervisor(trial.processes, 1, "-Q", "turns")
    file = trial.file(woven_turns(THREADS, TURNS))
    run = trial.submit(file, chunk_turns=CHUNK_TURNS)
    trial.middle(run, 0.3)
    for _ in range(2):  # once more when nothing is under way: its buffers took memory too
        trial.client.config_set("maxmemory", int(trial.client.info("memory")["used_memory"]) - 100_000)
        eventually(lambda: _stands_still(trial, run))
    began_s = monotonic()
    refused = trial.cli("submit", file)
    assert refused.code == 3, refused
    assert "error: Redis is full: " in refused.err
    assert f"{run} (running) holds " in refused.err
    assert "hint: make room: `proctor runs rm RUN`" in refused.err
    assert monotonic() - began_s < 15
    assert trial.cli("health", "redis").code == 3
    for command in (("pause", run), ("cancel", run), ("runs", "rm", run, "--yes")):
        done = trial.cli(*command)
        assert done.code == 0, done
    eventually(lambda: _is_well(trial), 20)
    again = trial.cli("submit", file)
    assert again.code == 0, again
    trial.client.config_set("maxmemory", "0")
    let_ledger_time_pass(trial.client, OVERDUE_S)
    trial.finished(again.out.strip())
    assert "Traceback" not in supervisor.errors
    assert "is started again" not in supervisor.errors
    trial.nothing_is_left(fetched=True)


def _is_well(trial: Trial) -> None:
    assert trial.cli("health", "redis").code == 0


def test_a_worker_that_runs_out_of_memory_costs_its_lease(trial: Trial) -> None:
    """The kernel kills it as SIGKILL does: its supervisor says so and starts another, nothing is lost."""
    supervisor = start_supervisor(trial.processes, 1, "-Q", "turns")
    file = trial.file(woven_turns(THREADS, TURNS))
    run = trial.submit(file, chunk_turns=CHUNK_TURNS)
    trial.middle(run)
    [worker] = [
        child for child in supervisor.tree() if child.ppid() == supervisor.pid and "worker" in child.cmdline()
    ]
    worker.kill()
    supervisor.wait_for("was ended by SIGKILL")
    let_ledger_time_pass(trial.client, OVERDUE_S)
    trial.finished(run)
    trial.check(run, file)
    trial.nothing_is_left(fetched=True)


def _stands_still(trial: Trial, run: str) -> None:
    done = trial.info(run).done

    def is_the_same() -> None:
        assert trial.info(run).done == done

    stays(is_the_same, 1)


def test_a_backup_goes_on_where_it_was_made(
    new_redis_server: Callable[..., RedisServer], processes: Processes, tmp_path: Path
) -> None:
    """A server that is lost is replaced by one with the copied file; the run ends with each turn once."""
    require_tool("redis-cli", package="redis-tools")
    first, port = on_tcp(new_redis_server)
    url = f"redis://127.0.0.1:{port}/0"
    backup = tmp_path / "backup"
    with Trial.on(first, processes, url=url) as trial:
        workers = trial.workers("one@test", "two@test")
        file = trial.file(woven_turns(THREADS, TURNS))
        run = trial.submit(file, chunk_turns=CHUNK_TURNS)
        trial.middle(run)
        follow(processes, BACKUP, 0, ADMIN_URL=url, BACKUP=backup)
        copied = trial.info(run).done
        assert trial.client.config_get("auto-aof-rewrite-percentage") == {
            "auto-aof-rewrite-percentage": "100"
        }
        for worker in workers.values():
            worker.kill()
        first.kill()
    second = RedisServer("--port", str(port), "--bind", "127.0.0.1")
    follow(processes, BACKUP, 1, BACKUP=backup, NEW_DIR=second.folder)
    with second, Trial.on(second, processes, url=url) as trial:
        assert 0 < trial.info(run).done <= copied
        let_ledger_time_pass(trial.client, OVERDUE_S)
        trial.worker("three@test")
        trial.finished(run)
        trial.check(run, file)
        trial.nothing_is_left(fetched=True)


def test_a_password_is_rotated_while_a_run_goes_on(
    new_redis_server: Callable[..., RedisServer], processes: Processes, tmp_path: Path, model: KeyedModel
) -> None:
    """Workers change to the new password one after the other; the old one is refused in the end."""
    require_tool("redis-cli", package="redis-tools")
    users = tmp_path / "users.acl"
    users.write_text(f"user default on nopass ~* &* +@all\nuser proctor on >{OLD} ~* &* +@all\n")
    server, port = on_tcp(new_redis_server, "--aclfile", str(users))
    admin = f"redis://127.0.0.1:{port}/0"
    urls = {word: f"redis://proctor:{word}@127.0.0.1:{port}/0" for word in (OLD, NEW)}
    with Trial.on(server, processes, url=urls[OLD]) as trial:
        first = worker_with(OLD, trial)
        run = keyed_run(trial, model)
        trial.middle(run)
        follow(processes, ROTATION, 0, ADMIN_URL=admin, NEW_PASSWORD=NEW)
        processes.env["PROCTOR_REDIS_URL"] = urls[NEW]
        second = worker_with(OLD, trial)
        assert first.stop() == 0
        follow(processes, ROTATION, 1, ADMIN_URL=admin, OLD_PASSWORD=OLD)
        trial.finished(run)
        assert [row["outcome"] for row in trial.rows(run)] == ["passed"] * CASES
        assert len(model.requests) == CASES
        trial.nothing_is_left()
        refused = trial.cli("status", env={"PROCTOR_REDIS_URL": urls[OLD]})
        assert refused.code == 3, refused
        assert second.is_running()
    assert len(users.read_text().split("#")) == 2, "one password, hashed"


def test_an_api_key_is_rotated_while_a_run_goes_on(trial: Trial, model: KeyedModel) -> None:
    """While both keys are valid workers change one by one: nothing fails, and nothing is asked twice."""
    first = worker_with(OLD, trial)
    run = keyed_run(trial, model)
    trial.middle(run)
    model.keys |= {NEW}
    worker_with(NEW, trial)
    assert first.stop() == 0
    model.keys -= {OLD}
    info = trial.finished(run)
    assert info.tally["passed"] == len(model.requests) == CASES


def test_a_key_that_is_revoked_too_early_costs_a_command(trial: Trial, model: KeyedModel) -> None:
    """The first refusal ends the run; `resume` and `retry` with the new key ask what has no answer, once."""
    first = worker_with(OLD, trial)
    run = keyed_run(trial, model)
    trial.middle(run)
    model.keys = {NEW}
    trial.finished(run, state="aborted")
    first.send(signal.SIGTERM)
    worker_with(NEW, trial)
    resumed = trial.cli("resume", run)
    assert resumed.code == 1, "those that were refused are still errors"
    retried = trial.cli("retry", run)
    assert retried.code == 0, retried
    trial.finished(run)
    assert [row["outcome"] for row in trial.rows(run)] == ["passed"] * CASES
    answered = [request.prompt for request in model.requests if NEW in request.headers["Authorization"]]
    assert len(set(answered)) == len(answered) < CASES
