"""The contract of the protocols: whatever is spoken, the same answer means the same, whole and streamed."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any, Final

import aiohttp
import pytest

from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from shared.upstream.protocol_names import PROTOCOLS, misfit, protocol_of
from shared.upstream.usage import Usage
from tests.support.protocol_server import (
    CACHED,
    INPUT,
    OUTPUT,
    PATHS,
    REFUSAL,
    THOUGHT,
    WRITERS,
    WRITTEN,
    Neutral,
    ProtocolServer,
)
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_clients import DirectClient
from worker.upstream.protocols.wire_protocols import WIRE_PROTOCOLS

PARIS: Final = Neutral()
KEY: Final = "k-0123456789"
CALL: Final = {"name": "weather", "arguments": '{"city": "Paris"}'}
IMAGE: Final = "data:image/png;base64,AAAA"
TOOL: Final = {
    "type": "function",
    "function": {"name": "weather", "description": "d", "parameters": {"type": "object"}},
}
SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}}
CONVERSATION: Final = (
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": IMAGE}}],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": CALL}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
)


@pytest.fixture(scope="module")
def server() -> Iterator[ProtocolServer]:
    """One server for all protocols."""
    with ProtocolServer() as started:
        yield started


@pytest.fixture(params=sorted(PROTOCOLS))
def protocol(request: pytest.FixtureRequest) -> str:
    """Each protocol."""
    return str(request.param)


Ask = Callable[..., ModelReply]


@pytest.fixture
def ask(server: ProtocolServer, protocol: str) -> Ask:
    """Asks in a protocol for an answer."""
    server.requests.clear()
    server.piece_s = 0.0

    def asked(answer: Neutral = PARIS, **more: Any) -> ModelReply:
        server.answer = answer
        target = ModelTarget(
            "capital", f"{server.url}/{protocol}", "MY_API_KEY", timeout_s=20.0, protocol=protocol
        )

        async def complete() -> ModelReply:
            async with aiohttp.ClientSession() as session:
                client = DirectClient(lambda: session, {"MY_API_KEY": KEY})
                return await client.complete(ModelRequest(target, more.pop("system", ""), "Hi", **more))

        return asyncio.run(complete())

    return asked


def both(ask: Ask, answer: Neutral) -> ModelReply:
    """Asks for an answer whole and streamed, which mean the same."""
    whole, streamed = ask(answer), ask(answer, is_streamed=True)
    for name in ("text", "reasoning", "refusal", "finish_reason", "usage"):
        assert getattr(whole, name) == getattr(streamed, name), name
    assert [call["function"] for call in whole.tool_calls] == [
        call["function"] for call in streamed.tool_calls
    ]
    return whole


USAGE: Final[Mapping[str, Usage]] = {
    **dict.fromkeys(("openai", "azure"), Usage(INPUT, OUTPUT, CACHED, WRITTEN, THOUGHT, "flex")),
    "responses": Usage(INPUT, OUTPUT, CACHED, None, THOUGHT, "flex"),
    "anthropic": Usage(INPUT, OUTPUT, CACHED, WRITTEN, None, "flex"),
    "gemini": Usage(INPUT, OUTPUT, CACHED, None, THOUGHT, "flex"),
    "ollama": Usage(INPUT, OUTPUT),
}
"""What each protocol says of an answer."""


def test_an_answer_is_read_with_what_it_used(ask: Ask, protocol: str, server: ProtocolServer) -> None:
    """Text, reasoning, end and tokens of all sorts; the request goes to its path with its key."""
    reply = both(ask, Neutral(reasoning="Hm."))
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("Paris", "Hm.", "stop")
    assert reply.usage == USAGE[protocol]
    one, other = server.requests
    assert KEY in "".join(one.headers.values())
    assert (protocol == "gemini") != (one.path.partition("?")[0] == other.path.partition("?")[0])
    assert one.path.startswith(PATHS[protocol].partition("{")[0])


def test_answers_that_end_otherwise_have_the_words_of_openai(ask: Ask) -> None:
    """Cut by its bound; and tools, which are called in OpenAI's form, two of them by the same name."""
    assert both(ask, Neutral(["Par"], is_cut=True)).finish_reason == "length"
    calls = [("weather", {"city": "Paris"}), ("weather", {"city": "Rome"})]
    reply = both(ask, Neutral((), calls=calls))
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert [json.loads(call["function"]["arguments"]) for call in reply.tool_calls] == [
        {"city": "Paris"},
        {"city": "Rome"},
    ]


def test_a_refusal_is_an_answer(ask: Ask, protocol: str) -> None:
    """By the provider's words where it has some, else by its filter; Ollama has neither."""
    if protocol == "ollama":
        return
    reply = both(ask, Neutral((), is_refused=True))
    assert reply.text == ""
    assert reply.refusal == ("" if protocol == "gemini" else REFUSAL)
    assert (reply.finish_reason == "content_filter") == (protocol in {"anthropic", "gemini"})


@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_error_within_a_reply_is_no_answer(ask: Ask, protocol: str, *, is_streamed: bool) -> None:
    """A limit is one where the protocol says so."""
    with pytest.raises(UpstreamError, match="slow down") as caught:
        ask(Neutral(error="slow down"), is_streamed=is_streamed)
    is_limit = caught.value.reason is FailureReason.RATE_LIMITED
    assert is_limit == (protocol != "ollama")


def test_a_stream_that_breaks_off_is_no_answer(ask: Ask) -> None:
    """Half an answer is not judged."""
    with pytest.raises(UpstreamError, match="before the answer was complete") as caught:
        ask(Neutral(is_broken=True), is_streamed=True)
    assert caught.value.reason is FailureReason.CONNECTION_LOST


