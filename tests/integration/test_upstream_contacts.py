"""Models that never answered a run are given up after two attempts; those that did are waited for."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import pytest

from shared.keys import contacts_key
from shared.upstream.failure_reasons import FailureReason
from tests.support.asking import ScriptedModel, answering, ask, models_of, question, scope
from tests.support.upstream import called, discipline, soon
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.constants import LEAST_CALLS
from worker.upstream.failures import UpstreamError
from worker.upstream.gate import Sent
from worker.upstream.model_caller import ModelCaller
from worker.upstream.retry import ModelRetryPolicy

if TYPE_CHECKING:
    import redis

QUICK: Final = ModelRetryPolicy(base_s=0.001)
REFUSED: Final = UpstreamError(FailureReason.UNREACHABLE, "Connection refused")
MISSING: Final = UpstreamError(FailureReason.REFUSED, "HTTP 404: Not Found", status=404)
OFF: Final[dict[str, Any]] = {"use_cache": False, "retry": QUICK}


def scripted(*steps: UpstreamError | None) -> Callable[[ModelRequest, int], ModelReply | UpstreamError]:
    """A script with these failures in their order (None: an answer); the last one stays."""

    def script(request: ModelRequest, nth: int) -> ModelReply | UpstreamError:
        return steps[min(nth, len(steps)) - 1] or answering()(request, nth)

    return script


def with_models(
    client: "redis.Redis", model: ScriptedModel, work: Callable[[ModelCaller], Awaitable[Any]]
) -> Any:
    """Does something with one process's models."""

    async def inside() -> Any:
        async with discipline(client) as upstream:
            return await work(models_of(upstream, model))

    return asyncio.run(inside())


def reasons(asked: list[Any]) -> list[FailureReason | None]:
    """Why each question has no answer."""
    return [each.end.reason if isinstance(each.end, UpstreamError) else None for each in asked]


@pytest.mark.parametrize(("failure", "attempts"), [(REFUSED, [2, 1, 1]), (MISSING, [1, 1, 1])])
def test_a_model_that_never_answered_is_given_up(
    redis_client: "redis.Redis", failure: UpstreamError, attempts: list[int]
) -> None:
    """Two refused connections end a question, a 404 does at once; then later ones end with the first."""
    model = ScriptedModel(scripted(failure))

    async def work(models: ModelCaller) -> tuple[list[Any], list[bool]]:
        absent = [await models.are_absent([question().target], scope(**OFF))]
        asked = [await ask(models, question(str(each)), scope(**OFF)) for each in range(3)]
        absent.append(await models.are_absent([question().target], scope(**OFF)))
        return asked, absent

    asked, absent = with_models(redis_client, model, work)
    assert reasons(asked) == [FailureReason.ABSENT] * 3
    assert {each.end.code for each in asked} == {"upstream_connection"}
    assert [each.history.attempts for each in asked] == attempts
    assert absent == [False, True]


def test_refusals_of_what_never_answered_open_no_breaker(redis_client: "redis.Redis") -> None:
    """However often a run is begun before its server is: the first answer comes without a wait."""
    model = ScriptedModel(scripted(*[REFUSED] * 2 * LEAST_CALLS, None))

    async def work(models: ModelCaller) -> list[Any]:
        runs = [scope(f"r{number}", **OFF) for number in range(LEAST_CALLS)]
        return [await ask(models, question(), run) for run in [*runs, scope("last", **OFF)]]

    asked = with_models(redis_client, model, work)
    assert reasons(asked) == [*[FailureReason.ABSENT] * LEAST_CALLS, None]


@pytest.mark.parametrize("first", [None, UpstreamError(FailureReason.SERVER_ERROR, "HTTP 500", status=500)])
def test_a_model_that_has_answered_is_waited_for(
    redis_client: "redis.Redis", first: UpstreamError | None
) -> None:
    """After an answer, and after any other reply than 404, refused connections are tried eight times."""
    model = ScriptedModel(scripted(first, REFUSED, REFUSED, None, REFUSED))

    async def work(models: ModelCaller) -> list[Any]:
        return [await ask(models, question(str(each)), scope(**OFF)) for each in range(3)]

    asked = with_models(redis_client, model, work)
    assert isinstance(asked[1 if first is None else 0].end, ModelReply)
    assert reasons(asked)[-1] is FailureReason.UNREACHABLE
    assert asked[-1].history.attempts == QUICK.max_connects


def test_an_answer_that_another_worker_waits_for_is_waited_for(redis_client: "redis.Redis") -> None:
    """While a call to the model is under way elsewhere nothing is given up, and its answer holds for all."""
    model, near = ScriptedModel(scripted(REFUSED)), ScriptedModel(answering(), hold_s=30.0)

    async def work() -> tuple[Any, Any]:
        async with discipline(redis_client) as here, discipline(redis_client) as there:
            reached, begun = models_of(there, near), asyncio.Event()
            near.on_first = begun.set
            call = asyncio.ensure_future(ask(reached, question(), scope(**OFF)))
            await begun.wait()
            refused = await ask(models_of(here, model), question(), scope(**OFF))
            call.cancel()
            near.hold_s = 0.0
            await ask(reached, question(), scope(**OFF))
            await soon(lambda: _has_answered(redis_client))
            return refused, await ask(models_of(here, model), question(), scope(**OFF))

    before, after = asyncio.run(work())
    assert (before.history.attempts, after.history.attempts) == (5, 8)
    assert reasons([before, after]) == [FailureReason.UNREACHED, FailureReason.UNREACHABLE]


def _has_answered(client: "redis.Redis") -> None:
    fields = client.hgetall(contacts_key("r1"))
    assert any("ok:" in str(name) for name in fields), fields


def test_a_late_server_is_used_and_a_retry_begins_anew(redis_client: "redis.Redis") -> None:
    """A model that is given up answers the next question that reaches it; a retry forgets what was."""
    model = ScriptedModel(scripted(REFUSED, REFUSED, None, REFUSED))

    async def work(models: ModelCaller) -> list[Any]:
        asked = [await ask(models, question(str(each)), scope(**OFF)) for each in range(3)]
        return [*asked, await ask(models, question(), scope(generation=1, **OFF))]

    asked = with_models(redis_client, model, work)
    assert reasons(asked) == [FailureReason.ABSENT, None, FailureReason.UNREACHABLE, FailureReason.ABSENT]
    assert [each.history.attempts for each in asked] == [2, 1, 8, 2]


def test_an_open_breaker_does_not_hold_what_is_given_up(redis_client: "redis.Redis") -> None:
    """Other runs opened the breaker of a model that this run never reached: its questions end at once."""
    model = ScriptedModel(scripted(REFUSED))

    async def work() -> tuple[Any, Any]:
        async with discipline(redis_client) as upstream:
            models = models_of(upstream, model)
            await ask(models, question(), scope(**OFF))
            own = models._endpoint_of(question().target, scope(**OFF))

            async def fail() -> Sent[str]:
                raise UpstreamError(FailureReason.SERVER_ERROR, "no")

            ended = Counter[str]()
            while not ended["Deferred"]:
                try:
                    ended[type(await called(upstream, own, fail)).__name__] += 1
                except UpstreamError as error:
                    ended[error.code] += 1
            return ended, await ask(models, question(), scope(**OFF))

    ended, asked = asyncio.run(work())
    assert ended["upstream_server_error"] >= LEAST_CALLS
    assert reasons([asked]) == [FailureReason.ABSENT]
    assert len(model.asked) == 2, "nothing is sent while the breaker is open"
