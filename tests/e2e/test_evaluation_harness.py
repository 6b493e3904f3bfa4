"""The evaluation harness as the document's usage examples call it: text, files, exit codes, nothing lost."""

import csv
import importlib.util
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from producer.sample_api.behaviour import RequestLog, parse_behaviour
from producer.sample_api.server import in_background
from tests.support.cli import Cli
from tests.support.processes import Process
from tests.support.scripted_api import ScriptedApi, Step
from tests.support.tools import require_tool
from tests.support.tree import ROOT

COPILOT: Final = ROOT / "examples" / "copilot"
SCRIPT: Final = "scripts/evaluation_harness.py"
FILES: Final = (
    "data/evaluation_results.json",
    "data/evaluation_results.csv",
    "reports/evaluation_report.md",
)


@pytest.fixture
def copilot(tmp_path: Path) -> Path:
    """A folder like `examples/copilot`, to write into."""
    folder = tmp_path / "copilot"
    shutil.copytree(COPILOT, folder, ignore=shutil.ignore_patterns("evaluation_results*", "reports"))
    return folder


@pytest.fixture
def api() -> Iterator[str]:
    """The sample API on a free port."""
    with in_background() as url:
        yield url


def start(cli: Cli, copilot: Path, *arguments: str, **env: str) -> Process:
    """Starts the script as the document does."""
    return cli.processes.start(
        sys.executable, SCRIPT, *arguments, cwd=copilot, env={**cli.processes.env, **env}, new_session=True
    )


def harness(cli: Cli, copilot: Path, *arguments: str, **env: str) -> Process:
    """Runs the script to its end."""
    process = start(cli, copilot, *arguments, **{"EVAL_DELAY_SECONDS": "0", **env})
    process.wait(60)
    return process


def results(copilot: Path) -> dict[str, Any]:
    """The results file."""
    found: dict[str, Any] = json.loads((copilot / FILES[0]).read_text(encoding="utf-8"))
    return found


def test_a_full_run_prints_and_writes_what_the_document_says(cli: Cli, copilot: Path, api: str) -> None:
    """Header, estimate, a line per query in order, files and summary; three files at their places; exit 0."""
    done = harness(cli, copilot, EVAL_API_URL=api)
    assert done.popen.returncode == 0, done.output_text()
    assert done.errors == ""
    lines = done.output.splitlines()
    assert lines[:3] == ["=" * 60, "  Waypoint Co-Pilot - Evaluation Harness", "=" * 60]
    assert f"  API:    {api}" in lines
    assert "  Delay:  0s between queries" in lines
    assert "Loaded 50 baselines (version: 1.0)" in lines
    numbers = [line.split("]")[0].strip() for line in lines if line.startswith("  [")]
    assert numbers == [f"[{number:02}/50" for number in range(1, 51)]
    assert lines[lines.index("Writing output files...") + 1 :][:3] == [
        f"  {word} {name}" for word, name in zip(("JSON:", "CSV: ", "Report:"), FILES, strict=True)
    ]
    assert "  Queries:         50/50 successful" in lines
    found = results(copilot)
    assert list(found) == ["run_id", "timestamp", "config", "metrics", "results"]
    assert found["config"] == {"delay": 0, "api_url": api, "start_from": "Q-01", "version": "1.0"}
    assert [result["id"] for result in found["results"]] == [f"Q-{number:02}" for number in range(1, 51)]
    with (copilot / FILES[1]).open(encoding="utf-8", newline="") as table:
        assert len(list(csv.DictReader(table))) == 50
    assert (copilot / FILES[2]).read_text(encoding="utf-8").count("\n## ") == 8


