"""`proctor run` as a person meets it: one command, a file in, decisions out, nothing left behind."""

import csv
import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from tests.support.cli import PROCTOR, Cli
from tests.support.junit import read_junit
from tests.support.processes import marked_processes
from tests.support.schemas import hold
from tests.support.tree import ROOT

EXAMPLE: Final = ROOT / "examples" / "turns.jsonl"
TOTAL: Final = len(EXAMPLE.read_bytes().splitlines())
MESSAGES: Final = [json.loads(line)["message"] for line in EXAMPLE.read_bytes().splitlines()]
COUNTS: Final = {"total", "passed", "failed", "error", "skipped", "decided"}


def workers_left() -> list[str]:
    """Command lines of worker processes that this session has started and that still run."""
    found = []
    for each in marked_processes():
        with suppress(psutil.Error):  # it may end while it is looked at
            found.append(each.cmdline())
    return [" ".join(command) for command in found if "worker" in command]


def test_run_prints_a_summary_and_leaves_no_worker(cli: Cli) -> None:
    """A file is decided with exit code 0, a plain summary on stdout, and no worker is left."""
    done = cli("run", EXAMPLE)
    assert done.code == 0, done
    for word in ("must", "should", "skip", str(TOTAL), "finished"):
        assert word in done.out
    assert "\x1b" not in done.out + done.err
    assert workers_left() == []


def test_run_json_is_one_document(cli: Cli, tmp_path: Path) -> None:
    """`--json` prints one document with every key, and the report files it names hold every item in order."""
    names = [tmp_path / f"out.{suffix}" for suffix in ("jsonl", "csv", "md", "json", "xml")]
    done = cli("run", EXAMPLE, "--json", "-q", *(part for name in names for part in ("-o", name)))
    assert (done.code, done.err) == (0, "")
    document = hold("run", done.out)
    assert document["schema_version"] == 2
    assert document["kind"] == "turns"
    assert document["state"] == "finished"
    assert document["exit"] == 0
    assert document["counts"].keys() == COUNTS
    assert document["counts"]["total"] == document["counts"]["decided"] == TOTAL
    assert [Path(file["path"]).name for file in document["files"]] == [name.name for name in names]
    assert [file["format"] for file in document["files"]] == ["jsonl", "csv", "md", "json", "junit"]
    lines = [hold("line-turns", line) for line in names[0].read_bytes().splitlines()]
    assert [line["index"] for line in lines] == list(range(TOTAL))
    assert [line["message"] for line in lines] == MESSAGES
    with names[1].open(encoding="utf-8", newline="") as table:
        assert len(list(csv.DictReader(table))) == TOTAL
    assert hold("report-turns", names[3].read_text())
    assert names[2].read_text().startswith("#")
    assert read_junit(names[4].read_bytes()).attrib["tests"] == str(TOTAL)


def test_quiet_run_says_nothing(cli: Cli, tmp_path: Path) -> None:
    """`-q` leaves the exit code to speak, and `--no-text` leaves messages out of reports."""
    report = tmp_path / "bare.jsonl"
    done = cli("run", EXAMPLE, "-q", "--no-text", "-o", report)
    assert (done.code, done.out, done.err) == (0, "", "")
    lines = [json.loads(line) for line in report.read_bytes().splitlines()]
    assert all("message" not in line for line in lines)
    assert [line["message_chars"] for line in lines] == list(map(len, MESSAGES))


def test_run_reads_stdin(cli: Cli) -> None:
    """`-` is standard input."""
    done = cli("run", "-", "--json", stdin=EXAMPLE)
    assert done.code == 0, done
    assert json.loads(done.out)["counts"]["decided"] == TOTAL


def test_items_in_error_are_exit_1(cli: Cli, tmp_path: Path) -> None:
    """A stale concurrency token makes its turn an error; the others are decided, and the exit code is 1."""
    turns: list[dict[str, Any]] = [
        {"threadId": "t", "message": "one"},
        {"threadId": "t", "message": "two", "thread_memento_etag": "7"},
    ]
    file = tmp_path / "turns.jsonl"
    file.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    done = cli("run", file, "--json")
    assert done.code == 1, done
    document = json.loads(done.out)
    assert (document["counts"]["decided"], document["counts"]["error"], document["exit"]) == (1, 1, 1)
    dead = json.loads(cli("dead", "list", "--json").out)["dead"]
    assert [(entry["item_id"], entry["error"]["code"]) for entry in dead] == [("turn-1", "etag_conflict")]
    shown = json.loads(cli("dead", "show", document["run_id"], "turn-1").out)
    assert shown["payload"]["message"] == "two"
    assert shown["error"]["code"] == "etag_conflict"
    assert cli("dead", "discard", document["run_id"], "turn-1").out.split() == ["1", "item", "discarded"]
    assert json.loads(cli("dead", "list", "--json").out)["dead"] == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"threadId": "t", "message": "ok"}\n{"threadId": "t"\n', ":2: "),
        ('{"threadId": "t", "message": "ok", "rolle": "user"}\n', "role"),
        ("", "empty"),
    ],
)
def test_bad_file_is_exit_2_and_leaves_nothing(cli: Cli, tmp_path: Path, content: str, words: str) -> None:
    """A file that breaks its contract is one clear error; no run and no process is left of it."""
    file = tmp_path / "bad.jsonl"
    file.write_text(content)
    done = cli("run", file)
    assert done.code == 2
    assert done.out == ""
    assert f"error: {file}" in done.err
    assert words in done.err
    assert "Traceback" not in done.err
    assert json.loads(cli("runs", "--json").out)["runs"] == []
    assert workers_left() == []


