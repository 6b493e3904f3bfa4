"""The contract of applications over HTTP, against one that a test scripts: requests, replies and sessions."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import aiohttp
import pytest
from aiohttp import web

from shared.contracts.http_config import HttpConfig
from shared.contracts.query_run import QueryRun
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from shared.upstream.usage import Usage
from tests.support.loop_thread import LoopThread
from worker.queries.reply import Reply
from worker.upstream.cache import digest_of, identity_of
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_clients import DirectClient
from worker.upstream.query_client import build_request, send_once

SESSION: Final = {"url": "{url}/session", "body": {"app": "x"}, "take": {"id": "/data/id", "token": "/token"}}


@dataclass
class Application:
    """An application in a thread; each session is for two questions."""

    reply: Any = field(default_factory=lambda: {"text": "Hello"})
    questions: list[tuple[str, Mapping[str, str], Any]] = field(default_factory=list)
    """Paths, headers and bodies."""
    sessions: int = 0
    left: int = 0
    """Questions for which the session is good."""
    status: int = 201
    session_id: str = ""
    """What a session brings; empty: its number."""
    url: str = ""

    def __enter__(self) -> Self:
        self._server = LoopThread(self._serve, "the application")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    async def _serve(self, is_ready: Callable[[], None], stop: asyncio.Event) -> None:
        app = web.Application()
        app.router.add_post("/session", self._begin)
        app.router.add_route("*", "/chat/{id}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        is_ready()
        await stop.wait()
        await runner.cleanup()

    async def _begin(self, _: web.Request) -> web.Response:
        self.sessions += 1
        self.left = 2
        await asyncio.sleep(0.02)
        found = self.session_id or f"s/{self.sessions}"
        return web.json_response({"data": {"id": found}, "token": f"t{self.sessions}"})

    async def _answer(self, request: web.Request) -> web.Response:
        text = await request.text()
        body = json.loads(text) if text else dict(request.query)
        self.questions.append((request.raw_path, dict(request.headers), body))
        self.left -= 1
        if self.sessions and self.left < 0:
            return web.json_response({"message": "log in again"}, status=401)
        return web.json_response(self.reply, status=self.status)


@pytest.fixture(scope="module")
def shared_application() -> Iterator[Application]:
    """One for all tests."""
    with Application() as started:
        yield started


@pytest.fixture
def app(shared_application: Application) -> Application:
    """The application, with nothing asked yet."""
    shared_application.questions.clear()
    shared_application.sessions = shared_application.left = 0
    shared_application.reply, shared_application.session_id = {"text": "Hello"}, ""
    shared_application.status = 201
    return shared_application


def ask(app: Application, config: Mapping[str, Any], *texts: str, **more: Any) -> list[ModelReply]:
    """Asks an application at the same time."""
    written = json.loads(json.dumps(config).replace("{url}", app.url))
    written = {"url": f"{app.url}/chat/1", "body": {"q": "{{ input }}"}, "answer": "/text", **written}
    mapping = HttpConfig.model_validate(written).mapping
    target = ModelTarget("app", mapping.request.address, timeout_s=20.0, http=mapping)

    async def asked() -> list[ModelReply]:
        async with aiohttp.ClientSession() as session:
            client = DirectClient(lambda: session, {"MY_API_KEY": "k-0123456789", "HOME": "/me"})
            requests = [ModelRequest(target, "Be brief.", text, **more) for text in texts]
            return await asyncio.gather(*map(client.complete, requests))

    return asyncio.run(asked())


def test_a_request_is_the_body_with_the_case_in_it(app: Application) -> None:
    """Lists, constants and values of their own type; text of a case is never a template."""
    body = {
        "conversation": [{"text": "{{ input }}"}],
        "history": "{{ messages }}",
        "system": "{{ system|upper }}",
        "k": "{{ vars.k }}",
        "constant": [1, None, "x"],
    }
    config = {"body": body, "headers": {"X-Key": "env:MY_API_KEY"}}
    ask(app, config, "Hi {{ there }}", vars={"k": 3})
    [(_, headers, sent)] = app.questions
    assert headers["X-Key"] == "k-0123456789"
    assert sent == {
        "conversation": [{"text": "Hi {{ there }}"}],
        "history": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi {{ there }}"},
        ],
        "system": "BE BRIEF.",
        "k": 3,
        "constant": [1, None, "x"],
    }
    ask(app, {"method": "GET", "body": {"q": "{{ input }} & more", "n": 3}}, "Hi")
    assert app.questions[-1][2] == {"q": "Hi & more", "n": "3"}


def test_an_answer_is_read_where_the_mapping_says(app: Application) -> None:
    """Text, tools in two forms, refusal, reasoning and tokens in several forms."""
    app.reply = {
        "choices": [{"text": "Hello", "why": "Hm."}],
        "calls": [{"name": "f", "arguments": {"a": 1}}, {"id": "c", "function": {"name": "g"}}],
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
    answer = {"text": "/choices/0/text", "reasoning": "/choices/0/why", "tool_calls": "/calls"}
    [reply] = ask(app, {"answer": answer, "tokens": "/usage"}, "Hi")
    assert (reply.text, reply.reasoning, reply.usage) == ("Hello", "Hm.", Usage(5, 2))
    assert not reply.is_json
    names = [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in reply.tool_calls
    ]
    assert names == [("", "f", '{"a": 1}'), ("c", "g", "{}")]
    counts = {"input": "/usage/input_tokens", "output": "/none"}
    [reply] = ask(app, {"answer": "/choices", "tokens": counts}, "Hi")
    assert reply.is_json
    assert json.loads(reply.text)[0]["text"] == "Hello"
    assert reply.usage == Usage(5)


def test_what_went_wrong_is_an_error(app: Application) -> None:
    """At the pointer of the mapping, and where there is no answer."""
    app.reply = {"text": "", "error": {"message": "no luck"}}
    with pytest.raises(UpstreamError, match="no luck") as caught:
        ask(app, {"error": "/error"}, "Hi")
    assert caught.value.reason is FailureReason.SERVER_ERROR
    app.reply = {"text": "Hello", "error": None}
    assert ask(app, {"error": "/error"}, "Hi")[0].text == "Hello"
    with pytest.raises(UpstreamError, match="the reply has nothing at /other"):
        ask(app, {"answer": "/other"}, "Hi")


def test_a_session_is_begun_once_and_again_when_it_has_expired(app: Application) -> None:
    """Before all that need it, however many ask at the same time; its values are quoted in addresses."""
    config = {
        "url": "{url}/chat/{{ session.id }}",
        "headers": {"Authorization": "Bearer {{ session.token }}"},
        "session": SESSION,
    }
    assert len(ask(app, config, "one", "two")) == 2
    assert app.sessions == 1
    assert {path for path, _, _ in app.questions} == {"/chat/s%2F1"}
    assert {headers["Authorization"] for _, headers, _ in app.questions} == {"Bearer t1"}
    app.sessions = 0
    assert len(ask(app, config, "one", "two", "three")) == 3
    assert app.sessions == 2


def test_an_application_cannot_ask_for_secrets_of_the_worker(app: Application) -> None:
    """What a session brings is no name of a variable."""
    config = {"headers": {"X-Given": "{{ session.id }}"}, "session": SESSION}
    app.session_id = "env:MY_API_KEY"
    with pytest.raises(UpstreamError, match="X-Given would have characters that no header has"):
        ask(app, config, "Hi")
    assert not app.questions


def test_queries_are_asked_by_the_same_mapping(app: Application) -> None:
    """With constants, keys of the query, a session that expires, and places in the specification's words."""
    written = {
        "url": f"{app.url}/chat/{{{{ session.id }}}}",
        "body": {"conversation": [{"text": "{{ input }}"}], "lang": "{{ vars.lang }}", "tenant": "acme"},
        "answer": {"text": "/text", "sources": "/found"},
        "error": "/error",
        "session": json.loads(json.dumps(SESSION).replace("{url}", app.url)),
    }
    mapping = HttpConfig.model_validate(written).mapping
    app.reply, app.status = {"text": "Hello", "found": [{"url": "u"}], "error": ""}, 200

    async def asked() -> list[Reply]:
        request = build_request(QueryRun(app.url, http=mapping), {})
        async with aiohttp.ClientSession() as session:
            sent = [await send_once(session, request, "Hi {{ x }}", {"lang": "de"}) for _ in range(3)]
            app.reply = {"error": "no luck"}
            with pytest.raises(UpstreamError, match="no luck"):
                await send_once(session, request, "Hi", {"lang": "de"})
        return sent

    replies = asyncio.run(asked())
    assert {reply.status_code for reply in replies} == {200}
    assert [reply.response["sources"] for reply in replies if reply.response] == [[{"url": "u"}]] * 3
    assert app.sessions == 2
    assert app.questions[0][2] == {"conversation": [{"text": "Hi {{ x }}"}], "lang": "de", "tenant": "acme"}


