"""Explores the baselines loader: any file is read or refused, and ids sort totally."""

import io
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from producer.load.baselines import encode_baseline, read_baselines
from producer.load.source import Source
from shared.contracts.queries import Baseline
from shared.contracts.query_vocabulary import CATEGORIES, id_order
from shared.errors import InputError

IDS = st.text(st.sampled_from(list("Q-019aé²٣")), min_size=1, max_size=8)
WORDS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), max_size=3)
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)
GOOD = st.fixed_dictionaries(
    {
        "id": IDS,
        "category": st.sampled_from(CATEGORIES),
        "query": TEXT,
        "is_oos": st.booleans(),
        "expected_docs": WORDS,
        "must_contain": WORDS,
        "must_not_contain": WORDS,
    },
    optional={"oos_decline_signals": WORDS, "should_contain": WORDS, "notes": TEXT},
)
FILES = st.lists(GOOD, min_size=1, max_size=6, unique_by=lambda query: query["id"])


def read(content: bytes) -> list[Baseline]:
    """The queries of a file."""
    return read_baselines(Source("-", stdin=io.BytesIO(content))).queries


def refusal_of(content: bytes) -> str:
    """Why a file is refused; empty when it is read."""
    try:
        read(content)
    except InputError as error:
        return error.message
    return ""


@given(FILES)
def test_all_forms_of_a_good_file_read_the_same(queries: list[dict[str, Any]]) -> None:
    """Object, list and lines give the same queries, sorted, with every value kept."""
    whole = json.dumps({"version": "1.0", "queries": queries}).encode()
    bare = json.dumps(queries, ensure_ascii=False, indent=1).encode()
    lines = "\n".join(json.dumps(query) for query in queries).encode()
    found = read(whole)
    assert found == read(bare) == read(lines)
    assert [query.id for query in found] == sorted((query["id"] for query in queries), key=id_order)
    by_id = {query.id: query.model_dump() for query in found}
    for query in queries:
        assert {key: by_id[query["id"]][key] for key in query} == query
    assert [json.loads(encode_baseline(query)) for query in found] == [*by_id.values()]


@given(st.binary(max_size=100) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_file_is_read_or_refused(content: bytes) -> None:
    """Nothing but an InputError leaves the loader, with a text of one printable line."""
    assert refusal_of(content).isprintable()


@given(GOOD, st.sampled_from(["id", "category", "query", "is_oos", "must_contain"]), JSON)
def test_any_wrong_value_is_refused_or_right(query: dict[str, Any], key: str, value: object) -> None:
    """A changed value is refused, or it is one that the contract has."""
    try:
        (found,) = read(json.dumps([{**query, key: value}]).encode())
    except InputError:
        return
    assert found.model_dump()[key] == value
    assert isinstance(value, bool if key == "is_oos" else list if key == "must_contain" else str)


@given(IDS, IDS, IDS)
def test_ids_have_one_order(first: str, second: str, third: str) -> None:
    """Any two different ids differ in order, and the order is transitive; equal padding means plain order."""
    low, middle, high = sorted((first, second, third), key=id_order)
    assert id_order(low) <= id_order(middle) <= id_order(high)
    assert (id_order(first) == id_order(second)) == (first == second)


@given(st.lists(st.integers(0, 999), min_size=1, max_size=9))
def test_padded_ids_sort_as_text(numbers: list[int]) -> None:
    """Natural order and the document's plain order agree on zero-padded ids."""
    ids = [f"Q-{number:03}" for number in numbers]
    assert sorted(ids, key=id_order) == sorted(ids)
