"""Functions as models: what each kind of function answers to a request, without a worker."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from proctor.app import served

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where?"}]


def asked(app: Callable[..., Any], *, stream: bool = False) -> tuple[int, str]:
    """Status and body of the answer to a request."""
    with served(app) as url:
        place = urlsplit(url)
        connection = HTTPConnection(str(place.hostname), place.port, timeout=10)
        connection.request(
            "POST", f"{place.path}/chat/completions", json.dumps({"messages": ASKED, "stream": stream})
        )
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found


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


def breaks(_text: str) -> str:
    """Fails."""
    raise LookupError("no such country")


@pytest.mark.parametrize(
    ("app", "answer"),
    [
        (waits, "Paris, user"),
        (pieces, "Paris, Where?"),
        (flows, "Paris, Where?"),
        (counts, '{"capital": ["Paris"]}'),
    ],
)
def test_functions_answer_in_their_own_way(app: Callable[..., Any], answer: str) -> None:
    """A coroutine that takes messages, generators of both kinds, and an object."""
    status, body = asked(app)
    assert (status, json.loads(body)["choices"][0]["message"]["content"]) == (200, answer)


@pytest.mark.parametrize("app", [pieces, flows])
def test_pieces_are_sent_as_they_come(app: Callable[..., Any]) -> None:
    """Each is an event of its own, before the last two."""
    events = [line.removeprefix("data: ") for line in asked(app, stream=True)[1].splitlines() if line]
    assert [json.loads(event)["choices"][0]["delta"] for event in events[:-1]] == [
        {"content": "Paris"},
        {"content": ", Where?"},
        {},
    ]
    assert events[-1] == "[DONE]"


@pytest.mark.parametrize("stream", [False, True])
def test_an_exception_is_the_error_of_its_item(stream: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """The text of the exception, with a status that nobody tries again."""
    status, body = asked(breaks, stream=stream)
    assert (status, json.loads(body)["error"]["message"]) == (400, "LookupError: no such country")
