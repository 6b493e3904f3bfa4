"""Cases runs that have ended: `retry` for a judge that was away, `rescore` without calls."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.case_runs import QUESTION, VALIDATORS, WORKERS, bench, document, echo, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say
from tests.support.schemas import hold

HAS_VARIABLES = """
def has_variables(output, context):
    return context["vars"] == {"doc": "x" * 2_000, "own": 1}
"""


@pytest.mark.parametrize("more", [(), ("--no-cache",)], ids=["cached", "not cached"])
def test_a_judge_that_is_not_there_leaves_strict_equality(
    more: tuple[str, ...], cli: Cli, tmp_path: Path
) -> None:
    """An unreachable judge is a note on `failed_equality`; `retry` asks it again, and never the model."""
    is_there = False

    def script(prompt: str, _nth: int) -> Say:
        if QUESTION not in prompt:
            return Say('{"n": 2}')
        return Say("PASS") if is_there else Say("no such model", 404)

    with ModelServer(script) as server:
        path = bench(tmp_path, server, [{"input": "one", "expected": {"n": 1}}], models=["alpha"])
        finished = document(cli("run", path, *more, *WORKERS))
        run = finished["run_id"]
        [row] = rows_of(cli, run)
        is_there = True
        retried = cli("retry", run, *WORKERS)
        assert [QUESTION in request.prompt for request in server.requests] == [False, True, True]
    assert (row["outcome"], row["error"], row["result"]["status"]) == ("failed", None, "failed_equality")
    assert "judge could not be asked" in row["result"]["message"]
    assert finished["summary"]["judge"]["unreached"] == 1
    assert (retried.code, document(retried)["counts"]["passed"]) == (0, 1), retried


def test_an_answer_too_long_for_the_cache_is_not_asked_for_twice(cli: Cli, tmp_path: Path) -> None:
    """While its judge asks for a pause such an answer stays in hand: nobody would find it again."""

    def script(prompt: str, _nth: int) -> Say:
        """Answers at length; the judge asks for a pause first."""
        if QUESTION not in prompt:
            return Say('{"n": 1.0' + " " * 300_000 + "}")
        asked = sum(QUESTION in request.prompt for request in server.requests)
        return Say("wait", 429, {"Retry-After": "3"}) if asked == 1 else Say("PASS")

    with ModelServer(script) as server:
        path = bench(tmp_path, server, [{"input": "one", "expected": {"n": 1}}], models=["alpha"])
        done = cli("run", path, *WORKERS)
        assert [QUESTION in request.prompt for request in server.requests] == [False, True, True]
    assert (done.code, document(done)["counts"]["passed"]) == (0, 1), done


def test_answers_are_judged_again_without_a_call(cli: Cli, tmp_path: Path) -> None:
    """`rescore` judges stored answers as a new run, by its own criteria or by another bench's.

    Checks see the variables of the bench, which are stored once with the run, below those of the case.
    """
    (tmp_path / "validators.py").write_text(VALIDATORS + HAS_VARIABLES, encoding="utf-8")
    own = {"vars": {"own": 1}, "checks": [{"python": "has_variables"}]}
    cases: list[dict[str, Any]] = [
        {"id": "short", "input": "ok", "validator": "is_short", "regex_pattern": "^ok", **own},
        {"id": "n", "input": '<think>one?</think>{"n": 2}', "expected": {"n": 1}},
    ]
    of_bench = {"doc": "x" * 2_000, "own": 0}
    more: dict[str, Any] = {"validators_file": "validators.py", "config": {"judge_model": None}}
    more["vars"] = of_bench
    with ModelServer(echo) as server:
        first = document(cli("run", bench(tmp_path, server, cases, **more), *WORKERS))
        asked = len(server.requests)
        same = document(cli("rescore", first["run_id"], *WORKERS))
        cases[1]["expected"] = {"n": 2}
        more = {"validators_file": "validators.py", "config": {"judge_model": None}, "vars": of_bench}
        mended = cli("rescore", first["run_id"], "-c", bench(tmp_path, server, cases, **more), *WORKERS)
        assert (asked, len(server.requests)) == (4, 4)
    assert same["run_id"] != first["run_id"]
    assert (same["counts"]["passed"], same["counts"]["failed"]) == (2, 2)
    assert (mended.code, document(mended)["counts"]["passed"]) == (0, 4), mended
    assert [row["result"].get("vars") for row in rows_of(cli, same["run_id"])] == [{"own": 1}, {}] * 2
    assert [row["result"]["reasoning"] for row in rows_of(cli, same["run_id"])] == ["", "one?"] * 2
    turns = cli("rescore", "run-nobody")
    assert (turns.code, turns.out) == (2, "")


def test_one_answer_is_asked_again_and_shown_before_and_after(cli: Cli, tmp_path: Path) -> None:
    """`retry --item` asks past the cache, prints both answers, and leaves the counters of the run right."""
    is_right = False

    def script(_prompt: str, _nth: int) -> Say:
        return Say("Brasília" if is_right else "Rio de Janeiro")

    case = {"id": "brazil", "input": "Capital of Brazil?", "checks": [{"contains": "Brasília"}]}
    with ModelServer(script) as server:
        path = bench(tmp_path, server, [case], description="Capitals of the world")
        run = document(cli("run", path, "--name", "first prompt", *WORKERS))["run_id"]
        is_right = True
        both = cli("retry", run, "--item", "brazil", *WORKERS)
        again = cli("retry", run, "--item", "brazil · alpha", "--processes", "1")
        asked = len(server.requests)
        cached = cli("retry", run, "--item", "brazil · beta", "--cached", *WORKERS)
        assert (asked, len(server.requests)) == (3, 3), cached
    assert (both.code, "stands for 2 items" in both.out) == (2, True), both
    assert again.code == 1, again
    for words in ("✓ brazil · alpha  failed → passed", "Rio de Janeiro", "now  ✓ passed"):
        assert words in again.out, again.out
    listed = cli("runs", "list")
    assert ("50.0%" in listed.out, "first prompt" in listed.out) == (True, True), listed
    shown = cli("show", run, "brazil", "--json")
    assert [row["outcome"] for row in hold("show", shown.out)["items"]] == ["passed", "failed"]
    one = cli("show", run, "brazil · alpha")
    assert ("other answers" in one.out, "✗ brazil · beta" in one.out) == (True, True), one
    over = cli("show", run)
    for words in (f"{run}  first prompt", "Capitals of the world", f"show {run} 'brazil · beta'"):
        assert words in over.out, over.out
    rows = cli("results", run, "--item", "brazil", "--format", "jsonl").out.splitlines()
    assert [hold("line-cases", row)["messages"][-1]["content"] for row in rows] == ["Capital of Brazil?"] * 2
    listing = hold("runs", cli("runs", "list", "--json").out)["runs"][0]
    assert (listing["name"], listing["description"]) == ("first prompt", "Capitals of the world")
    ranked = document(cli("rescore", run, *WORKERS))
    assert (ranked["name"], ranked["summary"]["source"]) == ("first prompt, rescored", f"answers of {run}")
