"""Checks and gates on when answers came: measured on streamed answers to the first call, and on no others."""

from pathlib import Path
from typing import Any, Final

from tests.support.case_runs import WORKERS, bench, document, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say

CHECKS: Final[list[Any]] = [{"max_first_token_s": 5}, {"min_tokens_per_s": 10_000}]
GATES: Final = ("--fail-on", "first_token_p95_ms>5000", "--fail-on", "cost_per_case>1")


def slow(prompt: str, nth: int) -> Say:
    """Answers in pieces 20 ms apart; `busy` is refused at first."""
    if prompt == "busy" and nth == 1:
        return Say("later", 503)
    return Say("some words", piece_s=0.02)


def test_times_are_those_of_first_calls(cli: Cli, tmp_path: Path) -> None:
    """A cached answer, and one to a second call, has no such times: their checks are skipped."""
    cases = [{"id": name, "input": name, "checks": CHECKS} for name in ("quiet", "busy")]
    with ModelServer(slow) as server:
        path = bench(tmp_path, server, cases, models=["alpha"], panel=(), config={"judge_model": None})
        first = document(cli("run", path, *WORKERS, *GATES))
        cached = document(cli("run", path, *WORKERS, *GATES[:2]))
        assert all(request.body["stream"] for request in server.requests)
    quiet, busy = (row["result"] for row in rows_of(cli, first["run_id"]))
    assert [check["passed"] for check in quiet["checks"]] == [True, False]
    assert [check["score"] for check in busy["checks"]] == [None, None]
    [model] = first["summary"]["models"]
    assert (model["first_token_n"], model["latency_n"], model["cost_per_case"]["n"]) == (1, 2, 2)
    assert 0 < model["first_token_ms"]["p95"] < model["latency_ms"]["p99"]
    assert model["latency_intervals"]["p99"]["high"] is None
    assert [gate["met"] for gate in first["gates"]] == [True, True]
    assert (cached["exit"], cached["gates"][0]["value"]) == (1, None)
