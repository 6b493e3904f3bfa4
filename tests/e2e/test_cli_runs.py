"""Submitting, looking at, steering and removing runs, each command a process of its own."""

import json
import signal
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.cli import PROCTOR, Cli
from tests.support.processes import Process
from tests.support.tree import ROOT

EXAMPLE: Final = ROOT / "examples" / "turns.jsonl"
TURNS: Final = [json.loads(line) for line in EXAMPLE.read_bytes().splitlines()]
RESULT_KEYS: Final = [
    *("run_id", "item_id", "kind", "index", "outcome", "attempts", "cached", "started_at", "finished_at"),
    *("latency_ms", "cost_usd", "error", "result", "message"),
]
TURN_KEYS: Final = [
    *("threadId", "messageId", "decision", "rule", "peakGuardrailActive", "summaryUpdated", "reason"),
    *("source", "etag", "memento", "response"),
]


def start_worker(cli: Cli) -> Process:
    """Starts one worker process on the test's own Redis."""
    return cli.start("worker", "--processes", "1", "-Q", "turns")


def document(cli: Cli, *arguments: str | Path) -> dict[str, Any]:
    """Runs a command with `--json` and returns its document."""
    done = cli(*arguments, "--json")
    assert done.err == "", done
    found: dict[str, Any] = json.loads(done.out)
    assert found["exit"] == done.code
    return found


def test_submit_prints_the_id_and_warns(cli: Cli) -> None:
    """`submit` prints the run's id and nothing else on stdout, and warns while nobody would work on it."""
    done = cli("submit", EXAMPLE)
    assert done.code == 0, done
    [run] = done.out.splitlines()
    assert "warning: no worker for turns is alive" in done.err
    [listed] = document(cli, "runs")["runs"]
    assert (listed["run_id"], listed["state"], listed["total"]) == (run, "running", len(TURNS))


def test_same_key_is_the_same_run(cli: Cli, tmp_path: Path) -> None:
    """An idempotency key returns the first run's id; with other content it is an error that names the run."""
    keyed = ("submit", EXAMPLE, "--idempotency-key", "nightly", "--json")
    first, again = json.loads(cli(*keyed).out), json.loads(cli(*keyed).out)
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert first["run_id"] == again["run_id"]
    other = tmp_path / "other.jsonl"
    other.write_text('{"threadId": "t", "message": "something else"}\n')
    refused = cli("submit", other, "--idempotency-key", "nightly", "--json")
    assert refused.code == 2
    assert json.loads(refused.out)["error"]["code"] == "idempotency_conflict"
    assert first["run_id"] in json.loads(refused.out)["error"]["message"]


def test_worked_run_from_every_side(cli: Cli) -> None:
    """`watch` ends with the run; results, traces and reports agree with each other and with the file."""
    start_worker(cli)
    run = cli("submit", EXAMPLE).out.strip()
    watched = cli("watch", run)
    assert watched.code == 0, watched
    assert "finished" in watched.out

    lines = [json.loads(line) for line in cli("results", run, "--format", "jsonl").out.splitlines()]
    assert [list(line) for line in lines] == [RESULT_KEYS] * len(TURNS)
    assert [list(line["result"]) for line in lines] == [TURN_KEYS] * len(TURNS)
    assert [line["result"]["messageId"] for line in lines] == [turn["messageId"] for turn in TURNS]
    assert {line["outcome"] for line in lines} == {"decided"}

    traces = [json.loads(line) for line in cli("results", run, "--traces").out.splitlines()]
    assert [trace["metadata"]["decision"] for trace in traces] == [
        line["result"]["decision"] for line in lines
    ]
    assert len({trace["transmissionId"] for trace in traces}) == len(TURNS)

    assert len(json.loads(cli("results", run, "--format", "json").out)["results"]) == len(TURNS)
    assert len(cli("results", run, "--format", "csv", "--first", "3").out.splitlines()) == 4
    assert cli("results", run, "--failed", "--format", "jsonl").out == ""
    table = cli("results", run, "--first", "5").out.splitlines()
    assert table[0].split()[0] == "ITEM"
    assert len(table) == 6

    shown = document(cli, "runs", "show", run)
    decisions = [line["result"]["decision"] for line in lines]
    assert shown["summary"]["decisions"] == {
        word: decisions.count(word) for word in ("must", "should", "skip")
    }
    assert cli("report", run).out.startswith("# ")

    status = document(cli, "status")
    assert [worker["kinds"] for worker in status["workers"]] == [["turns"]]
    assert cli("health", "worker", "--max-age", "30").code == 0
    assert cli("health", "redis").code == 0
    assert cli("doctor").code == 0


