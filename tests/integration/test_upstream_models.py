"""Questions to models through cache, budget, limits and retry, against a real Redis.

Longer than 300 lines, because each promise is one short story over the same few helpers.
"""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from shared import keys
from shared.clock import now_ms
from shared.codecs.parked_items import History, WaitReason
from shared.errors import UsageError
from shared.ledger.ledger import Ledger
from shared.upstream.cached_answers import AnswerBook
from shared.upstream.costs import CostBook
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from tests.support.asking import (
    MODEL,
    Asked,
    ScriptedModel,
    answering,
    ask,
    ask_at_last,
    ended,
    models_of,
    question,
    scope,
)
from tests.support.ledger_runs import submit_cases
from tests.support.processes import SHORT_LEASE_S, Processes
from tests.support.upstream import discipline, keep_time, soon
from worker.outcomes import Deferred, EndRun
from worker.upstream.attempts import CallsMade
from worker.upstream.cache import MOST_BYTES
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest
from worker.upstream.endpoints import GRACE_S
from worker.upstream.failures import UpstreamError
from worker.upstream.model_caller import ModelCaller
from worker.upstream.retry import ModelRetryPolicy

if TYPE_CHECKING:
    import redis

CALL_USD = 10 * 1e-6 + 100 * 1e-5
"""What a call of `answering()` costs by the prices of `scope()`."""
QUICK = ModelRetryPolicy(max_attempts=3, base_s=0.001)


def with_models(
    client: "redis.Redis", model: ScriptedModel, work: Callable[[ModelCaller], Awaitable[Any]]
) -> Any:
    """Does something with one process's models."""

    async def inside() -> Any:
        """Has them while it does so."""
        async with discipline(client) as upstream:
            return await work(models_of(upstream, model))

    return asyncio.run(inside())


def test_what_only_a_first_call_costs_counts_as_no_call(redis_client: "redis.Redis") -> None:
    """A client makes itself ready before limits and time limits begin; a cached answer needs none of it."""
    in_flight = list[int]()
    model = ScriptedModel(answering(), prepare_s=0.3)

    async def work(models: ModelCaller) -> None:
        """Asks the same twice, with a time limit that is shorter than the client takes to be ready."""
        model.on_prepare = lambda: in_flight.append(models._gate._limiter.in_flight)
        for is_cached in (False, True):
            asked = await ask(
                models, question(target=ModelTarget(MODEL, timeout_s=0.1 - GRACE_S)), scope(max_cost=1.0)
            )
            assert isinstance(asked.end, ModelReply)
            assert asked.end.is_cached is is_cached

    with_models(redis_client, model, work)
    assert in_flight == [0]


def book_of(client: "redis.Redis") -> CostBook:
    """The costs as `watch` and reports read them."""
    return CostBook(Ledger(client).caller)


def failing(reason: FailureReason, times: int = 1_000, **more: Any) -> Callable[[ModelRequest, int], Any]:
    """A script that fails so many times, then answers."""

    def script(request: ModelRequest, nth: int) -> ModelReply | UpstreamError:
        return UpstreamError(reason, "no", **more) if nth <= times else answering()(request, nth)

    return script


def test_identical_questions_are_asked_once(redis_client: "redis.Redis") -> None:
    """Of twenty at once and one later, one reaches the model; the others have its answer and figures."""
    model = ScriptedModel(answering(), hold_s=0.05)

    async def work(models: ModelCaller) -> list[Any]:
        """Asks."""
        first = await asyncio.gather(*(ask(models, question(), scope()) for _ in range(20)))
        return [*first, await ask(models, question(), scope(run="r2"))]

    asked = with_models(redis_client, model, work)
    assert len(model.asked) == 1
    assert Counter(end.end.is_cached for end in asked) == {True: 20, False: 1}
    assert {(end.end.text, end.end.latency_ms, end.end.usage.output_tokens) for end in asked} == {
        ("Hello 1", 7, 100)
    }
    assert all(end.end.cost_usd == pytest.approx(CALL_USD) for end in asked)
    assert sorted(end.history.attempts for end in asked) == [0] * 20 + [1]
    info = AnswerBook(Ledger(redis_client).caller).info()
    assert (info.answers, info.misses, info.hits) == (1, 1, 20)


