"""Calls through the gate against a real Redis: limits over processes, breaker, pause, cancel, faults.

Longer than 500 lines, because each promise of the gate is one short story over the same few helpers.
"""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Coroutine
from itertools import cycle
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from shared import keys
from shared.errors import RedisUnreachableError
from shared.ledger.calls import ScriptCaller
from shared.server.client import RedisTarget
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.limits import LimitBook, Limits, ScopeState
from shared.upstream.model_target import ModelTarget
from tests.benchmarks.simulate_refusals import bucket
from tests.support.eventually import eventually
from tests.support.processes import SHORT_LEASE_S, Processes
from tests.support.redis_server import RedisServer
from tests.support.upstream import API, TIMES, Calls, at_last, called, discipline, keep_time, overlap, soon
from worker.outcomes import Deferred
from worker.upstream.constants import USED_MS
from worker.upstream.endpoints import api_endpoint, model_endpoint, run_scope
from worker.upstream.failures import UpstreamError
from worker.upstream.gate import Sent
from worker.upstream.stack import UpstreamStack, compose_all

if TYPE_CHECKING:
    import redis

ENDPOINT = api_endpoint(API)
NewServer = Callable[..., RedisServer]


async def answer() -> Sent[str]:
    """A call that succeeds at once."""
    return Sent("answer")


async def fail() -> Sent[str]:
    """A call that meets a broken upstream."""
    raise UpstreamError(FailureReason.SERVER_ERROR, "boom", status=500)


def _answered_unless(fails: bool, reason: FailureReason, wait_s: float | None = None) -> Sent[bool]:  # noqa: FBT001 - said by its name
    """Answers, or fails for a reason."""
    if fails:
        raise UpstreamError(reason, "no", wait_s=wait_s)
    return Sent(True)  # noqa: FBT003 - an answer


async def _is_answered(upstream: UpstreamStack, send: Callable[[], Awaitable[Sent[bool]]]) -> bool:
    """Calls at last; False where the upstream fails."""
    try:
        return bool(await at_last(upstream, ENDPOINT, send))
    except UpstreamError:
        return False


def book_of(client: "redis.Redis") -> LimitBook:
    """The limits as `proctor limits` reads them."""
    return LimitBook(ScriptCaller(client, patience_s=5, scripts=compose_all()))


def state_is(client: "redis.Redis", expected: Callable[[ScopeState], bool]) -> None:
    """Asserts something of the one scope there is."""
    (state,) = book_of(client).states()
    assert expected(state), state


def with_upstream(client: "redis.Redis", work: Callable[[UpstreamStack], Awaitable[Any]]) -> Any:
    """Does something with one process's discipline."""

    async def inside() -> Any:
        """Has it while it does so."""
        async with discipline(client) as upstream:
            return await work(upstream)

    return asyncio.run(inside())


def test_names_of_scopes_that_are_gone_do_not_pile_up(redis_client: "redis.Redis") -> None:
    """Each run has a scope of its own that ends by itself; its name goes when others come."""
    redis_client.zadd(keys.SCOPES_KEY, {f"run:{number}": 1 for number in range(40)})

    async def work(upstream: UpstreamStack) -> None:
        """Makes a call for each of ten new runs."""
        for number in range(10):
            endpoint = api_endpoint(API, run_scope(f"new-{number}", concurrency=2))
            await upstream.gate.call(endpoint, answer, owner="token")

    with_upstream(redis_client, work)
    names = redis_client.zrange(keys.SCOPES_KEY, 0, -1)
    assert {API.encode(), *(f"run:new-{number}".encode() for number in range(10))} <= set(names)
    assert len(names) < 40, "fifty were written"