def test_equal_requests_share_an_answer() -> None:
    """Mapping and the variables that it names are part of the identity; others, run and session are not."""
    mapping = HttpConfig.model_validate({"url": "http://h", "body": ["{{ vars.a }}"], "answer": ""}).mapping
    target = ModelTarget("app", "http://h", http=mapping)

    def digest(mapped: ModelTarget = target, run: str = "", **variables: Any) -> str:
        return digest_of(identity_of(ModelRequest(mapped, "", "Hi", vars=variables, run=run)))

    assert digest(a=1, b=1) == digest(a=1, b=2, run="r")
    assert digest(a=1) != digest(a=2)
    assert digest(a=1) != digest(ModelTarget("app", "http://h"), a=1)


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ({"answer": "text"}, "no JSON pointer"),
        ({"body": {"q": "{{ input"}}, "not a template"),
        ({"url": "http://h{{ input }}"}, "not a web address"),
        ({"url": "http://me:pw@h/chat"}, "a password in it would be stored"),
        ({"headers": {"Authorization": "Bearer sk-0123456789abcdef"}}, "holds a secret"),
        ({"body": {"api_key": "sk-0123456789abcdef"}}, "holds a secret"),
        ({"session": {"url": "http://h", "take": {"a b": "/x"}}}, "no name for a template"),
        ({"method": "DELETE"}, "'POST', 'GET', 'PUT' or 'PATCH'"),
    ],
)
def test_what_cannot_be_sent_is_refused_at_the_door(written: Mapping[str, Any], wrong: str) -> None:
    """Each with its reason."""
    with pytest.raises(ValueError, match=wrong):
        HttpConfig.model_validate({"url": "http://h/chat", "answer": "/text", **written})
