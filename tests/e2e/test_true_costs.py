"""What a run costs, from the usage that a provider reports to the sum of its summary."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.case_runs import WORKERS, bench, document, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say

PRICES = {
    "prompt_per_million": 200,
    "completion_per_million": 800,
    "cached_prompt_per_million": 50,
    "reasoning_per_million": 600,
    "flex_factor": 0.5,
}
USAGE = {
    "prompt_tokens": 2000,
    "completion_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 1500},
    "completion_tokens_details": {"reasoning_tokens": 60},
}
ANSWER_USD = (500 * 200 + 1500 * 50 + 40 * 800 + 60 * 600) / 2 / 1e6
"""Half of it, because the reply says that it is of the tier `flex`."""
JUDGE_USD = (2000 * 200 + 100 * 800) / 1e6
"""Its reply says nothing of tier, cache or reasoning."""


def test_a_run_costs_what_the_provider_bills(cli: Cli, tmp_path: Path) -> None:
    """To the cent: cached input, reasoning and the tier that answered; a tier without room is waited for."""

    def script(prompt: str, nth: int) -> Say:
        asked = server.requests[-1].body
        if "Criterion:" in prompt:
            usage = {name: USAGE[name] for name in ("prompt_tokens", "completion_tokens")}
            reply = {"content": 'In short: {"reason": "polite", "score": 1}'}
            is_refused = "response_format" in asked
            return Say("no such format", 400) if is_refused else Say(body=completion(reply, usage))
        if nth == 1 and prompt == "case 0":
            return Say(status=429, body={"error": {"code": "resource_unavailable"}})
        assert asked["service_tier"] == "flex"
        return Say(body=completion({"content": "Please."}, USAGE) | {"service_tier": "flex"})

    cases = [{"input": f"case {n}", "checks": [{"rubric": "Is it polite?"}]} for n in range(4)]
    with ModelServer(script) as server:
        place = {"api_base": server.api_base, "prices": PRICES}
        more: dict[str, Any] = {"models": ["alpha"], "model_configs": {"alpha": place, "judge": place}}
        path = bench(
            tmp_path, server, cases, params={"service_tier": "flex"}, config={"max_cost": 50.0}, **more
        )
        run = document(cli("run", path, *WORKERS))
        rows = rows_of(cli, run["run_id"])
        report = cli("report", run["run_id"]).out
        forms = ["response_format" in each.body for each in server.requests if "Criterion:" in each.prompt]
    assert run["counts"]["passed"] == 4
    assert [row["attempts"] for row in rows] == [1] * 4
    assert [row["cost_usd"] for row in rows] == pytest.approx([ANSWER_USD + JUDGE_USD] * 4)
    _hold_summary(run["summary"], rows[0]["result"])
    assert "cost $2.41 · tokens 8,400 · 75.0% of input cached by the provider" in report
    assert forms.count(False) == 4
    assert forms.count(True) <= 4


def _hold_summary(summary: dict[str, Any], result: dict[str, Any]) -> None:
    """Holds the sums of a run, and the usage of an answer."""
    [model] = summary["models"]
    assert summary["cost_usd"] == pytest.approx(4 * (ANSWER_USD + JUDGE_USD), abs=1e-9)
    assert summary["paid_usd"] == pytest.approx(summary["cost_usd"], abs=1e-6)
    assert (model["prompt_tokens"], model["cached_input_tokens"]) == (8000, 6000)
    assert result["token_usage"] == {
        "prompt_tokens": 2000,
        "completion_tokens": 100,
        "total_tokens": 2100,
        "cached_input_tokens": 1500,
        "reasoning_tokens": 60,
        "service_tier": "flex",
    }


def completion(message: dict[str, str], usage: dict[str, object]) -> dict[str, object]:
    """A whole reply."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": usage}
