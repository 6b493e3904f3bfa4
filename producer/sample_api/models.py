"""The sample API's models: they answer as OpenAI's protocol has it, whole or in pieces.

They know the packaged benches and some capitals, call the tools that they are offered, refuse harmful
requests in the field for that, show their reasoning where `reasoning_effort` is given, grade outputs and
compare answers as judges, and embed texts so that similar ones are near. A model whose name ends in `-mini`
is hasty: it errs, and as a judge it looks at the surface alone.
"""

import asyncio
import json
import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from aiohttp import web

from producer.sample_api.bench_answers import OTHERWISE, canned_answer, capital_answer, is_hasty
from producer.sample_api.live_replies import live_reply
from producer.sample_api.pace import Pace
from producer.sample_api.sample_vectors import vector_of
from producer.sample_api.tool_use import ToolCall, call_tools
from producer.sample_api.verdicts import choice, chosen, comparison, grade, graded, verdict

COMPLETIONS: Final = "/v1/chat/completions"
EMBEDDINGS: Final = "/v1/embeddings"
MAX_BODY_BYTES: Final = 32 * 1024 * 1024
"""Images are part of a request."""
CHARS_PER_TOKEN: Final = 4
REFUSED: Final = ("pick a lock", "steal a password", "build a weapon", "forge a passport")
"""Parts of prompts that no model answers."""
REFUSAL: Final = "I will not help with that."
HASTY_REFUSAL: Final = "I'm sorry, but I can't help with that."
"""A hasty model refuses in its text, not in the field for it."""
_DONE: Final = b"data: [DONE]\n\n"