def test_the_expiry_of_a_scope_is_moved_in_each_half_of_its_time(redis_client: "redis.Redis") -> None:
    """Keys of limits live on for half an hour or more after each use, and few calls write their expiry."""
    found, scope, half_ms = [], keys.scope_key(API), USED_MS / 2

    async def during() -> Sent[str]:
        found.append([redis_client.pttl(key) for key in (scope, keys.permits_key(API))])
        return Sent("answer")

    async def work(upstream: UpstreamStack) -> None:
        await upstream.gate.call(ENDPOINT, during, owner="token")
        redis_client.pexpire(scope, 1_000_000)
        await upstream.gate.call(ENDPOINT, during, owner="token")
        redis_client.hincrbyfloat(scope, "at", -half_ms)
        await upstream.gate.call(ENDPOINT, during, owner="token")

    with_upstream(redis_client, work)
    assert [[left > half_ms for left in each] for each in found] == [
        [True, True],
        [False, True],
        [True, True],
    ]


def test_a_call_returns_what_was_sent_and_leaves_nothing_behind(redis_client: "redis.Redis") -> None:
    """The gate hands the value on, and its permit is gone when the call has ended."""

    async def work(upstream: UpstreamStack) -> object:
        return await upstream.gate.call(ENDPOINT, answer, owner="token")

    assert with_upstream(redis_client, work) == "answer"
    assert redis_client.zcard(keys.permits_key(API)) == 0
    assert [state.key for state in book_of(redis_client).states()] == [API]


def test_calls_of_one_process_never_exceed_a_limit_at_a_time(redis_client: "redis.Redis") -> None:
    """A hundred callers take turns at four places, first come, first served; parked ones come back."""
    endpoint = api_endpoint(API, run_scope("r1", concurrency=4))

    async def work(upstream: UpstreamStack) -> tuple[Calls, list[int]]:
        calls, order = Calls(0.01), list[int]()

        async def one(number: int) -> None:
            """Notes when it got through; one that waited too long has lost its place, and comes back."""
            if isinstance(await called(upstream, endpoint, calls.send), Deferred):
                await at_last(upstream, endpoint, calls.send)
            else:
                order.append(number)

        await asyncio.gather(*map(one, range(100)))
        return calls, order

    calls, order = with_upstream(redis_client, work)
    assert calls.most == 4
    assert len(calls.spans) == 100
    assert sum(abs(came - number) for came, number in zip(sorted(order), order, strict=True)) < 1_000


