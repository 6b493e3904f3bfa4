"""The contract of model clients, held by both of them against one scripted server.

It is longer than 500 lines, because importing litellm costs seconds: all that is tested of it is tested here.
"""

import asyncio
import json
import os
import pickle
import resource
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any, Final, NamedTuple, TypeVar

import aiohttp
import pytest

from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import cost_of
from shared.upstream.usage import Usage
from tests.support.certificates import make_certificates
from tests.support.https_server import https_server
from tests.support.model_server import USAGE, ModelServer, Say
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_clients import ModelClients

T = TypeVar("T")
KEY: Final = "sk-secret-0123456789"
ENVIRONMENT: Final[dict[str, str]] = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "MY_API_KEY": KEY}
BIG: Final = "x" * 5_100_000


class Bench:
    """Clients on one event loop, as in a worker process, with the place that they call."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.session = self.run(self._open())
        self.clients = ModelClients(lambda: self.session, ENVIRONMENT)
        self.loaded_late = set[str]()
        """Modules that the first call through litellm has loaded."""

    async def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop."""
        return self._runner.run(work)

    def close(self) -> None:
        """Ends everything."""
        self.run(self.clients.close())
        self.run(self.session.close())
        self._runner.close()


@pytest.fixture(scope="module")
def shared_server() -> Iterator[ModelServer]:
    """The server of this file; litellm finds it as OpenAI's place."""
    with ModelServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_BASE", server.api_base)
        patch.setenv("OPENAI_BASE_URL", server.api_base)
        yield server


@pytest.fixture(scope="module")
def bench(shared_server: ModelServer) -> Iterator[Bench]:
    """One process's clients: litellm is imported once."""
    shared_server.script = lambda _prompt, _nth: Say()
    made, first = Bench(), ModelRequest(ModelTarget("openai/gpt-4o", timeout_s=20.0), "", "Hi")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of litellm
        made.run(made.clients.prepare(first.target))
        ready = set(sys.modules)
        made.run(made.clients.complete(first))
    made.loaded_late = set(sys.modules) - ready
    yield made
    made.close()


@pytest.fixture
def server(shared_server: ModelServer) -> ModelServer:
    """The server, with nothing asked yet."""
    shared_server.requests.clear()
    shared_server.script = lambda _prompt, _nth: Say()
    return shared_server


def target_of(model: str, server: ModelServer | None, options: dict[str, Any]) -> ModelTarget:
    """Places a model at a server, or at its provider; takes its options out of the others."""
    own = {name: options.pop(name) for name in ("api_base", "headers", "timeout_s") if name in options}
    place = {"api_base": server.api_base, "api_key_env": "MY_API_KEY"} if server else {}
    settings: dict[str, Any] = {"timeout_s": 20.0}
    return ModelTarget(model, **(settings | place | own))


@pytest.fixture(params=["direct", "litellm"])
def complete(request: pytest.FixtureRequest, bench: Bench, server: ModelServer) -> Callable[..., ModelReply]:
    """Asks through one of the clients."""

    def ask(text: str = "Hi", system: str = "", **more: Any) -> ModelReply:
        target = target_of(
            more.pop("model", "openai/gpt-4o"), server if request.param == "direct" else None, more
        )
        asked = ModelRequest(target, system, text, **more)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of litellm
            return bench.run(bench.clients.complete(asked))

    return ask


Complete = Callable[..., ModelReply]


def refused(complete: Complete, **more: Any) -> UpstreamError:
    """Asks, and returns why there is no answer."""
    with pytest.raises(UpstreamError) as caught:
        complete(**more)
    return caught.value


def test_an_answer_comes_with_its_figures(complete: Complete, server: ModelServer) -> None:
    """Text, tokens and finish reason are as the server says; one request was made, with two messages."""
    reply = complete("Hi", "Be brief", temperature=0.5, parameters={"max_tokens": 9})
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens, reply.finish_reason) == (
        "Hello",
        11,
        3,
        "stop",
    )
    assert reply.first_token_ms is None
    (asked,) = server.requests
    assert asked.body["model"] == "gpt-4o"
    assert asked.body["temperature"] == 0.5
    assert asked.body["max_tokens"] == 9
    assert not asked.body.get("stream")
    assert [(message["role"], message["content"]) for message in asked.body["messages"]] == [
        ("system", "Be brief"),
        ("user", "Hi"),
    ]


def test_an_empty_system_prompt_is_left_out(complete: Complete, server: ModelServer) -> None:
    """One message is sent, and no temperature."""
    complete("Hi")
    body = server.requests[0].body
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert "temperature" not in body


def test_a_streamed_answer_tells_when_it_began(complete: Complete, server: ModelServer) -> None:
    """The pieces make the whole text, also beyond ASCII, with usage and the time to the first."""
    server.script = lambda _prompt, _nth: Say("größer als ✓", piece_s=0.2)
    reply = complete(is_streamed=True)
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("größer als ✓", 11, 3)
    assert reply.first_token_ms is not None
    assert reply.first_token_ms < reply.latency_ms
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


def test_tokens_that_are_not_reported_are_unknown(complete: Complete, server: ModelServer) -> None:
    """No usage means no tokens and no cost, not none of them."""
    server.script = lambda _prompt, _nth: Say(usage=None)
    reply = complete()
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.cost_usd) == (None, None, None)


