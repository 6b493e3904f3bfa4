"""Checks that call a model, from the bench to the result: what is asked, how often, and what it costs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.case_runs import WORKERS, bench, document, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Request, Say
from tests.support.ports import free_port

RUBRIC = "Is it polite?"
"""What rubrics of these tests ask."""
EMBEDDING = "/v1/embeddings"


def judge(score: float) -> Say:
    return Say(json.dumps({"reason": f"worth {score}", "score": score}))


def polite(prompt: str, _nth: int) -> Say:
    """Answers as its prompt says; as a judge it finds "please" polite."""
    if "Criterion:" in prompt:
        return judge(0.9 if "please" in prompt.split("Output:")[1] else 0.2)
    return Say(prompt)


def kinds_of(requests: list[Request]) -> list[str]:
    """What was asked, in order."""
    return [
        "embeddings"
        if request.path == EMBEDDING
        else "rubric"
        if "Criterion:" in request.prompt
        else "answer"
        for request in requests
    ]


def run(cli: Cli, path: Path, *more: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    finished = document(cli("run", path, *more, *WORKERS))
    return finished, rows_of(cli, finished["run_id"])


def paid_bench(folder: Path, server: ModelServer, cases: list[dict[str, Any]], **more: Any) -> Path:
    """A bench of one model with a judge and an embedding model."""
    config = {"embedding_model": "openai/embedder", **more.pop("config", {})}
    place = {"api_base": server.api_base, "prices": {"prompt_per_million": 1, "completion_per_million": 1}}
    path = bench(folder, server, cases, models=["alpha"], config=config, **more)
    bench_text = path.read_text(encoding="utf-8")
    path.write_text(
        bench_text.replace("model_configs:\n", f"model_configs:\n  openai/embedder: {json.dumps(place)}\n")
    )
    return path


def test_each_paid_check_is_one_call_and_none_when_cached(cli: Cli, tmp_path: Path) -> None:
    """The texts of a case are embedded by one request; a second run asks nobody at all."""
    checks = [
        {"similar": "please help", "at_least": 0.5},
        {"similar": "please do", "at_least": 0.5},
        {"rubric": RUBRIC},
    ]
    with ModelServer(polite) as server:
        path = paid_bench(tmp_path, server, [{"input": "please stop", "checks": checks}])
        first, [row] = run(cli, path)
        assert kinds_of(server.requests) == ["answer", "embeddings", "rubric"]
        assert sorted(server.requests[1].body["input"]) == ["please do", "please help", "please stop"]
        second, [again] = run(cli, path)
        assert len(server.requests) == 3
    assert (first["counts"]["passed"], second["counts"]["passed"]) == (1, 1)
    rows = row["result"]["checks"]
    assert [each["check"] for each in rows] == ["similar", "similar", "rubric"]
    assert [each["passed"] for each in rows] == [True, True, True]
    assert rows[2]["reason"] == "worth 0.9"
    assert rows[2]["score"] == 0.9
    assert [each["cost_usd"] for each in rows[:2]] == [0.0, pytest.approx(11e-6)]
    assert rows[2]["cost_usd"] == pytest.approx((11 * 100 + 3 * 200) / 1e6)
    assert row["cost_usd"] == pytest.approx(2 * rows[2]["cost_usd"] + 11e-6)
    assert [each["score"] for each in again["result"]["checks"]] == [each["score"] for each in rows]


def test_nothing_is_asked_that_cannot_change_the_outcome(cli: Cli, tmp_path: Path) -> None:
    """A failed free check, or a failed stage, saves the calls; `paid_checks: always` makes them."""
    checks: list[Any] = [{"rubric": RUBRIC}, {"contains": "please"}]
    cases: list[dict[str, Any]] = [
        {"id": "free", "input": "stop", "checks": checks},
        {"id": "stage", "input": "please", "regex_pattern": "^stop", "checks": checks},
        {"id": "always", "input": "stop it", "checks": checks, "paid_checks": "always"},
        {"id": "mean", "input": "stop this", "checks": [*checks, {"contains": "stop"}], "at_least": 0.3},
    ]
    with ModelServer(polite) as server:
        _, rows = run(cli, paid_bench(tmp_path, server, cases))
        assert kinds_of(server.requests).count("rubric") == 1
    by_id = {row["result"]["case_id"]: row["result"] for row in rows}
    assert [by_id[name]["checks"][0]["reason"] for name in ("free", "stage", "mean")] == [
        "not asked: another check failed",
        "not asked: the case has failed already",
        "not asked: its score cannot change the outcome",
    ]
    assert by_id["free"]["checks"][0]["passed"] is None
    assert by_id["always"]["checks"][0]["score"] == 0.2
    statuses = {name: result["status"] for name, result in by_id.items()}
    assert statuses == {
        "free": "failed_checks",
        "stage": "failed_regex",
        "always": "failed_checks",
        "mean": "passed",
    }


@pytest.mark.parametrize("more", [(), ("--no-cache",)], ids=["cached", "not cached"])
def test_retry_asks_only_the_check_that_was_away(more: tuple[str, ...], cli: Cli, tmp_path: Path) -> None:
    """The item is an error that keeps its answer and its other checks; nothing is asked or paid twice."""
    is_there = False

    def script(prompt: str, nth: int) -> Say:
        return Say("no such model", 404) if "Criterion:" in prompt and not is_there else polite(prompt, nth)

    checks = [{"similar": "please help", "at_least": 0.5}, {"rubric": RUBRIC}]
    with ModelServer(script) as server:
        path = paid_bench(tmp_path, server, [{"input": "please stop", "checks": checks}])
        done = cli("run", path, *more, *WORKERS)
        finished = document(done)
        [row] = rows_of(cli, finished["run_id"])
        is_there = True
        retried = cli("retry", finished["run_id"], *WORKERS)
        assert kinds_of(server.requests) == ["answer", "embeddings", "rubric", "rubric"]
        [after] = rows_of(cli, finished["run_id"])
    assert row["error"]["code"] == "check_unavailable"
    assert "no such model" in row["error"]["message"]
    assert row["result"]["raw_output"] == "please stop"
    assert row["result"]["checks"][0]["passed"] is True
    assert row["result"]["checks"][1]["reason"].startswith("could not be asked: judge: ")
    assert document(retried)["counts"]["passed"] == 1
    assert after["result"]["checks"][0]["reason"] == row["result"]["checks"][0]["reason"]
    one_answer = (11 * 100 + 3 * 200) / 1e6
    assert after["cost_usd"] == pytest.approx(2 * one_answer + 11e-6)


@pytest.mark.parametrize("more", [(), ("--no-cache",)], ids=["cached", "not cached"])
def test_retry_keeps_votes_on_rubrics_inside_of_a_check(
    more: tuple[str, ...], cli: Cli, tmp_path: Path
) -> None:
    """What one judge answered stays while the other is away, also over a failed retry, and is paid once."""
    is_there = False

    def script(prompt: str, nth: int) -> Say:
        return Say("no such model", 404) if "brief" in prompt and not is_there else polite(prompt, nth)

    # The shorter question is the cheaper one, and asked first.
    inner = [{"rubric": RUBRIC}, {"rubric": "Is it brief, and does it come to the point?"}]
    with ModelServer(script) as server:
        path = paid_bench(tmp_path, server, [{"input": "please stop", "checks": [{"all": inner}]}])
        finished, first = run(cli, path, *more)
        cli("retry", finished["run_id"], *WORKERS)
        second = rows_of(cli, finished["run_id"])
        is_there = True
        retried = document(cli("retry", finished["run_id"], *WORKERS))
        [after] = rows_of(cli, finished["run_id"])
        asked = [request.prompt.split('"')[1] for request in server.requests[1:]]
        assert asked == [RUBRIC, *3 * [inner[1]["rubric"]]]
    one_answer = (11 * 100 + 3 * 200) / 1e6
    for row in (*first, *second):
        assert row["error"]["code"] == "check_unavailable"
        [check] = row["result"]["checks"]
        assert (check["score"], check["passed"], check["cost_usd"]) == (None, None, pytest.approx(one_answer))
        [judged] = check["detail"]["judged"]
        assert (judged["name"], judged["passed"]) == (f"rubric: {RUBRIC}", True)
        assert [vote["score"] for vote in judged["votes"]] == [0.9]
        assert row["cost_usd"] == pytest.approx(2 * one_answer)
    assert retried["counts"]["passed"] == 1
    [check] = after["result"]["checks"]
    assert [each["passed"] for each in check["detail"]["judged"]] == [True, True]
    assert check["cost_usd"] == pytest.approx(2 * one_answer)
    assert after["cost_usd"] == pytest.approx(3 * one_answer)


def test_retry_asks_a_judge_that_refused_connections_and_nobody_else(cli: Cli, tmp_path: Path) -> None:
    """Nothing listens where the judge is: an error with the place; once it is back, it alone is asked."""
    port = free_port()
    judge_base = f"http://127.0.0.1:{port}/v1"
    checks = [{"rubric": RUBRIC, "name": "polite"}]
    with ModelServer(polite) as server:
        path = bench(
            tmp_path,
            server,
            [{"input": "please stop", "checks": checks}],
            models=["alpha"],
            model_configs={"alpha": {"api_base": server.api_base}, "judge": {"api_base": judge_base}},
        )
        done = cli("run", path, "--no-cache", *WORKERS)
        finished = document(done)
        [row] = rows_of(cli, finished["run_id"])
        with ModelServer(polite, port=port) as judge_server:
            retried = cli("retry", finished["run_id"], *WORKERS)
            assert kinds_of(judge_server.requests) == ["rubric"]
        assert kinds_of(server.requests) == ["answer"]
        [after] = rows_of(cli, finished["run_id"])
    assert (done.code, finished["counts"]["error"]) == (1, 1)
    assert (row["outcome"], row["error"]["code"]) == ("error", "check_unavailable")
    assert row["error"]["message"].startswith("check polite could not be asked: judge: ")
    assert f"127.0.0.1:{port}" in row["error"]["message"]
    assert row["result"]["raw_output"] == "please stop"
    assert (retried.code, document(retried)["counts"]["passed"]) == (0, 1)
    assert after["result"]["checks"][0]["score"] == 0.9


def test_retry_asks_only_the_judges_of_a_panel_that_have_no_vote(cli: Cli, tmp_path: Path) -> None:
    """One of two judges refuses connections: the vote of the other is kept, not asked for again."""
    port = free_port()
    checks = [{"rubric": RUBRIC, "models": ["judge", "beta"]}]
    with ModelServer(polite) as server:
        here, away = {"api_base": server.api_base}, {"api_base": f"http://127.0.0.1:{port}/v1"}
        path = bench(
            tmp_path,
            server,
            [{"input": "please stop", "checks": checks}],
            models=["alpha"],
            model_configs={"alpha": here, "judge": here, "beta": away},
        )
        finished, [row] = run(cli, path, "--no-cache")
        with ModelServer(polite, port=port) as other:
            retried = document(cli("retry", finished["run_id"], *WORKERS))
            assert kinds_of(other.requests) == ["rubric"]
        assert kinds_of(server.requests) == ["answer", "rubric"]
        [after] = rows_of(cli, finished["run_id"])
    [judged] = row["result"]["checks"][0]["detail"]["judged"]
    assert judged["passed"] is None
    assert [vote["verdict"] for vote in judged["votes"]] == ["pass", None]
    assert retried["counts"]["passed"] == 1
    votes = after["result"]["checks"][0]["detail"]["votes"]
    assert [(vote["model"], vote["verdict"]) for vote in votes] == [("judge", "pass"), ("beta", "pass")]


def test_a_retry_counts_scores_of_earlier_results_by_their_weight(cli: Cli, tmp_path: Path) -> None:
    """The mean of a case is the same whether its judges were all there at once or not."""
    is_there = False

    def script(prompt: str, nth: int) -> Say:
        return Say("no such model", 404) if "brief" in prompt and not is_there else polite(prompt, nth)

    checks = [{"rubric": RUBRIC, "weight": 3}, {"rubric": "Is it brief, and does it come to the point?"}]
    cases = [{"input": "please", "checks": checks, "at_least": 0.1, "paid_checks": "always"}]
    with ModelServer(script) as server:
        path = paid_bench(tmp_path, server, cases)
        finished, _ = run(cli, path)
        is_there = True
        server.script = lambda prompt, nth: judge(0.1) if "brief" in prompt else polite(prompt, nth)
        cli("retry", finished["run_id"], *WORKERS)
        [after] = rows_of(cli, finished["run_id"])
    assert [each["score"] for each in after["result"]["checks"]] == [0.9, 0.1]
    assert after["result"]["score"] == pytest.approx((3 * 0.9 + 0.1) / 4)


def test_a_check_that_is_asked_for_a_pause_parks_the_case(cli: Cli, tmp_path: Path) -> None:
    """The case gives its place to others, and comes back with its answer from the cache."""

    def script(prompt: str, nth: int) -> Say:
        return (
            Say("wait", 429, {"Retry-After": "3"})
            if "Criterion:" in prompt and nth == 1
            else polite(prompt, nth)
        )

    with ModelServer(script) as server:
        path = paid_bench(tmp_path, server, [{"input": "please", "checks": [{"rubric": RUBRIC}]}])
        finished, _ = run(cli, path)
        assert kinds_of(server.requests) == ["answer", "rubric", "rubric"]
    assert finished["counts"]["passed"] == 1


def test_a_panel_and_combinations_decide_as_they_say(cli: Cli, tmp_path: Path) -> None:
    """More than half of a panel; and in `any`, a free check that passes saves the call."""
    checks = [
        {"rubric": RUBRIC, "models": ["judge", "alpha", "beta"], "name": "panel"},
        {"any": [{"rubric": RUBRIC}, {"contains": "please"}], "name": "saved"},
        {"not": {"rubric": "Is it rude?", "at_least": 0.95}, "name": "asked"},
    ]
    with ModelServer(polite) as server:
        path = paid_bench(tmp_path, server, [{"input": "please", "checks": checks}])
        _, [row] = run(cli, path)
        assert kinds_of(server.requests).count("rubric") == 4
    rows = {each["name"]: each for each in row["result"]["checks"]}
    assert rows["panel"]["reason"] == "scores 0.9, 0.9, 0.9: more than half reach 0.9"
    assert [vote["model"] for vote in rows["panel"]["detail"]["votes"]] == ["judge", "alpha", "beta"]
    assert rows["saved"]["passed"] is True
    assert (rows["asked"]["passed"], rows["asked"]["score"]) == (True, pytest.approx(0.1))


def test_the_cost_limit_holds_for_checks(cli: Cli, tmp_path: Path) -> None:
    """A run whose money is spent ends as incomplete, without asking."""
    with ModelServer(polite) as server:
        path = paid_bench(tmp_path, server, [{"input": "please", "checks": [{"rubric": RUBRIC}]}])
        finished = document(cli("run", path, "--max-cost", "0.01", *WORKERS))
        assert kinds_of(server.requests) == ["answer"]
    assert finished["state"] == "incomplete"


def test_at_the_cost_cap_answers_are_kept(cli: Cli, tmp_path: Path) -> None:
    """Without a cache every answer has a row; `resume` asks what is missing; paid is what was spent."""
    dear = {"prompt_tokens": 1000, "completion_tokens": 0, "total_tokens": 1000}

    def says(prompt: str, nth: int) -> Say:
        return polite(prompt, nth)._replace(usage=dear)

    cases = [{"input": f"please {at}", "checks": [{"rubric": RUBRIC}]} for at in range(12)]
    config = {"cache": False, "max_cost": 1.0, "concurrency": 4}
    params = {"params": {"max_tokens": 1}, "judge_params": {"max_tokens": 1}}
    with ModelServer(says) as server:
        first = document(cli("run", paid_bench(tmp_path, server, cases, config=config, **params), *WORKERS))
        run = first["run_id"]
        answers = kinds_of(server.requests).count("answer")
        rows = [row for row in rows_of(cli, run) if row["result"] is not None]
        spent = len(server.requests) / 10
        assert (first["state"], first["exit"]) == ("incomplete", 4)
        assert sum(bool(row["result"]["raw_output"]) for row in rows) == answers
        assert {row["error"]["code"] for row in rows if row["error"]} <= {"check_unavailable"}
        assert first["summary"]["paid_usd"] == pytest.approx(spent)
        done = document(cli("resume", run, "--max-cost", "9", *WORKERS))
        assert done["counts"]["passed"] == len(cases)
        assert len(server.requests) == 2 * len(cases)
    assert done["summary"]["paid_usd"] == pytest.approx(2.4)
    assert "$2.40" in cli("runs", "list").out


def test_graded_checks_share_the_steps_of_a_run(cli: Cli, tmp_path: Path) -> None:
    """The steps are written once for all cases; every answer costs one call to the judge for each check."""

    def graded(prompt: str, _nth: int) -> Say:
        if "Expert:" in prompt:
            return Say('{"reason": "The same.", "choice": "same"}')
        if "Context:" in prompt:
            return Say('{"parts": [{"statement": "It is.", "supported": true}]}')
        if "Steps:" in prompt:
            return Say('{"reason": "Good.", "score": 9}')
        return Say('{"steps": ["Read it."]}' if "Criteria:" in prompt else prompt)

    checks: list[Any] = [{"g_eval": "Is polite."}, {"factuality": "{{ input }}", "at_least": 1}]
    checks.append({"context_faithfulness": {"json_path": "$.found"}})
    answers = [json.dumps({"said": word, "found": [f"A {word}."]}) for word in ("x", "y")]
    cases = [{"input": answer, "checks": checks} for answer in answers]
    said = {"json_pointer": "/said"}
    with ModelServer(graded) as server:
        finished, rows = run(cli, bench(tmp_path, server, cases, models=["alpha"], transform=said))
        asked = [request.prompt for request in server.requests]
    assert finished["counts"]["passed"] == 2
    assert [sum(word in each for each in asked) for word in ("Steps:", "Expert:", "Criteria:")] == [2, 2, 3]
    context = next(each for each in asked if "Context:" in each)
    assert context.splitlines()[0] in {'Context: ["A x."]', 'Context: ["A y."]'}
    assert context.splitlines()[-1] in {'Output: "x"', 'Output: "y"'}
    for row in rows:
        found = {
            each["check"]: (each["score"], each["reason"].split('": ')[-1])
            for each in row["result"]["checks"]
        }
        assert found == {
            "g_eval": (0.9, "Good."),
            "factuality": (1.0, "same: The same."),
            "context_faithfulness": (1.0, "1 of 1 supported"),
        }
