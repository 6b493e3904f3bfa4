"""Data sets of OpenAI Evals and DeepEval become benches and recorded answers."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from producer.cli.main import run
from producer.convert.foreign_formats import FORMATS
from producer.convert.openai_evals import FUZZY_MATCH
from producer.convert.promptfoo.checks import DEFAULT_GRADER
from shared.errors import InputError
from tests.support.conversions import checks_of, converted, read

REGISTRY: Final = """\
cap: {id: cap.dev.v0, metrics: [accuracy]}
cap.dev.v0:
  class: evals.elsuite.basic.match:Match
  args: {samples_jsonl: cap.jsonl, num_few_shot: 1, few_shot_jsonl: shots.jsonl}
includes.dev.v0:
  class: evals.elsuite.basic.includes:Includes
  args: {samples_jsonl: cap.jsonl, ignore_case: true}
fuzzy.dev.v0: {class: "evals.elsuite.basic.fuzzy_match:FuzzyMatch", args: {samples_jsonl: cap.jsonl}}
json.dev.v0: {class: "evals.elsuite.basic.json_match:JsonMatch", args: {samples_jsonl: json.jsonl}}
fact.dev.v0:
  class: evals.elsuite.modelgraded.classify:ModelBasedClassify
  args: {samples_jsonl: cap.jsonl, modelgraded_spec: fact}
closed.dev.v0:
  class: evals.elsuite.modelgraded.classify:ModelBasedClassify
  args: {samples_jsonl: cap.jsonl, modelgraded_spec: closedqa, modelgraded_spec_args: {criteria: Is short.}}
humor.dev.v0:
  class: evals.elsuite.modelgraded.classify:ModelBasedClassify
  args: {samples_jsonl: cap.jsonl, modelgraded_spec: humor}
best.dev.v0:
  class: evals.elsuite.modelgraded.classify:ModelBasedClassify
  args: {samples_jsonl: cap.jsonl, modelgraded_spec: best}
own.dev.v0: {class: "evals.elsuite.own:Own"}
"""
HUMOR: Final = """\
humor:
 prompt: "Is {completion} funny for {input}, with {ideal}?"
 choice_strings: "12345"
 choice_scores: from_strings
