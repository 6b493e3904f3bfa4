"""When a failed call is made again: pure arithmetic, without a clock, a queue or a sleep.

**Model calls.** Waits are drawn from the whole range between zero and a limit that doubles (full jitter), so
that callers who failed together do not come back together. What the upstream asks for is waited in full,
and a little more. A rejection for too many requests is no attempt: only the total of the waits ends it. A
service tier without room (`flex`) is none either: that may take hours, and only the number of tries ends it.

    failed attempt     1      2      3      4      5 (the last)
    wait, seconds      0-1    0-2    0-4    0-8    -

Where an endpoint that has answered the run refuses connections, nothing was sent and it probably restarts:
then there are eight attempts, over a minute on average. One that has never answered has two (`contacts.py`).

**Queries** keep to the harness specification. A 429 is retried up to three times, after `delay * 2**retry`
seconds or what `Retry-After` asks, whichever is longer, and never sooner than a second. Nothing else is
retried, but with `--retry-errors` what is transient: timeouts, broken connections, status 500 and above.

    retry                0     1     2     then
    wait, delay 30 s     30    60    120   the result stands
    wait, delay 0 s      1     1     1     the result stands

>>> policy, history = ModelRetryPolicy(), History()
>>> history, step = plan_retry(policy, history, FailureReason.SERVER_ERROR, now_ms=1000, draw=lambda: 0.5)
>>> step, history.attempts
(RetryAt(ms=1500, is_attempt=True), 1)
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import random
from typing import Final, NamedTuple

from shared.codecs.parked_items import History
from shared.contracts.query_vocabulary import DEFAULT_DELAY_S, MAX_RETRIES
from shared.upstream.failure_reasons import FailureReason
from worker.upstream.constants import REFUSED_WAIT_MS, WAIT_MS
from worker.upstream.retry_after import MAX_WAIT_S

MIN_QUERY_WAIT_S: Final = 1.0
"""No query is sent again sooner, whatever delay and server say."""
NO_ATTEMPTS: Final = frozenset({FailureReason.RATE_LIMITED, FailureReason.NO_CAPACITY})
"""The upstream works, and took no part in what was asked."""
MOST_DOUBLINGS: Final = 30
"""2**30 seconds are 34 years: beyond every cap, and no float is ever infinite."""


@dataclass(frozen=True, slots=True)
class ModelRetryPolicy:
    """How often and how long model calls are tried; runs have no setting for it, all use the defaults."""

    max_attempts: int = 5
    """Attempts in all, the first included; a refusal for too many requests is none."""
    max_connects: int = 8
    """The same where an endpoint that has worked cannot be connected to."""
    retry_total_s: float = 600.0
    """Most seconds that an item may wait between its attempts, those for a tier without room left out."""
    most_without_room: int = 1_000
    """Tries of a service tier without room, one after the other: at a minute's cap about eight hours."""
    base_s: float = 1.0
    """Limit of the first wait, in seconds; it doubles with each failure."""
    cap_s: float = 60.0
    """The limit stops growing here, in seconds."""


@dataclass(frozen=True, slots=True)
class QueryRetryPolicy:
    """How often and how long queries are sent again; from the run's settings."""

    delay_s: float = DEFAULT_DELAY_S
    """Seconds between queries; the base of the waits."""
    max_retries: int = MAX_RETRIES
    """Retries of status 429."""
    retry_errors: int = 0
    """Retries of timeouts, broken connections and status 500 and above."""


class RetryAt(NamedTuple):
    """The item is to be tried again."""

    ms: int
    """Time of the next try, epoch milliseconds of the caller's clock."""
    is_attempt: bool
    """Whether what just failed counts as an attempt."""


class GiveUp(NamedTuple):
    """The item ends in an error."""

    code: str
    """Its error code."""