def test_callers_that_wait_hold_no_permit(
    redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renewing keeps the permits of calls under way, and gives none to those that wait."""
    monkeypatch.setattr("worker.upstream.stack.RENEWALS", 100)
    endpoint = api_endpoint(API, limits=Limits(concurrency=2))

    async def work(upstream: UpstreamStack) -> None:
        calls = Calls(0.6)
        tasks = [asyncio.create_task(at_last(upstream, endpoint, calls.send)) for _ in range(6)]
        await asyncio.sleep(0.4)
        redis_client.hset(keys.CLOCK_KEY, mapping={"lc": 1_000})
        await asyncio.sleep(0.15)
        permits: Any = redis_client.zrange(keys.permits_key(API), 0, -1, withscores=True)
        assert len(permits) == 2
        assert all(until >= TIMES.lease_ms + 1_000 for _, until in permits), "not renewed"
        await asyncio.gather(*tasks)
        assert calls.most == 2

    with_upstream(redis_client, work)


def test_four_processes_never_exceed_a_shared_limit(
    redis_client: "redis.Redis", processes: Processes, python: str, proctor_env: dict[str, str]
) -> None:
    """Four processes that call as fast as they may keep one limit of rate and one of calls at a time."""
    options = {"rpm": 6_000, "concurrency": 6, "calls": 75, "hold_s": 0.03}
    url = proctor_env["PROCTOR_REDIS_URL"]
    fleet = [
        processes.start(python, "-m", "tests.support.upstream", url, json.dumps(options)) for _ in range(4)
    ]
    spans: list[tuple[float, float]] = []
    for process in fleet:
        assert process.wait(60) == 0, process.output_text()
        spans += map(tuple, json.loads(process.output.splitlines()[-1]))
    assert len(spans) == 300
    assert overlap(spans) <= 6
    began = sorted(began for began, _ in spans)
    for first in range(len(began) - 100):
        # 100 a second with a burst of 50; a process may note a call some moments after its leave.
        assert began[first + 100] - began[first] > 0.5 - 0.2
    assert redis_client.zcard(keys.permits_key(API)) == 0


@pytest.mark.chaos
def test_permits_of_a_killed_process_end_with_its_lease(
    redis_client: "redis.Redis", processes: Processes, python: str, proctor_env: dict[str, str]
) -> None:
    """What a process held when it was killed is free again after the lease, and not before."""
    url, ended = proctor_env["PROCTOR_REDIS_URL"], threading.Event()
    timekeeper = keep_time(redis_client, ended)
    options = {"concurrency": 2, "calls": 2, "hold_s": 600}
    holder = processes.start(python, "-m", "tests.support.upstream", url, json.dumps(options))
    holder.wait_for("calling")
    eventually(lambda: _assert_equal(redis_client.zcard(keys.permits_key(API)), 2))
    holder.popen.kill()
    killed = monotonic()

    async def work(upstream: UpstreamStack) -> object:
        return await at_last(upstream, api_endpoint(API, limits=Limits(concurrency=2)), answer)

    try:
        assert with_upstream(redis_client, work) == "answer"
    finally:
        ended.set()
        timekeeper.join()
    assert SHORT_LEASE_S / 2 < monotonic() - killed < SHORT_LEASE_S + 10


def _assert_equal(one: object, other: object) -> None:
    assert one == other


def test_a_limit_that_a_person_sets_holds_within_a_second(redis_client: "redis.Redis") -> None:
    """Workers that are already calling obey `limits set`, and forget it after `limits unset`."""
    book = book_of(redis_client)

    async def work(upstream: UpstreamStack) -> None:
        async def refused() -> None:
            """Waits for the new limit to hold."""
            deadline = monotonic() + 5
            while not isinstance(await called(upstream, ENDPOINT, answer), Deferred):
                assert monotonic() < deadline
                await asyncio.sleep(0.02)

        await upstream.gate.call(ENDPOINT, answer)
        book.set(API + "/", Limits(pace_s=60))
        await refused()
        assert book.unset(API)
        assert book.reset(API) == 1
        deadline = monotonic() + 5
        while isinstance(await called(upstream, ENDPOINT, answer), Deferred):
            assert monotonic() < deadline
            await asyncio.sleep(0.02)

    with_upstream(redis_client, work)


def test_an_upstream_that_refuses_everything_is_left_alone_by_every_process(
    redis_client: "redis.Redis", caplog: pytest.LogCaptureFixture
) -> None:
    """After two refusals and no answer nobody sends before `Retry-After`; longer waits park.

    One refusal holds nobody up but its own call.
    """

    async def busy() -> Sent[str]:
        """Meets a refusal."""
        raise UpstreamError(FailureReason.RATE_LIMITED, "slow down", status=429, wait_s=20.0)

    async def work(upstream: UpstreamStack) -> None:
        async with discipline(redis_client) as other:
            for stack in (upstream, other):
                with pytest.raises(UpstreamError):
                    await stack.gate.call(ENDPOINT, busy)
            await soon(lambda: state_is(redis_client, lambda state: state.paused_ms > 15_000))
            await soon(lambda: _assert_equal(caplog.messages.count("upstream paused"), 1))
            later = await called(other, ENDPOINT, answer)
            assert isinstance(later, Deferred)
            assert later.reason == "paused"
            redis_client.hset(keys.scope_key(API), "pause", 0)

            async def short() -> Sent[str]:
                """Meets a short refusal."""
                raise UpstreamError(FailureReason.RATE_LIMITED, "slow down", status=429, wait_s=0.5)

            for _ in range(2):
                with pytest.raises(UpstreamError):
                    await upstream.gate.call(ENDPOINT, short)
            await soon(lambda: state_is(redis_client, lambda state: state.paused_ms > 0))
            began = monotonic()
            assert await other.gate.call(ENDPOINT, answer) == "answer"
            assert 0.3 < monotonic() - began < 2.5

    with_upstream(redis_client, work)


def test_a_broken_endpoint_of_a_model_holds_no_other_one_back(redis_client: "redis.Redis") -> None:
    """The breaker that opens for a model at one `api_base` lets it be called at another, and at its provider.

    A limit that is set for the model holds at each, and `reset` of the model closes the breaker.
    """
    broken, healthy = (
        model_endpoint(ModelTarget("mine", api_base=f"{API}/{name}"), "") for name in ("a", "b")
    )
    named = model_endpoint(ModelTarget("mine"), "")

    async def work(upstream: UpstreamStack) -> None:
        for _ in range(20):
            with pytest.raises(UpstreamError):
                await upstream.gate.call(broken, fail)
        for endpoint in (healthy, named):
            assert await upstream.gate.call(endpoint, answer) == "answer"
        later = await called(upstream, broken, answer)
        assert isinstance(later, Deferred)
        assert later.reason == "breaker"
        assert book_of(redis_client).reset("mine") == 3
        assert await upstream.gate.call(broken, answer) == "answer"

    with_upstream(redis_client, work)
    book_of(redis_client).set("mine", Limits(pace_s=60))

    async def limited(upstream: UpstreamStack) -> None:
        """Turns the call away."""
        for endpoint in (broken, healthy):
            assert await upstream.gate.call(endpoint, answer) == "answer"
            later = await called(upstream, endpoint, answer)
            assert isinstance(later, Deferred)
            assert later.reason == "rate"

    with_upstream(redis_client, limited)


def test_a_broken_upstream_is_left_alone_and_tried_again_by_probes(redis_client: "redis.Redis") -> None:
    """When most calls fail the breaker opens: items are parked, none is sent; a good probe closes it."""
    sent = 0

    async def work(upstream: UpstreamStack) -> None:
        async def counted() -> Sent[str]:
            """Fails, and counts."""
            nonlocal sent
            sent += 1
            return await fail()

        for _ in range(20):
            with pytest.raises(UpstreamError):
                await upstream.gate.call(ENDPOINT, counted)
        later = await called(upstream, ENDPOINT, counted)
        assert isinstance(later, Deferred)
        assert later.reason == "breaker"
        assert sent == 20
        await soon(lambda: state_is(redis_client, lambda state: 5_000 < state.open_ms <= 10_000))
        redis_client.hset(keys.scope_key(API), "open", 1)
        with pytest.raises(UpstreamError):
            await upstream.gate.call(ENDPOINT, counted)
        # A failing probe opens it for twice as long.
        await soon(lambda: state_is(redis_client, lambda state: 15_000 < state.open_ms <= 20_000))
        redis_client.hset(keys.scope_key(API), "open", 1)
        assert await upstream.gate.call(ENDPOINT, answer) == "answer"
        await soon(lambda: state_is(redis_client, lambda state: state.breaker == "closed"))

    with_upstream(redis_client, work)


def test_half_of_the_calls_may_fail(redis_client: "redis.Redis") -> None:
    """The breaker opens above one half, not at it; refusals of single requests are no failures."""

    async def refused() -> Sent[str]:
        """Is answered with a refusal of this request."""
        raise UpstreamError(FailureReason.REFUSED, "no", status=400)

    async def work(upstream: UpstreamStack) -> None:
        for _ in range(30):
            with pytest.raises(UpstreamError):
                await upstream.gate.call(ENDPOINT, refused)
            with pytest.raises(UpstreamError):
                await upstream.gate.call(ENDPOINT, fail)
        assert isinstance(await upstream.gate.call(ENDPOINT, answer), str), "closed"
        for _ in range(2):
            with pytest.raises(UpstreamError):
                await upstream.gate.call(ENDPOINT, fail)
        await soon(lambda: state_is(redis_client, lambda state: state.breaker == "open"))

    with_upstream(redis_client, work)


def test_an_endpoint_without_breaker_is_always_asked(redis_client: "redis.Redis") -> None:
    """Where every failure is a result, fifty failures in a row are fifty calls, and are counted as such."""
    endpoint = api_endpoint(API, has_breaker=False)

    async def work(upstream: UpstreamStack) -> None:
        await upstream.gate.call(endpoint, answer)
        await soon(lambda: state_is(redis_client, lambda state: (state.failed, state.counted) == (0, 1)))
        for _ in range(50):
            with pytest.raises(UpstreamError):
                await upstream.gate.call(endpoint, fail)
        await soon(lambda: state_is(redis_client, lambda state: (state.failed, state.counted) == (50, 51)))
        assert book_of(redis_client).states()[0].breaker == "closed"

    with_upstream(redis_client, work)


def test_a_hidden_limit_is_learned_and_sparse_refusals_cost_little(redis_client: "redis.Redis") -> None:
    """Two processes soon send what an upstream of 100 a second grants; every tenth refusal slows nothing."""

    async def work(upstream: UpstreamStack) -> None:
        admit, refused, answered = bucket(100, 10), list[bool](), list[float]()
        every_tenth = cycle([False] * 9 + [True])

        async def limited() -> Sent[bool]:
            """An upstream of 100 a second."""
            is_over = bool(admit(1_000 * monotonic(), 0))
            refused.append(is_over)
            return _answered_unless(is_over, FailureReason.RATE_LIMITED, wait_s=1.0)

        async def flaky() -> Sent[bool]:
            """An upstream that refuses every tenth call."""
            is_refused = next(every_tenth)
            await asyncio.sleep(0 if is_refused else 0.05)
            return _answered_unless(is_refused, FailureReason.RATE_LIMITED, wait_s=1.0)

        async def one(stack: UpstreamStack) -> None:
            """Calls again and again."""
            until = monotonic() + 8
            while monotonic() < until:
                if await _is_answered(stack, limited):
                    answered.append(monotonic())

        async with discipline(redis_client) as other:
            began = monotonic()
            await asyncio.gather(*(one(stack) for stack in (upstream, other) for _ in range(20)))
        later = [moment for moment in answered if moment > began + 4]
        assert len(later) > 0.7 * 100 * 4
        assert sum(refused[-300:]) < 0.15 * 300
        rpm = book_of(redis_client).states()[0].adaptive_rpm
        assert rpm is not None
        assert 60 * 70 < rpm < 60 * 160
        assert book_of(redis_client).reset(API) == 1
        began = monotonic()
        await asyncio.gather(*(_is_answered(upstream, flaky) for _ in range(500)))
        assert monotonic() - began < 5, "a pause of a second for each of fifty refusals"

    with_upstream(redis_client, work)


def test_timeouts_lower_the_calls_at_a_time_for_all_and_success_raises_them(
    redis_client: "redis.Redis",
) -> None:
    """An upstream in which what is beyond ten at a time times out is soon called about ten at a time."""

    async def work(upstream: UpstreamStack) -> None:
        under_way, turned_away = 0, list[bool]()

        async def limited() -> Sent[bool]:
            """An upstream that bears ten."""
            nonlocal under_way
            under_way += 1
            is_over = under_way > 10
            turned_away.append(is_over)
            await asyncio.sleep(0.03)
            under_way -= 1
            return _answered_unless(is_over, FailureReason.TIMEOUT)

        async def one() -> None:
            """Calls again and again."""
            for _ in range(20):
                await _is_answered(upstream, limited)

        await asyncio.gather(*(one() for _ in range(40)))
        late = turned_away[-400:-100]
        assert sum(late) / len(late) < 0.4, "of forty at a time three in four would be turned away"
        adaptive = book_of(redis_client).states()[0].adaptive
        assert adaptive is not None
        assert 2 < adaptive < 30

    with_upstream(redis_client, work)


def test_a_call_that_hangs_ends_at_its_hard_limit(redis_client: "redis.Redis") -> None:
    """A client that forgets its own timeout is broken off, and its place is free."""

    async def hang() -> Sent[str]:
        """Never ends."""
        await asyncio.Event().wait()
        return Sent("never")

    async def work(upstream: UpstreamStack) -> None:
        with pytest.raises(UpstreamError, match=r"0\.05 s") as caught:
            await upstream.gate.call(api_endpoint(API, timeout_s=0.05), hang)
        assert caught.value.reason is FailureReason.TIMEOUT

    with_upstream(redis_client, work)
    assert redis_client.zcard(keys.permits_key(API)) == 0


@pytest.mark.parametrize("where", ["asking", "in line", "waiting for a turn", "calling"])
def test_a_cancelled_caller_leaves_nothing_behind(redis_client: "redis.Redis", where: str) -> None:
    """Whoever is cancelled, wherever it stands, holds no permit and keeps nobody else from going on."""
    limits = {"in line": Limits(concurrency=1), "waiting for a turn": Limits(pace_s=0.3)}.get(where, Limits())
    endpoint = api_endpoint(API, limits=limits)

    async def work(upstream: UpstreamStack) -> None:
        calls = Calls(0.4)
        first = asyncio.create_task(at_last(upstream, endpoint, calls.send))
        await calls.begun.wait()
        others = [asyncio.create_task(upstream.gate.call(endpoint, calls.send)) for _ in range(5)]
        await asyncio.sleep(0 if where == "asking" else 0.15)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        assert all(task.cancelled() for task in others)
        assert await first == "answer"
        assert await at_last(upstream, endpoint, answer) == "answer"

    with_upstream(redis_client, work)
    assert redis_client.zcard(keys.permits_key(API)) == 0


def test_calls_go_on_when_redis_comes_back(new_redis_server: NewServer) -> None:
    """A Redis that is killed and restarted in the middle costs a delay, and no call."""
    server = new_redis_server()

    async def work(upstream: UpstreamStack) -> Calls:
        calls = Calls(0.02)
        endpoint = api_endpoint(API, limits=Limits(concurrency=5))
        tasks = [asyncio.create_task(at_last(upstream, endpoint, calls.send)) for _ in range(100)]
        await calls.begun.wait()
        await asyncio.get_running_loop().run_in_executor(None, server.restart)
        await asyncio.gather(*tasks)
        return calls

    calls = with_upstream(server.client(), work)
    assert len(calls.spans) == 100


def test_a_redis_that_stays_away_is_reported_to_the_process(new_redis_server: NewServer) -> None:
    """After the ledger's patience callers get the error, and the process hears of it once for each round."""
    server, away = new_redis_server(), list[RedisUnreachableError]()

    async def work() -> None:
        client = RedisTarget.parse(server.url).client()
        async with discipline(client, patience_s=0.3, away=away) as upstream:
            await upstream.gate.call(ENDPOINT, answer)
            server.kill()
            with pytest.raises(RedisUnreachableError):
                await upstream.gate.call(ENDPOINT, answer)

    asyncio.run(work())
    assert away


def test_tokens_are_charged_by_estimate_and_settled(redis_client: "redis.Redis") -> None:
    """A call that used fewer tokens than estimated gives the rest back to the limit at once."""
    endpoint = api_endpoint(API, limits=Limits(tpm=6_000))

    def cheap(used: int) -> Callable[[], Coroutine[Any, Any, Sent[str]]]:
        """A call that uses so many tokens."""

        async def send() -> Sent[str]:
            """Answers."""
            return Sent("answer", tokens=used)

        return send

    async def work(upstream: UpstreamStack) -> None:
        assert await upstream.gate.call(endpoint, cheap(10), tokens=6_000) == "answer"
        assert await upstream.gate.call(endpoint, cheap(900), tokens=10) == "answer"
        later = await called(upstream, endpoint, answer, tokens=1)
        assert isinstance(later, Deferred)
        assert later.reason == "rate"

    with_upstream(redis_client, work)


def test_nothing_is_sent_for_an_item_that_another_worker_has(redis_client: "redis.Redis") -> None:
    """The call is deferred, no call is made, and its permit is free."""
    calls = Calls()

    async def work() -> None:
        """Calls for a chunk that was taken."""

        async def taken(owner: str) -> bool:
            """Whether the chunk is still ours."""
            return owner != "lost"

        async with discipline(redis_client, confirm=taken) as upstream:
            later = await called(upstream, ENDPOINT, calls.send, owner="lost")
            assert isinstance(later, Deferred)
            assert await upstream.gate.call(ENDPOINT, calls.send, owner="ours") == "answer"

    asyncio.run(work())
    assert len(calls.spans) == 1
    eventually(lambda: state_is(redis_client, lambda state: not state.in_flight))
