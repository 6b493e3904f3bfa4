"""A server that speaks each protocol of models as its provider does: one neutral answer, whole or streamed.

    with ProtocolServer() as server:
        server.answer = Neutral("Paris", reasoning="Hm.")
        ... api_base=f"{server.url}/anthropic", protocol="anthropic" ...
        assert server.requests[-1].body["system"] == "Be brief."

Written from the providers' own documents, and apart from `worker.upstream.protocols`, which it is to prove.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from aiohttp import web

from tests.support.loop_thread import LoopThread


class Neutral(NamedTuple):
    """An answer, whatever the protocol."""

    texts: Sequence[str] = ("Par", "is")
    """The pieces of its text."""
    reasoning: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """Names and arguments of tools."""
    is_cut: bool = False
    """Whether the bound of its length ended it."""
    is_refused: bool = False
    """Whether the model declines, or the provider withholds it."""
    is_broken: bool = False
    """Whether the connection ends before the answer does."""
    error: str = ""
    """Instead of an answer, within a reply of status 200."""


class Received(NamedTuple):
    """One request, as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Any


INPUT, CACHED, WRITTEN, OUTPUT, THOUGHT = 110, 80, 20, 9, 4
"""Tokens: of the question those of the cache included, of the answer those of thoughts included."""
REFUSAL: Final = "I will not."


