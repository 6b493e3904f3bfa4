"""Cases runs in other modes: mixed, repeated, without cache, odd judges and validators, `llm-bench`."""

import re
import sys
from collections import Counter
from pathlib import Path
from shutil import copy
from typing import Any, Final

from producer.sample_api.server import in_background
from tests.support.case_runs import QUESTION, WORKERS, bench, document, echo, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say
from tests.support.tree import ROOT

ODD_VALIDATORS: Final = """
import ast

def raises(output):
    raise KeyError("nothing there")

def nonsense(output):
    return "yes"

def recurses(output):
    return recurses(output)

def eats(output):
    return len("x" * 10**11) > 0

def shouts(output):
    print("x" * 100_000)
    return True, "a note"

def talks(output):
    return False, "y" * 100_000_000

def crashes(output):
    return ast.parse("-" * 3_000_000 + "1") is not None

def agrees(output):
    return True
"""


def test_one_case_with_criteria_makes_a_standard_run(cli: Cli, tmp_path: Path) -> None:
    """In a mixed run the case without criteria passes freely, and the standard table is shown."""
    cases: list[dict[str, Any]] = [
        {"input": '{"answer": 5}', "expected": {"answer": 4}},
        {"input": "Tell me a joke."},
    ]
    with ModelServer(echo) as server:
        path = bench(tmp_path, server, cases, models=["alpha"], config={"judge_model": None})
        done = cli("run", path, "--processes", "1", "--no-progress", "-o", tmp_path / "out.jsonl")
    assert done.code == 1, done
    assert "Freeform Mode" not in done.out
    assert re.search(r"^alpha +50\.0% +9\.4-90\.5% +1 of 2 ", done.out, re.MULTILINE)
    run = document(cli("runs", "--json"))["runs"][0]["run_id"]
    assert [row["result"]["decided_by"] for row in rows_of(cli, run)] == ["equality", "freeform"]


def test_repeats_are_questions_of_their_own(cli: Cli, tmp_path: Path) -> None:
    """`--repeat 3` asks three times; a second run finds all in the cache, and `--no-cache` asks anew."""
    cases = [{"input": "one", "regex_pattern": "yes"}, {"input": "two", "regex_pattern": "yes"}]
    with ModelServer(lambda _prompt, nth: Say("yes" if nth != 2 else "no")) as server:
        path = bench(tmp_path, server, cases, models=["alpha"], config={"judge_model": None})
        finished = document(cli("run", path, "--repeat", "3", *WORKERS))
        assert Counter(request.prompt for request in server.requests) == {"one": 3, "two": 3}
        cli("run", path, "--repeat", "3", *WORKERS)
        assert len(server.requests) == 6
        cli("run", path, "--repeat", "3", "--no-cache", *WORKERS)
        assert len(server.requests) == 12
    assert (finished["counts"]["total"], finished["counts"]["passed"]) == (6, 4)
    rows = rows_of(cli, finished["run_id"])
    assert [(row["result"]["case_index"], row["result"]["repeat_index"]) for row in rows] == [
        (case, repeat) for case in (0, 1) for repeat in (0, 1, 2)
    ]


def test_a_judge_that_does_not_say_pass_first_does_not_pass(cli: Cli, tmp_path: Path) -> None:
    """An essay that mentions PASS, nothing at all and a refusal are no pass; what they cost is counted."""
    replies = {"1": "Well, one could say PASS here, but", "2": "", "3": "I cannot PASS this.", "4": "pass."}

    def script(prompt: str, _nth: int) -> Say:
        if QUESTION not in prompt:
            return Say(f'{{"n": {prompt}.5}}')
        return Say(next(reply for number, reply in replies.items() if f'"n": {number}.5' in prompt))

    cases = [{"id": number, "input": number, "expected": {"n": int(number)}} for number in replies]
    with ModelServer(script) as server:
        finished = document(cli("run", bench(tmp_path, server, cases, models=["alpha"]), *WORKERS))
    rows = {row["result"]["case_id"]: row for row in rows_of(cli, finished["run_id"])}
    assert {name: row["result"]["status"] for name, row in rows.items()} == {
        **dict.fromkeys("123", "failed_fuzzy"),
        "4": "passed",
    }
    assert all(row["cost_usd"] > 0.0017 for row in rows.values()), "the judge's cost is part of the case's"
    assert finished["summary"]["judge"]["calls"] == 4


def test_odd_validators_cost_their_own_case_only(cli: Cli, tmp_path: Path) -> None:
    """Whatever a validator does, its case fails with the reason and the next one is judged as ever."""
    (tmp_path / "validators.py").write_text(ODD_VALIDATORS, encoding="utf-8")
    odd = ("raises", "nonsense", "recurses", "eats", "talks", "crashes")
    cases: list[dict[str, Any]] = [
        {"id": f"{name} {part}", "input": "x", "validator": validator}
        for name in (*odd, "shouts")
        for part, validator in (("itself", name), ("after", "agrees"))
    ]
    with ModelServer(echo) as server:
        more: dict[str, Any] = {
            "validators_file": "validators.py",
            "config": {"judge_model": None, "concurrency": 1},
        }
        finished = document(cli("run", bench(tmp_path, server, cases, models=["alpha"], **more), *WORKERS))
    rows = {row["result"]["case_id"]: row["result"] for row in rows_of(cli, finished["run_id"])}
    failed = {name for name, result in rows.items() if result["status"] == "failed_custom"}
    assert failed == {f"{name} itself" for name in odd}, rows
    assert all(rows[name]["message"] for name in failed)
    assert {result["status"] for name, result in rows.items() if name not in failed} == {"passed"}


def test_llm_bench_works_as_documented(cli: Cli, tmp_path: Path) -> None:
    """`llm-bench run -c freeform.yaml --export html` writes the page with its badge and its prompts."""
    for name in ("freeform.yaml", "bench.config.yaml", "validators.py"):
        copy(ROOT / "examples" / name, tmp_path / name)
    command = (sys.executable, "-P", "-m", "producer.bench", "run")
    with in_background() as url:
        place = ("--api-base", f"{url}/v1", "--no-progress")
        free = cli.processes.start(*command, "-c", "freeform.yaml", "--export", "html", *place, cwd=tmp_path)
        assert free.wait(40) == 0, free.output_text()
        verbose = cli.processes.start(*command, "--verbose", *place, cwd=tmp_path)
        assert verbose.wait(40) == 1, verbose.output_text()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Freeform Mode" in page
    assert "Model Outputs by Prompt" in page
    assert "17 + 25 = 42" in page
    assert "✗ equality: 1 difference: /country" in verbose.output