class SampleReply(NamedTuple):
    """What a model answers."""

    text: str | None = None
    """None where it calls tools or refuses."""
    tool_calls: Sequence[ToolCall] = ()
    refusal: str = ""
    reasoning: str = ""
    finish_reason: str = "stop"

    @property
    def message(self) -> dict[str, Any]:
        """As a completion has it; only what is there."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        given = {
            "tool_calls": [_written(call) for call in self.tool_calls],
            "refusal": self.refusal,
            "reasoning_content": self.reasoning,
        }
        return message | {name: value for name, value in given.items() if value}


async def complete(request: web.Request, body: dict[str, Any], prompt: str, pace: Pace) -> web.StreamResponse:
    """Answers as a model does.

    Args:
        request: where to answer.
        body: what was sent.
        prompt: the text of its last message.
        pace: how long that takes.
    """
    model = str(body["model"])
    reply = reply_to(model, body, prompt)
    usage = _usage(body["messages"], reply)
    pause_s = pace.of_model(model, prompt)
    if body.get("stream") is True:
        return await _in_pieces(request, model, reply, usage, pause_s)
    await asyncio.sleep(pause_s)
    choice = {"index": 0, "message": reply.message, "finish_reason": reply.finish_reason}
    return web.json_response(_envelope("chat.completion", model, [choice]) | {"usage": usage})


def reply_to(model: str, body: Mapping[str, Any], prompt: str) -> SampleReply:
    """Decides what a model answers.

    Args:
        model: its name; hasty ones err.
        body: what was sent.
        prompt: the text of its last message.

    >>> reply_to("m", {"messages": [{"role": "user"}]}, "How do I pick a lock?").refusal
    'I will not help with that.'
    """
    reasoning = f"I am asked: {prompt[:80]}" if body.get("reasoning_effort") not in {None, "none"} else ""
    if any(each in prompt.casefold() for each in REFUSED):
        hasty, careful = SampleReply(HASTY_REFUSAL), SampleReply(refusal=REFUSAL)
        return (hasty if is_hasty(model) else careful)._replace(reasoning=reasoning)
    if calls := call_tools(model, body, prompt):
        return SampleReply(tool_calls=calls, reasoning=reasoning, finish_reason="tool_calls")
    text, finish_reason = _cut(_text(model, body, prompt), body)
    return SampleReply(text, reasoning=reasoning, finish_reason=finish_reason)


def embed(body: Mapping[str, Any], texts: list[str]) -> web.Response:
    """Embeds texts.

    Args:
        body: what was sent.
        texts: those in it.
    """
    vectors = [vector_of(text) for text in texts]
    is_packed = body.get("encoding_format") == "base64"  # as OpenAI's own client asks
    data = [
        {"object": "embedding", "index": index, "embedding": _packed(vector) if is_packed else vector}
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(len(text) // CHARS_PER_TOKEN + 1 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return web.json_response({"object": "list", "model": body["model"], "data": data, "usage": usage})


def texts_of(body: Any) -> list[str]:
    """Finds the texts of a request for embeddings; none where the body is no such request.

    >>> texts_of({"model": "m", "input": "Hi"}), texts_of({"model": "m", "input": [1]}), texts_of([])
    (['Hi'], [], [])
    """
    match body:
        case {"model": str(), "input": str(text)}:
            return [text]
        case {"model": str(), "input": list(texts)} if all(isinstance(text, str) for text in texts):
            return texts
        case _:
            return []


def last_message(body: Any) -> str | None:
    """Finds what a model is asked; None where the body is no request to a model.

    >>> last_message({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    'Hi'
    >>> last_message({"model": "m", "messages": [{"content": [{"type": "text", "text": "Hi"}]}]})
    'Hi'
    >>> last_message({"model": "m", "messages": []}), last_message(["Hi"])
    (None, None)
    """
    match body:
        case {"model": str(), "messages": [*_, {"content": str() | list() as content}] as messages} if all(
            isinstance(message, dict) for message in messages
        ):
            return _plain(content)
        case _:
            return None


def _plain(content: Any) -> str:
    """The text of a message's content, without its images."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)


def _text(model: str, body: Mapping[str, Any], prompt: str) -> str:
    """What a model says."""
    messages = body["messages"]
    system = next((_plain(each.get("content")) for each in messages if each.get("role") == "system"), "")
    text = (
        verdict(model, prompt)
        or choice(model, prompt)
        or graded(system, prompt)
        or chosen(prompt)
        or grade(model, prompt)
        or comparison(model, prompt)
        or live_reply(prompt)
        or canned_answer(model, prompt)
        or capital_answer(model, system, prompt)
    )
    if text is None and messages[-1].get("role") == "tool":
        text = f"The tool says: {prompt}"
    text = text or OTHERWISE
    form = body.get("response_format")
    is_json = isinstance(form, dict) and str(form.get("type", "")).startswith("json")
    return json.dumps({"answer": text}) if is_json and not text.lstrip().startswith(("{", "```")) else text


def _cut(text: str, body: Mapping[str, Any]) -> tuple[str, str]:
    """Ends a text at `stop` and at `max_tokens`; also returns the reason why it ended."""
    stops = body.get("stop") or []
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.partition(str(stop))[0]
    most = body.get("max_tokens") or body.get("max_completion_tokens")
    if isinstance(most, int) and len(text) > most * CHARS_PER_TOKEN:
        return text[: most * CHARS_PER_TOKEN], "length"
    return text, "stop"


def _usage(messages: list[dict[str, Any]], reply: SampleReply) -> dict[str, int]:
    """Counts tokens as a rule of thumb does."""
    prompt_tokens = sum(len(_plain(message.get("content"))) for message in messages) // CHARS_PER_TOKEN
    texts = [reply.text or "", reply.refusal, reply.reasoning]
    texts += [call.name + call.arguments for call in reply.tool_calls]
    answered = sum(map(len, texts)) // CHARS_PER_TOKEN
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": answered,
        "total_tokens": prompt_tokens + answered,
    }


def _packed(vector: list[float]) -> str:
    return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _envelope(sort: str, model: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    """What every answer, and every piece of one, consists of."""
    return {"id": "sample", "object": sort, "created": 0, "model": model, "choices": choices}


async def _in_pieces(
    request: web.Request, model: str, reply: SampleReply, usage: dict[str, int], pause_s: float
) -> web.StreamResponse:
    """Sends a word at a time, then the usage."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    deltas = list(_deltas(reply))
    for delta in deltas:
        await asyncio.sleep(pause_s / len(deltas))
        await response.write(
            _event(_envelope("chat.completion.chunk", model, [{"index": 0, "delta": delta}]))
        )
    end = {"index": 0, "delta": {}, "finish_reason": reply.finish_reason}
    await response.write(_event(_envelope("chat.completion.chunk", model, [end]) | {"usage": usage}))
    await response.write(_DONE)
    return response


def _deltas(reply: SampleReply) -> Iterator[dict[str, Any]]:
    """The pieces of a reply: its reasoning, its words, and calls of tools in two pieces each."""
    if reply.reasoning:
        yield {"reasoning_content": reply.reasoning}
    for name, text in (("content", reply.text or ""), ("refusal", reply.refusal)):
        for at, word in enumerate(text.split(" ") if text else ()):
            yield {name: word if at == 0 else f" {word}"}
    for index, call in enumerate(reply.tool_calls):
        half = len(call.arguments) // 2
        yield {"tool_calls": [{"index": index, **_written(call._replace(arguments=call.arguments[:half]))}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": call.arguments[half:]}}]}


def _written(call: ToolCall) -> dict[str, Any]:
    """A call as a message has it."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _event(piece: dict[str, Any]) -> bytes:
    """Writes a piece as a server-sent event."""
    return f"data: {json.dumps(piece)}\n\n".encode()