def test_a_service_tier_without_room_says_so(complete: Complete, server: ModelServer) -> None:
    """It is not one request too many; the tier is sent as it is asked for, and is that of the reply."""
    error = {"message": "Resource unavailable", "type": "requests", "code": "resource_unavailable"}
    server.script = lambda _prompt, _nth: Say(status=429, body={"error": error})
    assert refused(complete, parameters={"service_tier": "flex"}).reason is FailureReason.NO_CAPACITY
    assert server.requests[0].body["service_tier"] == "flex"
    choice = {"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
    body = {"choices": [choice], "usage": USAGE, "service_tier": "flex"}
    server.script = lambda _prompt, _nth: Say(body=body)
    assert complete(parameters={"service_tier": "flex"}).usage.service_tier == "flex"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (429, FailureReason.RATE_LIMITED),
        (500, FailureReason.SERVER_ERROR),
        (503, FailureReason.SERVER_ERROR),
        (401, FailureReason.UNAUTHORISED),
        (403, FailureReason.UNAUTHORISED),
        (400, FailureReason.REFUSED),
        (404, FailureReason.REFUSED),
        (408, FailureReason.TIMEOUT),
    ],
)
def test_a_status_is_named_and_asked_once(
    complete: Complete, server: ModelServer, status: int, reason: FailureReason
) -> None:
    """Each status has its reason, is kept with the server's words, and nothing is tried again in secret."""
    server.script = lambda _prompt, _nth: Say(f"because of {KEY}", status)
    error = refused(complete)
    assert (error.reason, error.status, error.wait_s) == (reason, status, None)
    assert "because of ***" in error.message
    assert KEY not in repr(error) + str(error)
    assert len(server.requests) == 1
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (again.reason, again.status, again.message) == (reason, status, error.message)


def test_requested_waits_are_read(complete: Complete, server: ModelServer) -> None:
    """Seconds, dates and providers' own headers say how long to wait."""
    server.script = lambda _prompt, _nth: Say("wait", 429, {"Retry-After": "7"})
    assert refused(complete).wait_s == 7
    date = formatdate(time() + 60, usegmt=True)
    server.script = lambda _prompt, _nth: Say("wait", 503, {"Retry-After": date})
    assert 40 < (refused(complete).wait_s or 0) <= 60
    resets = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m6s"}
    server.script = lambda _prompt, _nth: Say("wait", 429, resets)
    assert refused(complete).wait_s == 66


@pytest.mark.parametrize(
    "body",
    [
        "<html>Bad gateway</html>",
        b'{"id": ',
        {},
        [1],
        {"choices": []},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": None}}]},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": 5}}]},
        {"choices": "none"},
    ],
    ids=["html", "cut JSON", "empty", "list", "no choices", "null", "number", "text for choices"],
)
def test_what_is_no_answer_is_refused(complete: Complete, server: ModelServer, body: Any) -> None:
    """A 200 without an answer in it is an invalid reply, never a text."""
    server.script = lambda _prompt, _nth: Say(body=body)
    assert refused(complete).reason is FailureReason.INVALID_REPLY
    assert len(server.requests) == 1


@pytest.mark.parametrize("end", ["reset", "half"])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_broken_connection_is_named(
    complete: Complete, server: ModelServer, end: Any, *, is_streamed: bool
) -> None:
    """A reset, and half an answer, are troubles of the connection: what came of it is not used."""
    server.script = lambda _prompt, _nth: Say("a longer answer", end=end)
    assert refused(complete, is_streamed=is_streamed).reason is FailureReason.CONNECTION_LOST
    assert len(server.requests) == 1


def test_a_slow_answer_is_broken_off(complete: Complete, server: ModelServer) -> None:
    """The time limit of the request holds."""
    server.script = lambda _prompt, _nth: Say(after_s=30)
    assert refused(complete, timeout_s=0.3).reason is FailureReason.TIMEOUT


@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_answer_is_bounded(complete: Complete, server: ModelServer, *, is_streamed: bool) -> None:
    """More than 5 MB are no answer."""
    server.script = lambda _prompt, _nth: Say(BIG)
    assert refused(complete, is_streamed=is_streamed).reason is FailureReason.TOO_LARGE


def whole(message: Any, **more: Any) -> Any:
    """A completion with a message of any form."""
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **more}


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "<think>PASS?</think>\n\nFAIL"}, "FAIL", "PASS?"),
        ({"content": " <thinking>PASS?</thinking>FAIL"}, "FAIL", "PASS?"),
        ({"content": "<think>never ends"}, "", "never ends"),
        ({"content": "It is <think>"}, "It is <think>", ""),
        ({"content": "FAIL", "reasoning_content": "PASS?"}, "FAIL", "PASS?"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", ""),
        ({"content": "half \ud800 of it"}, "half \ufffd of it", ""),
        ({"content": None, "refusal": "I will not."}, "", ""),
        ({"content": None, "reasoning_content": "PASS?"}, "", "PASS?"),
    ],
    ids=["think", "thinking", "no end", "amid", "field", "list", "surrogate", "refusal", "reasoning"],
)
def test_an_answer_in_any_form(
    complete: Complete, server: ModelServer, message: Any, text: str, reasoning: str
) -> None:
    """Both clients find the same text in the same bytes, and keep what the model thought apart from it."""
    server.script = lambda _prompt, _nth: Say(body=whole({"role": "assistant", **message}))
    reply = complete()
    assert (reply.text, reply.reasoning) == (text, reasoning)


@pytest.mark.parametrize(
    ("charset", "codec"),
    [
        ("", "utf-8-sig"),
        ("", "utf-16"),
        ("; charset=utf-16le", "utf-16-le"),
        ("; charset=ISO-8859-1", "latin-1"),
    ],
)
def test_an_answer_in_any_character_set(
    complete: Complete, server: ModelServer, charset: str, codec: str
) -> None:
    """A byte order mark is no part of the answer, and a declared character set is the one of the text."""
    answer = json.dumps(whole({"role": "assistant", "content": "Zürich"}), ensure_ascii=False)
    headers = {"Content-Type": f"application/json{charset}"}
    server.script = lambda _prompt, _nth: Say(body=answer.encode(codec), headers=headers)
    assert complete().text == "Zürich"