def test_different_questions_and_repetitions_are_asked(redis_client: "redis.Redis") -> None:
    """Another repetition, temperature, endpoint or parameter is another question; --no-cache asks always."""
    model = ScriptedModel(answering())
    questions = [
        question(),
        question(repeat=1),
        question(temperature=0.5),
        question(target=ModelTarget(MODEL, "http://localhost:1/v1")),
        question(parameters={"max_tokens": 7}),
    ]

    async def work(models: ModelCaller) -> None:
        """Asks all of them, twice, and one without the cache."""
        for each in [*questions, *questions]:
            await ask(models, each, scope())
        assert len(model.asked) == len(questions)
        await ask(models, question(), scope(use_cache=False))

    with_models(redis_client, model, work)
    assert len(model.asked) == len(questions) + 1


def test_errors_and_huge_answers_are_not_kept(redis_client: "redis.Redis") -> None:
    """After a failure the next one who asks leads, and what is too large is asked for again."""
    refused = ScriptedModel(failing(FailureReason.REFUSED, times=1), hold_s=0.02)
    huge = ScriptedModel(lambda _request, _nth: ModelReply("x" * (MOST_BYTES + 1), 1))

    async def work(models: ModelCaller) -> list[Any]:
        """Asks the same at once."""
        return list(await asyncio.gather(*(ask(models, question(), scope()) for _ in range(3))))

    ends = with_models(redis_client, refused, work)
    assert Counter(type(each.end) for each in ends) == {UpstreamError: 1, ModelReply: 2}
    assert len(refused.asked) == 2
    redis_client.flushall()
    assert all(isinstance(each.end, ModelReply) for each in with_models(redis_client, huge, work))
    assert len(huge.asked) == 3
    assert list(redis_client.scan_iter(keys.answer_key("*"))) == []


def test_who_waits_too_long_for_an_answer_is_parked(redis_client: "redis.Redis") -> None:
    """A follower holds its slot for two seconds, and comes back a second or two later."""
    model = ScriptedModel(answering(), hold_s=2.5)

    async def work(models: ModelCaller) -> list[Any]:
        """Asks the same twice."""
        return list(await asyncio.gather(*(ask(models, question(), scope()) for _ in range(2))))

    lead, follower = with_models(redis_client, model, work)
    assert isinstance(lead.end, ModelReply)
    assert isinstance(follower.end, Deferred)
    assert (follower.end.reason, follower.history) == ("cache", History())
    assert 0 < follower.end.due_ms - now_ms() <= 2_000


def test_processes_share_answers(
    redis_client: "redis.Redis", processes: Processes, python: str, proctor_env: dict[str, str]
) -> None:
    """Three processes with the same forty questions make forty calls."""
    url, options = proctor_env["PROCTOR_REDIS_URL"], {"questions": 40, "hold_s": 0.2, "tokens": 100}
    fleet = [
        processes.start(python, "-m", "tests.support.asking", url, json.dumps(options)) for _ in range(3)
    ]
    totals: Counter[str] = Counter()
    for process in fleet:
        assert process.wait(60) == 0, process.output_text()
        totals.update(json.loads(process.output.splitlines()[-1]))
    assert totals == {"ModelReply": 40, "cached": 80, "calls": 40}
    assert not list(redis_client.scan_iter(keys.flight_key("*")))


