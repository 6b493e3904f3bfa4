"""Data sets and logs of Inspect, OpenAI Evals and DeepEval become benches and recorded answers."""

import json
import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest

from producer.cases.bench_config import read_bench
from producer.cli.main import run
from producer.convert.bench_text import bench_text
from producer.convert.foreign_formats import FORMATS, convert
from producer.convert.openai_evals import FUZZY_MATCH
from producer.convert.report import Conversion, ForeignFile
from producer.convert.verifying import usable
from producer.load.source import Source
from shared.errors import InputError


def converted(path: Path, content: Any, name: str | None = None) -> Conversion:
    """Writes a file and converts it; its bench can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read(path, name)


def read(path: Path, name: str | None = None) -> Conversion:
    """Converts a file; its bench can be read."""
    found = convert(ForeignFile(path, path.parent), name)
    for file, text in found.files.items():
        (path.parent / file).write_text(text)
    text = bench_text(found.bench, found.comments)
    read_bench(Source(path.parent / "bench.yaml", stdin=BytesIO(text.encode())))
    return found


def checks_of(found: Conversion) -> list[list[Any]]:
    """The checks of each case."""
    return [case.checks or [] for case in found.bench.test_cases]


def left_of(found: Conversion) -> list[str]:
    """What is left, without files."""
    return [f"{each.what}: {each.reason}" for each in found.left]


SAMPLES: Final = """\
input,target,choices,id,metadata
Capital of France?,Paris,,fr,"{""area"": ""eu""}"
Which is a river?,B,"Paris, Seine",,
"""


def test_a_data_set_of_inspect(tmp_path: Path) -> None:
    """Cells hold JSON and lists; the scorer is not in the data, and is named."""
    found = converted(tmp_path / "samples.csv", SAMPLES)
    first, second = found.bench.test_cases
    assert (first.id, first.input, first.metadata) == ("fr", "Capital of France?", {"area": "eu"})
    assert str(second.input).startswith("Which is a river?\n\nA) Paris\nB) Seine\n\nAnswer with one")
    assert checks_of(found)[0] == [{"contains": "Paris", "ignore_case": True, "name": "includes"}]
    assert checks_of(found)[1][0]["name"] == "choice"
    assert found.bench.models == ["echo"]
    assert [each.place.found_line for each in found.left] == [2, 3]


def test_samples_of_json_may_have_numbers(tmp_path: Path) -> None:
    """As Inspect takes them; several right letters belong together."""
    several = {"input": "Primes?", "choices": [2, 3, 4], "target": ["A", "B"], "metadata": {"level": 1}}
    found = converted(tmp_path / "s.json", [several, {"input": "2 + 2?", "target": 4}])
    first, second = found.bench.test_cases
    assert str(first.input).endswith("A) 2\nB) 3\nC) 4\n\nAnswer with all right choices. Your last line is "
                                     "ANSWER: LETTERS, one or more of A, B, C.")  # fmt: skip
    pattern = checks_of(found)[0][0]["regex"]
    assert [bool(re.search(pattern, f"ANSWER: {each}")) for each in ("A,B", "b a", "A", "A, B, C")] == [
        True,
        True,
        False,
        False,
    ]
    assert (second.checks or [])[0]["contains"] == "4"


def test_samples_of_one_id(tmp_path: Path) -> None:
    """Ids of cases are unique; what is refused of a case is listed with its line."""
    rows = [{"input": f"{at}?", "target": "4", "id": 1} for at in range(2)]
    (tmp_path / "s.jsonl").write_text(
        "".join(f"{json.dumps(each)}\n" for each in [*rows, {"input": "", "target": "4"}])
    )
    found = usable(read(tmp_path / "s.jsonl"), tmp_path / "bench.yaml")
    assert [case.id for case in found.bench.test_cases] == ["1", "1 (2)"]
    assert [str(each.place) for each in found.left if each.what == "case"] == [f"{tmp_path / 's.jsonl'}:3"]


def sample(number: int, answer: Any, **more: Any) -> dict[str, Any]:
    """A sample of a log."""
    message = {"role": "assistant", "content": answer, **more.pop("message", {})}
    output = {
        "model": "m",
        "choices": [{"message": message, "stop_reason": "stop"}],
        **more.pop("output", {}),
    }
    return {
        "id": number,
        "epoch": 1,
        "input": f"Question {number}?",
        "target": "Paris",
        "output": output,
        **more,
    }


def log(scorers: list[dict[str, Any]], *samples: dict[str, Any], steps: Any = ()) -> dict[str, Any]:
    """A log."""
    spec = {"task": "capitals", "model": "openai/gpt-4o", "scorers": scorers}
    return {"version": 2, "status": "success", "eval": spec, "plan": {"steps": steps}, "samples": samples}


CALL: Final = {"id": "c", "function": "look", "arguments": {"city": "Paris"}, "type": "function"}
LOG: Final = log(
    [{"name": "match"}, {"name": "my_scorer"}],
    sample(1, "It is Paris.", output={"usage": {"input_tokens": 9, "output_tokens": 3}, "time": 0.5}),
    sample(1, [{"type": "reasoning", "reasoning": "Hm"}, {"type": "text", "text": "attachment://a"}])
    | {"epoch": 2, "attachments": {"a": "Lyon"}},
    sample(2, "", message={"tool_calls": [CALL]})
    | {"input": [{"role": "user", "content": "{{ x }}"}], "sandbox": "docker"},
    steps=[
        {"solver": "system_message", "params": {"template": "Briefly."}},
        {"solver": "react"},
        {"solver": "generate"},
    ],
)  # fmt: skip


@pytest.mark.parametrize("form", ["json", "eval", "unfinished"])
def test_a_log_of_inspect(tmp_path: Path, form: str) -> None:
    """Both forms give the same bench, with the answers as recorded ones."""
    path = tmp_path / ("log.json" if form == "json" else "log.eval")
    if form == "json":
        path.write_text(json.dumps(LOG).replace('"stop"', "NaN", 1))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            name = "header.json" if form == "eval" else "_journal/start.json"
            archive.writestr(name, json.dumps({**LOG, "samples": None}))
            for each in LOG["samples"]:
                archive.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
    found = read(path)
    bench = found.bench
    assert (bench.name, bench.models, bench.system_prompt) == ("capitals", ["openai/gpt-4o"], "Briefly.")
    assert bench.config is not None
    assert bench.config.repeat == 2
    assert [case.id for case in bench.test_cases] == ["1", "2"]
    assert checks_of(found) == [[{"regex": r"(?i)Paris\W*\Z", "name": "match"}]] * 2
    assert left_of(found) == [
        "scorer my_scorer: it is code of the task: write it as a check",
        "sandbox: models here have no sandbox: ask the agent over HTTP",
        "solver react: it is code: write what it adds into the prompt",
    ]
    outputs = [json.loads(line) for line in found.files["log.outputs.jsonl"].splitlines()]
    assert [(each["case"], each["repeat"], each["output"]) for each in outputs] == [
        ("1", 0, "It is Paris."),
        ("1", 1, "Lyon"),
        ("2", 0, ""),
    ]
    assert (outputs[0]["latency_seconds"], outputs[0]["prompt_tokens"]) == (0.5, 9)
    assert outputs[1]["reasoning"] == "Hm"
    assert outputs[2]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"city": "Paris"}'}


@pytest.mark.parametrize(
    ("scorer", "target", "checks"),
    [
        (
            {"name": "includes", "options": {"ignore_case": False}},
            "P",
            [{"contains": "P", "name": "includes"}],
        ),
        ({"name": "match", "options": {"numeric": True}}, "4", [{"number": "4", "name": "match"}]),
        (
            {"name": "match", "options": {"location": "begin"}},
            "a b",
            [{"regex": r"(?i)\A\W*a b", "name": "match"}],
        ),
        (
            {"name": "exact"},
            ["A", "{{B"],
            [
                {
                    "any": [
                        {"equals": "A", "ignore_case": True, "normalize": True},
                        {"equals": "{{ '{' }}{{ '{' }}B", "ignore_case": True, "normalize": True},
                    ],
                    "name": "exact",
                }
            ],
        ),
        ({"name": "model_graded_fact"}, "P", [{"factuality": "P", "name": "model_graded_fact"}]),
        (
            {"name": "choice"},
            ["A", "C"],
            [{"regex": "(?i)ANSWER\\s*:(?=[A-Z ,]*A)(?=[A-Z ,]*C)(?![A-Z ,]*[B])", "name": "choice"}],
        ),
        (
            {"name": "model_graded_qa", "options": {"partial_credit": True, "model": ["a", "b"]}},
            "P",
            [
                {
                    "rubric": "The output says what this expert answer says, or meets this criterion: P",
                    "choices": {"correct": 1, "partial": 0.5, "incorrect": 0},
                    "models": ["a", "b"],
                    "name": "model_graded_qa",
                }
            ],
        ),
        ({"name": "includes"}, "", []),
    ],
)  # fmt: skip
def test_scorers_are_checks(tmp_path: Path, scorer: Any, target: Any, checks: list[Any]) -> None:
    answered = sample(1, "x", target=target, choices=["a", "b", "c"])
    found = converted(tmp_path / "log.json", log([scorer], answered))
    assert checks_of(found) == [checks]


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
    assert [each.what for each in found.left] == ["conversation", "metrics"]


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
    assert [each.what for each in found.left] == ["scorer (60 times)"]


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


def test_a_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives say how large they are, and what is nested deep or missing is named."""
    with zipfile.ZipFile(tmp_path / "bomb.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(LOG))
        archive.writestr("samples/1.json", " " * 100_000)
    monkeypatch.setattr("producer.convert.inspect_data.DATA_BYTES", 50_000)
    with pytest.raises(InputError, match="more than 0 MiB"):
        read(tmp_path / "bomb.eval")
    with pytest.raises(InputError, match="not a log of Inspect"):
        converted(tmp_path / "deep.json", '{"version": 2, "eval": ' + "[" * 40_000)
    for name in ("none.eval", "none.json"):
        with pytest.raises(InputError, match="none"):
            read(tmp_path / name)


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