def test_a_dry_run_sends_nothing_and_writes_nothing(cli: Cli, copilot: Path) -> None:
    """`--dry-run` needs no API: statistics, exit 0, no file."""
    done = harness(cli, copilot, "--dry-run", EVAL_API_URL="http://127.0.0.1:1")
    assert done.popen.returncode == 0, done.output_text()
    assert "DRY RUN: baselines are valid, no queries sent" in done.output
    assert not [name for name in FILES if (copilot / name).exists()]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--start-from", "Q-99"], 1, "no query has the id"),
        (["--delay", "-1"], 2, "--delay"),
        (["--delay", "soon"], 2, "invalid int value"),
        (["--api-url", "ftp://x"], 2, "no address of an API"),
        (["--what"], 2, "unrecognized arguments"),
    ],
)
def test_wrong_command_lines(cli: Cli, copilot: Path, arguments: list[str], code: int, words: str) -> None:
    """An unknown id is exit 1, anything else that is wrong exit 2, in a sentence."""
    done = harness(cli, copilot, *arguments)
    assert done.popen.returncode == code, done.output_text()
    assert words in done.errors
    assert "Traceback" not in done.errors


def test_bad_baselines_are_exit_1(cli: Cli, copilot: Path) -> None:
    """A missing file and a missing field end the script before anything is sent."""
    path = copilot / "data" / "evaluation_baselines.json"
    document = json.loads(path.read_text())
    del document["queries"][3]["must_contain"]
    path.write_text(json.dumps(document))
    done = harness(cli, copilot)
    assert done.popen.returncode == 1
    assert "Q-04" in done.errors
    assert "must_contain" in done.errors
    path.unlink()
    assert harness(cli, copilot).popen.returncode == 1


def test_an_api_that_is_not_there_is_exit_3_with_partial_files(cli: Cli, copilot: Path) -> None:
    """The first query is a failed result with the document's text, and the files hold it."""
    done = harness(cli, copilot, "--api-url", "http://127.0.0.1:1")
    assert done.popen.returncode == 3, done.output_text()
    assert "Connection refused - backend not running on http://127.0.0.1:1" in done.output
    assert [result["id"] for result in results(copilot)["results"]] == ["Q-01"]


def test_ctrl_c_keeps_what_is_there_and_start_from_adds_the_rest(cli: Cli, copilot: Path) -> None:
    """Interrupted, the files hold what was answered; started again from the next, they hold all fifty."""
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.1)) as scripted:
        process = start(cli, copilot, EVAL_DELAY_SECONDS="0", EVAL_API_URL=scripted.url)
        process.wait_for("[05/50]", 30)
        process.send(signal.SIGINT)
        assert process.wait(20) == 130, process.output_text()
        some = results(copilot)["results"]
        assert 5 <= len(some) < 50
        following = process.errors.split("--start-from ")[1].strip()
        done = harness(cli, copilot, "--start-from", following, EVAL_API_URL=scripted.url)
    assert done.popen.returncode == 0, done.output_text()
    found = results(copilot)
    assert [result["id"] for result in found["results"]] == [f"Q-{number:02}" for number in range(1, 51)]
    assert found["results"][: len(some)] == some
    assert found["config"]["start_from"] == following
    assert "which this run continues" in (copilot / FILES[2]).read_text()


def test_queued_runs_of_others_are_left_alone(cli: Cli, copilot: Path) -> None:
    """A run of the same baselines to the same API that somebody else has queued is worked on, not ended."""
    with ScriptedApi() as scripted:
        queued = cli("submit", copilot / "data" / "evaluation_baselines.json", "--api-url", scripted.url)
        done = harness(cli, copilot, EVAL_API_URL=scripted.url)
    assert done.popen.returncode == 0, done.output_text()
    assert "Ended" not in done.errors
    state = json.loads(cli("runs", "show", queued.out.strip(), "--json").out)["state"]
    assert state in {"running", "finished"}


def test_the_run_of_a_killed_evaluation_is_ended_and_its_answers_are_kept(cli: Cli, copilot: Path) -> None:
    """The next evaluation of this folder says which run it ends, and `--start-from` keeps all its answers."""
    with ScriptedApi(lambda _query, nth: Step(after_s=0.1 if nth == 1 else 0.0)) as scripted:
        process = start(cli, copilot, EVAL_DELAY_SECONDS="0", EVAL_API_URL=scripted.url)
        process.wait_for("[05/50]", 30)
        process.kill()
        again = start(
            cli, copilot, "--start-from", "Q-02", EVAL_DELAY_SECONDS="30", EVAL_API_URL=scripted.url
        )
        again.wait_for("[02/50]", 30)
        again.send(signal.SIGINT)
        assert again.wait(20) == 130, again.output_text()
    answered = len({request.query for request in scripted.requests})  # its workers outlived it by a moment
    assert again.errors.startswith("Ended eval-"), again.output_text()
    assert "which an earlier evaluation left when it was killed" in again.errors
    names = [result["id"] for result in results(copilot)["results"]]
    assert names == [f"Q-{number:02}" for number in range(1, len(names) + 1)]
    assert 5 <= len(names) <= answered
    assert f"--start-from Q-{len(names) + 1:02}\n" in again.errors
    assert "  Note: " in again.output


