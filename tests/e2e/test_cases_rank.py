"""Rankings: `rank` and `run --rank` compare answers in pairs, in both orders, as a run of their own."""

import json
from pathlib import Path
from typing import Any, Final

from producer.sample_api.server import in_background
from tests.support.case_runs import WORKERS, bench, document, echo, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say
from tests.support.schemas import hold

TABLE: Final = [word for word in WORKERS if word != "--json"]
CAPITALS: Final = [
    {"id": "fr", "input": "Capital of France?"},
    {"id": "jp", "input": "The capital of Japan?"},
]


def comparing(tmp_path: Path, api_base: str, judge: str, models: list[str], **more: Any) -> Path:
    """Writes a bench whose answers are compared."""
    bench = {
        "name": "capitals",
        "system_prompt": "Answer.",
        "models": models,
        "pairwise": {"model": judge, "criterion": "Is brief."},
        "model_configs": {name: {"api_base": api_base} for name in {*models, judge}},
        "config": {"judge_model": None},
        "test_cases": CAPITALS,
        **more,
    }
    path = tmp_path / "capitals.yaml"
    path.write_text(json.dumps(bench), encoding="utf-8")
    return path


def test_models_are_ranked_by_their_answers(cli: Cli, tmp_path: Path) -> None:
    """The first run stays as it was; the ranking is a run, and is printed again without a call."""
    with in_background() as url:
        path = comparing(tmp_path, f"{url}/v1", "judge", ["large", "large-mini"])
        first = document(cli("run", path, *WORKERS))
        before = rows_of(cli, first["run_id"])
        found = hold("rank", cli("rank", first["run_id"], *WORKERS).out)
    assert [(row["name"], row["wins"], row["losses"], row["ties"]) for row in found["table"]] == [
        ("large", 2, 0, 0),
        ("large-mini", 0, 2, 0),
    ]
    assert (found["pairs"], found["unclear"], found["smoothed"]) == (2, 0, True)
    assert found["position"]["first_preferred"]["value"] == 0.5
    assert (found["ranks"], found["run_id"] != first["run_id"]) == (first["run_id"], True)
    assert rows_of(cli, first["run_id"]) == before
    again = document(cli("rank", found["run_id"], "--json"))
    assert again["table"] == found["table"]


def test_a_judge_who_prefers_a_position_is_found_out(cli: Cli, tmp_path: Path) -> None:
    """`run --rank` prints the table below the run's own result; answers to other prompts are other pairs."""
    prompts = [{"id": "one", "system": "Answer with one word."}, {"id": "two", "system": "Answer."}]
    with in_background() as url:
        models = ["large", "large-mini"]
        path = comparing(tmp_path, f"{url}/v1", "judge-mini", models, prompts=prompts)
        done = cli("run", path, "--rank", *TABLE)
    assert done.code == 0, done
    assert "preferred in 8 of 8 (100.0%" in done.out
    assert "both orders gave the same verdict in 0 of 4" in done.out


def test_prompts_are_ranked_by_their_answers(cli: Cli, tmp_path: Path) -> None:
    """`--by prompt` compares the answers of one model to a case, under each prompt."""
    prompts = [{"id": "one", "system": "Answer with one word."}, {"id": "two", "system": "Answer."}]

    def script(prompt: str, nth: int) -> Say:
        if not prompt.startswith("Criterion"):
            return Say(f"answer {nth}")
        return Say('{"winner": "tie", "reason": "They are the same."}')

    with ModelServer(script) as server:
        path = bench(tmp_path, server, CAPITALS, prompts=prompts)
        run = document(cli("run", path, *WORKERS))["run_id"]
        options = ("-m", "alpha", "--criterion", "Is brief.")
        found = hold("rank", cli("rank", run, "--by", "prompt", *options, *WORKERS).out)
        again = cli("rank", found["run_id"])
    assert {row["name"]: row["ties"] for row in found["table"]} == {
        "one": found["pairs"],
        "two": found["pairs"],
    }
    assert found["pairs"] == len(CAPITALS) * len(
        document(cli("runs", "show", run, "--json"))["summary"]["models_asked"]
    )
    assert again.out.splitlines()[1].split()[:2] == ["#", "prompt"]