"""
"""By its name, as newer registries have it; older ones begin with its keys."""


def registry(folder: Path, **files: str) -> Path:
    """Writes a registry as OpenAI Evals has it."""
    system = {"role": "system", "content": "Briefly.", "name": "s", "extra": 1}
    samples = [{"input": [system, {"role": "user", "content": "Capital?"}], "ideal": ["Paris", "Paname"]}]
    shots = [{"role": "user", "content": "Of Peru?"}, {"role": "assistant", "content": "Lima"}]
    written = {
        "evals/cap.yaml": REGISTRY,
        "modelgraded/humor.yaml": HUMOR,
        "modelgraded/best.yaml": "prompt: Which?\nchoice_strings: from_n\n",
        "data/cap.jsonl": "".join(f"{json.dumps(each)}\n" for each in samples),
        "data/shots.jsonl": json.dumps({"sample": shots}),
        "data/json.jsonl": '{"input": "JSON?", "ideal": "{\\"a\\": 1}"}',
        **files,
    }
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "evals" / "cap.yaml"


def test_evals_of_openai(tmp_path: Path) -> None:
    """Each class has its check; samples of one file are the cases of each eval, by its tag."""
    found = read(registry(tmp_path))
    cases = {case.tags[0]: case for case in found.bench.test_cases}
    checks = {tag: case.checks[0] for tag, case in cases.items() if case.checks}
    assert found.bench.validators_file == "fuzzy_match.py"
    assert [each.content for each in cases["cap.dev.v0"].messages or []] == [
        "Briefly.",
        "Of Peru?",
        "Lima",
        "Capital?",
    ]
    assert checks["cap.dev.v0"]["any"] == [{"starts_with": "Paris"}, {"starts_with": "Paname"}]
    assert checks["includes.dev.v0"]["any"][1] == {"contains": "Paname", "ignore_case": True}
    assert checks["fuzzy.dev.v0"] == {"python": "fuzzy_match"}
    assert checks["json.dev.v0"] == {"json_equals": {"a": 1}, "name": "JsonMatch"}
    assert checks["fact.dev.v0"]["any"][0] == {"factuality": "Paris"}
    assert checks["closed.dev.v0"] == {"closed_qa": "{{ criteria }}"}
    assert cases["closed.dev.v0"].vars == {"criteria": "Is short.", "ideal": ["Paris", "Paname"]}
    humor = checks["humor.dev.v0"]
    assert humor["choices"] == {"1": 0.0, "2": 0.25, "3": 0.5, "4": 0.75, "5": 1.0}
    assert humor["prompt"].startswith(
        "Is {{ output }} funny for {{ input }}, with {{ vars.ideal }}?\n\nAnswer"
    )
    assert [each.what for each in found.left] == [
        "order of lists in JSON",
        "scores of humor",
        "ModelBasedClassify of best.dev.v0",
        "Own of own.dev.v0",
    ]


@pytest.mark.parametrize(
    ("output", "ideal", "passes"),
    [
        ("The Paris!", "paris", True),
        ("Par", "Paris", True),
        ("Lyon", "Paris", False),
        ("", "", True),
        ("", "a b", False),
    ],
)
def test_the_fuzzy_match(output: str, ideal: str, *, passes: bool) -> None:
    names: dict[str, Any] = {}
    exec(FUZZY_MATCH, names)  # noqa: S102 - a text of ours
    assert names["fuzzy_match"](output, {"vars": {"ideal": [ideal]}}) is passes


def test_test_cases_of_deepeval(tmp_path: Path) -> None:
    """Fields in both spellings; what was answered is recorded, what is expected checked."""
    tool = {"name": "weather", "inputParameters": {"city": "{{Paris}}"}}
    found = converted(
        tmp_path / "cases.json",
        [
            {
                "input": "A?",
                "actual_output": "B",
                "expected_output": "C",
                "retrieval_context": ["D"],
                "name": "a",
            },
            {
                "input": "W?",
                "actualOutput": "S",
                "expectedTools": [tool, "x"],
                "toolsCalled": [tool],
                "comments": "!",
            },
            {"scenario": "angry"},
        ],
    )
    pulled = {"goldens": [{"input": "A?", "expectedOutput": "C"}], "conversationalGoldens": []}
    [[check]] = checks_of(converted(tmp_path / "pulled.json", pulled))
    assert check == {"factuality": "{{ expected_output }}"}
    first, second = found.bench.test_cases
    assert first.vars == {"expected_output": "C", "retrieval_context": ["D"]}
    assert checks_of(found)[0] == [
        {"factuality": "{{ expected_output }}"},
        {"context_faithfulness": "{{ retrieval_context | tojson }}"},
    ]
    [called] = checks_of(found)[1]
    assert called["tool_calls"][1] == "x"
    assert called["tool_calls"][0]["arguments"] == {"json_equals": {"city": "{{ '{' }}{{ '{' }}Paris}}"}}
    assert second.metadata == {"comments": "!"}
    outputs = [json.loads(line) for line in found.files["cases.outputs.jsonl"].splitlines()]
    assert [(each["case"], each["output"]) for each in outputs] == [("a", "B"), ("case-2", "S")]
    assert [each.what for each in found.left] == ["conversation"]
    assert found.comments[()][0] == "metrics are chosen in code: checks are assumed by the fields"
    assert found.bench.settings.judge_model == DEFAULT_GRADER
    assert found.comments["config", "judge_model"] == ["name your judge here"]


def test_names_of_tools_in_tables_of_deepeval(tmp_path: Path) -> None:
    """As its reader of tables takes them; time and cost of an answer are recorded with it."""
    rows = (
        "input,actual_output,tools_called,expected_tools,tags,completion_time,token_cost\n"
        "A?,B,search;find,search,x;y,0.5,0.01\n"
    )
    found = converted(tmp_path / "cases.csv", rows)
    assert checks_of(found) == [[{"tool_calls": ["search"], "order": "any"}]]
    assert found.bench.test_cases[0].tags == ("x", "y")
    [recorded] = map(json.loads, found.files["cases.outputs.jsonl"].splitlines())
    assert [each["function"]["name"] for each in recorded["tool_calls"]] == ["search", "find"]
    assert (recorded["latency_seconds"], recorded["cost_usd"]) == (0.5, 0.01)


def test_comments_and_descriptions_of_evals(tmp_path: Path) -> None:
    text = "# ours\n" + REGISTRY.replace(
        "metrics: [accuracy]", "description: Capitals, metrics: [accuracy]", 1
    )
    found = read(registry(tmp_path, **{"evals/cap.yaml": text}))
    assert found.bench.description == "Capitals"
    assert "ours" in found.comments[()]
    assert found.bench.settings.judge_model == DEFAULT_GRADER


def test_a_table_of_deepeval(tmp_path: Path) -> None:
    rows = (
        "input,expected_output,retrieval_context,expected_tools,additional_metadata\n"
        """A?,B,C|D,"[{""name"": ""f""}]","{'area': 'eu', 'vip': True}"\nE?,F,G;H,,\n"""
    )
    found = converted(tmp_path / "cases.csv", rows)
    assert [(case.vars or {})["retrieval_context"] for case in found.bench.test_cases] == [
        ["C", "D"],
        ["G", "H"],
    ]
    assert checks_of(found)[0][2] == {"tool_calls": ["f"], "order": "any"}
    assert found.bench.test_cases[0].metadata == {"area": "eu", "vip": True}


def test_many_cases_are_a_file(tmp_path: Path) -> None:
    found = converted(
        tmp_path / "s.jsonl", "".join(f'{{"input": "{at}", "target": "{at}"}}\n' for at in range(60))
    )
    assert found.bench.test_cases_file == ["s.cases.jsonl"]
    assert len(found.files["s.cases.jsonl"].splitlines()) == 60
    assert not found.left


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '[{"input": "a", "target": "b"}, {"input": 5, "target": "b"}]', "Expected `str | array`"),
        ("a.json", '[{"input": ', "a.json:1"),
        ("a.jsonl", '{"input": "a", "ideal": "b"}\n{', "a.jsonl:2"),
        ("a.csv", "input,actual_output\nA,B,C\n", "a.csv:2"),
        ("a.csv", "input,tools_called,actual_output\nA,[,B\n", "a.csv:2"),
        ("a.json", '[{"actual_output": "b", "expected_output": "c", "input": ["x"]}]', "Expected `str`"),
        ("a.json", '{"version": 2, "eval": 5}', "not a log of Inspect"),
        ("a.json", '{"version": 2, "eval": {"model": "m"}, "samples": []}', "no cases in it"),
        ("a.eval", "no zip", "not a log of Inspect"),
        ("a.txt", "Hi", "of no format that can be converted"),
        ("a.yaml", "e: {class: 'evals.x:Match', args: {samples_jsonl: ../../etc}}", "is outside of"),
        ("a.yaml", "e: {class: 'evals.x:Match', args: {samples_jsonl: no.jsonl}}", "there is no no.jsonl"),
        ("a.yaml", "e: {class: 'evals.x:Match', args: [5]}", "Expected `object | null`"),
    ],
)  # fmt: skip
def test_what_is_broken_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        converted(tmp_path / name, text)


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    """A file that fits several is what the reader says."""
    text = '[{"input": "a", "target": "b", "expected_output": "c"}]'
    assert "factuality" in str(checks_of(converted(tmp_path / "a.json", text)))
    assert "contains" in str(checks_of(converted(tmp_path / "a.json", text, "inspect")))


def test_a_folder_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", "."]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_the_command_names_all_formats() -> None:
    from producer.cli.commands.convert import NAMES  # noqa: PLC0415 - of this test alone

    assert set(NAMES) == {each.name for each in FORMATS}
