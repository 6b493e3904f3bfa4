"""Data sets and logs of Inspect become benches and recorded answers."""

import json
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest

from producer.convert.verifying import usable
from shared.errors import InputError
from shared.templates.template_rendering import render
from tests.support.conversions import checks_of, converted, left_of, read

SAMPLES: Final = """\
input,target,choices,id,metadata
Capital of France?,Paris,,fr,"{""area"": ""eu""}"
Which is a river?,B,"Paris, Seine",,
"""


def test_a_data_set_of_inspect(tmp_path: Path) -> None:
    """Cells hold JSON and lists; the scorer is not in the data: what is assumed is a comment."""
    found = converted(tmp_path / "samples.csv", SAMPLES)
    first, second = found.bench.test_cases
    assert (first.id, first.input, first.metadata) == ("fr", "Capital of France?", {"area": "eu"})
    assert str(second.input).startswith("Which is a river?\n\nA) Paris\nB) Seine\n\nAnswer with one")
    assert checks_of(found)[0] == [{"contains": "Paris", "ignore_case": True, "name": "includes"}]
    assert checks_of(found)[1][0]["name"] == "choice"
    assert found.bench.models == ["echo"]
    assert found.comments[()] == [
        "the scorer is chosen in the task's code: choice and includes assumed",
    ]
    assert not found.left


