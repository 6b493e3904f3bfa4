"""Tests that an upstream which repeats the key in its errors puts no part of it into what is kept."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar
from urllib.parse import quote

import aiohttp
import pytest

from shared.contracts.query_run import QueryRun
from shared.upstream.model_target import ModelTarget
from tests.support.model_server import ModelServer, Say
from tests.support.query_results import Put, put_once
from tests.support.scripted_api import ScriptedApi, Step
from worker.upstream import query_client
from worker.upstream.chat import ModelRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_clients import ModelClients

T = TypeVar("T")
KEY: Final = "q7Rt+Zz0/4Lm=9Xw2Kp8Vb5Nc1"
MOST_PART: Final = 5
"""So many letters of a key in a row may be chance."""
WRITTEN: Final = {
    "plain": KEY,
    "in a URL": quote(KEY, safe=""),
    "in base64": b64encode(f":{KEY}".encode()).decode()[2:],
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A provider, on the loopback."""
    with ModelServer() as started:
        yield started


def with_session(work: Callable[[aiohttp.ClientSession], Awaitable[T]]) -> T:
    """Does something with an HTTP session."""

    async def run() -> T:
        """Has a session while it works."""
        async with aiohttp.ClientSession() as session:
            return await work(session)

    return asyncio.run(run())


def has_part(text: str, form: str) -> bool:
    """Whether more of a key than chance explains stands in a text."""
    return any(form[at : at + MOST_PART] in text for at in range(len(form) - MOST_PART + 1))


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("before", [0, 100, 275, 290])
@pytest.mark.parametrize("status", [400, 200])
def test_a_long_error_with_the_key(server: ModelServer, name: str, before: int, status: int) -> None:
    """A refusal, or a reply that is no answer, is cut after the key is out of it, wherever the key stands."""
    text = f"{'e' * before} {WRITTEN[name]} {'e' * 500}"
    body = {"error": {"message": text}} if status != 200 else text
    server.script = lambda _prompt, _nth: Say(status=status, body=body)
    request = ModelRequest(ModelTarget("m", api_base=server.api_base, api_key_env="SOME_API_KEY"), "", "Hi")

    async def ask(session: aiohttp.ClientSession) -> UpstreamError:
        """Asks the model once."""
        with pytest.raises(UpstreamError) as caught:
            await ModelClients(lambda: session, {"SOME_API_KEY": KEY}).complete(request)
        return caught.value

    error = with_session(ask)
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert not has_part(error.message, WRITTEN[name])
    assert 0 < len(error.message) <= 300


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_reason_of_an_end_with_the_key(server: ModelServer, name: str, *, is_streamed: bool) -> None:
    """`finish_reason` is a text of the upstream too: it is cut after the key is out of it."""
    reason = f"stop at {WRITTEN[name]} {'e' * 500}"
    choice = {"message": {"content": "Hi"}, "delta": {"content": "Hi"}, "finish_reason": reason}
    server.script = lambda _prompt, _nth: Say(body={"choices": [choice]})
    request = ModelRequest(
        ModelTarget("m", api_base=server.api_base, api_key_env="SOME_API_KEY"),
        "",
        "Hi",
        is_streamed=is_streamed,
    )

    async def ask(session: aiohttp.ClientSession) -> str:
        """Asks the model once."""
        reply = await ModelClients(lambda: session, {"SOME_API_KEY": KEY}).complete(request)
        return reply.finish_reason

    kept = with_session(ask)
    assert kept.startswith("stop at ***")
    assert len(kept) == 40


@pytest.mark.parametrize("name", WRITTEN)
def test_an_error_with_the_value_of_a_header(server: ModelServer, name: str) -> None:
    """A header that a worker takes from its variables is kept as little as a key is."""
    server.script = lambda _prompt, _nth: Say(status=400, body={"error": {"message": f"bad {WRITTEN[name]}"}})
    headers = {"X-Key": "env:SOME_API_KEY"}
    request = ModelRequest(ModelTarget("m", api_base=server.api_base, headers=headers), "", "Hi")

    async def ask(session: aiohttp.ClientSession) -> UpstreamError:
        """Asks the model once."""
        with pytest.raises(UpstreamError) as caught:
            await ModelClients(lambda: session, {"SOME_API_KEY": KEY}).complete(request)
        return caught.value

    error = with_session(ask)
    assert server.requests[0].headers["X-Key"] == KEY
    assert not has_part(error.message, WRITTEN[name])


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("before", [0, 175, 190])
def test_a_refusal_of_a_query_with_the_token(monkeypatch: pytest.MonkeyPatch, name: str, before: int) -> None:
    """The first 200 letters of an API's refusal are kept after its token is out of them."""
    monkeypatch.setenv("ASK_TOKEN", KEY)
    text = f"{'e' * before} {WRITTEN[name]} {'e' * 500}"
    with ScriptedApi(lambda _query, _nth: Step(403, text)) as api:
        run = QueryRun(api_url=api.url, bearer_env="ASK_TOKEN")

        async def ask(session: aiohttp.ClientSession) -> Put:
            """Puts one query."""
            return await put_once(session, query_client.build_request(run), "How?")

        asked = with_session(ask)
        assert api.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert asked.reply.status_code == 403
    assert len(asked.reply.error or "") == 200
    assert not has_part(json.dumps(asked.reply.as_document()), WRITTEN[name])