def test_a_run_stops_at_its_cost_cap_and_goes_on_with_a_higher_one(redis_client: "redis.Redis") -> None:
    """With room for two and a half calls two are made; what is spent can be read; a new cap counts."""
    model = ScriptedModel(answering(), hold_s=0.02)
    capped = scope(max_cost=2.5 * CALL_USD)

    async def work(models: ModelCaller) -> None:
        """Asks for more than the cap has room for, then raises it."""
        ends = await asyncio.gather(*(ask_at_last(models, question(str(n)), capped) for n in range(8)))
        assert Counter(type(each.end) for each in ends) == {ModelReply: 2, EndRun: 6}
        over = next(each.end for each in ends if isinstance(each.end, EndRun))
        assert over.why.startswith("cost cap reached: $0.00202 of $0.002525 is spent")
        book_of(redis_client).set_cap("r1", 4 * CALL_USD)
        ends = await asyncio.gather(*(ask_at_last(models, question(f"b{n}"), capped) for n in range(8)))
        assert Counter(type(each.end) for each in ends) == {ModelReply: 2, EndRun: 6}
        again = next(call.user for call in model.asked)
        kept = await ask(models, question(again), capped)
        assert isinstance(kept.end, ModelReply), "answers kept cost nothing"

    with_models(redis_client, model, work)
    cost = book_of(redis_client).read("r1")
    assert (cost.spent_usd, cost.cap_usd) == pytest.approx((4 * CALL_USD, 4 * CALL_USD))
    assert cost.held_usd == 0
    assert len(model.asked) == 4


@pytest.mark.parametrize("usd", [-1, float("nan"), 1e12])
def test_a_cap_is_a_number_of_dollars(redis_client: "redis.Redis", usd: float) -> None:
    """What is no cap is refused."""
    with pytest.raises(UsageError, match="cannot be capped"):
        book_of(redis_client).set_cap("r1", usd)


def test_processes_share_a_budget(
    redis_client: "redis.Redis", processes: Processes, python: str, proctor_env: dict[str, str]
) -> None:
    """Three processes that ask as fast as they may make the calls that the cap has room for, no more."""
    url = proctor_env["PROCTOR_REDIS_URL"]
    fleet = [
        processes.start(
            python,
            "-m",
            "tests.support.asking",
            url,
            json.dumps(
                {
                    "questions": 30,
                    "hold_s": 0.02,
                    "tokens": 100,
                    "max_cost": 40.5 * CALL_USD,
                    "tag": f"{number} ",
                }
            ),
        )
        for number in range(3)
    ]
    totals: Counter[str] = Counter()
    for process in fleet:
        assert process.wait(60) == 0, process.output_text()
        totals.update(json.loads(process.output.splitlines()[-1]))
    assert totals == {"ModelReply": 40, "EndRun": 50, "calls": 40}
    assert book_of(redis_client).read("r1").spent_usd == pytest.approx(40 * CALL_USD)


@pytest.mark.parametrize(
    ("reason", "spent"),
    [(FailureReason.REFUSED, 0), (FailureReason.CONNECTION_LOST, 0), (FailureReason.TIMEOUT, 1)],
)
def test_failed_calls_cost_what_they_may_have_cost(
    redis_client: "redis.Redis", reason: FailureReason, spent: int
) -> None:
    """A refusal costs nothing; a call without an answer in time counts as estimated: it may be billed."""
    model = ScriptedModel(failing(reason))
    request = question("x" * 30, parameters={"max_tokens": 50})

    async def work(models: ModelCaller) -> Any:
        """Asks."""
        return await ask(models, request, scope(max_cost=1, retry=ModelRetryPolicy(max_attempts=1)))

    end = with_models(redis_client, model, work)
    assert (type(end.end), end.end.reason, end.history.attempts) == (UpstreamError, reason, 1)
    cost = book_of(redis_client).read("r1")
    assert cost.spent_usd == pytest.approx(spent * (18 * 1e-6 + 50 * 1e-5))
    assert cost.held_usd == 0


