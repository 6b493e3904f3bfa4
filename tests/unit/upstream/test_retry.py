"""Holds the retry schedule by table and by the distribution of its waits."""

import pickle
import random
from collections.abc import Callable
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.codecs.parked_items import History, ParkedState, WaitReason, decode_parked, encode_parked
from shared.upstream.failure_reasons import FailureReason, Health, reason_of_status
from worker.upstream.failures import UpstreamError
from worker.upstream.retry import GiveUp, ModelRetryPolicy, RetryAt, backoff_s, plan_retry
from worker.upstream.retry_after import requested_wait_s

DRAWS = 4_000
KOLMOGOROV_1_IN_10_000 = 2.23
"""A sample of a uniform distribution is farther from it than this over sqrt(n) once in ten thousand."""


def half() -> float:
    """The middle of every range."""
    return 0.5


def distance_from_uniform(sample: list[float], low: float, high: float) -> float:
    """The largest gap between the sample's distribution and the uniform one (Kolmogorov-Smirnov)."""
    scaled = sorted((value - low) / (high - low) for value in sample)
    step = 1 / len(scaled)
    return max(max(abs(value - at * step), abs(value - (at + 1) * step)) for at, value in enumerate(scaled))


@pytest.mark.parametrize(("failures", "limit_s"), [(1, 1.0), (2, 2.0), (3, 4.0), (7, 60.0), (40, 60.0)])
def test_waits_are_spread_evenly_from_zero_to_the_limit(failures: int, limit_s: float) -> None:
    """The waits after a failure are uniform over the whole range, not clustered anywhere in it."""
    draw = random.Random(failures).random
    waits = [backoff_s(ModelRetryPolicy(), failures, draw) for _ in range(DRAWS)]
    assert distance_from_uniform(waits, 0.0, limit_s) < KOLMOGOROV_1_IN_10_000 / DRAWS**0.5
    assert min(waits) < 0.01 * limit_s
    assert max(waits) > 0.99 * limit_s
    assert fmean(waits) == pytest.approx(limit_s / 2, rel=0.05)


def test_what_the_upstream_asks_is_waited_in_full_and_spread_over_one_base() -> None:
    """A wait that was asked for is a floor: nobody comes earlier, and not all at the same moment."""
    draw = random.Random(5).random
    waits = [backoff_s(ModelRetryPolicy(), 9, draw, wait_s=7.0) for _ in range(DRAWS)]
    assert distance_from_uniform(waits, 7.0, 8.0) < KOLMOGOROV_1_IN_10_000 / DRAWS**0.5


def test_default_draws_are_random() -> None:
    """Without a source of its own each call draws another wait."""
    steps = {plan_retry(ModelRetryPolicy(), History(), FailureReason.TIMEOUT, now_ms=0)[1] for _ in range(50)}
    assert len(steps) > 40


@pytest.mark.parametrize("reason", FailureReason)
def test_only_what_may_pass_by_itself_is_tried_again(reason: FailureReason) -> None:
    """429, timeouts, connections and 5xx are tried again, everything else ends at once."""
    _, step = plan_retry(ModelRetryPolicy(), History(), reason, now_ms=0, draw=half)
    assert isinstance(step, RetryAt if reason.is_retried else GiveUp)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (429, FailureReason.RATE_LIMITED),
        (408, FailureReason.TIMEOUT),
        (500, FailureReason.SERVER_ERROR),
        (502, FailureReason.SERVER_ERROR),
        (503, FailureReason.SERVER_ERROR),
        (529, FailureReason.SERVER_ERROR),
        (401, FailureReason.UNAUTHORISED),
        (403, FailureReason.UNAUTHORISED),
        (400, FailureReason.REFUSED),
        (404, FailureReason.REFUSED),
        (301, FailureReason.REFUSED),
    ],
)
def test_a_status_has_one_meaning(status: int, reason: FailureReason) -> None:
    """Each status is read the same way by every client."""
    assert reason_of_status(status) is reason


def run_out(reason: FailureReason, rules: ModelRetryPolicy, draw: Callable[[], float]) -> tuple[History, int]:
    """Fails until the end; returns the last history and how many calls were made."""
    history, now_ms, calls = History(), 0, 0
    while True:
        calls += 1
        history, step = plan_retry(rules, history, reason, now_ms=now_ms, draw=draw)
        if isinstance(step, GiveUp):
            assert step.code == reason.model_code
            return history, calls
        assert step.ms >= now_ms
        now_ms = step.ms


def test_attempts_are_counted_from_one_and_end() -> None:
    """With five attempts allowed the fifth failure is the end, after four waits."""
    history, calls = run_out(FailureReason.SERVER_ERROR, ModelRetryPolicy(max_attempts=5), half)
    assert (calls, history.attempts, history.waited_ms) == (5, 5, 500 + 1000 + 2000 + 4000)


def test_a_refusal_for_too_many_requests_is_no_attempt() -> None:
    """429 ends an item by the total of its waits only, and leaves its attempts as they were."""
    history, calls = run_out(FailureReason.RATE_LIMITED, ModelRetryPolicy(max_attempts=2), half)
    assert history.attempts == 0
    assert calls > 20
    assert 540_000 <= history.waited_ms <= 600_000


