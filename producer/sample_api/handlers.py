"""Handles the sample API's requests: queries, questions to its models, its health, and what was asked.

A request may choose its own behaviour with the header `X-Sample-Behaviour`; otherwise the server's holds.
"""

import asyncio
import json
import socket
import struct
from email.utils import formatdate
from math import ceil
from time import perf_counter, time
from typing import Any, Final

from aiohttp import web

from producer.sample_api.answers import answer, reply, wrong_answer
from producer.sample_api.behaviour import Behaviour, RequestLog, parse_behaviour
from producer.sample_api.index_page import index_text, model_list
from producer.sample_api.models import MAX_BODY_BYTES, complete, embed, last_message, texts_of
from producer.sample_api.pace import Pace
from producer.sample_api.retrieval import Index
from shared.errors import ConfigError

BEHAVIOUR_HEADER: Final = "X-Sample-Behaviour"
MAX_QUERY_CHARS: Final = 1000

INDEX: Final = web.AppKey("index", Index)
BEHAVIOUR: Final = web.AppKey("behaviour", Behaviour)
LOG: Final = web.AppKey("log", RequestLog)
PACE: Final = web.AppKey("pace", Pace)

_NO_ANSWERS: Final = {
    "html": ("text/html", "<!doctype html><title>Welcome</title><h1>It works!</h1>"),
    "null": ("application/json", "null"),
    "empty": ("application/json", "{}"),
    "list": ("application/json", '[{"answer": "in a list"}]'),
}
_NULLS: Final = dict.fromkeys(("answer", "sources", "relatedDocs", "citations", "confidence", "metadata"))
_ODD: Final = {
    "answer": "14 days",
    "sources": "none",
    "relatedDocs": [None, "BK-01", {"docId": None}, {"docId": 7}],
    "citations": {"raw": "[1]"},
    "confidence": 0.9,
    "metadata": {"chunksRetrieved": "0", "latencyMs": 10**25},
}
_PIECE: Final = b"x" * 65_536
_LINGER_ZERO: Final = struct.pack("ii", 1, 0)


async def get_index(request: web.Request) -> web.Response:
    """Returns a page of text on the routes, the models and what they answer."""
    return web.Response(text=index_text(str(request.url.origin()), request.app[INDEX].chunks))


async def get_models(_request: web.Request) -> web.Response:
    """Lists the models."""
    return web.json_response(model_list())


async def get_health(request: web.Request) -> web.Response:
    """Reports that the API is up, and the size of its knowledge base."""
    chunks = request.app[INDEX].chunks
    documents = len({chunk.doc_id for chunk in chunks})
    return web.json_response({"status": "ok", "documents": documents, "chunks": len(chunks)})


async def get_requests(request: web.Request) -> web.Response:
    """Returns how often each query was asked."""
    log = request.app[LOG]
    return web.json_response({"total": log.total, "by_query": dict(log.by_query)})


async def answer_query(request: web.Request) -> web.StreamResponse:
    """Answers one query, or misbehaves as configured."""
    began = perf_counter()
    query = await _read_query(request)
    behaviour = _behaviour(request, query)
    broken = await _misbehave(request, behaviour, query)
    if broken is not None:
        return broken
    await asyncio.sleep(request.app[PACE].of_query(query))
    return web.json_response(_body(request, behaviour, query, began))


async def answer_prompt(request: web.Request) -> web.StreamResponse:
    """Answers one request to a model, or misbehaves as configured."""
    body = await _read_body(request)
    prompt = last_message(body)
    if prompt is None:
        raise _bad_request("model and messages are required")
    behaviour = _behaviour(request, prompt)
    return await _misbehave(request, behaviour, prompt) or await complete(
        request, body, prompt, request.app[PACE]
    )


async def answer_texts(request: web.Request) -> web.StreamResponse:
    """Embeds the texts of one request, or misbehaves as configured."""
    body = await _read_body(request)
    texts = texts_of(body)
    if not texts or not all(texts):
        raise _bad_request("model and input are required: a text or texts, none of them empty")
    behaviour = _behaviour(request, texts[0])
    return await _misbehave(request, behaviour, texts[0]) or embed(body, texts)