def test_a_judge_that_refuses_ends_the_ranking(cli: Cli, tmp_path: Path) -> None:
    """The answers stay as they were; the ranking ends as a run does, and no model is preferred."""

    def script(prompt: str, nth: int) -> Say:
        return Say(status=401) if prompt.startswith("Criterion") else Say(f"answer {nth}")

    with ModelServer(script) as server:
        run = document(cli("run", bench(tmp_path, server, CAPITALS), *WORKERS))["run_id"]
        before = rows_of(cli, run)
        done = cli("rank", run, "-m", "alpha", "--criterion", "Is brief.", *TABLE)
    assert done.code == 3, done
    assert "no pair has a verdict in both orders" in done.err
    assert done.out == ""
    assert rows_of(cli, run) == before


def test_a_run_in_progress_is_not_ranked(cli: Cli, tmp_path: Path) -> None:
    """It is refused with the command that waits for it; nothing is sent."""
    with ModelServer(lambda prompt, _nth: echo(prompt, 1)) as server:
        sent = document(cli("submit", bench(tmp_path, server, CAPITALS), "--json"))
        refused = cli("rank", sent["run_id"], "-m", "alpha", "--criterion", "Is brief.")
    assert refused.code == 2, refused
    assert f"`proctor watch {sent['run_id']}`" in refused.err


def test_verdicts_that_nobody_can_read_do_not_count(cli: Cli, tmp_path: Path) -> None:
    """They are counted and named; an option takes the place of what the bench says."""

    def script(prompt: str, nth: int) -> Say:
        return Say("both are fine") if prompt.startswith("Criterion") else Say(f"answer {nth}")

    with ModelServer(script) as server:
        run = document(cli("run", bench(tmp_path, server, CAPITALS), *WORKERS))["run_id"]
        refused = cli("rank", run)
        assert (refused.code, refused.out) == (2, "")
        assert "pairwise" in refused.err
        found = cli("rank", run, "-m", "alpha", "--criterion", "Is brief.", *WORKERS)
        ranking = hold("rank", found.out)
        again = cli("rank", ranking["run_id"], "-q")
        other = cli("rank", ranking["run_id"], "--criterion", "Is long.")
    assert (found.code, ranking["exit"]) == (1, 1), found
    assert (ranking["pairs"], ranking["unclear"], ranking["table"]) == (0, 4, [])
    assert (again.code, again.out) == (1, "")
    assert "4 verdicts missing or unreadable; no pair has a verdict in both orders" in again.err
    assert other.code == 2
    assert "is a ranking, to which --criterion does not apply" in other.err


def test_equal_answers_tie_without_a_call(cli: Cli, tmp_path: Path) -> None:
    """Only answers that differ are compared; a judge may name its choice in a word."""
    given = {"fr": ("Paris", "Paris"), "jp": ("Tokyo", "It is Tokyo.")}
    outputs = tmp_path / "outputs.jsonl"
    lines = [
        {"case": case, "model": model, "output": output}
        for case, texts in given.items()
        for model, output in zip(("alpha", "beta"), texts, strict=True)
    ]
    outputs.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with ModelServer(lambda prompt, _nth: Say("Answer A" if 'A: "Tokyo"' in prompt else "b")) as server:
        path = bench(tmp_path, server, CAPITALS)
        run = document(cli("run", path, "--outputs", outputs, *WORKERS))["run_id"]
        found = hold("rank", cli("rank", run, "-m", "judge", "--criterion", "Is brief.", *WORKERS).out)
        assert len(server.requests) == 2
    assert (found["exit"], found["pairs"], found["equal"], found["unclear"]) == (0, 1, 1, 0)
    assert [(row["name"], row["wins"], row["losses"], row["ties"]) for row in found["table"]] == [
        ("alpha", 1, 0, 1),
        ("beta", 0, 1, 1),
    ]
    assert rows_of(cli, found["run_id"])[0]["result"]["passed"] is True


def test_what_cannot_be_ranked_is_refused(cli: Cli, tmp_path: Path) -> None:
    """A bench without `pairwise`, one model, or options that exclude each other: nothing is sent."""
    with in_background() as url:
        path = comparing(tmp_path, f"{url}/v1", "judge", ["large"])
        alone = cli("run", path, "--rank")
        assert alone.code == 2
        assert "no two models" in alone.err
        assert cli("run", path, "--rank", "--detach").code == 2
        assert cli("run", path, "--rank", "--json").code == 2
    assert cli("rank", "run-nobody").code == 2
