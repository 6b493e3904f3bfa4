"""What changed between two versions of cases: a run, its bench and a data file have the same hashes."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from producer.cases.bench_config import read_bench
from producer.cases.data_difference import cases_of_bench, cases_of_items, compare_cases
from producer.load.source import Source
from tests.support.benches import plan, write

BENCH: Final = """
name: capitals
models: [openai/gpt-4o, openai/gpt-4o-mini]
config: {judge_model: openai/gpt-4o}
prompts:
  - {id: short, user: "Capital of {{ country }}?"}
  - {id: long, user: "What is the capital of {{ country }}?"}
default_checks: [{contains: "{{ capital }}"}]
test_cases:
  - {id: fr, vars: {country: France, capital: Paris}, checks: [{rubric: Brief.}]}
  - {vars: {country: Italy, capital: Rome}}
  - {vars: {country: Spain, capital: Madrid}}
"""


def difference(folder: Path, *edits: tuple[str, str]) -> dict[str, Any]:
    """What differs between the items of the bench and those of an edited one, without empty lists."""
    text = BENCH
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    before, after = (cases_of_items(plan(write(folder, each)).items()) for each in (BENCH, text))
    found = compare_cases(("a", before), ("b", after))
    assert found.a.cases == 3, "each case once, whatever models and prompts"
    lists = ("added", "removed", "input_changed", "expectation_changed")
    return {name: getattr(found, name) for name in lists if getattr(found, name)}


@pytest.mark.parametrize(
    ("edits", "lists"),
    [
        ([("France,", "Chile,")], {"input_changed": ("fr",)}),
        ([("Paris", "Lyon")], {"expectation_changed": ("fr",)}),
        ([("capital: Rome", "capital: Turin")], {"expectation_changed": ("case 2",)}),
        ([("Italy", "Italia")], {"added": ("case 2",), "removed": ("case 2",)}),
        ([("{id: fr, ", "{id: fr, input: Hi, ")], {"input_changed": ("fr",)}),
        ([("{id: fr, ", "{id: fr, system_prompt: Hm., ")], {"input_changed": ("fr",)}),
        ([("{id: fr, ", "{id: fr, at_least: 0.5, ")], {"expectation_changed": ("fr",)}),
        ([("  - {vars: {country: Italy, capital: Rome}}\n", "")], {"removed": ("case 2",)}),
        ([("{id: fr, ", "{id: fr, tags: [europe], weight: 3, ")], {}),
        ([("judge_model: openai/gpt-4o", "judge_model: openai/o3"), ("What is", "Name")], {}),
        ([('contains: "{{', 'contains: "The {{')], {"expectation_changed": ("fr", "case 2", "case 3")}),
    ],
)
def test_each_edit_is_what_it_is(
    tmp_path: Path, edits: list[tuple[str, str]], lists: dict[str, tuple[str, ...]]
) -> None:
    """Questions and answers apart; tags, weights, judges and prompts are no part of a case."""
    assert difference(tmp_path, *edits) == lists


def test_a_run_has_the_hashes_of_its_bench(tmp_path: Path) -> None:
    """So that the file of today can be compared with the run of last week; another order is no change."""
    path = write(tmp_path, BENCH)
    of_run, of_file = cases_of_items(plan(path).items()), cases_of_bench(read_bench(Source(path)))
    assert of_run == of_file
    assert compare_cases(("a", of_run), ("b", of_file[::-1])).unchanged == 3


def test_cases_of_a_data_file_are_those_of_the_bench(tmp_path: Path) -> None:
    """The hashes are of what was loaded, wherever it stands."""
    rows = [{"id": name, "input": f"Capital of {name}?", "expected": {"city": name}} for name in ("fr", "es")]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    head: dict[str, Any] = {"name": "b", "system_prompt": "Hi", "models": ["openai/gpt-4o"]}
    benches = [head | {"test_cases": rows}, head | {"test_cases_file": "cases.jsonl"}]
    written = [
        cases_of_bench(read_bench(Source(write(tmp_path, json.dumps(bench), f"{at}.yaml"))))
        for at, bench in enumerate(benches)
    ]
    assert written[0] == written[1]
