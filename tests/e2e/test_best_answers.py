"""The check `select_best`, from the bench to the result: who is asked, how often, and which answer passes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.case_runs import WORKERS, bench, document, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say

CRITERION = "Is the longest."
CASES: list[dict[str, Any]] = [
    {"id": "fr", "vars": {"country": "France"}},
    {"id": "jp", "vars": {"country": "Japan"}, "checks": [{"not": {"contains": "Edo"}}]},
]
PROMPTS = [{"id": "plain", "user": "{{ country }}"}, {"id": "polite", "user": "{{ country }}, please"}]


def longest(prompt: str, _nth: int) -> Say:
    """Models repeat the question; the judge chooses the longest answer."""
    if not prompt.startswith("Criterion:"):
        return Say(f"You said: {prompt}", after_s=0.02)
    answers = json.loads(prompt.split("Answers: ")[1])
    best = max(answers, key=lambda answer: len(answer["text"]))
    return Say(json.dumps({"reason": "Longest.", "choice": best["answer"]}))


def test_the_best_answer_to_a_case_passes_and_each_is_asked_for_once(cli: Cli, tmp_path: Path) -> None:
    """The judge has one question a case and repeat; all figures are those of the answers' own calls."""
    more: dict[str, Any] = {
        "prompts": PROMPTS,
        "default_checks": [{"select_best": CRITERION}],
        "config": {"concurrency": 3, "max_cost": 1},
    }
    with ModelServer(longest) as server:
        path = bench(tmp_path, server, CASES, **more)
        done = document(cli("run", path, *WORKERS))
        asked = [request.prompt.startswith("Criterion:") for request in server.requests]
        judged = [request.prompt for request in server.requests if request.prompt.startswith("Criterion:")]
        again = document(cli("rescore", done["run_id"], *WORKERS))
        after = len(server.requests)
    rows = rows_of(cli, done["run_id"])
    found = [row["result"] for row in rows]
    assert (asked.count(False), asked.count(True), after) == (8, 2, 10)
    assert [row["case_id"] for row in found] == ["fr"] * 4 + ["jp"] * 4
    assert {(row["prompt_id"], row["passed"]) for row in found} == {("plain", False), ("polite", True)}
    reasons = {row["checks"][0]["reason"] for row in found if row["prompt_id"] == "plain"}
    assert reasons == {"better is alpha · polite and beta · polite: Longest."}
    assert not any(row["cached"] for row in rows)
    assert all('Input: ["France", "France, please"]' in text or "Japan" in text for text in judged)
    assert done["summary"]["cost_usd"] == pytest.approx(len(asked) * 0.0017)
    assert [row["outcome"] for row in rows_of(cli, again["run_id"])] == [row["outcome"] for row in rows]


def test_a_model_without_an_answer_is_not_compared(cli: Cli, tmp_path: Path) -> None:
    """It is asked once; where a single answer is left, nothing is compared, and the check does not count."""

    def script(prompt: str, nth: int) -> Say:
        return Say("no", 400) if "please" in prompt else longest(prompt, nth)

    checks = [{"select_best": CRITERION}, {"contains": "France"}]
    more: dict[str, Any] = {"models": ["alpha"], "prompts": PROMPTS, "default_checks": checks}
    with ModelServer(script) as server:
        done = document(cli("run", bench(tmp_path, server, CASES[:1], **more), *WORKERS))
        assert [request.prompt.startswith("Criterion:") for request in server.requests].count(True) == 0
    plain, polite = rows_of(cli, done["run_id"])
    assert plain["result"]["checks"][0]["reason"] == "there is no other answer to compare it with"
    assert (plain["outcome"], polite["outcome"]) == ("passed", "error")