def test_the_first_token_may_be_a_thought(ask: Ask, server: ProtocolServer) -> None:
    """What comes before the model thinks or speaks does not count."""
    server.piece_s = 0.02
    reply = ask(Neutral(reasoning="Hm."), is_streamed=True)
    assert reply.first_token_ms is not None
    assert 0 <= reply.first_token_ms < reply.latency_ms - 30


USER_PARTS: Final = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
SUNNY: Final = [{"type": "text", "text": "sunny"}]
WRITTEN_CONVERSATIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{name: {"messages": [*CONVERSATION]} for name in ("openai", "azure")},
    "anthropic": {
        "system": "Be brief.",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "Hi"}, {"type": "image", "source": USER_PARTS}],
            },
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": SUNNY}]},
        ],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
            },
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Paris"}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "weather", "response": {"result": "sunny"}}}],
            },
        ],
    },
    "responses": {
        "instructions": "Be brief.",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Hi"},
                    {"type": "input_image", "image_url": IMAGE},
                ],
            },
            {"type": "function_call", "call_id": "c1", **CALL},
            {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        ],
    },
    "ollama": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi", "images": ["AAAA"]},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Paris"}}}],
            },
            {"role": "tool", "content": "sunny", "tool_name": "weather"},
        ]
    },
}
"""What is sent of the conversation, by protocol."""


def test_a_conversation_is_written_in_the_protocol(ask: Ask, protocol: str, server: ProtocolServer) -> None:
    """System message, image, a call of a tool and its result, each where the protocol has it."""
    ask(messages=CONVERSATION)
    body = server.requests[0].body
    expected = WRITTEN_CONVERSATIONS[protocol]
    assert {name: body[name] for name in expected} == expected


OPTIONS: Final[dict[str, Any]] = {
    "max_tokens": 9,
    "top_p": 0.5,
    "tools": [TOOL],
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
    "reasoning_effort": "low",
    "extra_body": {"metadata": {"a": "b"}},
}
"""What all protocols can say."""


OPENAI_PLACES: Final = (
    ("max_tokens",),
    ("top_p",),
    ("tools", 0, "function", "parameters"),
    ("response_format", "json_schema", "schema"),
    ("reasoning_effort",),
)
PLACES: Final[Mapping[str, Sequence[tuple[Any, ...]]]] = {
    "openai": OPENAI_PLACES,
    "azure": OPENAI_PLACES,
    "anthropic": [
        ("max_tokens",),
        ("top_p",),
        ("tools", 0, "input_schema"),
        ("output_config", "format", "schema"),
        ("output_config", "effort"),
    ],
    "responses": [
        ("max_output_tokens",),
        ("top_p",),
        ("tools", 0, "parameters"),
        ("text", "format", "schema"),
        ("reasoning", "effort"),
    ],
    "gemini": [
        ("generationConfig", "maxOutputTokens"),
        ("generationConfig", "topP"),
        ("tools", 0, "functionDeclarations", 0, "parametersJsonSchema"),
        ("generationConfig", "responseJsonSchema"),
        ("generationConfig", "thinkingConfig", "thinkingLevel"),
    ],
    "ollama": [
        ("options", "num_predict"),
        ("options", "top_p"),
        ("tools", 0, "function", "parameters"),
        ("format",),
        ("think",),
    ],
}
"""Where they stand in the body."""


def test_options_are_written_in_the_protocol(ask: Ask, protocol: str, server: ProtocolServer) -> None:
    """Under its names, each at its place, with the keys of `extra_body` beside them."""
    ask(parameters=OPTIONS, temperature=0.5)
    body = server.requests[0].body
    found = [reduce(getitem, path, body) for path in PLACES[protocol]]
    assert found == [9, 0.5, {"type": "object"}, SCHEMA, "low"]
    assert body["metadata"] == {"a": "b"}
    assert "0.5" in json.dumps({**body, "top_p": None})


def test_what_a_protocol_cannot_say_is_not_sent(ask: Ask, protocol: str, server: ProtocolServer) -> None:
    """Nothing is left out in silence; the option is named."""
    if protocol in {"openai", "azure"}:
        return
    option = {"gemini": "metadata", "ollama": "tool_choice"}.get(protocol, "seed")
    with pytest.raises(UpstreamError, match=f"protocol {protocol} has no {option}: remove it"):
        ask(parameters={option: 1})
    assert not server.requests


def test_each_protocol_is_in_every_table() -> None:
    """Names, clients and the scripted server agree."""
    assert set(PROTOCOLS) == WIRE_PROTOCOLS.keys() == WRITERS.keys() == PATHS.keys()


@pytest.mark.parametrize(
    ("model", "api_base", "protocol", "warning"),
    [
        ("mine", "http://localhost:8000/v1", "openai", ""),
        ("gemini/pro", "https://generativelanguage.googleapis.com/v1beta/openai", "openai", ""),
        ("gemini/pro", "https://generativelanguage.googleapis.com", "gemini", ""),
        ("azure/gpt", "https://x.openai.azure.com/openai/v1", "openai", ""),
        ("azure/gpt", "https://x.openai.azure.com", "azure", ""),
        ("anthropic/claude", "https://api.openai.com/v1", "anthropic", "write protocol: openai"),
        ("llama3", "http://localhost:11434", "openai", "write protocol: ollama"),
        ("llama3", "http://localhost:11434/v1", "openai", ""),
        ("openai/gpt", "https://x.openai.azure.com", "openai", "write protocol: azure"),
    ],
)
def test_a_name_tells_the_protocol(model: str, api_base: str, protocol: str, warning: str) -> None:
    """Where a well-known place speaks another one, a warning names it."""
    assert protocol_of(model, api_base) == protocol
    assert misfit(model, api_base).endswith(warning)
    assert bool(misfit(model, api_base)) == bool(warning)