def _openai(answer: Neutral) -> tuple[Any, list[Any]]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(answer.texts) or None}
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for at, (name, given) in enumerate(answer.calls)
    ]
    end = "length" if answer.is_cut else "tool_calls" if calls else "stop"
    if answer.is_refused:
        message |= {"content": None, "refusal": REFUSAL}
    message |= {"reasoning_content": answer.reasoning} if answer.reasoning else {}
    message |= {"tool_calls": calls} if calls else {}
    usage = {
        "prompt_tokens": INPUT,
        "completion_tokens": OUTPUT,
        "prompt_tokens_details": {"cached_tokens": CACHED, "cache_write_tokens": WRITTEN},
        "completion_tokens_details": {"reasoning_tokens": THOUGHT},
    }
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": answer.reasoning}] if answer.reasoning else []
    deltas += [{"refusal": REFUSAL}] if answer.is_refused else [{"content": text} for text in answer.texts]
    for at, call in enumerate(calls):
        function: Any = call["function"]
        deltas.append({"tool_calls": [{**call, "index": at, "function": {**function, "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": at, "function": {"arguments": part}}]}
            for part in halves(function["arguments"])
        ]
    events: list[Any] = [{"choices": [{"index": 0, "delta": delta}], "usage": None} for delta in deltas]
    if not answer.is_broken:
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
        events.append({"choices": [], "usage": usage, "service_tier": "flex"})
    choice = {"index": 0, "message": message, "finish_reason": end}
    return {"choices": [choice], "usage": usage, "service_tier": "flex"}, events


def _responses(answer: Neutral) -> tuple[Any, list[Any]]:
    items: list[dict[str, Any]] = []
    events: list[Any] = [{"type": "response.created", "response": {"status": "in_progress", "output": []}}]
    if answer.reasoning:
        items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": answer.reasoning}]})
        events.append({"type": "response.reasoning_summary_text.delta", "delta": answer.reasoning})
    if answer.is_refused:
        items.append({"type": "message", "content": [{"type": "refusal", "refusal": REFUSAL}]})
        events.append({"type": "response.refusal.delta", "delta": REFUSAL})
    elif answer.texts:
        text = {"type": "output_text", "text": "".join(answer.texts), "annotations": []}
        items.append({"type": "message", "role": "assistant", "content": [text]})
        events += [{"type": "response.output_text.delta", "delta": each} for each in answer.texts]
    for name, given in answer.calls:
        call = {"type": "function_call", "id": "fc", "call_id": f"call_{name}", "name": name}
        at, arguments = len(items), json.dumps(given)
        events.append(
            {
                "type": "response.output_item.added",
                "output_index": at,
                "item": {**call, "arguments": ""},
            }
        )
        events += [
            {"type": "response.function_call_arguments.delta", "output_index": at, "delta": each}
            for each in halves(arguments)
        ]
        items.append({**call, "arguments": arguments})
    usage = {
        "input_tokens": INPUT,
        "output_tokens": OUTPUT,
        "input_tokens_details": {"cached_tokens": CACHED},
        "output_tokens_details": {"reasoning_tokens": THOUGHT},
    }
    status: dict[str, Any] = {"status": "completed", "incomplete_details": None}
    if answer.is_cut:
        status = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    reply = {**status, "error": None, "output": items, "usage": usage, "service_tier": "flex"}
    if not answer.is_broken:
        events.append({"type": f"response.{status['status']}", "response": reply})
    return reply, events


def _anthropic(answer: Neutral) -> tuple[Any, list[Any]]:
    blocks: list[dict[str, Any]] = []
    blocks += [{"type": "thinking", "thinking": answer.reasoning}] if answer.reasoning else []
    has_text = bool(answer.texts) and not answer.is_refused
    blocks += [{"type": "text", "text": "".join(answer.texts)}] if has_text else []
    blocks += [
        {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": given}
        for name, given in answer.calls
    ]
    end = "max_tokens" if answer.is_cut else "tool_use" if answer.calls else "end_turn"
    details = {"type": "refusal", "explanation": REFUSAL} if answer.is_refused else None
    ended = {"stop_reason": "refusal" if answer.is_refused else end, "stop_details": details}
    asked = {
        "input_tokens": INPUT - CACHED - WRITTEN,
        "cache_read_input_tokens": CACHED,
        "cache_creation_input_tokens": WRITTEN,
        "service_tier": "flex",
    }
    events: list[Any] = [
        {"type": "message_start", "message": {"content": [], "usage": {**asked, "output_tokens": 1}}},
        {"type": "ping"},
    ]
    for at, block in enumerate(blocks):
        started: dict[str, Any] = block | {key: "" for key in ("text", "thinking") if key in block}
        started |= {"input": {}} if block["type"] == "tool_use" else {}
        events.append({"type": "content_block_start", "index": at, "content_block": started})
        match block["type"]:
            case "text":
                deltas = [{"type": "text_delta", "text": each} for each in answer.texts]
            case "thinking":
                deltas = [{"type": "thinking_delta", "thinking": answer.reasoning}]
            case _:
                parts = halves(json.dumps(block["input"]))
                deltas = [{"type": "input_json_delta", "partial_json": each} for each in parts]
        events += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": at})
    if not answer.is_broken:
        events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": OUTPUT}})
        events.append({"type": "message_stop"})
    reply = {"type": "message", "content": blocks, **ended, "usage": {**asked, "output_tokens": OUTPUT}}
    return reply, events


def _gemini(answer: Neutral) -> tuple[Any, list[Any]]:
    parts: list[dict[str, Any]] = []
    parts += [{"text": answer.reasoning, "thought": True}] if answer.reasoning else []
    parts += [{"text": text} for text in answer.texts]
    parts += [{"functionCall": {"name": name, "args": given}} for name, given in answer.calls]
    usage = {
        "promptTokenCount": INPUT,
        "cachedContentTokenCount": CACHED,
        "candidatesTokenCount": OUTPUT - THOUGHT,
        "thoughtsTokenCount": THOUGHT,
        "trafficType": "FLEX",
    }
    end = "MAX_TOKENS" if answer.is_cut else "STOP"
    if answer.is_refused:
        withheld = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage}
        return withheld, [withheld]

    def reply(some: Sequence[Any], **more: Any) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": some}, "index": 0, **more}
        return {"candidates": [candidate], "usageMetadata": usage}

    events = [reply([part]) for part in parts]
    return reply(parts, finishReason=end), events + (
        [] if answer.is_broken else [reply([], finishReason=end)]
    )


def _ollama(answer: Neutral) -> tuple[Any, list[Any]]:
    counts = {"prompt_eval_count": INPUT, "eval_count": OUTPUT}
    calls = [{"function": {"name": name, "arguments": given}} for name, given in answer.calls]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(answer.texts)}
    message |= {"thinking": answer.reasoning} if answer.reasoning else {}
    message |= {"tool_calls": calls} if calls else {}
    ended = {"done": True, "done_reason": "length" if answer.is_cut else "stop", **counts}
    said: list[dict[str, Any]] = [{"content": "", "thinking": answer.reasoning}] if answer.reasoning else []
    said += [{"content": text} for text in answer.texts] + [
        {"content": "", "tool_calls": [call]} for call in calls
    ]
    events: list[Any] = [{"message": {"role": "assistant", **each}, "done": False} for each in said]
    if not answer.is_broken:
        events.append({"message": {"role": "assistant", "content": ""}, **ended})
    return {"message": message, **ended}, events


