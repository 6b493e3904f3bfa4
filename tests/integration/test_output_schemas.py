"""Every command that needs a server prints with `--json` what its schema says, on a real one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.inline_worker import InlineWorker
from tests.support.schemas import hold
from tests.support.tree import ROOT
from tests.support.turn_files import turn_lines, write_turns

DocumentOf = Callable[..., Any]


@pytest.fixture
def output_of(printed: Callable[..., str]) -> Callable[..., str]:
    """Runs one command line here, without questions, and returns what it printed."""
    return lambda *arguments: printed(*arguments, "--yes")


@pytest.fixture
def document_of(output_of: Callable[..., str]) -> DocumentOf:
    """Runs one command line with `--json` and holds it against a schema."""

    def call(name: str, *arguments: str) -> Any:
        return hold(name, output_of(*arguments, "--json"))

    return call


@pytest.fixture
def ended(inline_worker: InlineWorker, submitted: Callable[..., str]) -> str:
    """A run with a turn that ended in error."""
    stale = {**turn_lines(1, 1)[0], "messageId": "late", "thread_memento_etag": "99"}
    name = submitted([*turn_lines(2, 3), stale])
    inline_worker.register()
    inline_worker.work()
    return name


def test_runs_and_their_results(
    document_of: DocumentOf, output_of: Callable[..., str], ended: str, tmp_path: Path
) -> None:
    """Lists, documents, results, traces and reports of a run."""
    assert [each["run_id"] for each in document_of("runs", "runs")["runs"]] == [ended]
    assert document_of("run", "runs", "show", ended)["counts"]["error"] == 1
    document_of("run", "watch", ended, "--fail-on", "error_rate>0.5")
    document_of("status", "status")
    assert len(document_of("report-turns", "results", ended)["results"]) == 7
    document_of("report-turns", "report", ended, "--fail-on", "error_rate>0.5")
    document_of("report", "report", ended, "-o", str(tmp_path / "a.md"), "-o", str(tmp_path / "a.xml"))
    lines = output_of("results", ended, "--format", "jsonl").splitlines()
    assert [hold("line-turns", line)["message"] for line in lines] == ["turn 0", "turn 1", "turn 2"] * 2 + [
        "turn 0"
    ]
    bare = document_of("report-turns", "report", ended, "--no-text")["results"]
    assert all("message" not in each for each in bare)
    assert [each["message_chars"] for each in bare] == [6] * 7
    output_of("report", ended, "--no-text", "-o", str(tmp_path / "bare.jsonl"))
    for text in (
        output_of("results", ended, "--format", "csv", "--no-text"),
        (tmp_path / "bare.jsonl").read_text(),
    ):
        assert text
        assert "turn 0" not in text
        assert "text withheld, 6 characters" in text or '"message_chars":6' in text
    for more in ((), ("--all-phases",)):
        events = output_of("results", ended, "--traces", *more).splitlines()
        assert len(events) == 6
        for line in events:
            hold("line-traces", line)
    document_of("error", "runs", "show", "nobody")


def test_the_dead_and_retries(document_of: DocumentOf, ended: str) -> None:
    """What was given up, put back and dropped."""
    [dead] = document_of("dead", "dead", "list", ended)["dead"]
    document_of("dead-show", "dead", "show", ended, dead["item_id"])
    assert document_of("dead-discard", "dead", "discard", ended, dead["item_id"])["discarded"] == 1
    assert document_of("dead-discard", "dead", "purge")["discarded"] == 0
    assert document_of("retry", "retry", ended, "--detach")["retried"] == 1


def test_threads(document_of: DocumentOf, ended: str) -> None:
    """Threads of a run's own namespace, one of them, and their end."""
    listed = document_of("threads", "threads", "list", ended)
    assert {each["thread"]: each["etag"] for each in listed["threads"]} == {"t0": "3", "t1": "3"}
    shown = document_of("threads-show", "threads", "show", ended, "t0")
    assert [each["etag"] for each in shown["last_turns"]] == ["1", "2", "3", "3"]
    assert document_of("threads-rm", "threads", "rm", ended)["removed"] == 2
    document_of("error", "threads", "rm", ended)


def test_runs_are_begun_and_ended(document_of: DocumentOf, tmp_path: Path) -> None:
    """Submitting, pausing, cancelling and removing."""
    turns = write_turns(tmp_path / "t.jsonl", turn_lines(2, 2))
    name = document_of("submit", "submit", str(turns))["run_id"]
    for action in ("pause", "cancel"):
        document_of("state", action, name)
    assert document_of("runs-rm", "runs", "rm", name)["removed"] == [name]


def test_limits_cache_and_machine(document_of: DocumentOf) -> None:
    """What may be sent, what is kept, and what is wrong with this machine."""
    document_of("limits-set", "limits", "set", "openai/gpt-4o", "--rpm", "60", "--pace", "0.5")
    assert document_of("limits", "limits", "show")["limits"][0]["set"] == {"rpm": 60, "pace_s": 0.5}
    document_of("limits-reset", "limits", "reset", "openai/gpt-4o")
    document_of("limits-unset", "limits", "unset", "openai/gpt-4o")
    document_of("cache", "cache", "info")
    document_of("cache-clear", "cache", "clear")
    document_of("doctor", "doctor")
    bench = str(ROOT / "examples" / "capitals.yaml")
    assert document_of("data-diff", "data", "diff", bench, bench)["unchanged"] == 12