def test_a_failed_query_is_a_result_that_resuming_keeps(cli: Cli, copilot: Path) -> None:
    """The advice names the first query without a result, and the line and the report show the HTTP status."""
    second = json.loads((copilot / "data" / "evaluation_baselines.json").read_text())["queries"][1]["query"]
    bad, good = Step(500, "boom", after_s=0.1), Step(after_s=0.1)
    with ScriptedApi(lambda query, _nth: bad if query == second else good) as scripted:
        process = start(cli, copilot, EVAL_DELAY_SECONDS="0", EVAL_API_URL=scripted.url)
        process.wait_for("[05/50]", 30)
        process.send(signal.SIGINT)
        assert process.wait(20) == 130, process.output_text()
    count = len(results(copilot)["results"])
    assert results(copilot)["results"][1]["error"] == "boom"
    assert "ERROR: HTTP 500: boom\n" in process.output
    assert "| ERROR: HTTP 500: boom |" in (copilot / FILES[2]).read_text(encoding="utf-8")
    assert process.errors.endswith(f"continue with --start-from Q-{count + 1:02}\n"), process.output_text()


def test_a_place_that_cannot_be_written_is_found_before_anything_is_sent(cli: Cli, copilot: Path) -> None:
    """Exit 2 names the file, and no query was paid for."""
    (copilot / "reports").write_text("in the way")
    with ScriptedApi() as scripted:
        done = harness(cli, copilot, EVAL_API_URL=scripted.url)
    assert done.popen.returncode == 2, done.output_text()
    assert "reports/evaluation_report.md: cannot be written" in done.errors
    assert scripted.requests == []


def test_a_file_that_cannot_be_written_at_the_end_loses_nothing(cli: Cli, copilot: Path) -> None:
    """The other files are written, and the message names the run and the way to its report."""
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.05)) as scripted:
        process = start(cli, copilot, EVAL_DELAY_SECONDS="0", EVAL_API_URL=scripted.url)
        process.wait_for("[05/50]", 30)
        shutil.rmtree(copilot / "reports", ignore_errors=True)
        (copilot / "reports").write_text("in the way")
        assert process.wait(40) == 2, process.output_text()
    assert len(results(copilot)["results"]) == 50
    command = process.errors.split("`proctor ")[1].split("`")[0].split()
    report = copilot / "report.md"
    assert cli(*command[:-1], report).code == 0
    assert report.read_text().startswith("# Evaluation Report")


def test_start_from_without_an_earlier_run_says_that_it_is_partial(cli: Cli, copilot: Path, api: str) -> None:
    """Only the tail is sent and written, numbered as in the whole file, and the report says so."""
    done = harness(cli, copilot, "--start-from", "Q-45", "--api-url", api)
    assert done.popen.returncode == 0, done.output_text()
    assert "[45/50] Q-45" in done.output
    assert "[44/50]" not in done.output
    assert len(results(copilot)["results"]) == 6
    assert "partial: 6 of 50" in (copilot / FILES[2]).read_text()


def test_delay_comes_from_the_flag_before_the_environment(cli: Cli, copilot: Path) -> None:
    """`--delay 10` is printed whatever the environment says; without it the environment counts."""
    flagged = harness(cli, copilot, "--dry-run", "--delay", "10", EVAL_DELAY_SECONDS="5")
    assert "  Delay:  10s between queries" in flagged.output
    assert "~8m 20s" in flagged.output
    assert "  Delay:  5s between queries" in harness(cli, copilot, "--dry-run", EVAL_DELAY_SECONDS="5").output
    assert "  Delay:  30s between queries" in start_dry(cli, copilot)


