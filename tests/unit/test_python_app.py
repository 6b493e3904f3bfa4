"""Functions as models: what each kind of function answers to a request, without a worker."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from queue import Queue
from typing import Any
from urllib.parse import urlsplit

import pytest

from proctor.app import served

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where?"}]


@contextmanager
def answered(app: Callable[..., Any], *, stream: bool = False) -> Iterator[HTTPResponse]:
    """The answer to a request."""
    with served(app) as url:
        place = urlsplit(url)
        connection = HTTPConnection(str(place.hostname), place.port, timeout=10)
        connection.request(
            "POST", f"{place.path}/chat/completions", json.dumps({"messages": ASKED, "stream": stream})
        )
        yield connection.getresponse()
        connection.close()


def asked(app: Callable[..., Any], *, stream: bool = False) -> tuple[int, str]:
    """Status and body of the answer to a request."""
    with answered(app, stream=stream) as answer:
        return answer.status, answer.read().decode()


def event_of(line: bytes) -> Any:
    """The JSON of an event."""
    return json.loads(line.removeprefix(b"data: "))


async def waits(messages: list[dict[str, str]]) -> str:
    """Takes the whole conversation."""
    return f"Paris, {messages[-1]['role']}"


def pieces(text: str) -> Iterator[str]:
    """Answers bit by bit."""
    yield "Paris"
    yield f", {text}"


async def flows(text: str) -> AsyncIterator[str]:
    """Does so on a loop."""
    yield "Paris"
    yield f", {text}"


def counts(_text: str) -> dict[str, list[str]]:
    """Answers an object."""
    return {"capital": ["Paris"]}


def encoded(_text: str) -> Iterator[bytes]:
    """Answers bytes, cut within a character."""
    yield "Zü".encode()[:2]
    yield "ürich".encode()[1:]


def breaks(_text: str) -> str:
    """Fails."""
    raise LookupError("no such country")


def leaves(_text: str) -> str:
    """Ends the program."""
    raise SystemExit(3)


async def leaves_later(_text: str) -> str:
    """Does so on a loop."""
    raise SystemExit(3)


def forgets(_text: str) -> None:
    """Returns nothing."""


@pytest.mark.parametrize(
    ("app", "answer"),
    [
        (waits, "Paris, user"),
        (pieces, "Paris, Where?"),
        (flows, "Paris, Where?"),
        (counts, '{"capital": ["Paris"]}'),
        (encoded, "Zürich"),
        (lambda _text: "Zürich".encode(), "Zürich"),
        (str, "Where?"),
    ],
)
def test_functions_answer_in_their_own_way(app: Callable[..., Any], answer: str) -> None:
    """A coroutine that takes messages, generators of both kinds, an object, bytes, and a class."""
    status, body = asked(app)
    assert (status, json.loads(body)["choices"][0]["message"]["content"]) == (200, answer)


@pytest.mark.parametrize("app", [pieces, flows])
def test_pieces_are_events_before_the_last_ones(app: Callable[..., Any]) -> None:
    """Each is an event of its own; then comes the end."""
    *events, done = (line for line in asked(app, stream=True)[1].encode().splitlines() if line)
    *deltas, end = map(event_of, events)
    assert [each["choices"][0]["delta"] for each in deltas] == [{"content": "Paris"}, {"content": ", Where?"}]
    assert end["choices"][0]["finish_reason"] == "stop"
    assert done == b"data: [DONE]"


def test_a_piece_is_sent_before_the_next_one_is_there() -> None:
    """The first piece arrives while the function waits for what the reader does afterwards."""
    go_on = Queue[str]()

    def waits_for_reader(_text: str) -> Iterator[str]:
        yield "first"
        yield go_on.get(timeout=5)

    with answered(waits_for_reader, stream=True) as answer:
        first = event_of(answer.readline())
        go_on.put("second")
        rest = answer.read()
    assert first["choices"][0]["delta"] == {"content": "first"}
    assert b"second" in rest


def test_an_exception_after_the_first_piece_is_an_event() -> None:
    """The stream stays one reply: its last event is the error, with a status that nobody tries again."""

    def breaks_later(_text: str) -> Iterator[str]:
        yield "Par"
        raise LookupError("lost")

    body = asked(breaks_later, stream=True)[1]
    first, failed, done = [line for line in body.encode().splitlines() if line]
    assert event_of(first)["choices"][0]["delta"] == {"content": "Par"}
    assert event_of(failed)["error"] == {"message": "LookupError: lost", "type": "app_error", "code": 400}
    assert done == b"data: [DONE]"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("app", "message"),
    [
        (breaks, "LookupError: no such country"),
        (leaves, "SystemExit: 3"),
        (leaves_later, "SystemExit: 3"),
        (forgets, "TypeError: the function returned None instead of an answer"),
    ],
)
def test_an_exception_is_the_error_of_its_item(
    app: Callable[..., Any],
    message: str,
    stream: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The text of the exception, also of one that ends programs, with a status that nobody tries again."""
    status, body = asked(app, stream=stream)
    assert (status, json.loads(body)["error"]["message"]) == (400, message)


def test_what_is_no_function_is_refused_by_name() -> None:
    """The error shows what was given."""
    with pytest.raises(TypeError, match="app= and checks= take functions, not 'answer'"), served("answer"):  # type: ignore[arg-type] # the mistake
        pass
