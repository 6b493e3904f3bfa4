"""The table of runs: marks, states, rates, and how it fits a terminal."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import Output
from producer.cli.runs_table import passed_text, print_runs
from producer.run_standing import state_text
from producer.tables import aligned_lines, cut_middle
from shared.clock import now_ms
from shared.contracts.case_run import CaseRun
from shared.kinds import CASES, QUERIES, TURNS
from shared.names import RunState
from shared.runs import RunInfo
from shared.upstream.model_target import ModelTarget
from tests.support.run_infos import info

LONG = "a-bench-of-everything-that-was-ever-asked.config.yaml"


def queries(state: RunState = RunState.FINISHED, *, done: int = 20, **tally: int) -> RunInfo:
    """A queries run of 20 items."""
    made = replace(info(state, total=20), kind=QUERIES, done=done, tally=tally, snapshot={"source": LONG})
    return replace(made, run="run-1m81xm1eke97p20", created_ms=now_ms() - 125_000)


def benches(mode: str) -> RunInfo:
    """A cases run in a mode."""
    run = CaseRun("my bench", "Answer.", {"m": ModelTarget("m")}, mode=mode)  # type: ignore[arg-type]  # a literal, from a parameter
    return replace(queries(passed=20), kind=CASES, snapshot={"cases": msgspec.to_builtins(run)})


@pytest.mark.parametrize(
    ("state", "done", "is_worked_on", "text"),
    [
        (RunState.FINISHED, 20, False, "finished"),
        (RunState.RUNNING, 17, True, "running 85%"),
        (RunState.RUNNING, 17, False, "interrupted 85%"),
        (RunState.RUNNING, 0, False, "waiting 0%"),
        (RunState.PAUSED, 17, False, "paused 85%"),
        (RunState.CANCELLED, 3, False, "cancelled 15%"),
        (RunState.LOADING, 0, False, "loading"),
    ],
)
def test_states(state: RunState, done: int, text: str, *, is_worked_on: bool) -> None:
    """A state says how far the run came; without workers a begun run was interrupted, another one waits."""
    assert state_text(queries(state, done=done, passed=done), is_worked_on=is_worked_on) == text


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (queries(passed=20), "100.0%"),
        (queries(passed=19, failed=1), "95.0%"),
        (queries(RunState.RUNNING, done=3, passed=2, failed=1), "66.7%"),
        (queries(error=20), "-"),
        (queries(RunState.RUNNING, done=0), "-"),
        (queries(passed=20, error=2), "-"),
        (replace(queries(), kind=TURNS, tally={"must": 20}), "-"),
        (benches("freeform"), "-"),
        (benches("standard"), "100.0%"),
    ],
    ids=["all", "some", "so far", "no answer", "no result", "retried", "turns", "freeform", "cases"],
)
def test_rates(run: RunInfo, text: str) -> None:
    """The rate is that of items with a result; none where nothing was answered, checked, or counted twice."""
    assert passed_text(run) == text


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_the_table_fits(columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """One line per run whatever the width: names are cut in the middle, ids only below 80."""
    runs = [
        queries(passed=20, cost_micro_usd=1_234_000),
        queries(RunState.RUNNING, done=17, passed=17, cost_micro_usd=3),
        replace(benches("standard"), run="run-1m81xm1eke97p21"),
    ]
    monkeypatch.setattr(Output, "width", columns)
    print_runs(Output(GlobalOptions()), runs, {}, worked_on=())
    heading, *lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(len(line) <= columns for line in (heading, *lines))
    assert columns < 80 or all(run.run in line for run, line in zip(runs, lines, strict=True))
    assert all(text in lines[1] for text in ("○", "interrupted 85%", "2 min"))
    assert ("…" in lines[0]) == (columns < 140)
    assert ("$1.23" in lines[0], "<$0.0001" in lines[1]) == (
        (True, True) if columns == 140 else (False, False)
    )
    print_runs(Output(GlobalOptions(color="always")), runs, {}, worked_on=())
    assert "\x1b[32m✓\x1b[0m  run-1" in capsys.readouterr().out


def test_names_are_cut_in_the_middle() -> None:
    """A name keeps its beginning and its end, also where characters are wide."""
    assert cut_middle("東京東京東京", 7) == "東…京"
    rows = [("claude-haiku-4-5", "1"), ("gpt", "22")]
    lines = aligned_lines(("MODEL", "N"), rows, width=14, middle=["MODEL"])
    assert lines == ["MODEL       N", "claud…-4-5  1", "gpt         22"]
