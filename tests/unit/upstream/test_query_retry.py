"""Holds the retry decision against the document's arithmetic."""

from email.utils import formatdate

import pytest

from shared.upstream.failure_reasons import FailureReason
from worker.upstream.retry import QueryRetryPolicy, query_retry_wait_s
from worker.upstream.retry_after import MAX_WAIT_S, read_retry_after


def waits(
    policy: QueryRetryPolicy, failure: FailureReason, *, retry_after_s: float | None = None
) -> list[float]:
    """All waits until the result stands."""
    found: list[float] = []
    while (
        wait := query_retry_wait_s(policy, failure, retries=len(found), retry_after_s=retry_after_s)
    ) is not None:
        found.append(wait)
    return found


def test_429_is_retried_three_times_with_doubled_delay() -> None:
    """Waits are delay·2^retry from retry 0; there is none after the last."""
    assert waits(QueryRetryPolicy(), FailureReason.RATE_LIMITED) == [30, 60, 120]


def test_without_delay_a_retry_waits_a_second() -> None:
    """The floor holds for every retry."""
    assert waits(QueryRetryPolicy(delay_s=0), FailureReason.RATE_LIMITED) == [1, 1, 1]


def test_retry_after_counts_when_it_is_longer() -> None:
    """The longer of backoff and the server's wish is waited."""
    assert waits(QueryRetryPolicy(delay_s=10), FailureReason.RATE_LIMITED, retry_after_s=25) == [25, 25, 40]


def test_no_wait_is_longer_than_a_day() -> None:
    """Neither a huge delay nor a huge Retry-After parks a query for ever."""
    assert waits(QueryRetryPolicy(delay_s=1e9), FailureReason.RATE_LIMITED) == [MAX_WAIT_S] * 3
    assert (
        waits(QueryRetryPolicy(delay_s=0), FailureReason.RATE_LIMITED, retry_after_s=1e300)
        == [MAX_WAIT_S] * 3
    )


@pytest.mark.parametrize(
    "failure", [None, *(f for f in FailureReason if f is not FailureReason.RATE_LIMITED)]
)
def test_nothing_else_is_retried(failure: FailureReason | None) -> None:
    """Every other failure, and every answer, is a result at once."""
    assert query_retry_wait_s(QueryRetryPolicy(), failure, retries=0) is None


def test_retry_errors_retries_what_may_pass_by_itself() -> None:
    """Timeouts, broken connections and 5xx are retried as often as asked; refusals and bad bodies never."""
    policy = QueryRetryPolicy(delay_s=2, retry_errors=2)
    retried = {
        failure for failure in FailureReason if query_retry_wait_s(policy, failure, retries=0) is not None
    }
    assert retried == {
        FailureReason.RATE_LIMITED,
        FailureReason.NO_CAPACITY,  # of models only
        FailureReason.TIMEOUT,
        FailureReason.CONNECTION_LOST,
        FailureReason.SERVER_ERROR,
    }
    assert waits(policy, FailureReason.TIMEOUT) == [2, 4]


def test_many_retries_do_not_overflow() -> None:
    """The exponent is bounded."""
    policy = QueryRetryPolicy(delay_s=30, retry_errors=10**9)
    assert query_retry_wait_s(policy, FailureReason.CONNECTION_LOST, retries=10**8) == MAX_WAIT_S


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0),
        (" 17 ", 17),
        ("9" * 5000, MAX_WAIT_S),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        ("tomorrow", None),
        ("Thu, 99 Jan 2026 00:00:00 GMT", None),
        (formatdate(1000, usegmt=True), 0),
        (formatdate(1060, usegmt=True), 60),
        (formatdate(10**10, usegmt=True), MAX_WAIT_S),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    """Whatever else a server writes there is ignored; dates in the past mean now."""
    assert read_retry_after(header, now_s=1000) == seconds