def test_a_model_without_a_price_is_not_asked_under_a_cap(redis_client: "redis.Redis") -> None:
    """Nobody can keep a cap with unknown prices, so nothing is sent; without a cap the cost stays unknown."""
    model = ScriptedModel(answering())

    async def work(models: ModelCaller) -> list[Any]:
        """Asks with and without a cap."""
        return [
            await ask(models, question(), scope(prices={}, max_cost=1)),
            await ask(models, question(), scope(prices={})),
        ]

    capped, free = with_models(redis_client, model, work)
    assert (capped.end.code, capped.end.ends_run) == ("price_unknown", True)
    assert MODEL in capped.end.message
    assert (free.end.cost_usd, len(model.asked)) == (None, 1)


def test_short_waits_happen_inside_and_long_ones_park(redis_client: "redis.Redis") -> None:
    """Server errors are retried at once; a longer wait is parked with what was; a bad key ends it."""

    async def work(models: ModelCaller) -> Any:
        """Asks under quick rules."""
        return await ask(models, question(), scope(retry=QUICK, use_cache=False))

    end = with_models(redis_client, ScriptedModel(failing(FailureReason.SERVER_ERROR, times=2)), work)
    assert (type(end.end), end.history.attempts) == (ModelReply, 3)
    end = with_models(redis_client, ScriptedModel(failing(FailureReason.SERVER_ERROR)), work)
    assert (type(end.end), end.history.attempts, end.end.code) == (UpstreamError, 3, "upstream_server_error")
    end = with_models(redis_client, ScriptedModel(failing(FailureReason.UNAUTHORISED)), work)
    assert (type(end.end), end.end.ends_run) == (UpstreamError, True)
    end = with_models(redis_client, ScriptedModel(failing(FailureReason.RATE_LIMITED, wait_s=30)), work)
    assert (type(end.end), end.end.reason, end.history.attempts) == (Deferred, WaitReason.RETRY, 0)
    assert end.history.code == "upstream_rate_limited"
    assert 28_000 < end.end.due_ms - now_ms() < 32_000


def test_the_bound_of_a_run_holds(redis_client: "redis.Redis") -> None:
    """`-j 3` lets three calls of the run out at a time, whatever is asked."""
    model = ScriptedModel(answering(), hold_s=0.03)

    async def work(models: ModelCaller) -> None:
        """Asks twelve things."""
        bounded = scope(concurrency=3)
        await asyncio.gather(*(ask_at_last(models, question(str(n)), bounded) for n in range(12)))

    with_models(redis_client, model, work)
    assert (model.most, len(model.asked)) == (3, 12)


def test_a_cancelled_call_leaves_only_its_cost_behind(redis_client: "redis.Redis") -> None:
    """A call that is broken off may be billed, so its estimate counts; all that it held is free."""
    begun = asyncio.Event()
    model = ScriptedModel(answering(), hold_s=60, on_first=begun.set)
    request = question("x" * 30, parameters={"max_tokens": 50})

    async def work(models: ModelCaller) -> None:
        """Cancels a call under way, and one that waits for its answer."""
        tasks = [asyncio.ensure_future(ask(models, request, scope(max_cost=1))) for _ in range(2)]
        await begun.wait()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await soon(lambda: _assert_free(redis_client))

    with_models(redis_client, model, work)
    assert book_of(redis_client).read("r1").spent_usd == pytest.approx(18 * 1e-6 + 50 * 1e-5)


def _assert_free(client: "redis.Redis") -> None:
    """Asserts that nothing is held."""
    assert book_of(client).read("r1").held_usd == 0
    assert not list(client.scan_iter(keys.flight_key("*")))
    assert not list(client.scan_iter(keys.permits_key("*")))
    assert not list(client.scan_iter(keys.holds_key("*")))


def test_costs_end_with_their_run(redis_client: "redis.Redis") -> None:
    """What a run has cost is kept as long as the run, and removed with it."""
    ledger = Ledger(redis_client)
    submit_cases(ledger, "r1", [["0"]])

    async def work(models: ModelCaller) -> None:
        """Asks for the run."""
        await ask(models, question(), scope(max_cost=1))

    with_models(redis_client, ScriptedModel(answering()), work)
    assert redis_client.pttl(keys.cost_key("r1")) == -1
    ledger.control("r1", "cancelled")
    assert 0 < redis_client.pttl(keys.cost_key("r1")) <= 3_600_000
    ledger.remove("r1")
    assert not list(redis_client.scan_iter("*r1:cost*"))


