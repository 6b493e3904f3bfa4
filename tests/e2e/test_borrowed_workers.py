"""Runs that share a Redis: the workers of one serve the others, and leave them in good order."""

import json
import sys
from pathlib import Path

from tests.support.cli import Cli
from tests.support.processes import Process
from tests.support.query_results import baseline
from tests.support.scripted_api import ScriptedApi, Step

ENDLESS_S = 60.0
"""Longer than any test: the call ends with its run."""
LENT_S = 4.0
"""Longer than workers take to end that hold nothing, shorter than their grace period."""


def asking(folder: Path, name: str, count: int) -> Path:
    """Writes a file of queries that the API can tell from those of other files."""
    path = folder / f"{name}.jsonl"
    queries = [baseline(f"Q-{number:02}", query=f"{name} {number}") for number in range(1, count + 1)]
    path.write_text("".join(json.dumps(query) + "\n" for query in queries))
    return path


def owner(cli: Cli, folder: Path, api: ScriptedApi) -> Process:
    """Starts a run that starts workers, and waits for its only call, which ends with the run."""
    process = cli.start("run", asking(folder, "own", 1), "--api-url", api.url)
    cli.eventually(lambda: api.asked()["own 1"] == 1, 30)
    return process


def cancelled(cli: Cli, process: Process) -> str:
    """Ends the newest but one run, and returns its id."""
    runs = json.loads(cli("runs", "--json").out)["runs"]
    run = str(runs[-1]["run_id"])
    assert cli("cancel", run).code == 0
    assert process.is_running() or process.popen.returncode == 4
    return run


def meet(query: str, _nth: int) -> Step:
    """Answers queries of others after some seconds, the owner's never."""
    return Step(after_s=ENDLESS_S if query.startswith("own") else LENT_S)


def test_a_run_that_ends_lets_its_workers_finish_what_they_do_for_another(cli: Cli, tmp_path: Path) -> None:
    """Calls of another run that are in flight when the workers leave are answered, and asked once."""
    with ScriptedApi(meet) as api:
        first = owner(cli, tmp_path, api)
        second = cli.start("run", asking(tmp_path, "lent", 4), "--api-url", api.url, "-j", "4", "--json")
        cli.eventually(lambda: api.in_flight == 5, 30)
        cancelled(cli, first)
        assert first.wait(40) == 4, first.output_text()
        assert second.wait(40) == 0, second.output_text()
    assert {query: count for query, count in api.asked().items() if count > 1} == {}
    assert "for running items of other runs" in first.errors


def test_a_harness_goes_on_when_the_workers_it_used_leave(cli: Cli, tmp_path: Path) -> None:
    """Workers of another command serve an evaluation; when they are gone it starts its own and finishes."""
    queries = [json.loads(line) for line in asking(tmp_path, "lent", 3).read_text().splitlines()]
    (tmp_path / "data").mkdir()
    baselines = {"version": "1.0", "queries": queries}
    (tmp_path / "data" / "evaluation_baselines.json").write_text(json.dumps(baselines))
    with ScriptedApi(meet) as api:
        first = owner(cli, tmp_path, api)
        env = {**cli.processes.env, "EVAL_API_URL": api.url, "EVAL_DELAY_SECONDS": "0"}
        program = "import sys; from producer.harness.program import main; sys.exit(main())"
        second = cli.processes.start(sys.executable, "-c", program, cwd=tmp_path, env=env, new_session=True)
        cli.eventually(lambda: api.asked()["lent 1"] == 1, 30)
        cancelled(cli, first)
        assert first.wait(40) == 4, first.output_text()
        assert second.wait(60) == 0, second.output_text()
    assert api.asked() == {"own 1": 1, "lent 1": 1, "lent 2": 1, "lent 3": 1}
