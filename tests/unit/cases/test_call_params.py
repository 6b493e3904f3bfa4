"""Options of calls: which are taken, how maps of two types are merged, which headers may be stored."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from shared.contracts.call_options import Headers, Params, merge

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
    assert Params.model_validate(GOOD).given == GOOD
    assert {*Params.model_fields} - {"headers"} == set(GOOD)
    nulls = dict.fromkeys(GOOD)
    assert Params.model_validate(nulls).given == nulls


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
        ({"tools": [{"type": "function"}]}, "no tool"),
        ({"tools": [{"function": {"name": "weather"}}]}, "no tool"),
        ({"extra_body": {"seed": 1}}, "seed is an option"),
        ({"extra_body": {"messages": []}}, "messages is set by proctor"),
        ({"extra_body": {"a": float("inf")}}, "no JSON number"),
    ],
)
def test_what_no_provider_takes_is_refused(options: dict[str, Any], named: str) -> None:
    """A misspelt option, a value out of range or of another type, a key that has another place."""
    with pytest.raises(ValidationError) as caught:
        Params.model_validate(options)
    assert named in str(caught.value)


def test_a_map_of_another_type_replaces() -> None:
    """Half of a JSON schema means nothing in a format of another type."""
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}
    merged = merge({"response_format": schema}, {"response_format": {"type": "json_object"}})
    assert merged == {"response_format": {"type": "json_object"}}
    renamed = merge({"response_format": schema}, {"response_format": {"json_schema": {"name": "b"}}})
    assert renamed["response_format"]["json_schema"] == {"name": "b", "schema": {}}


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"X Team": "a"}, "not the name"),
        ({"X-Team": "a\r\nX-More: b"}, "no printable ASCII"),
        ({"X-Team": "größer"}, "no printable ASCII"),
        ({"Content-Length": "0"}, "set by proctor"),
        ({"Authorization": "Bearer abc"}, "env:VARIABLE"),
        ({"x-api-key": "abc"}, "env:VARIABLE"),
        ({"Ocp-Apim-Subscription-Key": "abc"}, "env:VARIABLE"),
        ({"X-Key": "env:"}, "does not name a variable"),
        ({"X-Key": "env:A B"}, "does not name a variable"),
        ({"X-Team": "a", "x-team": "b"}, "stands twice"),
        ({"X-Team": 1}, "string"),
    ],
)
def test_headers_that_break_or_leak_are_refused(headers: Any, named: str) -> None:
    """Nothing that ends the head of a request, belongs to the exchange, or would store a secret."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Headers).validate_python(headers, strict=True)
    assert named in str(caught.value)
