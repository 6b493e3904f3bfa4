"""The contract of clients of models (`proctor.clients`), as tests that every client passes.

    import asyncio, pytest
    from proctor.testing.client_contract import CONTRACT

    @pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
    def test_contract(clause):
        asyncio.run(clause(MySubject()))

A `Subject` makes clients, and tells whatever they call how to behave. A clause raises `AssertionError`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

from proctor.plugins import CallFailedError, ModelAnswer, ModelCall, ModelClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SLOW_S: Final = 0.4
"""How long a slow answer takes."""
FOREVER_S: Final = 60.0
CALLS: Final = 8
"""Calls at a time."""
WAIT_S: Final = 7.0


@dataclass(frozen=True)
class Behaviour:
    """How the upstream of a client answers."""

    text: str | None = "Hello"
    """Its answer; None: the text that it was asked."""
    status: int = 200
    """Of the reply; with another one than 200 the text is what went wrong."""
    wait_s: float | None = None
    """How long it asks to wait (`Retry-After`)."""
    has_usage: bool = True
    """Whether it counts 11 tokens of the question, and 3 of the answer."""
    after_s: float = 0.0
    """Before it answers."""
    is_answer: bool = True
    """Whether what comes is an answer at all."""


class Subject(Protocol):
    """A kind of client with its upstream."""

    def client(self) -> ModelClient:
        """Makes a client."""
        ...

    def behave(self, behaviour: Behaviour) -> None:
        """Has the upstream answer so from now on."""

    def asked(self) -> Sequence[str]:
        """Returns what the upstream was sent since it was told to behave, each call as text."""
        ...


Clause = Callable[[Subject], Awaitable[None]]


def call(text: str = "Hi", system: str = "", **more: Any) -> ModelCall:
    """Makes a call with one question."""
    messages = [{"role": "system", "content": system}] if system else []
    return ModelCall("model", [*messages, {"role": "user", "content": text}], **more)


@asynccontextmanager
async def _client(subject: Subject, behaviour: Behaviour) -> "AsyncIterator[ModelClient]":
    subject.behave(behaviour)
    client = subject.client()
    try:
        yield client
    finally:
        await client.close()


async def _failure(subject: Subject, client: ModelClient, behaviour: Behaviour) -> CallFailedError:
    subject.behave(behaviour)
    try:
        answer = await client.complete(call())
    except CallFailedError as error:
        asked = subject.asked()
        assert len(asked) == 1, f"asked {len(asked)} times: retries are around a client"
        return error
    raise AssertionError(f"answered {answer!r}, and there was no answer")


async def an_answer_comes_with_its_figures(subject: Subject) -> None:
    """Text and tokens are those of the reply; one call was made, with the system message."""
    async with _client(subject, Behaviour("größer als ✓")) as client:
        answer = await client.complete(call("What is it?", "Be brief."))
        assert isinstance(answer, ModelAnswer), f"a {type(answer).__name__} is no ModelAnswer"
        assert answer.text == "größer als ✓", answer.text
        assert (answer.input_tokens, answer.output_tokens) == (11, 3), answer
        (asked,) = subject.asked()
        assert "What is it?" in asked, asked
        assert "Be brief." in asked, asked


async def tokens_that_are_not_counted_are_unknown(subject: Subject) -> None:
    """None, not zero: zero would be a figure."""
    async with _client(subject, Behaviour(has_usage=False)) as client:
        answer = await client.complete(call())
        assert (answer.input_tokens, answer.output_tokens) == (None, None), answer


async def a_status_is_told(subject: Subject) -> None:
    """What follows from a failure depends on it: 429 is called again, 401 ends the run."""
    async with _client(subject, Behaviour()) as client:
        for status in (400, 401, 429, 500, 503):
            error = await _failure(subject, client, Behaviour("because", status))
            assert error.status == status, f"{status} is told as {error.status}"
            assert not error.reason, f"the status says it: reason {error.reason!r} goes before it"


async def a_wait_is_told(subject: Subject) -> None:
    """How long an upstream asks to wait is how long all workers wait."""
    async with _client(subject, Behaviour()) as client:
        error = await _failure(subject, client, Behaviour("slow down", 429, wait_s=WAIT_S))
        assert error.wait_s == WAIT_S, error.wait_s


async def what_is_no_answer_is_none(subject: Subject) -> None:
    """A reply without an answer in it is told as that, never as a text."""
    async with _client(subject, Behaviour()) as client:
        error = await _failure(subject, client, Behaviour(is_answer=False))
        assert error.reason == "invalid_reply", error.reason


async def calls_do_not_wait_for_each_other(subject: Subject) -> None:
    """Some calls at a time take as long as one, each with its own answer, and the loop goes on meanwhile."""
    async with _client(subject, Behaviour()) as client:
        await client.complete(call())  # what only a first call needs
        subject.behave(Behaviour(None, after_s=SLOW_S))
        began, longest, done = perf_counter(), 0.0, asyncio.Event()

        async def tick() -> None:
            """Measures the longest time that the loop stood still."""
            nonlocal longest
            while not done.is_set():
                before = perf_counter()
                await asyncio.sleep(0)
                longest = max(longest, perf_counter() - before)

        ticking = asyncio.create_task(tick())
        answers = await asyncio.gather(*(client.complete(call(f"text {at}")) for at in range(CALLS)))
        done.set()
        await ticking
        took = perf_counter() - began
        assert [answer.text for answer in answers] == [f"text {at}" for at in range(CALLS)], answers
        assert took < SLOW_S * CALLS / 2, f"{CALLS} calls took {took:.1f} s, one takes {SLOW_S} s"
        assert longest < SLOW_S / 2, f"the loop stood for {longest:.1f} s: a call blocks it"


async def a_call_can_be_given_up(subject: Subject) -> None:
    """It ends at once, and the client goes on."""
    async with _client(subject, Behaviour(after_s=FOREVER_S)) as client:
        began = perf_counter()
        try:
            async with asyncio.timeout(SLOW_S):
                await client.complete(call())
        except TimeoutError:
            took = perf_counter() - began
            assert took < SLOW_S + 2, f"given up after {took:.1f} s"
        else:
            raise AssertionError("answered before the upstream did, or took the timeout for an answer")
        subject.behave(Behaviour("again"))
        assert (await client.complete(call())).text == "again"


async def it_can_be_closed_unused(subject: Subject) -> None:
    """A client that was never called opens nothing."""
    async with _client(subject, Behaviour()):
        pass


CONTRACT: Final[Sequence[Clause]] = (
    an_answer_comes_with_its_figures,
    tokens_that_are_not_counted_are_unknown,
    a_status_is_told,
    a_wait_is_told,
    what_is_no_answer_is_none,
    calls_do_not_wait_for_each_other,
    a_call_can_be_given_up,
    it_can_be_closed_unused,
)
"""All clauses."""
