"""Options of calls: which are taken, how those of several places are merged, which headers may be stored."""

from typing import Any

import pytest
from hypothesis import given as tried_with
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from shared.upstream.call_options import (
    OPTION_NAMES,
    CallOptions,
    Headers,
    given,
    merge_headers,
    merge_options,
    split_temperature,
    unsendable_headers,
)

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
GOOD: dict[str, Any] = {
    "temperature": 0,
    "max_tokens": 100,
    "top_p": 0.5,
    "seed": -1,
    "stop": ["END", "\n\n"],
    "presence_penalty": -2,
    "frequency_penalty": 1.5,
    "reasoning_effort": "low",
    "response_format": {"type": "json_object"},
    "tools": [TOOL],
    "tool_choice": "required",
    "logprobs": True,
    "extra_body": {"top_k": 5},
}


def test_every_option_is_taken_as_it_is() -> None:
    """All thirteen, with the values that providers take; each of them may be null."""
    assert given(CallOptions.model_validate(GOOD)) == GOOD
    assert set(OPTION_NAMES) == set(GOOD)
    nulls = dict.fromkeys(GOOD)
    assert given(CallOptions.model_validate(nulls)) == nulls


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"temprature": 0.1}, "temprature"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "100"}, "max_tokens"),
        ({"top_p": 1.1}, "top_p"),
        ({"seed": 1.5}, "seed"),
        ({"stop": []}, "stop"),
        ({"stop": ""}, "stop"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"response_format": {"schema": {}}}, "has no type"),
        ({"tools": []}, "tools"),
        ({"tools": [{"type": "function"}]}, "has no name"),
        ({"tools": [{"function": {"name": "weather"}}]}, "has no type"),
        ({"extra_body": {"seed": 1}}, "write params.seed"),
        ({"extra_body": {"messages": []}}, "messages is set by proctor"),
        ({"extra_body": {"a": float("inf")}}, "no JSON number"),
    ],
)
def test_what_no_provider_takes_is_refused(options: dict[str, Any], named: str) -> None:
    """A misspelt option, a value out of range or of another type, a key that has another place."""
    with pytest.raises(ValidationError) as caught:
        CallOptions.model_validate(options)
    assert named in str(caught.value)


def test_later_places_go_before_earlier_ones() -> None:
    """Bench, model, prompt: maps are merged by key at every depth, lists and plain values replaced."""
    bench = {"seed": 1, "stop": ["a", "b"], "extra_body": {"deep": {"a": 1, "b": 2}}, "temperature": 0.5}
    model = {"stop": ["c"], "extra_body": {"deep": {"b": 3}}, "top_p": None}
    prompt = {"temperature": None, "top_p": 0.1}
    merged = merge_options(bench, model, prompt)
    assert merged == {
        "seed": 1,
        "stop": ["c"],
        "extra_body": {"deep": {"a": 1, "b": 3}},
        "temperature": None,
        "top_p": 0.1,
    }
    assert bench["extra_body"] == {"deep": {"a": 1, "b": 2}}
    assert split_temperature(merged, 0.1)[0] is None
    assert split_temperature({}, 0.1) == (0.1, {})


def test_a_map_of_another_type_replaces() -> None:
    """Half of a JSON schema means nothing in a format of another type."""
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}
    merged = merge_options({"response_format": schema}, {"response_format": {"type": "json_object"}})
    assert merged == {"response_format": {"type": "json_object"}}
    renamed = merge_options({"response_format": schema}, {"response_format": {"json_schema": {"name": "b"}}})
    assert renamed["response_format"]["json_schema"] == {"name": "b", "schema": {}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
LAYER = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


@tried_with(LAYER, LAYER, LAYER)
def test_merging_is_associative(one: dict[str, Any], two: dict[str, Any], three: dict[str, Any]) -> None:
    """It does not matter which two places are merged first, and the last one is always in the result."""
    assert merge_options(merge_options(one, two), three) == merge_options(one, merge_options(two, three))
    assert merge_options(one, {}) == merge_options({}, one) == one
    merged = merge_options(one, two)
    assert all(merged[key] == value for key, value in two.items() if not isinstance(value, dict))


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"X Team": "a"}, "not the name"),
        ({"X-Team": "a\r\nX-More: b"}, "cannot be sent"),
        ({"X-Team": "größer"}, "cannot be sent"),
        ({"Content-Length": "0"}, "set by proctor"),
        ({"Authorization": "Bearer abc"}, "env:VARIABLE"),
        ({"x-api-key": "abc"}, "env:VARIABLE"),
        ({"Ocp-Apim-Subscription-Key": "abc"}, "env:VARIABLE"),
        ({"X-Key": "env:"}, "names no variable"),
        ({"X-Key": "env:A B"}, "names no variable"),
        ({"X-Team": "a", "x-team": "b"}, "twice"),
        ({"X-Team": 1}, "string"),
    ],
)
def test_headers_that_break_or_leak_are_refused(headers: Any, named: str) -> None:
    """Nothing that ends the head of a request, belongs to the exchange, or would store a secret."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Headers).validate_python(headers, strict=True)
    assert named in str(caught.value)


def test_headers_are_merged_without_case() -> None:
    """A later one goes before an earlier one of the same name, however it is written."""
    headers = {"X-Team": "a", "Authorization": "env:MY_TOKEN"}
    assert TypeAdapter(Headers).validate_python(headers) == headers
    assert merge_headers(headers, {"x-team": "b"}) == {"Authorization": "env:MY_TOKEN", "x-team": "b"}


def test_only_variables_of_keys_are_sent() -> None:
    """As for keys: by the ending of their names, or because the worker lists them."""
    assert unsendable_headers({"A": "env:MY_TOKEN", "B": "literal"}, {}) == ""
    assert "HOME is not sent" in unsendable_headers({"A": "env:HOME"}, {})
    assert unsendable_headers({"A": "env:HOME"}, {"PROCTOR_KEY_VARIABLES": "HOME"}) == ""
