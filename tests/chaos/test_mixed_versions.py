"""An upgrade in steps: workers and producers of the last release and of this one, in one fleet."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from shared import keys
from shared.ledger.bounds import LAYOUT
from tests.support.cli import PROCTOR
from tests.support.eventually import eventually, stays
from tests.support.invariants import let_ledger_time_pass
from tests.support.old_release import unpack
from tests.support.processes import Process, Processes
from tests.support.query_desk import numbered
from tests.support.scripted_api import ScriptedApi, Step
from tests.support.thread_oracle import Ran, Row, check_namespace, policy_of
from tests.support.trial import Trial, woven_turns
from tests.support.turn_files import write_turns
from tests.support.workers import READY_S

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

QUERIES: Final = 300
RECORDED: Final = 400
"""Cases of a bench with recorded outputs."""
CHECKS: Final = [{"contains": "Paris"}]
OVERDUE_S: Final = 30.0


class Release(NamedTuple):
    """One of the two, installed."""

    name: str
    processes: Processes
    env: Mapping[str, str]

    def worker(self) -> Process:
        """Starts a worker process."""
        command = (sys.executable, "-m", "worker", "--name", f"{self.name}@test")
        worker = self.processes.start(*command, env=self.env)
        worker.wait_for("ready ", READY_S)
        return worker

    def proctor(self, *arguments: str | Path) -> str:
        """Runs a command and returns what it printed."""
        done = self.processes.start(*PROCTOR, *arguments, env=self.env)
        assert done.wait(40) == 0, done.output_text()
        return done.output.strip()


@pytest.fixture
def releases(processes: Processes, tmp_path: Path) -> dict[str, Release]:
    """Both, on the session's server."""
    folder = tmp_path / "old"
    folder.mkdir()
    old_env = {**processes.env, "PYTHONPATH": str(unpack(folder))}
    where = processes.run(sys.executable, "-c", "import shared; print(shared.__file__)", env=old_env)
    assert where.output.startswith(str(folder))
    return {"old": Release("old", processes, old_env), "new": Release("new", processes, processes.env)}


@pytest.mark.parametrize("submitter", ["old", pytest.param("new", marks=pytest.mark.slow)])
def test_both_work_on_one_run(
    trial: Trial, releases: dict[str, Release], tmp_path: Path, submitter: str
) -> None:
    """A run of either release is worked on by workers of both, and both read the same results."""
    workers = [release.worker() for release in releases.values()]
    file = tmp_path / "queries.json"
    file.write_text(json.dumps(numbered(QUERIES)))
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.05)) as api:
        options = ("--api-url", api.url, "--concurrency", "10")
        run = releases[submitter].proctor("submit", file, *options)
        seen = set[str]()

        def both_hold_chunks() -> None:
            seen.update(token.partition("@")[0] for token in trial.held(run).values())
            assert seen == set(releases)

        eventually(both_hold_chunks, 20)
        trial.finished(run)
        assert api.asked().total() == len(api.asked()) == QUERIES
    read = [release.proctor("results", run, "--format", "jsonl") for release in releases.values()]
    assert read[0] == read[1]
    assert read[0].count('"outcome":"passed"') == QUERIES
    trial.nothing_is_left()
    assert "Traceback" not in "".join(worker.errors for worker in workers)


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(("old", "new"), id="upgrade"),
        pytest.param(("new", "old"), id="way back", marks=pytest.mark.slow),
    ],
)
def test_threads_go_from_one_release_to_the_other(
    trial: Trial, releases: dict[str, Release], tmp_path: Path, order: tuple[str, str]
) -> None:
    """What one release has left in a thread, the other goes on with, also on the way back."""
    history = []
    for name in order:
        release = releases[name]
        file = write_turns(tmp_path / f"{name}.jsonl", woven_turns(20, 30, tag=name))
        worker = release.worker()
        run = release.proctor("submit", file, "--namespace", "shared")
        trial.finished(run)
        assert worker.stop() == 0
        rows: list[Row] = trial.rows(run)
        history.append(Ran(rows, file.read_bytes().splitlines(), policy_of(rows)))
    check_namespace(history)


def test_workers_of_the_last_release_leave_runs_of_cases_alone(
    trial: Trial, releases: dict[str, Release], tmp_path: Path
) -> None:
    """They cannot read the settings of such runs; runs of turns are done by them meanwhile."""
    old = releases["old"].worker()
    turns = trial.submit(trial.file(woven_turns(5, 10)), await_disk=False)
    checked = trial.submit(recorded_bench(tmp_path / "checked.yaml", checks=CHECKS), await_disk=False)
    trial.finished(turns)

    def is_untouched() -> None:
        info = trial.info(checked)
        assert (info.state, info.done) == ("running", 0)
        assert not trial.held(checked)

    stays(is_untouched, 3)
    assert "of an earlier version and cannot work on it" in trial.store.wait_reason(checked)
    submitted = releases["new"].proctor("submit", recorded_bench(tmp_path / "third.yaml", checks=CHECKS))
    assert submitted in trial.store.ids()
    releases["new"].worker()
    # The old worker is still there, and takes its share of the wake-ups: others are sent after some seconds.
    trial.finished(checked)
    rows = trial.rows(checked)
    assert [row["result"]["status"] for row in rows] == ["passed", "failed_checks"] * (RECORDED // 2)
    assert all(row["result"]["checks"] for row in rows)
    assert "Traceback" not in old.errors


def recorded_bench(path: Path, **criteria: object) -> Path:
    """Writes a bench with recorded outputs, of which every second one is "Rome"."""
    outputs = ("Paris", "Rome")
    cases = [{"input": f"{n}?", "outputs": {"m": outputs[n % 2]}, **criteria} for n in range(RECORDED)]
    bench = {"name": "b", "system_prompt": "Answer.", "models": ["m"], "test_cases": cases}
    path.write_text(json.dumps(bench))
    return path


def test_a_run_of_an_unknown_layout_is_left_alone(trial: Trial) -> None:
    """A worker does other runs and touches nothing of one whose layout it does not know."""
    file = trial.file(woven_turns(5, 10))
    unknown, known = (trial.submit(file, await_disk=False) for _ in range(2))
    trial.client.hset(keys.run_key(unknown), "v", LAYOUT + 1)
    worker = trial.worker("one@test")
    trial.finished(known)

    def is_untouched() -> None:
        info = trial.info(unknown)
        assert (info.state, info.done) == ("running", 0)
        assert not trial.held(unknown)

    stays(is_untouched, 2)
    # A worker that knows it finds everything in its place.
    trial.client.hset(keys.run_key(unknown), "v", LAYOUT)
    let_ledger_time_pass(trial.client, OVERDUE_S)
    trial.finished(unknown)
    trial.check(unknown, file)
    assert "Traceback" not in worker.errors