def test_samples_of_json_may_have_numbers(tmp_path: Path) -> None:
    """As Inspect takes them; several right letters belong together."""
    several = {"input": "Primes?", "choices": [2, 3, 4], "target": ["A", "B"], "metadata": {"level": 1}}
    found = converted(tmp_path / "s.json", [several, {"input": "2 + 2?", "target": 4}])
    first, second = found.bench.test_cases
    assert str(first.input).endswith("A) 2\nB) 3\nC) 4\n\nAnswer with all right choices. Your last line is "
                                     "ANSWER: LETTERS, one or more of A, B, C.")  # fmt: skip
    assert checks_of(found)[0] == [{"python": "choice", "name": "choice"}]
    assert first.vars == {"target": ["A", "B"], "letters": ["A", "B", "C"]}
    assert "several=True" in found.files["inspect_scorers.py"]
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
    assert checks_of(found) == [[{"python": "match", "name": "match"}]] * 2
    assert left_of(found) == [
        "solver react: it is code: write what it adds into the prompt",
        "scorer my_scorer: it is code of the task: write it as a check",
        "sandbox: models here have no sandbox: ask the agent over HTTP",
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


TEMPLATE: Final = "Is {answer} {criterion} of {area}? {instructions}"


@pytest.mark.parametrize(
    ("scorer", "target", "checks"),
    [
        (
            {"name": "includes", "options": {"ignore_case": False}},
            "P",
            [{"contains": "P", "name": "includes"}],
        ),
        ({"name": "match", "options": {"numeric": True}}, "Paris", [{"python": "match", "name": "match"}]),
        ({"name": "f1"}, "a b", [{"python": "f1", "name": "f1", "at_least": 0}]),
        ({"name": "exact"}, ["A", "{{B"], [{"python": "exact", "name": "exact"}]),
        ({"name": "model_graded_fact"}, "P", [{"factuality": "P", "name": "model_graded_fact"}]),
        ({"name": "choice"}, ["A", "C"], [{"python": "choice", "name": "choice"}]),
        (
            {"name": "model_graded_qa", "options": {"template": TEMPLATE}},
            "{{P",
            [
                {
                    "rubric": "{{ '{' }}{{ '{' }}P",
                    "prompt": "Is {{ output }} {{ rubric }} of {{ vars.area }}? Answer with one JSON object: "
                    '{"reason": "…", "choice": one of "correct", "incorrect"}.',
                    "choices": {"correct": 1, "incorrect": 0},
                    "name": "model_graded_qa",
                }
            ],
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
    answered = sample(1, "x", target=target, choices=["a", "b", "c"], metadata={"area": "eu"})
    found = converted(tmp_path / "log.json", log([scorer], answered))
    assert checks_of(found) == [checks]
    assert ("area" in (found.bench.test_cases[0].vars or {})) is (TEMPLATE in str(scorer))


def test_functions_take_the_options_of_scorers(tmp_path: Path) -> None:
    """Two scorers of one name are two functions; options that are code are listed."""
    scorers = [
        {"name": "match", "options": {"location": "begin", "numeric": True}},
        {"name": "match", "options": {"ignore_case": False}},
        {"name": "f1", "options": {"answer_fn": "last_line"}},
    ]
    found = converted(tmp_path / "log.json", log(scorers, sample(1, "x"), sample(2, "y")))
    assert [each["python"] for each in checks_of(found)[0]] == ["match", "match_2", "f1"]
    assert left_of(found) == ["answer_fn of f1: it is code: write the check"]
    names: dict[str, Any] = {}
    exec(found.files["inspect_scorers.py"], names)  # noqa: S102 - a text of ours
    context = {"vars": {"target": ["4"]}}
    assert names["match"]("4 is 2 + 2, and not 5", context)
    assert not names["match_2"]("4 is 2 + 2, and not 5", context)


JUDGE: Final = {"name": "model_graded_qa", "options": {"instructions": "GRADE", "include_history": True}}


@pytest.mark.parametrize(("roles", "judge"), [(None, "openai/gpt-4o"), ({"grader": {"model": "a/b"}}, "a/b")])
def test_judges_of_a_log(tmp_path: Path, roles: Any, judge: str) -> None:
    """The grader of the evaluation, or the model itself; what judges are not told is listed."""
    content = log([JUDGE], sample(1, "x"))
    content["eval"]["model_roles"] = roles
    found = converted(tmp_path / "log.json", content)
    assert found.bench.settings.judge_model == judge
    assert [each.what for each in found.left] == [
        "instructions of model_graded_qa",
        "include_history of model_graded_qa",
    ]


def test_solvers_fill_in_arguments_and_metadata(tmp_path: Path) -> None:
    """Metadata are variables of cases; braces stay braces, and what is not known stays a field."""
    steps = [
        {"solver": "system_message", "params": {"template": "You are {who} {unknown}.", "who": "{{Ann}}"}},
        {"solver": "prompt_template", "params": {"template": "{{{prompt}}} in {place}?"}},
        {"solver": "prompt_template", "params": {"template": "prompt.txt"}},
    ]
    first, second = sample(1, "x", metadata={"place": "Peru"}), sample(2, "x")
    found = converted(tmp_path / "log.json", log([], first, second, steps=steps))
    assert found.bench.prompts
    sent = (found.bench.prompts[0].system, found.bench.prompts[0].user)
    assert [render(str(each), {"input": "Q", "place": "Peru"}) for each in sent] == [
        "You are {{Ann}} {unknown}.",
        "{Q} in Peru?",
    ]
    assert [case.vars for case in found.bench.test_cases] == [{"place": "Peru"}, {"place": "{place}"}]
    assert [each.what for each in found.left] == ["template prompt.txt of prompt_template"]


def test_choices_have_the_form_of_their_solver(tmp_path: Path) -> None:
    params = {"template": "{question} of {letters}:\n{choices}", "multiple_correct": True, "cot": True}
    answered = sample(1, "x", choices=["a", "b"], target="A")
    steps = [{"solver": "multiple_choice", "params": params}]
    found = converted(tmp_path / "log.json", log([{"name": "choice"}], answered, steps=steps))
    assert found.bench.test_cases[0].input == "Question 1? of A, B:\nA) a\nB) b"
    assert "several=True" in found.files["inspect_scorers.py"]


def test_options_of_calls_in_a_log(tmp_path: Path) -> None:
    """Without a temperature none is sent, as Inspect does; options without a counterpart are listed."""
    content = log([], sample(1, "x"))
    content["eval"]["model_generate_config"] = {"max_tokens": 9, "max_connections": 3, "best_of": 2}
    content["plan"]["config"] = {"stop_seqs": ["END"]}
    found = converted(tmp_path / "log.json", content)
    assert found.bench.params is not None
    assert found.bench.params.given == {"temperature": None, "max_tokens": 9, "stop": ["END"]}
    assert [each.what for each in found.left] == ["best_of of calls"]


@pytest.mark.parametrize(
    ("reducers", "repeat", "left"),
    [
        (None, 3, []),
        (["mean"], 3, []),
        (["max"], {"times": 3, "pass": 1}, []),
        (["mode"], {"times": 3, "pass": 2}, []),
        (["at_least_3"], {"times": 3, "pass": 3}, []),
        (["pass_at_2"], 3, ["reducer pass_at_2"]),
    ],
)
def test_epochs_are_repeats(tmp_path: Path, reducers: Any, repeat: Any, left: list[str]) -> None:
    content = log([], *({**sample(1, "x"), "epoch": epoch} for epoch in (1, 2, 3)))
    content["eval"]["config"] = {"epochs_reducer": reducers}
    found = converted(tmp_path / "log.json", content)
    assert found.bench.settings.model_dump(by_alias=True)["repeat"] == repeat
    assert [each.what for each in found.left] == left


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