@pytest.mark.parametrize(
    "arguments",
    [["no/such/file.jsonl"], ["."], [EXAMPLE, "-o", "out.docx"], [EXAMPLE, "-o", "no/out.md"], []],
)
def test_usage_errors_as_json(cli: Cli, arguments: list[str]) -> None:
    """Whatever is wrong with the command line is one JSON document with `--json`, and exit code 2."""
    done = cli("run", *arguments, "--json")
    assert (done.code, done.err) == (2, "")
    document = json.loads(done.out)
    assert document.keys() == {"schema_version", "error", "exit"}
    assert document["exit"] == 2


def test_timeout_is_exit_4(cli: Cli) -> None:
    """A run that is not done in time ends as incomplete with exit code 4, and what it did is kept."""
    done = cli("run", EXAMPLE, "--processes", "0", "--timeout", "0.5", "--json")
    assert done.code == 4, done
    document = json.loads(done.out)
    assert (document["state"], document["exit"]) == ("incomplete", 4)
    assert document["counts"]["skipped"] == TOTAL


def test_interrupted_run_is_kept_and_resumed(cli: Cli) -> None:
    """Ctrl-C exits 130 and says how to go on; that very command then ends the run with exit code 0."""
    process = cli.start("run", EXAMPLE, "--processes", "0")
    process.wait_for("no worker is alive")
    process.send(signal.SIGINT)
    assert process.wait(10) == 130
    assert f"interrupted: {TOTAL} turns of 8 threads, 0 of 61 done (0%)" in process.output
    command = process.errors.split("hint: `proctor ")[1].split("`")[0].split()
    assert command[0] == "resume"
    run = command[1]
    assert json.loads(cli("runs", "show", run, "--json").out)["state"] == "running"
    done = cli(*command, "--json")
    assert done.code == 0, done
    assert json.loads(done.out)["counts"]["decided"] == TOTAL
    assert workers_left() == []


def test_ctrl_c_stops_the_workers_it_started(cli: Cli) -> None:
    """Ctrl-C while local workers start up ends them too."""
    process = cli.start("run", EXAMPLE, "-v")
    process.wait_for("started ")
    process.send(signal.SIGINT)
    assert process.wait(15) in {0, 130}
    assert workers_left() == []


def test_killed_run_takes_its_workers_along(cli: Cli) -> None:
    """`kill -9` of the command leaves no worker behind."""
    process = cli.start("run", EXAMPLE, "-v")
    process.wait_for("started ")
    process.kill()
    cli.eventually(lambda: workers_left() == [])


def test_unreachable_redis_is_exit_3_in_seconds(cli: Cli) -> None:
    """A URL where nobody listens is exit code 3 with one line that names it and no password."""
    done = cli("run", EXAMPLE, "--redis", "redis://:geheim@127.0.0.1:1", "--json")
    assert done.code == 3
    document = json.loads(done.out)
    assert document["error"]["code"] == "redis_unreachable"
    assert "127.0.0.1:1" in document["error"]["message"]
    assert "geheim" not in done.out + done.err


def test_detached_run_is_worked_in_the_background(cli: Cli) -> None:
    """`--detach` prints the run's id alone; workers of its own finish it and then end by themselves."""
    done = cli("run", EXAMPLE, "--detach")
    assert done.code == 0, done
    [run] = done.out.split()
    assert f"proctor watch {run}" in done.err
    watched = cli("watch", run)
    assert watched.code == 0, watched
    cli.eventually(lambda: workers_left() == [])


def test_dry_run_sends_nothing(cli: Cli) -> None:
    """`--dry-run` checks and counts, and no run is there afterwards."""
    done = cli("run", EXAMPLE, "--dry-run", "--json")
    assert done.code == 0
    assert json.loads(done.out)["counts"] == {"total": TOTAL, "threads": 8, "chunks": 1}
    assert json.loads(cli("runs", "--json").out)["runs"] == []


def test_run_works_from_any_folder(cli: Cli, tmp_path: Path) -> None:
    """Folders named like our packages in the current folder are not picked up, by us or by the workers."""
    for name in ("shared", "worker", "producer"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('a decoy was imported')\n")
    done = cli("run", EXAMPLE, "--json", cwd=tmp_path)
    assert done.code == 0, done
    assert PROCTOR[1] == "-P"
