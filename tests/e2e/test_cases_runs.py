"""`proctor run bench.yaml` against a scripted provider, with two worker processes: how a case can end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from shared.keys import items_key
from tests.support.case_runs import VALIDATORS, WORKERS, bench, document, echo, rows_of
from tests.support.cli import Cli, Done
from tests.support.model_server import ModelServer, Say
from tests.support.processes import Processes

if TYPE_CHECKING:
    import redis

STATUSES: Final = {
    "equal": "passed",
    "fuzzy": "passed",
    "judged": "failed_fuzzy",
    "prose": "failed_json_parse",
    "schema": "failed_schema",
    "regex": "failed_regex",
    "custom": "failed_custom",
}


def test_every_stage_has_its_status(cli: Cli, tmp_path: Path) -> None:
    """Two models, six ways to end: status, deciding stage, judge, cost and exit code 1 as documented."""
    (tmp_path / "validators.py").write_text(VALIDATORS, encoding="utf-8")
    (tmp_path / "schema.json").write_text('{"type": "object", "required": ["n"]}', encoding="utf-8")
    cases: list[dict[str, Any]] = [
        {"id": "equal", "input": '```json\n{"n": 1}\n```', "expected": {"n": 1}},
        {"id": "fuzzy", "input": '<think>{"n": 1}</think>{"n": 1.0}', "expected": {"n": 1}},
        {"id": "judged", "input": '{"n": 2}', "expected": {"n": 1}},
        {"id": "prose", "input": "n is 1", "expected": {"n": 1}},
        {"id": "schema", "input": '{"m": 1}', "expected": {"n": 1}},
        {"id": "regex", "input": '{"n": 1}', "regex_pattern": "^never"},
        {"id": "custom", "input": '{"n": 1, "long": "................"}', "validator": "is_short"},
    ]
    with ModelServer(echo) as server:
        path = bench(tmp_path, server, cases, validators_file="validators.py", schema_path="schema.json")
        done = cli("run", path, *WORKERS)
        assert done.code == 1, done
        finished = document(done)
        asked = len(server.requests)
        again = document(cli("run", path, *WORKERS))
        assert len(server.requests) == asked, "a second run is answered from the cache"
    rows = rows_of(cli, finished["run_id"])
    assert [(row["result"]["model"], row["result"]["case_id"]) for row in rows] == [
        (model, case["id"]) for model in ("alpha", "beta") for case in cases
    ]
    assert {row["result"]["case_id"]: row["result"]["status"] for row in rows} == STATUSES
    fuzzy = rows[1]["result"]
    assert (fuzzy["decided_by"], fuzzy["used_fuzzy_match"]) == ("fuzzy", True)
    assert fuzzy["stages"][-1]["detail"]["reply"] == "PASS"
    assert (fuzzy["reasoning"], fuzzy["raw_output"]) == ('{"n": 1}', '{"n": 1.0}')
    assert [row["cost_usd"] for row in rows[:2]] == pytest.approx([0.0017, 0.0034])
    counts, judge = finished["counts"], finished["summary"]["judge"]
    assert counts | {"decided": 0} == counts
    assert (counts["passed"], counts["failed"], judge["calls"]) == (4, 10, 4)
    assert [model["cached"] for model in again["summary"]["models"]] == [7, 7]
    _check_github_report(cli, finished["run_id"], tmp_path / "summary.md")


def _check_github_report(cli: Cli, run: str, path: Path) -> None:
    """The summary is all that stdout or the file gets, and annotations are on stderr."""
    printed = cli("report", run, "--format", "github")
    assert printed.code == 0, printed
    assert printed.out.startswith("## ✗ ")
    assert f"\nProctor run {run}, finished: " in printed.out
    assert printed.out.count("<details>") == 10
    assert [line.split(" ")[0] for line in printed.err.splitlines()] == ["::warning"] * 10
    kept = cli("report", run, "--format", "github", "-o", path, "--fail-on", "pass_rate<0.9")
    assert (kept.code, kept.out) == (1, f"{path}\n"), kept
    assert kept.err.startswith("::error title=Proctor::gate failed: pass rate ")
    assert path.read_text(encoding="utf-8").startswith(printed.out[:20])


def test_freeform_shows_outputs_by_prompt(cli: Cli, tmp_path: Path) -> None:
    """Nothing is checked: the panel, a table for each prompt, exit code 0, and no judge."""
    with ModelServer(echo) as server:
        path = bench(tmp_path, server, [{"input": "What is 2+2?"}, {"input": "A haiku, please."}])
        done = cli("run", path, "--processes", "2", "--no-progress", "-o", tmp_path / "out.csv")
        assert (done.code, len(server.requests)) == (0, 4), done
    assert "│ Freeform Mode - Showing raw model outputs for manual inspection │" in done.out
    assert done.out.index("Prompt 1: What is 2+2?") < done.out.index("Prompt 2: A haiku, please.")
    assert "│ Model │ Output       │ Latency │    Cost │" in done.out
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("model_name,test_index,passed,status,latency_total,latency_ttft,prompt_tokens")
    assert [line.split(",")[:4] for line in lines[1:]] == [
        [model, number, "True", "passed"] for model in ("alpha", "beta") for number in "12"
    ]


def test_outputs_that_are_no_json_are_verdicts(cli: Cli, tmp_path: Path) -> None:
    """Strange outputs are judged like others: each has its status, no worker dies, nothing is lost."""
    strange = {
        "nul": '{"n": "\0"}',
        "nan": '{"n": NaN}',
        "huge number": '{"n": 1e999}',
        "digits": '{"n": ' + "9" * 5_000 + "}",
        "deep": "[" * 100_000,
        "twice": '{"n": 2, "n": 1}',
        "empty": "",
        "list": "[1]",
    }

    def script(prompt: str, _nth: int) -> Say:
        return Say(strange[prompt])

    cases = [{"id": name, "input": name, "expected": {"n": 1}} for name in strange]
    with ModelServer(script) as server:
        path = bench(tmp_path, server, cases, config={"judge_model": None}, models=["alpha"])
        finished = document(cli("run", path, *WORKERS))
    status = {row["result"]["case_id"]: row["result"]["status"] for row in rows_of(cli, finished["run_id"])}
    assert status.pop("twice") == "passed"
    assert set(status.values()) == {"failed_json_parse"}
    assert finished["counts"]["total"] == sum(finished["counts"][word] for word in ("passed", "failed"))


ERRORS: Final[dict[str, tuple[Say, str]]] = {
    "refused": (Say("no such option", 400), "upstream_refused"),
    "choices": (Say(body={"choices": []}), "upstream_invalid_reply"),
    "null": (Say(body={"choices": [{"message": {"content": None}}]}), "upstream_invalid_reply"),
    "html": (Say(body="<html>"), "upstream_invalid_reply"),
    "large": (Say("x" * 1_100_000), "output_too_large"),
    "larger": (Say(body=b"x" * 6_000_000), "output_too_large"),
}


def test_no_answer_is_an_error_and_no_verdict(cli: Cli, tmp_path: Path) -> None:
    """Each trouble of a provider has its code; a 429 and a 500 are asked again and lose nothing."""

    def script(prompt: str, nth: int) -> Say:
        if prompt in ERRORS:
            return ERRORS[prompt][0]
        return (
            Say("wait", 429, {"Retry-After": "0.2"})
            if nth == 1
            else Say("no", 500)
            if nth == 2
            else Say("ok")
        )

    cases = [{"id": name, "input": name, "regex_pattern": "ok"} for name in (*ERRORS, "again")]
    with ModelServer(script) as server:
        path = bench(tmp_path, server, cases, models=["alpha"])
        done = cli("run", path, *WORKERS)
    assert done.code == 1, done
    rows = rows_of(cli, document(done)["run_id"])
    assert {row["result"]["case_id"]: row["error"]["code"] for row in rows[:-1]} == {
        name: code for name, (_, code) in ERRORS.items()
    }
    assert all(row["result"]["status"] is None for row in rows[:-1])
    assert (rows[-1]["outcome"], rows[-1]["attempts"]) == ("passed", 2)


Check = Callable[[Done, dict[str, Any]], bool]


@pytest.mark.parametrize(
    ("config", "say", "code", "check"),
    [
        ({}, Say("bad key", 401), 3, lambda _, finished: finished["state"] == "aborted"),
        (
            {"fail_fast": True, "concurrency": 1},
            Say("no"),
            1,
            lambda _, finished: finished["state"] == "incomplete" and finished["counts"]["skipped"] > 0,
        ),
        (
            {"max_cost": 0.004, "concurrency": 1},
            Say("ok"),
            4,
            lambda _, finished: 0 < finished["counts"]["passed"] < finished["counts"]["total"],
        ),
    ],
    ids=["unauthorised", "fail fast", "cost cap"],
)
def test_a_run_that_is_not_to_go_on_ends(
    *, config: dict[str, Any], say: Say, code: int, check: Check, cli: Cli, tmp_path: Path
) -> None:
    """A wrong key, the first failure with `fail_fast`, and the cost cap end a run with their exit codes."""
    cases = [{"input": f"question {number}", "regex_pattern": "ok"} for number in range(20)]
    with ModelServer(lambda _prompt, _nth: say) as server:
        path = bench(tmp_path, server, cases, config={"judge_model": None, **config}, models=["alpha"])
        done = cli("run", path, *WORKERS)
        assert (done.code, check(done, document(done))) == (code, True), done
        assert len(server.requests) < 20
        if code == 4:
            run = document(done)["run_id"]
            assert "of $0.004 is spent, and the next call may cost $" in cli("watch", run).err
            resumed = cli("resume", run, "--max-cost", "1", *WORKERS)
            assert (resumed.code, document(resumed)["counts"]["passed"]) == (0, 20), resumed
            assert len(server.requests) == 20


def test_what_hangs_costs_its_own_case_only(cli: Cli, tmp_path: Path) -> None:
    """An endless pattern and an endless validator fail their cases with the reason; the others pass."""
    (tmp_path / "validators.py").write_text(VALIDATORS, encoding="utf-8")
    cases = [
        {"id": "bomb", "input": "a" * 40 + "!", "regex_pattern": "(a+)+$"},
        {"id": "loop", "input": "hi", "validator": "hangs"},
        *({"id": f"fine {number}", "input": "hi", "validator": "is_short"} for number in range(10)),
    ]
    with ModelServer(echo) as server:
        path = bench(tmp_path, server, cases, validators_file="validators.py", models=["alpha"])
        finished = document(cli("run", path, *WORKERS))
    rows = {row["result"]["case_id"]: row["result"] for row in rows_of(cli, finished["run_id"])}
    assert (rows["bomb"]["status"], rows["loop"]["status"]) == ("failed_regex", "failed_custom")
    assert "1 s" in rows["bomb"]["message"]
    assert "5 s" in rows["loop"]["message"]
    assert finished["counts"]["passed"] == 10


def test_recorded_outputs_need_no_model(cli: Cli, tmp_path: Path) -> None:
    """Recorded outputs are judged without a call: empty text is an output, a missing row is an error."""
    with ModelServer(echo) as server:
        path = bench(tmp_path, server, [{"id": name, "input": "x", "regex_pattern": "^$"} for name in "abc"])
        rows = [{"case": "a", "model": "alpha", "output": ""}, {"case": 1, "model": "alpha", "output": "no"}]
        outputs = tmp_path / "outputs.jsonl"
        outputs.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        finished = document(cli("run", path, "-m", "alpha", "--outputs", outputs, *WORKERS))
        assert not server.requests
    found = rows_of(cli, finished["run_id"])
    assert [row["outcome"] for row in found] == ["passed", "failed", "error"]
    assert found[2]["error"]["code"] == "no_recorded_output"
    assert [row["latency_ms"] for row in found] == [None] * 3


@pytest.mark.parametrize(
    ("lacking", "code", "message"),
    [
        ({"max_words": 5}, "unknown_criterion", "cannot check max_words"),
        ({"checks": [{"check": "max_words", "argument": 5}]}, "unknown_check", "has no check max_words"),
    ],
)
def test_a_criterion_that_a_worker_lacks_is_no_pass(  # noqa: PLR0917 - fixtures and parameters
    processes: Processes,
    redis_client: "redis.Redis",
    tmp_path: Path,
    lacking: dict[str, Any],
    code: str,
    message: str,
) -> None:
    """A criterion or check of a later version makes an item an error that names it; nothing is called."""
    cli = Cli(processes)
    with ModelServer(echo) as server:
        path = bench(tmp_path, server, [{"input": "x", "regex_pattern": "x"}])
        run = cli("submit", path, "-m", "alpha").out.strip()
        item = json.loads(redis_client.hget(items_key(run), "0") or b"")
        redis_client.hset(items_key(run), "0", json.dumps({**item, **lacking}))
        done = cli("resume", run, *WORKERS)
        assert done.code == 1, done
        assert not server.requests
    [row] = rows_of(cli, run)
    assert row["error"]["code"] == code
    assert f"{message}; update all workers, then `proctor retry`" in row["error"]["message"]
