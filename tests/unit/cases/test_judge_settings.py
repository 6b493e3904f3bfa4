"""Judges are configured in one place: one, a panel, or nobody; labels come from any file."""

import json
from pathlib import Path
from typing import Any

import pytest

from producer.cases.load import load_cases
from producer.cli.main import run
from producer.load.source import Source
from producer.options import SubmitOptions
from shared.contracts.case_run import CaseRun, decode_case
from shared.upstream.model_target import ModelTarget
from tests.support.benches import HEAD, plan, refusal, write

NAMED = HEAD.replace("[m]", "[openai/m]")
EXPECTS = "test_cases:\n  - {input: Hi, expected: {n: 1}}\n"
PLACES = "model_configs: {b: {api_base: 'http://localhost:9000/v1', api_key_env: B_KEY}}\n"


@pytest.mark.parametrize(
    ("text", "judges"),
    [
        ("", ["gpt-3.5-turbo"]),
        ("judge_model: null\n", []),
        ("judge_models: [a, b, c]\n", ["a", "b", "c"]),
        ("config: {judge_models: [b]}\n", ["b"]),
        ("config: {judge_model: b}\n", ["b"]),
        ("config: {concurrency: 2}\njudge_models: [c, a]\n", ["c", "a"]),
    ],
)
def test_who_judges(tmp_path: Path, text: str, judges: list[str]) -> None:
    """A panel stands in place of the default judge, keeps its order, and a panel of one is a judge."""
    found = plan(write(tmp_path, HEAD + EXPECTS + PLACES + text)).run
    assert list(found.judges) == judges
    assert found.judge_model == (judges[0] if len(judges) == 1 else None)
    if "b" in judges:
        assert found.judges["b"] == ModelTarget("b", "http://localhost:9000/v1", "B_KEY")


def test_a_panel_travels_in_the_snapshot(tmp_path: Path) -> None:
    """Workers read the judges in their order, with their endpoints."""
    load = load_cases(
        Source(write(tmp_path, HEAD + EXPECTS + PLACES + "judge_models: [c, b, a]\n")), SubmitOptions()
    )
    stored = CaseRun.from_snapshot(json.loads(json.dumps(load.snapshot)))
    assert list(stored.judges.items()) == [
        ("c", ModelTarget("c")),
        ("b", ModelTarget("b", "http://localhost:9000/v1", "B_KEY")),
        ("a", ModelTarget("a")),
    ]


@pytest.mark.parametrize(
    ("stored", "judges"),
    [
        (
            {"judge_model": "a", "judge": {"api_base": "http://h/v1", "api_key_env": "K"}},
            [("a", "http://h/v1", {})],
        ),
        ({"judge_model": None, "panel": {"b": {}, "a": {}}}, [("b", "", {"X-A": "1"}), ("a", "", {})]),
        ({"judge_model": None}, []),
        ({}, [("gpt-3.5-turbo", "", {})]),
    ],
)
def test_settings_of_an_earlier_layout_are_read(
    stored: dict[str, Any], judges: list[tuple[str, str, dict[str, str]]]
) -> None:
    """Runs that were stored with one judge or a panel, and with headers of their own, keep their targets."""
    settings = {"name": "b", "system_prompt": "", "timeout_s": 7, "models": {"m": {"api_base": "http://h"}}}
    headers = {"b": {"X-A": "1"}, "m": {"X-B": "2"}}
    run = CaseRun.from_snapshot({"cases": {**settings, "model_headers": headers, **stored}})
    assert [(each.model, each.api_base, each.headers) for each in run.judges.values()] == judges
    assert run.models == {"m": ModelTarget("m", "http://h", timeout_s=7)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("judge_model: a\njudge_models: [b]\n", ":7: judge_models: judge_model and judge_models both stand"),
        ("config: {judge_model: null, judge_models: [b]}\n", "both stand here | keep judge_models"),
        ("config: {judge_model: a}\njudge_models: [b]\n", "both stand here"),
        ("config: {judge_models: [a]}\njudge_models: [b]\n", "judge_models stands here and in config"),
        ("judge_models: [a, a]\n", ":6: judge_models: a stands twice | a judge has one vote"),
        ("judge_models: []\n", ":6: judge_models: is empty"),
        ("judge_models: a\n", ":6: judge_models: not a list ('a')"),
        (f"judge_models: {list('abcdefghij')}\n", "judge_models: "),
    ],
)
def test_what_is_no_panel_is_reported(tmp_path: Path, text: str, words: str) -> None:
    """Two ways at once, a judge with two votes, none and too many are refused with the line."""
    assert words in (found := refusal(write(tmp_path, HEAD + EXPECTS + text))), found