async def _read_body(request: web.Request) -> Any:
    """Reads the JSON of a request to a model, which may hold images."""
    try:
        return await request.clone(client_max_size=MAX_BODY_BYTES).json()
    except (ValueError, RecursionError):
        raise _bad_request("the body is no JSON") from None


def _behaviour(request: web.Request, query: str) -> Behaviour:
    """Counts a request and returns how it is met."""
    header = request.headers.get(BEHAVIOUR_HEADER)
    try:
        behaviour = request.app[BEHAVIOUR] if header is None else parse_behaviour(header)
    except ConfigError as error:
        raise _bad_request(error.message) from None
    nth, nth_of_query = request.app[LOG].add(query)
    return behaviour if behaviour.meets(nth=nth, nth_of_query=nth_of_query) else Behaviour()


async def _misbehave(request: web.Request, behaviour: Behaviour, query: str) -> web.StreamResponse | None:
    """Meets a request as the behaviour says; None where it is to be answered, perhaps after a while."""
    if behaviour.name in {"reset", "half", "huge", "silent"}:
        return await _break(request, behaviour, query)
    if behaviour.status is not None:
        return _refusal(behaviour, behaviour.status)
    if behaviour.name in _NO_ANSWERS:
        content_type, text = _NO_ANSWERS[behaviour.name]
        return web.Response(text=text, content_type=content_type)
    if behaviour.name == "slow":
        await asyncio.sleep(behaviour.seconds)
    return None


async def _read_query(request: web.Request) -> str:
    """Takes the query out of a request."""
    try:
        body = await request.json()
    except (ValueError, RecursionError):
        raise _bad_request("the body is no JSON") from None
    query = body.get("query") if isinstance(body, dict) else None
    if not isinstance(query, str) or not query.strip():
        raise _bad_request("query is required")
    if len(query) > MAX_QUERY_CHARS:
        raise _bad_request(f"query is longer than {MAX_QUERY_CHARS} characters")
    return query


def _bad_request(text: str) -> web.HTTPBadRequest:
    """Builds the refusal of an unusable request."""
    return web.HTTPBadRequest(text=json.dumps({"error": text}), content_type="application/json")


def _refusal(behaviour: Behaviour, status: int) -> web.Response:
    """Builds the refusal that the behaviour asks for."""
    headers = {}
    if behaviour.retry_after is not None:
        headers["Retry-After"] = str(behaviour.retry_after)
    elif behaviour.retry_date is not None:
        headers["Retry-After"] = formatdate(time() + behaviour.retry_date, usegmt=True)
    return web.json_response({"error": f"told to answer {status}"}, status=status, headers=headers)


def _body(request: web.Request, behaviour: Behaviour, query: str, began: float) -> dict[str, Any]:
    """Builds the body of an answer, right or wrong."""
    if behaviour.name == "nulls":
        return _NULLS
    if behaviour.name == "odd":
        return _ODD
    find = wrong_answer if behaviour.name == "wrong" else answer
    found = find(request.app[INDEX], query)
    return reply(query, found, latency_ms=ceil(1000 * (perf_counter() - began)))


async def _break(request: web.Request, behaviour: Behaviour, query: str) -> web.StreamResponse:
    """Ends a request without a whole answer: reset, half a body, a body without end, or nothing at all."""
    transport = request.transport
    if behaviour.name == "silent" or transport is None:
        await asyncio.Event().wait()  # until the client leaves or the server stops
    response = web.StreamResponse()
    if behaviour.name == "reset" and transport is not None:
        # A zero linger makes closing a reset instead of an orderly end.
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        transport.abort()
        return response
    start = json.dumps({"answer": answer(request.app[INDEX], query).text})[:-2].encode()
    response.content_type = "application/json"
    if behaviour.name == "half":
        response.content_length = 2 * len(start)
    await response.prepare(request)
    await response.write(start)
    if behaviour.name == "half" and transport is not None:
        transport.close()
        return response
    for _ in range(behaviour.mib * 16):
        await response.write(_PIECE)
    await response.write(b'"}')
    return response