def test_a_stream_may_begin_with_a_mark(complete: Complete, server: ModelServer) -> None:
    """The first piece is not lost with the byte order mark before it."""
    frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta = {"role": "assistant", "content": "Hello"}
    events = [frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}]
    body = b"\xef\xbb\xbf" + b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)
    headers = {"Content-Type": "text/event-stream"}
    server.script = lambda _prompt, _nth: Say(body=body + b"data: [DONE]\n\n", headers=headers)
    assert complete(is_streamed=True).text == "Hello"


def test_a_certificate_that_is_not_trusted_is_named(
    complete: Complete, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """It is no refused connection: certificate, place and what helps are named, nothing is tried again."""
    with https_server(make_certificates(tmp_path), b"{}") as url:
        monkeypatch.setenv("OPENAI_API_BASE", f"{url}/v1")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        is_direct = request.node.callspec.params["complete"] == "direct"
        error = refused(complete, **({"api_base": f"{url}/v1"} if is_direct else {}))
    assert (error.reason, error.retryable, error.ends_run) == (FailureReason.INSECURE, False, True)
    place = url.removeprefix("https://") if is_direct else "its server"
    assert f"the certificate of {place} is not trusted: " in error.message
    assert "SSL_CERT_FILE" in error.message


def test_streamed_thoughts_are_kept_apart(complete: Complete, server: ModelServer) -> None:
    """Thoughts that come in pieces are no part of the text, and nothing behind the end is."""
    server.script = lambda _prompt, _nth: Say(
        "<think>PASS, or not?</think>FAIL", tail=b'data: {"choices": 1}\n\n'
    )
    reply = complete(is_streamed=True)
    assert (reply.text, reply.reasoning) == ("FAIL", "PASS, or not?")


class Answer(NamedTuple):
    """What every client is to find in a reply, however it comes."""

    text: str = ""
    refusal: str = ""
    finish_reason: str = "stop"
    usage: tuple[int | None, int | None] = (11, 3)
    reasoning: str = ""
    tool_calls: Sequence[Any] = ()


class Refused(NamedTuple):
    """Why there is no answer."""

    reason: FailureReason
    words: str


USED: Final = b'{"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}'
CALLED: Final = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
NO_TEXT: Final = Refused(FailureReason.INVALID_REPLY, "the reply has no text")
NOT_JSON: Final = Refused(FailureReason.INVALID_REPLY, "the reply is not JSON: ")


def reply_bodies(
    message: Mapping[str, Any], finish: str = "stop", usage: bytes = USED
) -> tuple[bytes, bytes]:
    """The same reply whole, and in pieces: its text is cut in two, the rest comes with the first piece."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    content = message.get("content")
    first = {"role": "assistant", **message}
    if "tool_calls" in message:
        first["tool_calls"] = [{"index": at, **call} for at, call in enumerate(message["tool_calls"])]
    deltas: list[Any] = [first]
    if isinstance(content, str) and len(content) > 1:
        deltas = [{**first, "content": content[:1]}, {"content": content[1:]}]
    ended = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    ended.append({"index": 0, "delta": {}, "finish_reason": finish})
    frame = b'{"id": "c1", "object": "%s", "created": 1, "model": "m", "choices": %s, "usage": %s}'
    kind = b"chat.completion"
    events = [frame % (kind + b".chunk", json.dumps([each]).encode(), b"null") for each in ended]
    events.append(frame % (kind + b".chunk", b"[]", usage))
    streamed = b"".join(b"data: %s\n\n" % event for event in [*events, b"[DONE]"])
    return frame % (kind, json.dumps([choice]).encode(), usage), streamed


def one_body(body: bytes) -> tuple[bytes, bytes]:
    """The same bytes, whether pieces were asked for or not."""
    return body, body


WHOLE: Final = reply_bodies({"content": "Paris"})[0]
REPLIES: Final[Mapping[str, tuple[tuple[bytes, bytes], Answer | Refused]]] = {
    "text": (reply_bodies({"content": "Paris"}), Answer("Paris")),
    "empty text": (reply_bodies({"content": ""}), Answer("")),
    "empty parts": (reply_bodies({"content": [{"type": "text", "text": ""}]}), Answer("")),
    "parts": (reply_bodies({"content": [{"type": "text", "text": "Paris"}]}), Answer("Paris")),
    "cut by length": (reply_bodies({"content": "Par"}, "length"), Answer("Par", finish_reason="length")),
    "empty by length": (reply_bodies({"content": ""}, "length"), Answer("", finish_reason="length")),
    "null": (reply_bodies({"content": None}), NO_TEXT),
    "filtered": (
        reply_bodies({"content": None}, "content_filter"),
        Answer("", finish_reason="content_filter"),
    ),
    "cut by filter": (
        reply_bodies({"content": "Par"}, "content_filter"),
        Answer("Par", finish_reason="content_filter"),
    ),
    "refusal": (reply_bodies({"content": None, "refusal": "No."}), Answer("", "No.")),
    "reasoning alone": (
        reply_bodies({"content": None, "reasoning_content": "Hm."}, "length"),
        Answer("", finish_reason="length", reasoning="Hm."),
    ),
    "reasoning": (
        reply_bodies({"content": "Paris", "reasoning_content": "Hm."}),
        Answer("Paris", reasoning="Hm."),
    ),
    "thoughts": (reply_bodies({"content": "<think>Hm.</think>\nParis"}), Answer("Paris", reasoning="Hm.")),
    "tool calls": (
        reply_bodies({"content": None, "tool_calls": [CALLED]}, "tool_calls"),
        Answer("", finish_reason="tool_calls", tool_calls=[CALLED]),
    ),
    "text and tool calls": (
        reply_bodies({"content": "Wait.", "tool_calls": [CALLED]}, "tool_calls"),
        Answer("Wait.", finish_reason="tool_calls", tool_calls=[CALLED]),
    ),
    "no usage": (reply_bodies({"content": "Paris"}, usage=b"null"), Answer("Paris", usage=(None, None))),
    "NaN": (
        reply_bodies({"content": "Paris NaN"}, usage=b'{"prompt_tokens": 11, "completion_tokens": NaN}'),
        Answer("Paris NaN", usage=(11, None)),
    ),
    "1e400": (
        reply_bodies({"content": "Paris"}, usage=b'{"prompt_tokens": 11, "completion_tokens": 1e400}'),
        Answer("Paris", usage=(11, None)),
    ),
    "half a pair": (reply_bodies({"content": "Par\ud800is"}), Answer("Par\ufffdis")),
    "mark": (
        (b"\xef\xbb\xbf" + WHOLE, b"\xef\xbb\xbf" + reply_bodies({"content": "Paris"})[1]),
        Answer("Paris"),
    ),
    "whole with a mark": (one_body(b"\xef\xbb\xbf" + WHOLE), Answer("Paris")),
    "whole": (one_body(WHOLE), Answer("Paris")),
    "HTML": (
        one_body(b"<html>Bad gateway</html>"),
        Refused(NOT_JSON.reason, f"{NOT_JSON.words}'<html>Bad gateway</html>'"),
    ),
    "broken JSON": (one_body(b'{"choices": ['), NOT_JSON),
    "broken event": (
        (b'{"choices": [', b'data: {"choices": [\n\ndata: [DONE]\n\n'),
        NOT_JSON,
    ),
    "empty": (one_body(b""), Refused(FailureReason.INVALID_REPLY, "the reply is empty")),
    "no choices": (
        one_body(b'{"choices": []}'),
        Refused(FailureReason.INVALID_REPLY, "the reply has no answer in it"),
    ),
    "error": (
        one_body(b'{"error": {"message": "slow down", "code": 429}}'),
        Refused(FailureReason.RATE_LIMITED, "slow down"),
    ),
    "error event": (
        (
            b'{"error": {"message": "slow down", "code": "429"}}',
            b'data: {"error": {"message": "slow down", "code": "429"}}\n\n',
        ),
        Refused(FailureReason.RATE_LIMITED, "slow down"),
    ),
}
"""Bodies of a whole reply and of one in pieces, and what both mean."""


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", REPLIES)
def test_the_same_reply_means_the_same_however_it_comes(
    complete: Complete, server: ModelServer, name: str, *, is_streamed: bool
) -> None:
    """Direct or through litellm, whole or in pieces: text, refusal, calls, finish reason, tokens, error."""
    bodies, expected = REPLIES[name]
    is_events = bodies[is_streamed].lstrip(b"\xef\xbb\xbf").startswith(b"data:")
    kind = "text/event-stream" if is_events else "text/html" if name == "HTML" else "application/json"
    server.script = lambda _prompt, _nth: Say(body=bodies[is_streamed], headers={"Content-Type": kind})
    if isinstance(expected, Refused):
        error = refused(complete, is_streamed=is_streamed)
        assert (error.reason, error.message[: len(expected.words)]) == expected
    else:
        reply = complete(is_streamed=is_streamed)
        usage = reply.usage.input_tokens, reply.usage.output_tokens
        found = (reply.text, reply.refusal, reply.finish_reason, usage, reply.reasoning, reply.tool_calls)
        assert found == (*expected[:5], list(expected.tool_calls))
    assert len(server.requests) == 1


@pytest.mark.parametrize("usage", [{"prompt_tokens": "11"}, [1], "many", {"prompt_tokens": -1}, {}])
def test_usage_that_makes_no_sense_is_unknown(complete: Complete, server: ModelServer, usage: Any) -> None:
    """It does not spoil the answer, and is not estimated."""
    server.script = lambda _prompt, _nth: Say(body=whole({"role": "assistant", "content": "Hi"}, usage=usage))
    reply = complete()
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens, reply.cost_usd) == (
        "Hi",
        None,
        None,
        None,
    )


def call_of(name: str, arguments: Any = "{}", call_id: str = "c1") -> dict[str, Any]:
    """A call of a tool, as a reply has it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def in_pieces(*deltas: Any, end: str = "tool_calls") -> Say:
    """A streamed answer of any pieces."""
    frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": end})
    events = [json.dumps(frame | {"choices": [choice]}).encode() for choice in choices]
    body = b"".join(b"data: %s\n\n" % event for event in events) + b"data: [DONE]\n\n"
    return Say(body=body, headers={"Content-Type": "text/event-stream"})


def test_calls_of_tools_are_an_answer(complete: Complete, server: ModelServer) -> None:
    """They are kept in one form, beside a text or without one, with the arguments as text."""
    weather, clock = call_of("weather", '{"city": "Zürich"}'), call_of("clock", "", "c2")
    for content, text in ((None, ""), ("", ""), ("One moment.", "One moment.")):
        message = {"role": "assistant", "content": content, "tool_calls": [weather, clock]}
        answer = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        server.script = lambda _prompt, _nth, answer=answer: Say(body=answer)  # type: ignore[misc] # the loop's own values
        reply = complete()
        assert (reply.text, reply.tool_calls, reply.finish_reason) == (text, [weather, clock], "tool_calls")


def test_streamed_calls_of_tools_are_put_together(complete: Complete, server: ModelServer) -> None:
    """Several calls whose arguments come in pieces, one after the other; the first piece has a time."""

    def piece(index: int, arguments: str, **first: Any) -> dict[str, Any]:
        """A piece of a call."""
        name = {"name": first.pop("name")} if "name" in first else {}
        return {"tool_calls": [{"index": index, **first, "function": {**name, "arguments": arguments}}]}

    server.script = lambda _prompt, _nth: in_pieces(
        {"role": "assistant", "content": None},
        piece(0, "", id="c1", type="function", name="weather"),
        piece(0, '{"city": '),
        piece(0, '"Zürich"}'),
        piece(1, "{}", id="c2", type="function", name="clock"),
    )
    reply = complete(is_streamed=True)
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert reply.tool_calls == [call_of("weather", '{"city": "Zürich"}'), call_of("clock", "{}", "c2")]
    assert reply.first_token_ms is not None


def test_calls_of_tools_in_another_providers_form(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What litellm translates is kept in the same form, with its options in that provider's words."""
    monkeypatch.setenv("ANTHROPIC_API_BASE", server.api_base.removesuffix("/v1"))
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Zürich"}}
    server.script = lambda _prompt, _nth: Say(
        body={
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [{"type": "text", "text": "One moment."}, use],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 11, "output_tokens": 3},
        }
    )
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    asked = ModelRequest(
        ModelTarget("anthropic/claude-sonnet-4-5", timeout_s=20.0),
        "Be brief",
        "Hi",
        parameters={"tools": [tool], "tool_choice": "required", "max_tokens": 9, "stop": ["END"]},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of litellm
        reply = bench.run(bench.clients.complete(asked))
    (call,) = reply.tool_calls
    assert (call["id"], call["type"], call["function"]["name"]) == ("t1", "function", "weather")
    assert json.loads(call["function"]["arguments"]) == {"city": "Zürich"}
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("One moment.", 11, 3)
    sent = server.requests[0].body
    assert sent["tools"][0]["name"] == "weather"
    assert (sent["max_tokens"], sent["stop_sequences"], sent["tool_choice"]["type"]) == (9, ["END"], "any")


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_refusal_is_an_answer(complete: Complete, server: ModelServer, *, is_streamed: bool) -> None:
    """It is kept in a field of its own; the text is empty then."""
    if is_streamed:
        server.script = lambda _prompt, _nth: in_pieces(
            {"refusal": "I will"}, {"refusal": " not."}, end="stop"
        )
    else:
        message = {"role": "assistant", "content": None, "refusal": "I will not."}
        server.script = lambda _prompt, _nth: Say(body=whole(message))
    reply = complete(is_streamed=is_streamed)
    assert (reply.text, reply.refusal, reply.finish_reason) == ("", "I will not.", "stop")


HOSTILE_CALLS: Final[dict[str, Any]] = {
    "no list": {"function": {"name": "f"}},
    "a text": "f()",
    "numbers": [1, 2],
    "no function": [{"id": "c1", "type": "function"}],
    "no name": [call_of("")],
    "a number for a name": [call_of(5)],  # type: ignore[arg-type] # that is the point
    "a long name": [call_of("f" * 600)],
    "a text for a function": [{"id": "c1", "function": "f"}],
    "too many": [call_of("f", call_id=f"c{number}") for number in range(200)],
}


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("name", HOSTILE_CALLS)
def test_calls_that_nobody_can_read_are_refused(
    complete: Complete, server: ModelServer, name: str, *, is_streamed: bool
) -> None:
    """Also beside a text: an answer without one of its calls would be another answer."""
    message = {"role": "assistant", "content": "Hi", "tool_calls": HOSTILE_CALLS[name]}
    server.script = lambda _prompt, _nth: in_pieces(message) if is_streamed else Say(body=whole(message))
    assert refused(complete, is_streamed=is_streamed).reason is FailureReason.INVALID_REPLY
    assert len(server.requests) == 1


@pytest.mark.parametrize("is_streamed", [False, True])
def test_arguments_of_tools_are_bounded(
    complete: Complete, server: ModelServer, *, is_streamed: bool
) -> None:
    """As every answer is: 5 MB in one piece, or in as many as one likes."""
    call = call_of("f", BIG)
    message = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]}
    server.script = lambda _prompt, _nth: in_pieces(message) if is_streamed else Say(body=whole(message))
    assert refused(complete, is_streamed=is_streamed).reason is FailureReason.TOO_LARGE