def test_an_even_panel_is_warned_about(tmp_path: Path) -> None:
    """It may be of two minds; endpoints of judges are no models that nobody asks."""
    text = HEAD + EXPECTS + PLACES
    [warning] = plan(write(tmp_path, text + "judge_models: [a, b]\n")).warnings
    assert "judge_models: 2 judges can be of two minds, and a tie is no PASS" in warning
    assert plan(write(tmp_path, text + "judge_models: [a, b, c]\n")).warnings == []


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([], "judges    openai/a, openai/b, openai/c, at most 3 calls"),
        (["--judge", "openai/x"], "judge     openai/x, at most 1 call"),
        (
            ["--judge", "openai/x", "--judge-model", "openai/y"],
            "judges    openai/x, openai/y, at most 2 calls",
        ),
        (["--judge", "x", "--judge", "null"], "--judge: names a judge, and null"),
        (["--judge", "x", "--judge", "x"], "--judge: the same name twice"),
        ([word for name in "abcdefghij" for word in ("--judge", name)], "--judge: 10 judges, at most 9"),
    ],
)
def test_the_command_line_names_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], printed: str
) -> None:
    """`--judge` may be repeated, and replaces the configured panel."""
    path = write(tmp_path, NAMED + EXPECTS + "judge_models: [openai/a, openai/b, openai/c]\n")
    code = run(["run", str(path), "--dry-run", *arguments])
    captured = capsys.readouterr()
    assert printed in captured.out + captured.err
    assert code == (2 if printed.startswith("--") else 0)


def test_nobody_judges_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--judge null` sends the configured panel home; programs read the list of judges."""
    path = write(tmp_path, NAMED + EXPECTS + "judge_models: [openai/a, openai/b, openai/c]\n")
    for arguments, judges in ((["--judge", "null"], []), ([], ["openai/a", "openai/b", "openai/c"])):
        assert run(["run", str(path), "--dry-run", "--json", *arguments]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["judge_models"], found["judge_model"]) == (judges, None)
        assert found["estimate"]["judge_calls"] == len(judges)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.csv", "input,label\none,pass\ntwo,\nthree,fail\n"),
        ("c.jsonl", '{"input": "1", "label": "pass"}\n{"input": "2"}\n{"input": "3", "label": "fail"}\n'),
    ],
)
def test_labels_come_from_every_kind_of_file(tmp_path: Path, name: str, text: str) -> None:
    """A label travels with its case; one that is missing is none."""
    write(tmp_path, text, name)
    bench = write(tmp_path, f"{HEAD}test_cases_file: {name}\ntest_cases: [{{input: x, label: fail}}]\n")
    assert [item.label for item in plan(bench).items()] == ["pass", None, "fail", "fail"]
    chunks = load_cases(Source(bench), SubmitOptions()).chunks
    stored = [decode_case(item).label for chunk in chunks for item in chunk.payloads.values()]
    assert stored == ["pass", None, "fail", "fail"]


@pytest.mark.parametrize(
    ("outputs", "warnings"), [("{m: x}", 0), ("{m: x, other: y}", 1), (None, 1)], ids=["one", "two", "asked"]
)
def test_a_label_is_about_one_answer(tmp_path: Path, outputs: str | None, warnings: int) -> None:
    """Where models are asked, or several have recorded outputs, nobody knows which answer is meant."""
    more = f", outputs: {outputs}" if outputs else ""
    bench = write(tmp_path, f"{HEAD}test_cases:\n  - {{input: a, label: pass{more}}}\n")
    found = [text for text in plan(bench).warnings if text.startswith("label: ")]
    assert len(found) == warnings


def test_a_label_is_pass_or_fail(tmp_path: Path) -> None:
    """Other words are refused with the place."""
    found = refusal(write(tmp_path, HEAD + "test_cases:\n  - {input: a, label: maybe}\n"))
    assert ":5: test_cases[0].label: " in found
    assert "pass" in found