def plan_retry(
    policy: ModelRetryPolicy,
    history: History,
    reason: FailureReason,
    *,
    now_ms: int,
    wait_s: float | None = None,
    draw: Callable[[], float] = random,
) -> tuple[History, RetryAt | GiveUp]:
    """Decides what follows a call that failed.

    Args:
        policy: bounds of attempts and waits.
        history: what the item had been through before this call.
        reason: how the call ended.
        now_ms: the caller's clock, epoch milliseconds.
        wait_s: what the upstream asked us to wait.
        draw: source of uniform numbers in [0, 1); tests pass their own.

    Returns:
        What the item has been through now, and what to do.

    >>> policy, limited = ModelRetryPolicy(), FailureReason.RATE_LIMITED
    >>> plan_retry(policy, History(), limited, now_ms=0, wait_s=7, draw=lambda: 0.5)[1]
    RetryAt(ms=7500, is_attempt=False)
    >>> plan_retry(policy, History(), FailureReason.REFUSED, now_ms=0)[1]
    GiveUp(code='upstream_refused')
    """
    is_attempt = reason not in NO_ATTEMPTS
    history = history._replace(
        attempts=history.attempts + is_attempt,
        throttled=0 if is_attempt else history.throttled + 1,
        code=reason.model_code,
    )
    most = policy.max_connects if reason is FailureReason.UNREACHABLE else policy.max_attempts
    if not reason.is_retried or history.attempts >= most:
        return history, GiveUp(history.code)
    wait_ms = round(1000 * backoff_s(policy, history.attempts + history.throttled, draw, wait_s))
    waited_ms = history.waited_ms + (0 if reason is FailureReason.NO_CAPACITY else wait_ms)
    if waited_ms > 1000 * policy.retry_total_s or history.throttled > policy.most_without_room:
        return history, GiveUp(history.code)
    history = history._replace(waited_ms=waited_ms)
    return history, RetryAt(now_ms + wait_ms, is_attempt)


def frees_slot(reason: FailureReason | None, wait_ms: float) -> bool:
    """Returns whether a wait before the next attempt is too long to hold a slot for: the item is parked.

    >>> [frees_slot(FailureReason.RATE_LIMITED, ms) for ms in (500, 1_000)]
    [False, True]
    >>> frees_slot(FailureReason.TIMEOUT, 1_000)
    False
    """
    return wait_ms > (REFUSED_WAIT_MS if reason in NO_ATTEMPTS else WAIT_MS)


def backoff_s(
    policy: ModelRetryPolicy, failures: int, draw: Callable[[], float], wait_s: float | None = None
) -> float:
    """Draws the seconds to wait.

    Args:
        policy: base and cap.
        failures: failures so far, from 1.
        draw: source of uniform numbers in [0, 1).
        wait_s: what the upstream asked for; then as much as the first wait is added, for jitter.

    >>> [backoff_s(ModelRetryPolicy(), n, lambda: 0.5) for n in (1, 2, 3, 20)]
    [0.5, 1.0, 2.0, 30.0]
    """
    if wait_s is not None:
        return wait_s + draw() * policy.base_s
    return draw() * min(policy.cap_s, policy.base_s * 2.0 ** min(failures - 1, MOST_DOUBLINGS))


def query_retry_wait_s(
    policy: QueryRetryPolicy,
    reason: FailureReason | None,
    *,
    retries: int,
    retry_after_s: float | None = None,
) -> float | None:
    """Decides what follows the reply to a query.

    Args:
        policy: the run's settings.
        reason: why the reply is no answer; None when it is one.
        retries: how often this query has been sent again before.
        retry_after_s: what the server asked for, see `read_retry_after`.

    Returns:
        Seconds to wait before sending again, or None: the reply is the result.

    >>> limited = FailureReason.RATE_LIMITED
    >>> [query_retry_wait_s(QueryRetryPolicy(), limited, retries=n) for n in range(4)]
    [30.0, 60.0, 120.0, None]
    >>> query_retry_wait_s(QueryRetryPolicy(delay_s=0), limited, retries=0, retry_after_s=7)
    7.0
    """
    if retries >= _allowed_retries(policy, reason):
        return None
    backoff = policy.delay_s * 2.0 ** min(retries, MOST_DOUBLINGS)
    return float(min(max(backoff, retry_after_s or 0.0, MIN_QUERY_WAIT_S), MAX_WAIT_S))


def plan_query_retry(
    policy: QueryRetryPolicy,
    history: History,
    reason: FailureReason,
    *,
    now_ms: int,
    wait_s: float | None = None,
) -> tuple[History, RetryAt | GiveUp]:
    """Decides what follows a query that failed; see `plan_retry`, but here a 429 counts as an attempt.

    >>> plan_query_retry(QueryRetryPolicy(), History(), FailureReason.RATE_LIMITED, now_ms=0)[1]
    RetryAt(ms=30000, is_attempt=True)
    """
    history = history._replace(attempts=history.attempts + 1, code=reason.api_code)
    next_s = query_retry_wait_s(policy, reason, retries=history.attempts - 1, retry_after_s=wait_s)
    if next_s is None:
        return history, GiveUp(history.code)
    return history, RetryAt(now_ms + round(1000 * next_s), is_attempt=True)


def _allowed_retries(policy: QueryRetryPolicy, reason: FailureReason | None) -> int:
    """Returns how many retries a failure of this kind gets."""
    if reason is FailureReason.RATE_LIMITED:
        return policy.max_retries
    is_transient = reason is not None and reason.is_retried and not reason.ends_queries
    return policy.retry_errors if is_transient else 0