def test_thousands_of_pieces_of_a_call(complete: Complete, server: ModelServer) -> None:
    """They are one call, also where a server repeats id and name with each of them and sends no index."""
    count = 3_000
    pieces = [{"tool_calls": [call_of("f", "x")]}] * count
    server.script = lambda _prompt, _nth: in_pieces(*pieces)
    assert complete(is_streamed=True).tool_calls == [call_of("f", "x" * count)]


def test_arguments_that_are_an_object_become_text(complete: Complete, server: ModelServer) -> None:
    """Some servers do not write them as text, as the protocol has it."""
    message = {"role": "assistant", "content": None, "tool_calls": [call_of("f", {"a": [1, None]})]}
    server.script = lambda _prompt, _nth: Say(body=whole(message))
    assert complete().tool_calls == [call_of("f", '{"a": [1, null]}')]


def test_messages_are_sent_as_they_are(complete: Complete, server: ModelServer) -> None:
    """A conversation with images and calls of tools replaces the two messages."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = (
        {"role": "system", "content": "Be brief"},
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]},
        {"role": "assistant", "content": None, "tool_calls": [call_of("look")]},
        {"role": "tool", "tool_call_id": "c1", "content": "a map"},
    )
    assert complete("not sent", "not sent", messages=messages).text == "Hello"
    sent = server.requests[0].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    assert sent[1]["content"] == messages[1]["content"]
    assert sent[2]["tool_calls"] == messages[2]["tool_calls"]
    assert sent[3]["tool_call_id"] == "c1"


def test_options_are_sent_as_they_are(complete: Complete, server: ModelServer) -> None:
    """Each of them, with its own name; what is in `extra_body` is part of the body."""
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    options = {
        "max_tokens": 9,
        "top_p": 0.5,
        "seed": 7,
        "stop": ["END"],
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
        "response_format": {"type": "json_object"},
        "tools": [tool],
        "tool_choice": "required",
        "logprobs": True,
    }
    complete(temperature=0.0, parameters={**options, "extra_body": {"top_k": 5, "deep": {"a": [1]}}})
    sent = server.requests[0].body
    expected = {**options, "temperature": 0.0, "top_k": 5, "deep": {"a": [1]}}
    assert {name: sent.get(name) for name in expected} == expected
    assert "extra_body" not in sent


def test_an_option_that_a_provider_does_not_take_is_named(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent, and nothing left out in silence; only a temperature is left out."""
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    clients = ModelClients(lambda: bench.session, {**ENVIRONMENT, "MISTRAL_API_KEY": KEY})
    for model, option, value in (
        ("openai/o3-mini", "top_p", 0.5),
        ("openai/gpt-4o", "reasoning_effort", "low"),
        ("mistral/mistral-large-latest", "logprobs", True),
        ("mistral/mistral-large-latest", "extra_body", {"top_k": 1}),
    ):
        asked = ModelRequest(ModelTarget(model), "", "Hi", temperature=0.1, parameters={option: value})
        with pytest.raises(UpstreamError, match=f"{model} does not take {option}") as caught:
            bench.run(clients.complete(asked))
        assert caught.value.reason is FailureReason.REFUSED
    assert server.requests == []


