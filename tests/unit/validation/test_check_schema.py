"""The JSON Schema of a bench lists the kinds of checks with their options, as their table has them."""

from typing import Any, Final

import jsonschema_rs
import pytest
import yaml

from producer.schemas.catalog import schema_of
from shared.errors import WrongInput
from tests.support.benches import MINIMAL
from tests.support.tree import ROOT
from worker.validation.checks import CHECK_KINDS, CheckKind, parse_checks
from worker.validation.checks.parsing import COMMON_OPTIONS, OPTION_EXAMPLES
from worker.validation.checks.table import ROWS

SCHEMA: Final = schema_of("input-bench")
VALIDATOR: Final = jsonschema_rs.validator_for(SCHEMA)
ARGUMENTS: Final[tuple[Any, ...]] = (
    None, True, False, 0, 5, -1, 2.5, "", "a", "none", "$.a", "{{ a }}", "5", "refusal",
    [], ["a"], ["a", 1, True], [""], ["json"], [{"not": "refusal"}], [{"name": "f"}, "g"],
    {}, {"min": 1}, {"max": 3, "min": 1}, {"max": "3"}, {"type": "object"}, {"contains": "a"},
    {"name": "f"}, {"name": "f", "arguments": ["json"]}, {"name": "f", "arguments": {"json": None}},
    {"all": [{"any": ["json", {"number": 2, "tolerance": "5%"}]}]},
)  # fmt: skip
OPTIONS: Final[tuple[Any, ...]] = (
    None, True, 0, 0.5, 1.5, -1, "", "a", "5%", "5", "words", "characters", "strict", "any", "$.a", "x" * 81,
    ["a", "b"], [], {}, "{{ output }}",
)  # fmt: skip


def accepts(*checks: Any) -> bool:
    """Whether the schema takes a bench with these checks."""
    of_case = {**MINIMAL, "test_cases": [{"input": "Hi", "checks": list(checks)}]}
    is_valid = VALIDATOR.is_valid(of_case)
    assert VALIDATOR.is_valid({**MINIMAL, "test_cases": [], "default_checks": list(checks)}) is is_valid
    return is_valid


def is_read(check: Any) -> bool:
    """Whether a bench may have this check."""
    try:
        parse_checks([check])
    except WrongInput:
        return False
    return True


def definition(kind: CheckKind) -> dict[str, Any]:
    """The part of the schema for one kind."""
    [found] = [each for each in SCHEMA["$defs"]["check"]["anyOf"] if each.get("title") == kind.name]
    return dict(found)


def test_all_kinds_are_there() -> None:
    bare, *kinds = SCHEMA["$defs"]["check"]["anyOf"]
    assert [each["title"] for each in kinds] == [*CHECK_KINDS, "plugin.NAME"]
    assert bare["enum"] == [kind.name for kind in ROWS if kind.takes_bare_word]


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.name)
def test_a_kind_has_its_options_and_example(kind: CheckKind) -> None:
    """An editor completes them, and shows when the check passes."""
    found = definition(kind)
    common = set(COMMON_OPTIONS) - (set() if kind.reads_text else {"json_path"})
    assert set(found["properties"]) == {kind.name, *kind.options, *common}
    assert kind.passes_when in found["description"]
    assert accepts(yaml.safe_load(kind.example))
    assert not accepts({kind.name: yaml.safe_load(kind.example), "wieght": 2})


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.name)
def test_what_a_bench_may_have_is_in_the_schema(kind: CheckKind) -> None:
    """Of many arguments and options of each kind, none that is read is marked as a mistake."""
    example = yaml.safe_load(kind.example)
    example = example if isinstance(example, dict) else {example: None}
    written = [{**example, kind.name: argument} for argument in ARGUMENTS]
    written += [{**example, name: value} for name in OPTION_EXAMPLES for value in OPTIONS]
    read = [check for check in written if is_read(check)]
    assert read
    assert [check for check in read if not accepts(check)] == []


@pytest.mark.parametrize(
    "check",
    [
        "contains",
        "refusall",
        5,
        {},
        {"contain": "Paris"},
        {"weight": 2},
        {"contains": "Paris", "equals": "Paris"},
        {"contains": "Paris", "at_least": 1.5},
        {"contains": "Paris", "unit": "words"},
        {"contains": ["Paris"]},
        {"length": {"min": -1}},
        {"number": []},
        {"max_cost": -1},
        {"refusal": "no"},
        {"all": []},
        {"any": [{"contain": "a"}]},
        {"not": {"not": {"contain": "a"}}},
        {"tool_call": {"name": "f", "arguments": {"city": "Paris"}}},
        {"tool_calls": [5]},
        {"rubric": "Polite?", "models": []},
    ],
)
def test_mistakes_are_marked(check: Any) -> None:
    assert not is_read(check)
    assert not accepts(check)


def test_benches_of_the_examples_are_valid() -> None:
    found = sorted((ROOT / "examples").rglob("*.yaml"))
    benches = [bench for path in found if "models" in (bench := yaml.safe_load(path.read_text()))]
    assert benches
    for bench in benches:
        assert [str(error) for error in VALIDATOR.iter_errors(bench)] == []


def test_plugins_have_any_name() -> None:
    """One key is theirs; the options are those of all checks."""
    assert accepts("plugin.polite")
    assert accepts({"plugin.polite": {"rude": ["x"]}, "weight": 2})
    assert not accepts({"plugin.polite": 1, "ignore_case": True})