def test_a_tier_without_room_is_waited_for_as_long_as_that_takes() -> None:
    """Neither attempts nor the total of the waits are used up, but the number of tries has an end."""
    history, calls = run_out(FailureReason.NO_CAPACITY, ModelRetryPolicy(), half)
    assert (history.attempts, history.waited_ms, calls) == (0, 0, 1_001)
    assert (
        reason_of_status(429, '{"error": {"message": "Resource Unavailable"}}') is FailureReason.NO_CAPACITY
    )
    assert reason_of_status(498) is FailureReason.NO_CAPACITY
    assert reason_of_status(500, "resource_unavailable") is FailureReason.SERVER_ERROR


def test_an_attempt_ends_a_row_of_refusals() -> None:
    """The waits of refusals do not stay long once the upstream let a call through."""
    history = History(attempts=1, throttled=6)
    history, _ = plan_retry(ModelRetryPolicy(), history, FailureReason.TIMEOUT, now_ms=0, draw=half)
    assert (history.attempts, history.throttled) == (2, 0)


def test_a_wait_longer_than_what_is_left_is_not_begun() -> None:
    """A quota that is back tomorrow ends the item now instead of in ten minutes."""
    _, step = plan_retry(ModelRetryPolicy(), History(), FailureReason.RATE_LIMITED, now_ms=0, wait_s=86_400)
    assert step == GiveUp("upstream_rate_limited")


@given(
    st.lists(st.sampled_from(list(FailureReason)), max_size=60),
    st.floats(0, 0.999),
    st.integers(1, 9),
    st.one_of(st.none(), st.floats(0, 200)),
)
def test_no_item_waits_longer_than_the_total_or_tries_more_than_allowed(
    reasons: list[FailureReason], drawn: float, most: int, asked: float | None
) -> None:
    """Whatever happens, waits and attempts stay within the rules, and the history survives parking."""
    rules, history = ModelRetryPolicy(max_attempts=most), History()
    allowed = max(most, rules.max_connects) if FailureReason.UNREACHABLE in reasons else most
    for reason in reasons:
        history, step = plan_retry(rules, history, reason, now_ms=5, wait_s=asked, draw=lambda: drawn)
        assert history.attempts <= allowed
        assert history.waited_ms <= 600_000
        stored = encode_parked(ParkedState(WaitReason.RETRY, history))
        assert decode_parked(stored).history == history
        if isinstance(step, GiveUp):
            return
        assert step.is_attempt == (reason not in {FailureReason.RATE_LIMITED, FailureReason.NO_CAPACITY})
        assert step.ms >= 5 + (asked or 0) * 1000 - 1


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": " 0.25 "}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "99999999999999999999"}, 86_400.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "\u0663"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:20:00 GMT"}, 200.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1.5s",
                "x-ratelimit-remaining-tokens": "900",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            1.5,
        ),
        ({"x-ratelimit-reset-requests": "17ms", "retry-after": "2"}, 2.0),
        ({"x-ratelimit-reset": "1000000005"}, 5.0),
        ({"x-ratelimit-reset-requests": "tomorrow"}, None),
    ],
)
def test_the_asked_wait_is_read_from_any_known_header(headers: dict[str, str], wait_s: float | None) -> None:
    """Seconds, dates, milliseconds and the providers' reset headers are read; nonsense is no wait."""
    now_s = 1e9 if "x-ratelimit-reset" in headers else 1_000.0
    assert requested_wait_s(headers, now_s=now_s) == (None if wait_s is None else pytest.approx(wait_s))


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset-requests"]), st.text()
    )
)
def test_no_header_breaks_the_reading(headers: dict[str, str]) -> None:
    """Hostile headers give no wait, or one between zero and a day."""
    wait_s = requested_wait_s(headers, now_s=0)
    assert wait_s is None or 0 <= wait_s <= 86_400


@pytest.mark.parametrize("reason", FailureReason)
def test_errors_survive_pickling(reason: FailureReason) -> None:
    """An error comes out of a pickle as it went in, with everything it knows."""
    error = UpstreamError(reason, "m" * 1000, status=503, wait_s=2.5)
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own pickle, made on this line
    assert (back.reason, back.message, back.status, back.wait_s) == (reason, "m" * 1000, 503, 2.5)
    assert (back.code, back.retryable, back.health) == (error.code, error.retryable, error.health)


def test_what_a_failure_says_about_its_endpoint() -> None:
    """A refusal of one request says nothing against the endpoint; a run ends where every call would fail."""
    health = {reason: UpstreamError(reason, "").health for reason in FailureReason}
    assert health[FailureReason.RATE_LIMITED] is Health.BUSY
    assert health[FailureReason.TIMEOUT] is Health.SLOW
    assert {health[FailureReason.CONNECTION_LOST], health[FailureReason.SERVER_ERROR]} == {Health.UNHEALTHY}
    assert {
        health[t] for t in (FailureReason.REFUSED, FailureReason.UNAUTHORISED, FailureReason.TOO_LARGE)
    } == {Health.OK}
    ending = {reason.name for reason in FailureReason if UpstreamError(reason, "").ends_run}
    assert ending == {"UNAUTHORISED", "FORBIDDEN", "INSECURE", "UNPRICED"}
