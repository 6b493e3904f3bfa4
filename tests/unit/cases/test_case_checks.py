"""Checks of a bench travel complete: schemas inlined, models named, functions known, defaults first."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.contracts.case_run import CasePayload, Recorded, decode_case
from tests.support.benches import MINIMAL, plan, refusal, write
from worker.validation.checks.kind import Subject, no
from worker.validation.scoring import result_of, run_deterministic

SCHEMA = {"type": "object", "required": ["capital"]}


def bench(folder: Path, *checks: Any, **more: Any) -> Path:
    """Writes a bench of one case with some checks."""
    case = {"input": "Hi", "checks": list(checks)}
    return write(folder, yaml.safe_dump({**MINIMAL, "test_cases": [case], **more}))


def travelling(path: Path) -> list[dict[str, Any]]:
    """The checks of the first item."""
    return list(next(plan(path).items()).criteria["checks"])


def test_schemas_are_inlined_wherever_they_stand(tmp_path: Path) -> None:
    """In a check, in combinations, and in the arguments of tool calls: workers have no files."""
    write(tmp_path, json.dumps(SCHEMA), "schema.json")
    named = {"json_schema": "schema.json"}
    found = json.dumps(
        travelling(
            bench(
                tmp_path,
                named,
                {"not": named},
                {"any": [named, {"all": [named]}]},
                {"tool_call": {"name": "f", "arguments": named}},
                {"tool_calls": [{"name": "f", "arguments": named}]},
            )
        )
    )
    assert "schema.json" not in found
    assert found.count('"capital"') == 6
    assert "checks[1].not.json_schema: no such file: 'none.json'" in refusal(
        bench(tmp_path, named, {"not": {"json_schema": "none.json"}})
    )


def test_functions_of_the_validators_file_are_known(tmp_path: Path) -> None:
    """A misspelt function is an error with its place, and so is one without a file."""
    write(tmp_path, "def is_short(output):\n    return True\n", "validators.py")
    nested = {"any": [{"contains": "a"}, {"python": "is_shrt"}]}
    assert "checks[0]: python: 'is_shrt' is asked for, and there is no validators_file" in refusal(
        bench(tmp_path, nested)
    )
    assert "the validators file has no function 'is_shrt' | did you mean 'is_short'?" in refusal(
        bench(tmp_path, nested, validators_file="validators.py")
    )
    assert travelling(bench(tmp_path, {"python": "is_short"}, validators_file="validators.py"))


@pytest.mark.parametrize(
    "parameters", ["output, *, context", "output, context, more", "", "*, output", "*, output, **more"]
)
def test_a_function_that_cannot_be_called_is_refused(tmp_path: Path, parameters: str) -> None:
    """Else each case would fail by a TypeError, which is blamed on the model."""
    write(tmp_path, f"def f({parameters}):\n    return True\n", "validators.py")
    found = refusal(bench(tmp_path, {"not": {"python": "f"}}, validators_file="validators.py"))
    assert f"python: f({parameters}) cannot be called with an output and a context" in found
    assert "write def f(output, context):" in found
    assert "bench.config.yaml:7: test_cases[0].checks[0]: " in found


@pytest.mark.parametrize(
    "definition",
    [
        "def f(output, context=None, *more, key=1, **others): return True",
        "def f(*texts): return True",
        "def f(output, limit=5, other=6): return True",
        "f = lambda output, context: True",
        "f = len",
    ],
)
def test_a_function_that_can_be_called_is_taken(tmp_path: Path, definition: str) -> None:
    write(tmp_path, f"{definition}\n", "validators.py")
    assert travelling(bench(tmp_path, {"python": "f"}, validators_file="validators.py"))


def test_a_threshold_without_a_check_is_refused(tmp_path: Path) -> None:
    """There is no score that could reach it; with a default check there is one."""
    case = {"input": "Hi", "at_least": 0.9}
    path = write(tmp_path, yaml.safe_dump({**MINIMAL, "test_cases": [case]}))
    assert "at_least is the mean score of checks, and the case has none" in refusal(path)
    with_default = {**MINIMAL, "test_cases": [case], "default_checks": [{"contains": "a"}]}
    assert travelling(write(tmp_path, yaml.safe_dump(with_default)))


RUBRIC = {"rubric": "Is brief.", "at_least": 0.5}
SIMILAR = {"similar": "Paris", "at_least": 0.5}


@pytest.mark.parametrize(
    ("check", "config", "options"),
    [
        (RUBRIC, {}, {"model": "gpt-3.5-turbo"}),
        (RUBRIC, {"judge_model": "j"}, {"model": "j"}),
        (RUBRIC, {"judge_models": ["j", "k", "l"]}, {"models": ["j", "k", "l"]}),
        ({**RUBRIC, "model": "own"}, {"judge_model": None}, {"model": "own"}),
        (SIMILAR, {"embedding_model": "e"}, {"model": "e"}),
        ({**SIMILAR, "model": "own"}, {}, {"model": "own"}),
    ],
)
def test_paid_checks_have_their_models(
    tmp_path: Path, check: dict[str, Any], config: dict[str, Any], options: dict[str, Any]
) -> None:
    """Their own, else the configured one, else the panel; the run has the endpoint of each."""
    path = bench(tmp_path, check, config=config)
    [found] = travelling(path)
    assert {key: found["options"].get(key) for key in options} == options
    named = options.get("models") or [options["model"]]
    assert list(plan(path).run.check_models) == named


@pytest.mark.parametrize(
    ("check", "key"),
    [(RUBRIC, "judge_model"), (SIMILAR, "embedding_model"), ({"not": RUBRIC}, "judge_model")],
)
def test_a_check_that_nobody_can_be_asked_by_is_refused(
    tmp_path: Path, check: dict[str, Any], key: str
) -> None:
    """Without a model of its own and without a configured one, in one line."""
    found = refusal(bench(tmp_path, check, config={"judge_model": None}))
    assert ":11: test_cases[0].checks[0]: " in found or "test_cases[0].checks[0]: " in found
    assert f"none is named | add model to the check, or {key} to config" in found


def test_models_of_checks_count_as_used(tmp_path: Path) -> None:
    """Their entries in `model_configs` give them an endpoint, and no warning; a cap needs their prices."""
    place = {"api_base": "http://127.0.0.1:1/v1"}
    path = bench(tmp_path, {**RUBRIC, "model": "own"}, model_configs={"own": place, "other": place})
    found = plan(path)
    assert found.run.check_models["own"].api_base == place["api_base"]
    assert [warning for warning in found.warnings if "'own'" in warning] == []
    assert any("'other'" in warning for warning in found.warnings)
    prices = {"m": {"prices": {"prompt_per_million": 1, "completion_per_million": 1}}}
    assert "max_cost: the price of 'own' is not known" in refusal(
        bench(
            tmp_path,
            {**RUBRIC, "model": "own"},
            config={"max_cost": 1, "judge_model": None},
            model_configs=prices,
        )
    )


def test_a_check_is_its_template(tmp_path: Path) -> None:
    """Cases that differ in a variable have a check in common; what it was rendered to is in the reason."""
    checks = [
        {"contains": "{{ capital }}"},
        {"not": {"rubric": "Names {{ capital }}", "at_least": 0.5}},
        {"any": [{"equals": "{{ capital }}"}, {"length": 20}]},
        {"json_path": "$.city", "contains": "Lima"},
        {"contains": "{{ capital }}", "name": "the capital"},
    ]
    cases_of = [{"input": city, "vars": {"capital": city}} for city in ("Madrid", "Tokyo")]
    path = write(tmp_path, yaml.safe_dump({**MINIMAL, "default_checks": checks, "test_cases": cases_of}))
    cases = [case.checks for case in plan(path).bench.cases]
    rows = [run_deterministic(each, Subject("It is Rome.")) for each in cases]
    assert [[row.name for row in each] for each in rows] == [
        [
            "contains: {{ capital }}",
            "not rubric: Names {{ capital }}",
            "any: equals: {{ capital }}, length: 20",
            "contains at $.city: Lima",
            "the capital",
        ]
    ] * 2
    assert [each[0].reason.split(" is ")[0] for each in rows] == ['"Madrid"', '"Tokyo"']
    asked = [result_of(each[1], no("It names it.")).reason for each in cases]
    assert asked == ['"Names Madrid": It names it.', '"Names Tokyo": It names it.']
    assert rows[0][2].reason.endswith("length: 20: the output has 11 characters, expected at most 20")


def test_items_of_the_last_release_are_read() -> None:
    """Their criteria stand beside the item's own keys, as they do today."""
    stored = (
        b'{"case":2,"model":"m","input":"Hi","repeat":1,"id":"x","expected":{"a":1},"reference":"r",'
        b'"regex_pattern":"^a","validator":"f","recorded":{"output":"o"},"label":"pass"}'
    )
    criteria = {
        "expected": {"a": 1},
        "reference": "r",
        "regex_pattern": "^a",
        "validator": "f",
        "label": "pass",
    }
    assert decode_case(stored) == CasePayload(2, "m", "Hi", 1, "x", Recorded("o"), criteria=criteria)