def start_dry(cli: Cli, copilot: Path) -> str:
    """What a dry run without any setting prints."""
    process = start(cli, copilot, "--dry-run")
    assert process.wait(30) == 0
    return process.output


@pytest.mark.parametrize(
    ("command", "delay", "first"),
    [
        ("python scripts/evaluation_harness.py", "30s", "[01/50] Q-01"),
        ("python scripts/evaluation_harness.py --delay 10", "10s", "[01/50] Q-01"),
        ("python scripts/evaluation_harness.py --start-from Q-15", "30s", "[15/50] Q-15"),
    ],
)
def test_the_documents_live_examples_run_as_they_stand(
    cli: Cli, copilot: Path, command: str, delay: str, first: str
) -> None:
    """Typed into a shell, each says its delay and sends its first query at once; Ctrl-C keeps the answer."""
    path = f"{Path(sys.executable).parent}:{cli.processes.env['PATH']}"
    with in_background() as api:
        env = {**cli.processes.env, "PATH": path, "EVAL_API_URL": api}
        process = cli.processes.start(
            require_tool("bash"), "-c", f"exec {command}", cwd=copilot, env=env, new_session=True
        )
        process.wait_for(first, 30)
        process.send(signal.SIGINT)
        assert process.wait(20) == 130, process.output_text()
    assert f"  Delay:  {delay} between queries" in process.output
    assert [result["id"] for result in results(copilot)["results"]] == [first.split()[1]]


def test_the_console_script_is_the_same_program(cli: Cli, copilot: Path) -> None:
    """`evaluation-harness` prints the same help."""
    program = Path(sys.executable).parent / "evaluation-harness"
    if not program.exists():
        pytest.skip("evaluation-harness: the project is not installed into this environment")
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=True, cwd=copilot)
    assert done.stdout == harness(cli, copilot, "--help").output
    for option in ("--delay DELAY", "--start-from START_FROM", "--dry-run", "--api-url API_URL"):
        assert option in done.stdout


@pytest.fixture
def script() -> ModuleType:
    """The script, imported."""
    spec = importlib.util.spec_from_file_location("evaluation_harness", COPILOT / SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_has_every_name_of_the_document(script: ModuleType) -> None:
    """Constants have the document's values, and every function is there."""
    assert (script.DEFAULT_DELAY, script.DEFAULT_API_URL) == (30, "http://localhost:3000")
    assert (script.QUERY_ENDPOINT, script.REQUEST_TIMEOUT) == ("/api/query", 30)
    assert (script.LATENCY_THRESHOLD_MS, script.MAX_RETRIES) == (5000, 3)
    assert str(script.BASELINES_PATH) == "data/evaluation_baselines.json"
    assert [str(p) for p in (script.RESULTS_JSON_PATH, script.RESULTS_CSV_PATH, script.REPORT_MD_PATH)] == [
        *FILES
    ]
    assert [name for name in script.__all__ if not hasattr(script, name)] == []


def test_its_functions_work_without_a_queue(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """`send_query` and `run_all_queries` return the document's keys, and stop when nobody is there."""
    baselines = script.load_baselines(str(COPILOT / "data" / "evaluation_baselines.json"))
    log = RequestLog()
    with in_background(parse_behaviour("429:times=1"), log=log) as url:
        refused = script.send_query(url, "What is demurrage?")
        answered = script.send_query(f"{url}/", "What is demurrage?")
        found = script.run_all_queries(baselines, url, 0, start_from="Q-49")
    assert (refused["status_code"], refused["error"]) == (429, "Rate limited (429)")
    assert list(answered) == ["response", "latency_ms", "status_code", "error"]
    assert (answered["status_code"], answered["error"]) == (200, None)
    assert [result["id"] for result in found] == ["Q-49", "Q-50"]
    assert log.total == 6
    assert "[49/50] Q-49" in capsys.readouterr().out
    [lost] = script.run_all_queries(baselines, "http://127.0.0.1:1", 0)
    assert lost["error"] == "Connection refused - backend not running on http://127.0.0.1:1"
    metrics = script.calculate_metrics([*found, lost])
    assert (metrics["total_queries"], metrics["failed_queries"]) == (3, 1)
