"""Options of calls: which are taken, how maps of two types are merged, which headers may be stored."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from shared.contracts.call_options import Headers, Params
from shared.contracts.merged_options import merge

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
    "service_tier": "flex",
    "response_format": {"type": "json_object"},
    "tools": [TOOL],
    "tool_choice": "required",
    "logprobs": True,
    "extra_body": {"top_k": 5},
}


def test_every_option_is_taken_as_it_is() -> None:
    """All fourteen, with the values that providers take; each of them may be null."""
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
    ("options", "named"),
    [
        ({"extra_body": {"api_key": "abc"}}, "api_key holds a secret"),
        ({"extra_body": {"auth": {"token": "abc"}}}, "auth.token holds a secret"),
        ({"extra_body": {"accessToken": "abc"}}, "accessToken holds a secret"),
        ({"extra_body": {"sources": [{"client_secret": "abc"}]}}, "sources.client_secret holds a secret"),
        ({"extra_body": {"user": "sk-live-0123456789"}}, "user holds a secret"),
        ({"tools": [{**TOOL, "note": "Bearer sk-live-0123456789"}]}, "tools.0"),
        ({"stop": ["AKIAIOSFODNN7EXAMPLE"]}, "holds a secret"),
        ({"response_format": {"type": "x", "key": "ghp_0123456789abcdefghij"}}, "holds a secret"),
    ],
)
def test_a_secret_anywhere_in_the_options_is_refused(options: dict[str, Any], named: str) -> None:
    """By its name in the body, or by its looks in any option; the error has its place and not its value."""
    with pytest.raises(ValidationError) as caught:
        Params.model_validate(options)
    assert named in str(caught.value)
    [error] = caught.value.errors(include_input=False)
    assert "0123456789" not in error["msg"]
    assert "which must not be stored" in error["msg"]


def test_words_that_sound_like_secrets_are_taken() -> None:
    """Special tokens, keys of caches, and properties of tools called `password` hold none."""
    body = {
        "eos_token": "</s>",
        "prompt_cache_key": "team-7",
        "token_type": "bpe",
        "password": "",
        "auth": {},
    }
    login = {"name": "login", "parameters": {"properties": {"password": {"type": "string"}}}}
    tool = {
        "type": "function",
        "function": {**login, "description": "With bearer authentication, key-values"},
    }
    options = {"extra_body": body, "tools": [tool]}
    assert Params.model_validate(options).given == options
    headers = {"Idempotency-Key": "run-1", "X-Max": "4", "OpenAI-Organization": "org-1", "X-Author": "me"}
    assert TypeAdapter(Headers).validate_python(headers, strict=True) == headers


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
        ({"x-functions-key": "abc"}, "'x-functions-key' holds a secret"),
        ({"X-Access-Key": "abc"}, "env:VARIABLE"),
        ({"Helicone-Auth": "abc"}, "env:VARIABLE"),
        ({"X-Team": "Bearer abcdefgh"}, "env:VARIABLE"),
        ({"X-Team": "sk-proj-4f9aB2c8"}, "env:VARIABLE"),
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