def test_report_goes_to_files(cli: Cli, tmp_path: Path) -> None:
    """`report -o` writes whole files and prints their paths; one that cannot be written is exit code 2."""
    run = json.loads(cli("run", EXAMPLE, "--json").out)["run_id"]
    names = [tmp_path / "a.md", tmp_path / "b.jsonl"]
    done = cli("report", run, "-o", names[0], "-o", names[1])
    assert done.code == 0, done
    assert done.out.splitlines() == [str(name) for name in names]
    assert len(names[1].read_bytes().splitlines()) == len(TURNS)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.md", "b.jsonl"]
    resumed = cli("run", "--resume", run, "-q", "-o", tmp_path / "c.csv")
    assert resumed.code == 0, resumed
    assert len((tmp_path / "c.csv").read_text().splitlines()) == len(TURNS) + 1
    refused = cli("report", run, "-o", tmp_path / "nowhere" / "a.md")
    assert refused.code == 2
    assert "there is no folder" in refused.err


def test_pause_resume_cancel_and_remove(cli: Cli) -> None:
    """A run without workers can be paused, let go on, ended, looked at and removed."""
    run = cli("submit", EXAMPLE).out.strip()
    assert document(cli, "pause", run)["state"] == "paused"
    watching = cli.start("watch", run)
    watching.wait_for(f"proctor resume {run}")
    assert document(cli, "resume", run, "--detach")["state"] == "running"
    refused = cli("runs", "rm", run, "--yes")
    assert (refused.code, "cancel it first" in refused.err) == (2, True)
    assert document(cli, "cancel", run)["state"] in {"cancelling", "cancelled"}
    assert watching.wait(15) == 4
    shown = json.loads(cli("runs", "show", run, "--json").out)
    assert (shown["state"], shown["counts"]["skipped"]) == ("cancelled", len(TURNS))
    assert document(cli, "cancel", run)["state"] == "cancelled"
    refused = cli("pause", run)
    assert (refused.code, f"run {run} is cancelled already" in refused.err) == (2, True)
    asked = cli("runs", "rm", run)
    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert cli("runs", "rm", run, "--yes").out == f"{run} removed\n"
    assert document(cli, "runs")["runs"] == []


def test_watching_ends_with_ctrl_c_and_the_run_goes_on(cli: Cli) -> None:
    """Ctrl-C detaches with exit code 130 and says how to come back; the run is as it was."""
    run = cli("submit", EXAMPLE).out.strip()
    watching = cli.start("watch", run)
    watching.wait_for("no worker is alive")
    watching.send(signal.SIGINT)
    assert watching.wait(10) == 130
    assert f"proctor watch {run}" in watching.errors
    assert document(cli, "runs", "show", run)["state"] == "running"


def test_retry_decides_failed_turns_again(cli: Cli, tmp_path: Path) -> None:
    """A turn that ended in error is decided again on demand; the run then has another result and attempt."""
    file = tmp_path / "turns.jsonl"
    turns = [
        {"threadId": "t", "message": "one"},
        {"threadId": "t", "message": "two", "thread_memento_etag": "0"},
    ]
    file.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    first = cli("run", file, "--json")
    assert first.code == 1
    run = json.loads(first.out)["run_id"]
    again = cli("retry", run, "--json")
    assert again.code == 1, again
    found = json.loads(again.out)
    assert (found["counts"]["error"], found["summary"]["retried"]) == (1, 1)
    assert cli("dead", "retry", run, "turn-0").code == 2
    assert document(cli, "dead", "retry", run, "turn-1", "--detach")["retried"] == 1
    assert document(cli, "runs", "show", run)["state"] == "running"
    assert cli("retry", run).code == 2, "a run at work cannot be retried"
    assert cli("retry", run, "--item", "turn-9").code == 2


def test_short_names_of_runs(cli: Cli) -> None:
    """`last`, `last~1` and the beginning of an id name a run in every command; output has the whole id."""
    older, newer = (cli("submit", EXAMPLE).out.strip() for _ in range(2))
    assert [document(cli, "runs", "show", name)["run_id"] for name in ("last", "last~1")] == [newer, older]
    assert cli("pause", newer[:-1]).out == f"{newer} paused\n"
    assert document(cli, "resume", "last", "--detach")["run_id"] == newer
    shared = cli("cancel", older[:8], "--json")
    error = json.loads(shared.out)["error"]
    assert (shared.code, error["code"]) == (2, "ambiguous_run")
    assert error["message"].endswith(f"begins the ids of 2 runs: {newer}, {older}")
    assert document(cli, "cancel", "last~1")["run_id"] == older
    assert cli("cancel", newer.removeprefix("run-")[:-1]).code == 0
    assert cli("report", "last", "--format", "json").out.count(newer)
    for command in (("results", "last"), ("dead", "list", "last"), ("compare", "last", "last~1")):
        assert "no run is called" not in cli(*command).err
    assert document(cli, "runs", "rm", "last", "last", "last~1", "--yes")["removed"] == [newer, older]
    assert "there is no last: 0 runs in all" in cli("watch", "last").err


