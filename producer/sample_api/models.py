"""The sample API's models: they answer as OpenAI's protocol has it, whole or in pieces."""

import asyncio
import json
from typing import Any, Final

from aiohttp import web

from producer.sample_api.bench_answers import is_hasty, say
from producer.sample_api.conversation import talk
from producer.sample_api.verdicts import verdict

COMPLETIONS: Final = "/v1/chat/completions"
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
HASTY_S: Final = 0.04
"""How long an answer takes."""
CAREFUL_S: Final = 0.12
CHARS_PER_TOKEN: Final = 4
_DONE: Final = b"data: [DONE]\n\n"


async def complete(request: web.Request, body: dict[str, Any], prompt: str) -> web.StreamResponse:
    """Answers as a model does.

    Args:
        request: where to answer.
        body: what was sent.
        prompt: its last message.
    """
    model = str(body["model"])
    text = verdict(model, prompt) or talk(prompt) or say(model, prompt)
    usage = _usage(body["messages"], text)
    pause_s = HASTY_S if is_hasty(model) else CAREFUL_S
    if body.get("stream") is True:
        return await _in_pieces(request, model, text, usage, pause_s)
    await asyncio.sleep(pause_s)
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return web.json_response(_envelope("chat.completion", model, [choice]) | {"usage": usage})


def last_message(body: Any) -> str | None:
    """Finds what a model is asked; None where the body is no request to a model.

    >>> last_message({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    'Hi'
    >>> last_message({"model": "m", "messages": []}), last_message(["Hi"])
    (None, None)
    """
    match body:
        case {"model": str(), "messages": [*_, {"content": str(text)}] as messages} if all(
            isinstance(message, dict) for message in messages
        ):
            return text
        case _:
            return None


def _usage(messages: list[dict[str, Any]], text: str) -> dict[str, int]:
    """Counts tokens as a rule of thumb does."""
    asked = sum(len(str(message.get("content"))) for message in messages) // CHARS_PER_TOKEN
    said = len(text) // CHARS_PER_TOKEN
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _envelope(sort: str, model: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    """What every answer, and every piece of one, consists of."""
    return {"id": "sample", "object": sort, "created": 0, "model": model, "choices": choices}


async def _in_pieces(
    request: web.Request, model: str, text: str, usage: dict[str, int], pause_s: float
) -> web.StreamResponse:
    """Sends a word at a time, then the usage."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    words = text.split(" ")
    for at, word in enumerate(words):
        await asyncio.sleep(pause_s / len(words))
        delta = {"content": word if at == 0 else f" {word}"}
        await response.write(
            _event(_envelope("chat.completion.chunk", model, [{"index": 0, "delta": delta}]))
        )
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    await response.write(_event(_envelope("chat.completion.chunk", model, [end]) | {"usage": usage}))
    await response.write(_DONE)
    return response


def _event(piece: dict[str, Any]) -> bytes:
    """Writes a piece as a server-sent event."""
    return f"data: {json.dumps(piece)}\n\n".encode()