def test_headers_are_sent(complete: Complete, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Literal ones, and those that the worker takes from its variables of keys; a key may be one of them."""
    monkeypatch.setitem(ENVIRONMENT, "MY_TOKEN", "Basic abcdefgh")
    complete(headers={"X-Team": "evals", "X-Key": "env:MY_API_KEY"})
    complete(headers={"authorization": "env:MY_TOKEN"})
    first, second = (
        [(name.lower(), value) for name, value in each.headers.items()] for each in server.requests
    )
    assert {("x-team", "evals"), ("x-key", KEY), ("authorization", f"Bearer {KEY}")} <= set(first)
    assert [value for name, value in second if name == "authorization"] == ["Basic abcdefgh"]


@pytest.mark.parametrize(
    ("variable", "reason"),
    [("HOME", FailureReason.FORBIDDEN), ("NO_SUCH_TOKEN", FailureReason.UNAUTHORISED)],
)
def test_a_header_without_a_value_ends_the_run(
    complete: Complete, server: ModelServer, variable: str, reason: FailureReason
) -> None:
    """A variable that may not be sent, or is not there, is named; nothing is sent."""
    error = refused(complete, headers={"X-Key": f"env:{variable}"})
    assert (error.reason, error.ends_run) == (reason, True)
    assert variable in error.message
    assert server.requests == []


@pytest.fixture(params=["direct", "litellm"])
def embed(request: pytest.FixtureRequest, bench: Bench, server: ModelServer) -> Callable[..., EmbeddingReply]:
    """Asks for embeddings through one of the clients."""

    def ask(*texts: str, **more: Any) -> EmbeddingReply:
        place = server if request.param == "direct" else None
        asked = EmbeddingRequest(target_of("openai/text-embedding-3-small", place, more), texts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of litellm
            return bench.run(bench.clients.embed(asked))

    return ask


Embed = Callable[..., EmbeddingReply]


def test_texts_are_embedded_by_one_request(embed: Embed, server: ModelServer) -> None:
    """The vectors are in the order of the texts, whatever the order of the reply; tokens are counted."""
    reply = embed("one", "three", headers={"X-Team": "evals"})
    assert [list(vector) for vector in reply.vectors] == [[3, 1], [5, 1]]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 0)
    (asked,) = server.requests
    assert (asked.path, asked.body["model"]) == ("/v1/embeddings", "text-embedding-3-small")
    assert asked.body["input"] == ["one", "three"]
    sent = {name.lower(): value for name, value in asked.headers.items()}
    assert (sent["authorization"], sent["x-team"]) == (f"Bearer {KEY}", "evals")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (429, FailureReason.RATE_LIMITED),
        (500, FailureReason.SERVER_ERROR),
        (401, FailureReason.UNAUTHORISED),
        (400, FailureReason.REFUSED),
    ],
)
def test_embeddings_fail_as_answers_do(
    embed: Embed, server: ModelServer, status: int, reason: FailureReason
) -> None:
    """Each status has its reason; nothing is tried again in secret, and the key is shown to nobody."""
    server.script = lambda _prompt, _nth: Say(f"because of {KEY}", status)
    with pytest.raises(UpstreamError) as caught:
        embed("Hi")
    assert (caught.value.reason, caught.value.status) == (reason, status)
    assert KEY not in caught.value.message
    assert len(server.requests) == 1


HOSTILE_EMBEDDINGS: Final[dict[str, Any]] = {
    "no data": {},
    "too few": [],
    "too many": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}],
    "no place": [{"index": 7, "embedding": [1.0]}],
    "a text": [{"index": 0, "embedding": 5}],
    "texts": [{"index": 0, "embedding": ["a"]}],
    "nothing": [{"index": 0, "embedding": []}],
    "too large a number": [{"index": 0, "embedding": [1e300]}],
}


@pytest.mark.parametrize("name", HOSTILE_EMBEDDINGS)
def test_embeddings_that_are_none_are_refused(embed: Embed, server: ModelServer, name: str) -> None:
    """A 200 without one vector for each text is an invalid reply, never a vector."""
    data = HOSTILE_EMBEDDINGS[name]
    body = {"object": "list", "model": "m", "data": data} if data != {} else {"object": "list"}
    server.script = lambda _prompt, _nth: Say(body=body)
    with pytest.raises(UpstreamError) as caught:
        embed("Hi")
    assert caught.value.reason is FailureReason.INVALID_REPLY
    assert len(server.requests) == 1


def test_embeddings_are_bounded_in_size_and_time(embed: Embed, server: ModelServer) -> None:
    """As answers are."""
    server.script = lambda _prompt, _nth: Say(body={"data": [{"index": 0, "embedding": [0.5] * 1_500_000}]})
    with pytest.raises(UpstreamError) as caught:
        embed("Hi")
    assert caught.value.reason is FailureReason.TOO_LARGE
    server.script = lambda _prompt, _nth: Say(after_s=30)
    with pytest.raises(UpstreamError) as caught:
        embed("Hi", timeout_s=0.3)
    assert caught.value.reason is FailureReason.TIMEOUT


def test_redirects_are_not_followed(complete: Complete, server: ModelServer) -> None:
    """Neither key nor prompt go to another server, whatever kind of redirect it is."""
    with ModelServer() as other:
        for status in (301, 302, 303, 307, 308):
            there = {"Location": f"{other.api_base}/chat/completions"}
            server.script = lambda _prompt, _nth, status=status, there=there: Say("go", status, there)  # type: ignore[misc] # the loop's own values
            error = refused(complete)
            assert (error.reason, error.status) == (FailureReason.REFUSED, status)
        assert other.requests == []


@pytest.mark.parametrize(("size", "is_kept"), [(100_000, True), (200_000_000, False)])
def test_a_compressed_answer_is_bounded(
    complete: Complete, server: ModelServer, size: int, *, is_kept: bool
) -> None:
    """What is compressed is read, and no more of it than of any other answer, in little memory."""
    answer = json.dumps(whole({"role": "assistant", "content": "@"})).encode().split(b"@")
    packer = zlib.compressobj(wbits=31)
    parts = [answer[0], *[b"x" * 100_000] * (size // 100_000), answer[1]]
    packed = b"".join(map(packer.compress, parts)) + packer.flush()
    server.script = lambda _prompt, _nth: Say(body=packed, headers={"Content-Encoding": "gzip"})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if is_kept:
        assert len(complete().text) == size
    else:
        assert refused(complete).reason is FailureReason.TOO_LARGE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


def test_a_long_error_is_cut(complete: Complete, server: ModelServer) -> None:
    """A status with megabytes of text keeps its meaning."""
    server.script = lambda _prompt, _nth: Say("e" * 6_000_000, 503)
    assert refused(complete).reason is FailureReason.SERVER_ERROR


def test_latency_is_the_exchange(complete: Complete, server: ModelServer) -> None:
    """What a client does before it sends is not counted as the model's latency."""
    server.script = lambda _prompt, _nth: Say(after_s=0.3)
    assert complete().latency_ms >= 300


@pytest.mark.parametrize("model", ["openai/o3-mini", "openai/gpt-5"])
def test_models_without_a_temperature_are_sent_none(
    complete: Complete, server: ModelServer, model: str
) -> None:
    """By their names: they answer at the first call."""
    assert complete(model=model, temperature=0.1).text == "Hello"
    assert ["temperature" in request.body for request in server.requests] == [False]


def test_a_refused_temperature_is_learned(complete: Complete, server: ModelServer) -> None:
    """A model that refuses it is asked again without, once; later calls send none, other models one."""

    def script(_prompt: str, _nth: int) -> Say:
        with_it = "temperature" in server.requests[-1].body
        return Say("Unsupported parameter: 'temperature' is not supported", 400) if with_it else Say()

    server.script = script
    model = "openai/gpt-4o-stubborn"
    for _ in range(2):
        assert complete(model=model, temperature=0.1).text == "Hello"
    assert ["temperature" in request.body for request in server.requests] == [True, False, False]
    server.script = lambda _prompt, _nth: Say("temperature has to be 2 at most", 400)
    assert refused(complete, temperature=3).reason is FailureReason.REFUSED
    assert len(server.requests) == 4


FORM: Final = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}