@pytest.mark.parametrize("command", ["watch", "results", "report", "cancel", "pause", "resume", "retry"])
def test_unknown_run_is_exit_2(cli: Cli, command: str) -> None:
    """An id that nobody knows is one line with a hint, whichever command is asked."""
    done = cli(command, "run-nonsense", "--json")
    assert (done.code, done.err) == (2, "")
    error = json.loads(done.out)["error"]
    assert error["code"] == "unknown_run"
    assert "no runs yet" in error["hint"]


def test_mistyped_run_names_the_nearest(cli: Cli) -> None:
    """A mistyped id is answered with the run that was meant."""
    run = cli("submit", EXAMPLE).out.strip()
    done = cli("runs", "show", f"{run[:-1]}{'x' if run[-1] != 'x' else 'z'}")
    assert done.code == 2
    assert f"did you mean {run}?" in done.err


def test_validate_tells_every_problem(cli: Cli, tmp_path: Path) -> None:
    """`validate` names each bad line, and of a good file what is in it; neither leaves a run."""
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"threadId": "t"}\n{"threadId": "t", "message": "ok"}\nnonsense\n')
    done = cli("validate", bad)
    assert done.code == 2
    assert f"{bad}:1: " in done.err
    assert f"{bad}:3: " in done.err
    assert (
        cli("validate", EXAMPLE).out
        == f"{EXAMPLE}: 61 turns in 8 threads, 1 chunk of work; nothing was sent\n"
    )
    assert document(cli, "runs")["runs"] == []


def test_purge_asks_first(cli: Cli, tmp_path: Path) -> None:
    """`dead purge` without an answer changes nothing; with `--yes` the list is empty and the results stay."""
    file = tmp_path / "turns.jsonl"
    file.write_text('{"threadId": "t", "message": "one", "thread_memento_etag": "7"}\n')
    run = json.loads(cli("run", file, "--json").out)["run_id"]
    assert cli("dead", "purge").code == 2
    assert len(document(cli, "dead", "list", run)["dead"]) == 1
    assert document(cli, "dead", "purge", "--yes")["discarded"] == 1
    assert document(cli, "dead", "list")["dead"] == []
    assert json.loads(cli("results", run, "--format", "jsonl").out)["outcome"] == "error"


def test_reader_that_leaves_is_no_error(cli: Cli, tmp_path: Path) -> None:
    """`proctor results RUN | head -1` ends quietly with exit code 0."""
    file = tmp_path / "turns.jsonl"
    file.write_text("".join(f'{{"threadId": "t{n}", "message": "{"x" * 900}"}}\n' for n in range(3000)))
    run = json.loads(cli("run", file, "--json").out)["run_id"]
    line = " ".join([*PROCTOR, "results", run, "--format", "jsonl"])
    script = f"{line} 2>errors.txt | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = cli.processes.run("bash", "-c", script)
    assert done.output == "0\n"
    assert (cli.processes.folder / "errors.txt").read_text() == ""


def test_live_workers_are_not_doubled(cli: Cli) -> None:
    """`run` starts no workers of its own while somebody else works on its kind."""
    start_worker(cli)
    cli.eventually(lambda: bool(document(cli, "status")["workers"]))
    done = cli("run", EXAMPLE, "-v")
    assert done.code == 0, done
    assert "started " not in done.err


def test_namespace_and_policy_reach_the_workers(cli: Cli, tmp_path: Path) -> None:
    """Runs of one namespace share their threads, and `--summary-policy breakpoints` lets no skip update."""
    file = tmp_path / "turns.jsonl"
    shape = {"arc": "arc", "active": [], "parked": [], "decisions": [], "next": []}
    file.write_text(json.dumps({"threadId": "t", "message": "ok thanks", "modelShape": shape}) + "\n")
    results = []
    for policy in ("guardrail", "breakpoints"):
        report = tmp_path / f"{policy}.jsonl"
        done = cli("run", file, "-q", "-o", report, "--namespace", "shared", "--summary-policy", policy)
        assert done.code == 0, done
        results.append(json.loads(report.read_text())["result"])
    assert [result["etag"] for result in results] == ["1", "2"]
    assert [result["summaryUpdated"] for result in results] == [True, False]


def test_wrong_setting_is_one_line(cli: Cli) -> None:
    """A variable with an unusable value is named with that value, by every command that reads settings."""
    done = cli("config", "show", "--json", env={"PROCTOR_GRACE_S": "soon"})
    assert done.code == 2
    error = json.loads(done.out)["error"]
    assert error["code"] == "config"
    assert "PROCTOR_GRACE_S='soon'" in error["message"]


def test_config_shows_origins_and_no_secrets(cli: Cli) -> None:
    """`config show` names value and origin of each setting, and hides passwords."""
    shown = cli("config", "show", "--json", "--redis", "redis://me:geheim@db.example/0")
    assert "geheim" not in shown.out
    settings = {each["name"]: each for each in json.loads(shown.out)["settings"]}
    assert settings["redis_url"]["origin"] == "--redis"
    assert settings["data_dir"]["origin"] == "environment"
    assert settings["grace_s"]["origin"] == "default"
