"""Panels of judges against a scripted provider: one dissents, one is down, and what people say of them."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.case_runs import QUESTION, WORKERS, bench, document, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say

PANEL: Final = ("strict", "mild", "kind")
Judge = Callable[[str, str], Say]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Models that repeat their prompt, and judges that a test plays."""
    with ModelServer() as server:
        yield server


def play(server: ModelServer, judge: Judge) -> None:
    """Plays the judges, each with its name and its prompt."""

    def script(prompt: str, _nth: int) -> Say:
        asked = server.requests[-1]
        return judge(str(asked.body["model"]), prompt) if QUESTION in prompt else Say(prompt)

    server.script = script


def asked_of(server: ModelServer) -> Counter[str]:
    """How often each model was asked."""
    return Counter(str(request.body["model"]) for request in server.requests)


def test_the_majority_decides_and_the_dissenter_is_on_record(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    """Two of three pass what the third does not; votes, tokens and costs of all three are in the result."""

    def judge(name: str, prompt: str) -> Say:
        return Say("FAIL: another type") if name == "strict" or '"n": 2' in prompt else Say("PASS")

    play(server, judge)
    cases: list[dict[str, Any]] = [
        {"id": "equal", "input": '{"n": 1}', "expected": {"n": 1}},
        {"id": "near", "input": '{"n": 1.0}', "expected": {"n": 1}},
        {"id": "far", "input": '{"n": 2}', "expected": {"n": 1}},
    ]
    path = bench(tmp_path, server, cases, panel=PANEL, models=["alpha"])
    finished = document(cli("run", path, *WORKERS))
    rows = {row["result"]["case_id"]: row for row in rows_of(cli, finished["run_id"])}
    assert asked_of(server) == {"alpha": 3, **dict.fromkeys(PANEL, 2)}
    assert {name: row["result"]["status"] for name, row in rows.items()} == {
        "equal": "passed",
        "near": "passed",
        "far": "failed_fuzzy",
    }
    near = rows["near"]["result"]
    assert near["message"].startswith("passed by fuzzy match: 2 of 3 judges find the two objects equivalent")
    detail = near["stages"][-1]["detail"]
    assert [(vote["model"], vote["verdict"]) for vote in detail["votes"]] == [
        ("strict", "fail"),
        ("mild", "pass"),
        ("kind", "pass"),
    ]
    assert {vote["cost_usd"] for vote in detail["votes"]} == {0.0017}
    assert rows["near"]["cost_usd"] == pytest.approx(4 * 0.0017)
    assert (finished["summary"]["judge"]["calls"], finished["summary"]["judge"]["unreached"]) == (6, 0)
    assert finished["summary"]["judge"]["cost_usd"] == pytest.approx(6 * 0.0017)


def test_a_judge_that_is_down_is_asked_again_and_the_others_are_not(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    """Two who agree decide without the third; where they differ the case waits for `retry`."""
    is_there = False

    def judge(name: str, prompt: str) -> Say:
        if name == "kind":
            return Say("PASS") if is_there else Say("no such model", 404)
        return Say("FAIL") if name == "strict" and '"n": 2' in prompt else Say("PASS")

    play(server, judge)
    cases = [{"id": text, "input": f'{{"n": {text}}}', "expected": {"n": 1}} for text in ("1.0", "2")]
    path = bench(tmp_path, server, cases, panel=PANEL, models=["alpha"])
    finished = document(cli("run", path, *WORKERS))
    first = {row["result"]["case_id"]: row for row in rows_of(cli, finished["run_id"])}
    assert (first["1.0"]["result"]["status"], first["2"]["result"]["status"]) == ("passed", "failed_equality")
    assert "1 of 3 judges could not be asked" in first["2"]["result"]["message"]
    assert first["2"]["cost_usd"] == pytest.approx(3 * 0.0017), "the two votes that came are paid for"
    assert (finished["summary"]["judge"]["calls"], finished["summary"]["judge"]["unreached"]) == (4, 1)
    is_there, before = True, asked_of(server)
    retried = document(cli("retry", finished["run_id"], *WORKERS))
    assert asked_of(server) - before == {"kind": 1}
    assert (retried["exit"], retried["counts"]["passed"]) == (0, 2)
    assert retried["summary"]["judge"]["unreached"] == 0
    again = {row["result"]["case_id"]: row["cost_usd"] for row in rows_of(cli, finished["run_id"])}
    assert again["2"] == pytest.approx(4 * 0.0017), "votes that are found again are paid for once"
    looks = [json.loads(line) for line in cli("watch", finished["run_id"], "--jsonl").out.splitlines()]
    [cost] = [look["cost_usd"] for look in looks if look["event"] == "progress"]
    assert cost == pytest.approx(7 * 0.0017), "progress counts each call once too"


def moody() -> Judge:
    """Makes a panel: one always fails, one passes all, one changes its mind about an output."""
    seen = Counter[tuple[str, str]]()

    def judge(name: str, prompt: str) -> Say:
        """Says what the judge of that name says."""
        seen[name, prompt] += 1
        is_moody = name == "mild" and '"n": 1.5' in prompt and seen[name, prompt] == 2
        return Say("FAIL" if name == "strict" or is_moody else "PASS")

    return judge


def labelled(text: str, label: str) -> dict[str, Any]:
    """A case with a recorded answer, and what people say of it."""
    outputs = {"alpha": f'{{"n": {text}}}'}
    return {"id": text, "input": "x", "expected": {"n": 1}, "label": label, "outputs": outputs}


def test_labels_and_repeats_say_how_far_judges_can_be_trusted(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    """Recorded answers with labels, judged twice: what was counted stands in the document and the reports."""
    play(server, moody())
    labels = (("1.0", "pass"), ("1.5", "fail"), ("2", "fail"), ("1", "pass"))
    cases = [labelled(text, label) for text, label in labels]
    path = bench(tmp_path, server, cases, panel=PANEL, models=["alpha"])
    report = tmp_path / "report.md"
    gate = ("--fail-on", "judge_accuracy<0.6")
    finished = document(cli("run", path, "--repeat", "2", "-o", report, *gate, *WORKERS))
    assert [(judged["value"], judged["met"]) for judged in finished["gates"]] == [(0.5, False)]
    assert asked_of(server) == dict.fromkeys(PANEL, 6)
    found = finished["summary"]["judge"]
    assert (found["calls"], found["judged"], found["labelled"]) == (18, 6, 8)
    assert (found["consistency"]["n"], found["consistency"]["same"]["value"]) == (3, 0.6667)
    confusion = [found["calibration"][f"{word}_passed"] for word in ("true", "false")]
    confusion += [found["calibration"][f"{word}_failed"] for word in ("true", "false")]
    assert confusion == [2, 3, 1, 0]
    assert found["calibration"]["few"] is True
    assert {judge["model"]: judge["with_panel"]["value"] for judge in found["judges"]} == {
        "strict": 0.1667,
        "mild": 1.0,
        "kind": 0.8333,
    }
    text = report.read_text(encoding="utf-8")
    shown = cli("report", finished["run_id"]).out
    for words in ("agrees with human labels: 3 of 6 (50.0%", "recall 2 of 2 (100.0%", "only 3 labelled"):
        assert words in text, words
        assert words in shown, words
    rescored = document(cli("rescore", finished["run_id"], *WORKERS))["summary"]["judge"]
    assert asked_of(server) == dict.fromkeys(PANEL, 6), "the same questions are answered from the cache"
    assert rescored == found, "labels and the panel go with the answers"
