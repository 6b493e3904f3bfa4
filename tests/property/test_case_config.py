"""Explores bench configurations: any good one reads back as it was written, any other is refused in words."""

import csv
import io
import json
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from producer.cases.bench_config import read_bench
from producer.cases.data_rows import Columns, cell, json_rows, table_rows
from producer.load.contracts import checked
from producer.load.problems import Place, Problems
from producer.load.source import Source
from producer.load.yaml_text import line_of, parse_yaml
from shared.contracts.case_config import BenchConfig, CaseEntry
from shared.contracts.case_run import (
    CasePayload,
    CaseRun,
    Recorded,
    Validators,
    decode_case,
    encode_case,
)
from shared.errors import InputError, WrongInput
from shared.upstream.model_target import ModelTarget

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | st.text(st.characters(codec="utf-8"), max_size=8)
KEYS = st.text(st.characters(codec="utf-8"), max_size=6).filter(lambda key: key != "<<")
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)
CASE = st.fixed_dictionaries(
    {"input": TEXT},
    optional={
        "expected": st.none() | st.dictionaries(KEYS, JSON, max_size=3),
        "reference": TEXT,
        "regex_pattern": st.sampled_from(["a+", "def .*\\(", "^é$"]),
    },
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "concurrency": st.integers(1, 100),
        "temperature": st.none() | st.floats(0, 2),
        "judge_model": st.none() | TEXT,
        "max_cost": st.none() | st.floats(0, 1_000_000),
        "repeat": st.integers(1, 1_000),
        "stream": st.booleans(),
        "json_extraction": st.sampled_from(["strict", "lenient"]),
    },
)
BENCH = st.fixed_dictionaries(
    {
        "name": TEXT,
        "system_prompt": TEXT,
        "models": st.lists(TEXT, min_size=1, max_size=3),
        "test_cases": st.lists(CASE, min_size=1, max_size=4),
    },
    optional={"config": SETTINGS},
)


def read(content: bytes) -> BenchConfig:
    """The configuration of a file."""
    return read_bench(Source("-", stdin=io.BytesIO(content))).config


def refusal_of(content: bytes) -> str:
    """Why a file is refused; empty when it is read."""
    try:
        read(content)
    except InputError as error:
        return error.message
    return ""


def yaml_or_error(text: str) -> Any:
    """The document of a text, or the error that it is refused with."""
    try:
        return parse_yaml(text)
    except WrongInput as error:
        return error


@given(BENCH)
def test_a_good_configuration_reads_back(bench: dict[str, Any]) -> None:
    """As JSON and as the model writes it, everything that was written is there, with its type."""
    found = read(json.dumps(bench).encode())
    written = found.model_dump(mode="python", by_alias=True, exclude_unset=True)
    assert json.dumps(written, sort_keys=True) == json.dumps(bench, sort_keys=True)
    assert read(json.dumps(written).encode()) == found


@given(JSON)
def test_yaml_reads_what_json_says(document: Any) -> None:
    """A document of JSON's types, written as quoted YAML, is the same document."""
    text = yaml.safe_dump(document, default_style='"', allow_unicode=False)
    if "\\ud" in text.lower():
        return  # a pair of surrogates, which YAML's escapes do not have
    found = parse_yaml(text)
    plain = yaml.safe_load(text)
    if isinstance(plain, dict | list):
        assert json.dumps(found, sort_keys=True) == json.dumps(document, sort_keys=True)


@given(st.text(max_size=60) | st.text(st.sampled_from(list("ab:-[]{}&*!?|>\"'#\n ,1")), max_size=60))
def test_any_text_is_yaml_or_refused(text: str) -> None:
    """Nothing but our own error leaves the reader, and places are found in whatever it is."""
    assert line_of(text, ("a", 0, "b")) >= 1
    found = yaml_or_error(text)
    if isinstance(found, WrongInput):
        assert found.what.isprintable()
        assert found.line >= 1
    else:
        json.dumps(found)


@given(st.binary(max_size=80) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_file_is_read_or_refused(content: bytes) -> None:
    """Random bytes and random documents end in a sentence on one line."""
    assert refusal_of(content).isprintable()


@given(st.lists(CASE, min_size=1, max_size=5))
def test_csv_and_json_lines_say_the_same(cases: list[dict[str, Any]]) -> None:
    """A case reads the same from either, whatever quotes and line ends it holds."""
    columns = ["input", "expected", "reference", "regex_pattern"]
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet)
    writer.writerow(columns)
    for case in cases:
        cells = {**case, "expected": json.dumps(case["expected"]) if case.get("expected") is not None else ""}
        writer.writerow([cells.get(column, "") for column in columns])
    lines = "\n".join(json.dumps(case) for case in cases)
    named = Columns({})
    rows = [
        checked(CaseEntry, named.case(row, cell), Place("bench.yaml"))
        for row in table_rows("c.csv", io.StringIO(sheet.getvalue(), newline=""), named, Problems())
    ]
    assert rows == [
        checked(CaseEntry, row.value, Place("bench.yaml"))
        for row in json_rows("c.jsonl", lines.split("\n"), Problems())
    ]


@given(
    st.builds(
        CasePayload,
        st.integers(0, 9_999),
        TEXT,
        TEXT,
        st.integers(0, 9),
        st.none() | TEXT,
        st.none() | st.builds(Recorded, st.text(st.characters(codec="utf-8")), st.none() | st.floats(0, 9)),
        prompt_id=st.none() | TEXT,
        system=st.none() | TEXT,
        messages=st.none() | st.lists(st.dictionaries(KEYS, JSON, max_size=3), max_size=2),
        images=st.lists(TEXT, max_size=2),
        vars=st.dictionaries(KEYS, JSON, max_size=3),
        tags=st.lists(TEXT, max_size=2),
        weight=st.floats(0, 9),
        criteria=st.fixed_dictionaries(
            {},
            optional={
                "expected": st.dictionaries(KEYS, JSON, max_size=3),
                "reference": TEXT,
                "regex_pattern": TEXT,
                "validator": TEXT,
            },
        ),
    )
)  # fmt: skip - the fields in their order
def test_items_travel(item: CasePayload) -> None:
    """What the producer writes is what the worker reads, numbers of any size included."""
    assert decode_case(encode_case(item)) == item


@given(
    JSON,
    st.none() | st.builds(Validators, TEXT, TEXT),
    st.dictionaries(TEXT, st.builds(ModelTarget, TEXT, TEXT, TEXT)),
)
def test_settings_travel(schema: Any, validators: Validators | None, models: dict[str, ModelTarget]) -> None:
    """A run's settings come out of its snapshot as they went in."""
    run = CaseRun("n", "s", models, schema=schema, validators=validators)
    assert CaseRun.from_snapshot(json.loads(json.dumps({"cases": msgspec.to_builtins(run)}))) == run


@pytest.mark.parametrize("depth", [400, 600, 5_000])
def test_deep_objects_are_read_or_refused(depth: int) -> None:
    """An `expected` of any depth is a case or an error, never a crash."""
    deep = '{"a":' * depth + "1" + "}" * depth
    case = '{"input": "a", "expected": ' + deep + "}"
    content = '{"name": "n", "system_prompt": "s", "models": ["m"], "test_cases": [' + case + "]}"
    assert (refusal_of(content.encode()) == "") == (depth == 400)
    if depth == 400:
        item = CasePayload(0, "m", "a", criteria={"expected": json.loads(deep)})
        assert decode_case(encode_case(item)) == item
