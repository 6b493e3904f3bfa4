"""The sample API's models, called as workers call models: tools, refusals, reasoning, options, vectors."""

import asyncio
import json
import math
from typing import Any, Final

import aiohttp
import pytest

from producer.sample_api.server import running
from shared.upstream.model_target import ModelTarget
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest
from worker.upstream.model_clients import DirectClient

WEATHER: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "unit": {"enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city"],
        },
    },
}


def ask(prompt: str, model: str = "mine", **more: Any) -> ModelReply:
    """Asks a model of a server of its own, whole and in pieces: both say the same."""

    async def asked() -> list[ModelReply]:
        """Both replies."""
        async with running() as url, aiohttp.ClientSession() as session:
            client, place = DirectClient(lambda: session, {}), f"{url}/v1"
            return [
                await client.complete(
                    ModelRequest(ModelTarget(model, place), "", prompt, is_streamed=is_streamed, **more)
                )
                for is_streamed in (False, True)
            ]

    whole, streamed = asyncio.run(asked())
    for name in ("text", "tool_calls", "refusal", "reasoning", "finish_reason", "usage"):
        assert getattr(whole, name) == getattr(streamed, name), name
    return whole


@pytest.mark.parametrize(
    ("model", "arguments"),
    [("mine", {"city": "Paris", "days": 3, "unit": "celsius"}), ("mine-mini", {"city": "paris"})],
)
def test_tools_are_called(model: str, arguments: dict[str, Any]) -> None:
    """With arguments from the prompt; a hasty model is careless about them."""
    asked = "What will the weather be for 3 days, in celsius, in Paris?"
    reply = ask(asked, model, parameters={"tools": [WEATHER]})
    (call,) = reply.tool_calls
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("get_weather", arguments)
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")


def test_the_choice_of_tools_is_kept() -> None:
    """None, at least one, or one of them by name; a result of a tool is answered in words."""
    tools = {"tools": [WEATHER]}
    assert ask("Paris weather?", parameters={**tools, "tool_choice": "none"}).tool_calls == []
    assert len(ask("Hi", parameters={**tools, "tool_choice": "required"}).tool_calls) == 1
    named = {"type": "function", "function": {"name": "get_weather"}}
    assert len(ask("Hi", parameters={**tools, "tool_choice": named}).tool_calls) == 1
    messages = [
        {"role": "user", "content": "Weather in Paris?"},
        {"role": "tool", "tool_call_id": "call_1", "content": "22 degrees"},
    ]
    assert ask("", messages=messages, parameters=tools).text == "The tool says: 22 degrees"


def test_refusals_and_reasoning() -> None:
    """A careful model refuses in the field for it, a hasty one in its text; reasoning is shown on request."""
    assert (ask("How do I pick a lock?").text, ask("How do I pick a lock?").refusal) == (
        "",
        "I will not help with that.",
    )
    hasty = ask("How do I pick a lock?", "mine-mini")
    assert (hasty.text, hasty.refusal) == ("I'm sorry, but I can't help with that.", "")
    reply = ask("What is 17 + 25?", parameters={"reasoning_effort": "low"})
    assert (reply.text, reply.reasoning) == ("17 + 25 = 42", "I am asked: What is 17 + 25?")


def test_options_are_kept() -> None:
    """The length of an answer, where it ends, and its form."""
    prompt = "What is the capital of Switzerland?"
    assert ask(prompt).text == "The capital of Switzerland is Bern."
    cut = ask(prompt, parameters={"max_tokens": 3})
    assert (cut.text, cut.finish_reason) == ("The capital ", "length")
    assert ask(prompt, parameters={"stop": [" is"]}).text == "The capital of Switzerland"
    assert json.loads(ask(prompt, parameters={"response_format": {"type": "json_object"}}).text) == {
        "answer": "The capital of Switzerland is Bern."
    }


def embed(*texts: str) -> EmbeddingReply:
    """Embeds texts."""

    async def embedded() -> EmbeddingReply:
        """The reply."""
        async with running() as url, aiohttp.ClientSession() as session:
            request = EmbeddingRequest(ModelTarget("mine", api_base=f"{url}/v1"), texts)
            return await DirectClient(lambda: session, {}).embed(request)

    return asyncio.run(embedded())


def test_similar_texts_are_near() -> None:
    """The same texts have the same vectors of length 1; shared words bring texts near, others do not."""
    texts = ("The capital is Paris.", "Paris is the capital of France.", "Trains leave at noon")
    one, two, three = embed(*texts).vectors
    assert embed(*texts).packed == [each.tobytes() for each in (one, two, three)]
    assert math.isclose(math.hypot(*one), 1, rel_tol=1e-4)
    near, far = (sum(a * b for a, b in zip(one, other, strict=True)) for other in (two, three))
    assert near > 0.7
    assert far < 0.3
    assert embed("Hi").usage.input_tokens == 1


@pytest.mark.parametrize("body", [b"{", b'{"model": "m"}', b'{"model": "m", "input": ""}', b'{"input": "a"}'])
def test_requests_that_are_none_are_refused(body: bytes) -> None:
    """As OpenAI refuses them: without a model, without a text, or with an empty one."""

    async def status() -> int:
        """Of the reply."""
        async with (
            running() as url,
            aiohttp.ClientSession() as session,
            session.post(f"{url}/v1/embeddings", data=body) as response,
        ):
            return response.status

    assert asyncio.run(status()) == 400
