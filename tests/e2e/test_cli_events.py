"""`--jsonl`: what happens to a run as JSON Lines on stdout, and everything for people on stderr."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import PROCTOR, Cli, Done
from tests.support.schemas import hold
from tests.support.tree import ROOT

EXAMPLE = ROOT / "examples" / "turns.jsonl"


def events(done: Done) -> list[dict[str, Any]]:
    """The events of a command, which fit their schema."""
    return [hold("line-events", line) for line in done.out.splitlines()]


def test_run_and_watch_tell_events(cli: Cli) -> None:
    """First the submit, last the document with the exit code, the numbers between; people read stderr."""
    done = cli("run", EXAMPLE, "--jsonl", "--processes", "1")
    assert done.code == 0, done
    written = events(done)
    words = [event["event"] for event in written]
    assert words[: words.index("submitted")] == ["loading"]
    assert words[-1] == "finished"
    assert set(words[2:-1]) <= {"progress", "waiting"}
    assert written[-2]["done"] == written[-1]["counts"]["total"] == 61
    assert written[-1]["exit"] == 0
    assert "finished: 61 turns" in done.err
    again = cli("watch", written[1]["run_id"], "--jsonl", "-q", "--fail-on", "pass_rate>0.5")
    assert (again.code, again.err.count("\n")) == (1, 1), again
    assert [event["event"] for event in events(again)] == ["submitted", "progress", "finished"]
    assert events(again)[-1]["exit"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--json"], "two forms"), (["--detach"], "follows a run"), (["--dry-run"], "follows a run")],
    ids=["json", "detach", "dry-run"],
)
def test_jsonl_goes_with_no_other_form(cli: Cli, arguments: list[str], words: str) -> None:
    """Both forms at once, and a run that nobody follows, are wrong usage: exit code 2."""
    done = cli("run", EXAMPLE, "--jsonl", *arguments)
    assert done.code == 2
    assert words in json.loads(done.out)["error"]["message"]


def test_an_error_is_the_last_event(cli: Cli, tmp_path: Path) -> None:
    """A file that is broken ends the stream with an error and its exit code."""
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"threadId": 1}\n')
    done = cli("run", broken, "--jsonl", "--kind", "turns", "--processes", "0")
    last = events(done)[-1]
    assert (last["event"], last["exit"], done.code) == ("error", 2, 2)
    assert ":1: threadId" in last["error"]["message"]


def test_the_fleet_is_watched_until_ctrl_c(cli: Cli) -> None:
    """`status --watch` writes looks until Ctrl-C, which is its ordinary end: lines, or JSON Lines."""
    run = cli("submit", EXAMPLE).out.strip()
    lines, looks = cli.start("status", "--watch"), cli.start("status", "--watch", "--json")
    lines.wait_for(f"{run} running")
    cli.eventually(lambda: looks.output.count("\n") > 1)
    for process in (lines, looks):
        process.send(signal.SIGINT)
        assert process.wait() == 0, process.output_text()
    assert "waiting: no worker is alive" in lines.output
    look = hold("status", looks.output.splitlines()[-1])
    assert look["runs"][0]["why"].startswith("no worker is alive")
    assert look["runs"][0]["rate_s"] == 0.0


def test_a_run_whose_reader_leaves_has_not_gone_well(cli: Cli) -> None:
    """`run --jsonl | head -1` leaves the run as Ctrl-C does: exit code 130, and not the 0 of a good run."""
    line = " ".join([*PROCTOR, "run", str(EXAMPLE), "--jsonl", "--processes", "1"])
    done = cli.processes.run(
        "bash", "-c", f"{line} 2>/dev/null | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    )
    assert done.output == "130\n"


def test_a_fleet_that_is_not_there_is_not_waited_for(cli: Cli) -> None:
    """`status --watch` of a Redis that does not answer from the start is exit code 3, as every command's."""
    words = {"PROCTOR_REDIS_URL": "redis://127.0.0.1:1", "PROCTOR_CONNECT_PATIENCE_S": "1"}
    done = cli("status", "--watch", "--json", env=words, within_s=15)
    assert (done.code, json.loads(done.out)["error"]["code"]) == (3, "redis_unreachable")