@pytest.mark.chaos
def test_what_a_killed_process_had_is_free_after_its_lease(
    redis_client: "redis.Redis", processes: Processes, python: str, proctor_env: dict[str, str]
) -> None:
    """Another asks what a killed process was asking, after its lease; the killed call counts as spent."""
    url, ended = proctor_env["PROCTOR_REDIS_URL"], threading.Event()
    timekeeper = keep_time(redis_client, ended)
    options = {"questions": 1, "hold_s": 600, "tokens": 100, "max_cost": 1}
    holder = processes.start(python, "-m", "tests.support.asking", url, json.dumps(options))
    holder.wait_for("calling")
    holder.popen.kill()
    killed, model = monotonic(), ScriptedModel(answering())
    held = book_of(redis_client).read("r1").held_usd
    assert held > 0

    async def work(models: ModelCaller) -> Any:
        """Asks the same; there is room for it only when nothing is reserved any more."""
        return await ask_at_last(models, question("0"), scope(max_cost=held + 1.5 * CALL_USD))

    try:
        assert isinstance(with_models(redis_client, model, work).end, ModelReply)
    finally:
        ended.set()
        timekeeper.join()
    assert SHORT_LEASE_S / 2 < monotonic() - killed < SHORT_LEASE_S + 10
    cost = book_of(redis_client).read("r1")
    assert cost.spent_usd == pytest.approx(held + CALL_USD)
    assert cost.held_usd == 0
    assert len(model.asked) == 1


async def embed(models: ModelCaller, *texts: str, max_cost: float | None = None) -> Asked:
    """Embeds texts on behalf of a run."""
    request, calls = EmbeddingRequest(ModelTarget(MODEL), texts), CallsMade()
    return await ended(models.embed(request, scope(max_cost=max_cost), calls, on_send=nullcontext), calls)


def test_embeddings_share_cache_flight_and_budget(redis_client: "redis.Redis") -> None:
    """Identical texts are embedded once, also at one time; the price is on the bill, and the cap holds."""
    model = ScriptedModel(answering(), hold_s=0.05)

    async def work(models: ModelCaller) -> list[Asked]:
        """Embeds the same texts four times at once, the same again, and others when the money is spent."""
        together = await asyncio.gather(*(embed(models, "Hello", "Hi", max_cost=1.0) for _ in range(4)))
        again = await embed(models, "Hello", "Hi", max_cost=1.0)
        return [*together, again, await embed(models, "other", max_cost=10 * 1e-6)]

    *ends, last = with_models(redis_client, model, work)
    assert len(model.embedded) == 1
    assert all(isinstance(each.end, EmbeddingReply) for each in ends)
    assert sorted(end.end.is_cached for end in ends) == [False, True, True, True, True]
    assert {end.end.cost_usd for end in ends} == {0.00001}
    assert [list(vector) for vector in ends[-1].end.vectors] == [[5, 1], [2, 1]]
    assert isinstance(last.end, EndRun)


def test_an_embedding_is_no_answer(redis_client: "redis.Redis") -> None:
    """A question and an embedding of the same text do not share an entry of the cache."""
    model = ScriptedModel(answering())

    async def work(models: ModelCaller) -> tuple[Asked, Asked]:
        """Embeds a text, and asks it."""
        return await embed(models, "Hello"), await ask(models, question("Hello"), scope())

    embedded, answered = with_models(redis_client, model, work)
    assert isinstance(embedded.end, EmbeddingReply)
    assert isinstance(answered.end, ModelReply)
    assert (len(model.embedded), len(model.asked)) == (1, 1)