def test_an_answer_is_asked_in_its_form(complete: Complete, server: ModelServer) -> None:
    """As OpenAI's protocol has it; whatever comes back is the answer."""
    server.script = lambda _prompt, _nth: Say('Score: {"score": 1}')
    assert complete(form=FORM, temperature=0.0).text == 'Score: {"score": 1}'
    (asked,) = server.requests
    assert asked.body["response_format"]["type"] == "json_schema"
    assert asked.body["response_format"]["json_schema"]["schema"]["properties"] == FORM["properties"]
    assert asked.body["temperature"] == 0.0


@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_form_is_learned(complete: Complete, server: ModelServer, status: int) -> None:
    """Where the plain question is answered, it is the only one from then on."""

    def script(_prompt: str, _nth: int) -> Say:
        """Takes no form, and no temperature either."""
        body = server.requests[-1].body
        if "temperature" in body:
            return Say("Unsupported parameter: 'temperature' is not supported", 400)
        return Say("response_format is unavailable", status) if "response_format" in body else Say()

    server.script = script
    model = f"openai/formless-{status}"
    for _ in range(2):
        assert complete(model=model, form=FORM, temperature=0.0).text == "Hello"
    assert ["response_format" in request.body for request in server.requests] == [True, True, False, False]


def test_a_refusal_of_anything_else_is_asked_in_form_again(complete: Complete, server: ModelServer) -> None:
    """A question that is refused without a form, too, says nothing about forms; nor does a wrong key."""
    model = "openai/mine"
    server.script = lambda _prompt, _nth: Say("too long", 400)
    assert refused(complete, model=model, form=FORM).message.endswith("too long")
    server.script = lambda _prompt, _nth: Say("no", 401)
    assert refused(complete, model=model, form=FORM).reason is FailureReason.UNAUTHORISED
    server.script = lambda _prompt, _nth: Say()
    complete(model=model, form=FORM)
    forms = ["response_format" in request.body for request in server.requests]
    assert forms == [True, False, True, True]