WRITERS: Final[Mapping[str, Callable[[Neutral], tuple[Any, list[Any]]]]] = {
    "openai": _openai,
    "azure": _openai,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}
"""The whole reply and the events of an answer, by protocol."""
PATHS: Final = {
    "openai": "/openai/chat/completions",
    "azure": "/azure/openai/deployments/capital/chat/completions",
    "responses": "/responses/responses",
    "anthropic": "/anthropic/v1/messages",
    "gemini": "/gemini/models/capital:{method}",
    "ollama": "/ollama/api/chat",
}
"""Where each is called below the server's address."""


def halves(text: str) -> tuple[str, str]:
    """Cuts a text in two."""
    return text[: len(text) // 2], text[len(text) // 2 :]


@dataclass
class ProtocolServer:
    """A server in a thread, on a free port of the loopback."""

    answer: Neutral = field(default_factory=Neutral)
    requests: list[Received] = field(default_factory=list)
    piece_s: float = 0.0
    """Before each event that has a part of the answer."""
    url: str = ""

    def __enter__(self) -> Self:
        self._server = LoopThread(self._serve, "the server of protocols")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    async def _serve(self, is_ready: Callable[[], None], stop: asyncio.Event) -> None:
        app = web.Application()
        for name, path in PATHS.items():
            app.router.add_post(path, self._handler(name))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        is_ready()
        await stop.wait()
        await runner.cleanup()

    def _handler(self, name: str) -> Any:
        async def answer(request: web.Request) -> web.StreamResponse:
            body = json.loads(await request.text())
            self.requests.append(Received(str(request.rel_url), dict(request.headers), body))
            whole, events = WRITERS[name](self.answer)
            is_streamed = body.get("stream") or "stream" in request.path
            if self.answer.error:
                whole, events = (_error(name, self.answer.error),) * 2
            if not is_streamed:
                return web.json_response(whole)
            return await self._stream(request, name, events if isinstance(events, list) else [events])

        return answer

    async def _stream(self, request: web.Request, name: str, events: Sequence[Any]) -> web.StreamResponse:
        kind = "application/x-ndjson" if name == "ollama" else "text/event-stream"
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        for line in _lines(name, events, is_ended=not self.answer.is_broken):
            await response.write(line)
            await asyncio.sleep(self.piece_s)
        return response


def _error(name: str, text: str) -> Any:
    """An error within a reply, in the protocol's form."""
    match name:
        case "anthropic":
            return {"type": "error", "error": {"type": "rate_limit_error", "message": text}}
        case "gemini":
            return {"error": {"code": 429, "message": text, "status": "RESOURCE_EXHAUSTED"}}
        case "ollama":
            return {"error": text}
        case _:
            return {"error": {"code": "rate_limit_exceeded", "message": text}}


def _lines(name: str, events: Sequence[Any], *, is_ended: bool) -> Iterator[bytes]:
    """The bytes of a streamed reply."""
    for event in events:
        written = json.dumps(event)
        match name:
            case "ollama":
                yield f"{written}\n".encode()
            case "anthropic" | "responses":
                yield f"event: {event.get('type')}\ndata: {written}\n\n".encode()
            case _:
                yield f"data: {written}\n\n".encode()
    if name in {"openai", "azure"} and is_ended:
        yield b"data: [DONE]\n\n"