@pytest.mark.parametrize("is_direct", [False, True])
def test_a_shared_beginning_is_marked_when_it_comes_again(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch, *, is_direct: bool
) -> None:
    """To keep it costs more than to read it; what was kept and found is told apart in what was used."""
    monkeypatch.setenv("ANTHROPIC_API_BASE", server.api_base.removesuffix("/v1"))
    usage = {
        "input_tokens": 50,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 200,
        "output_tokens": 3,
    }
    envelope = {"id": "m1", "type": "message", "role": "assistant", "model": "claude"}
    content = [{"type": "text", "text": "Hi"}]
    body = {**envelope, "content": content, "stop_reason": "end_turn", "usage": usage}
    server.script = lambda _prompt, _nth: Say(body=body)
    place = server.api_base if is_direct else ""
    target = ModelTarget("anthropic/claude-sonnet-4-5", place, timeout_s=20.0)
    criterion = f"Criterion {is_direct}: " + "polite " * 500
    replies, marks = [], []
    for text, shared in (("one", len(criterion)), ("two", len(criterion)), ("three", 11), ("four", 0)):
        asked = ModelRequest(target, "Grade.", f"{criterion}\n{text}", shared_chars=shared)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of litellm
            replies.append(bench.run(bench.clients.complete(asked)))
        sent = server.requests[-1].body["messages"][0]["content"]
        marks.append([part.get("cache_control") for part in sent])
        assert "".join(part["text"] for part in sent) == asked.user
    assert marks == [[None], [{"type": "ephemeral"}, None], [None], [None]]
    assert {reply.usage for reply in replies} == {Usage(1250, 3, 1000, 200, None if is_direct else 0)}
    usd = cost_of(target.model, replies[0].usage, {})
    assert usd == pytest.approx((50 * 3 + 1000 * 0.3 + 200 * 3.75 + 3 * 15) / 1e6)


@pytest.mark.parametrize(
    "model", ["ollama/llama3", "ollama_chat/llama3", "azure/llama3", "hosted_vllm/llama3"]
)
def test_a_protocols_name_is_not_sent(bench: Bench, server: ModelServer, model: str) -> None:
    """An `api_base` gets the name by which it knows the model."""
    bench.run(bench.clients.complete(ModelRequest(ModelTarget(model, api_base=server.api_base), "", "Hi")))
    assert server.requests[0].body["model"] == "llama3"


def test_keys_go_where_they_belong(bench: Bench, server: ModelServer) -> None:
    """A provider's key goes to the provider; an `api_base` gets the key that is named for it, or none."""
    for place, variable in (("", ""), (server.api_base, ""), (server.api_base, "MY_API_KEY")):
        asked = ModelRequest(ModelTarget("openai/gpt-4o", api_base=place, api_key_env=variable), "", "Hi")
        bench.run(bench.clients.complete(asked))
    sent = [request.headers.get("Authorization") for request in server.requests]
    assert sent == [f"Bearer {KEY}", None, f"Bearer {KEY}"]


def test_a_missing_key_ends_the_run(bench: Bench, server: ModelServer) -> None:
    """The variable is named, and nothing is sent."""
    clients = ModelClients(lambda: bench.session, {})
    for place, variable, named in (
        ("", "", "OPENAI_API_KEY"),
        (server.api_base, "MINE_API_KEY", "MINE_API_KEY"),
    ):
        asked = ModelRequest(ModelTarget("openai/gpt-4o", api_base=place, api_key_env=variable), "", "Hi")
        with pytest.raises(UpstreamError, match=named) as caught:
            bench.run(clients.complete(asked))
        assert caught.value.ends_run
    assert server.requests == []


@pytest.mark.parametrize("variable", ["AWS_SECRET_ACCESS_KEY", "HOME", "PROCTOR_REDIS_URL"])
def test_other_variables_are_sent_to_nobody(bench: Bench, server: ModelServer, variable: str) -> None:
    """A run that names one ends, with what to do about it; a worker that lists the variable sends it."""
    asked = ModelRequest(ModelTarget("m", api_base=server.api_base, api_key_env=variable), "", "Hi")
    with pytest.raises(UpstreamError, match="PROCTOR_KEY_VARIABLES") as caught:
        bench.run(ModelClients(lambda: bench.session, {variable: KEY}).complete(asked))
    assert (caught.value.reason, caught.value.ends_run) == (FailureReason.FORBIDDEN, True)
    assert KEY not in caught.value.message
    assert server.requests == []
    listed = {variable: KEY, "PROCTOR_KEY_VARIABLES": f"OTHER, {variable}"}
    bench.run(ModelClients(lambda: bench.session, listed).complete(asked))
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"


def test_a_query_of_an_address_stays_behind_the_path(bench: Bench, server: ModelServer) -> None:
    """An `api_base` with a version in its query is called at the path that the protocol has."""
    asked = ModelRequest(ModelTarget("m", api_base=f"{server.api_base}/?api-version=2024-10-21"), "", "Hi")
    assert bench.run(bench.clients.complete(asked)).text == "Hello"
    assert server.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize("is_direct", [True, False])
def test_a_refused_connection_is_named(
    bench: Bench, server: ModelServer, monkeypatch: pytest.MonkeyPatch, *, is_direct: bool
) -> None:
    """Where nobody listens, the reason is the connection, whichever client finds it."""
    assert server.requests == []
    nowhere = "http://127.0.0.1:1/v1"
    monkeypatch.setenv("OPENAI_API_BASE", nowhere)
    monkeypatch.setenv("OPENAI_BASE_URL", nowhere)
    asked = ModelRequest(ModelTarget("openai/gpt-4o", api_base=nowhere if is_direct else ""), "", "Hi")
    with pytest.raises(UpstreamError) as caught:
        bench.run(bench.clients.complete(asked))
    assert caught.value.reason is FailureReason.UNREACHABLE


def test_a_first_call_finds_loaded_what_it_needs(bench: Bench) -> None:
    """Without `prepare` it loads 495 modules, on the loop: a second in which no call of the process moves."""
    assert len(bench.loaded_late) < 50


def test_importing_the_clients_imports_no_litellm() -> None:
    """A worker that calls no named provider never pays for it, prices included."""
    program = (
        "import sys, worker.upstream.model_clients, shared.upstream.prices as prices\n"
        "assert prices.cost_of('openai/gpt-4o', prices.Usage(1000, 1000), {}) > 0\n"
        "assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=dict(os.environ))
