"""When a query is sent again: the document's arithmetic, without a clock, a queue or a sleep.

A reply of status 429 is retried up to three times, after `delay * 2**retry` seconds or what `Retry-After`
asks, whichever is longer, and never sooner than a second. Nothing else is retried, unless `--retry-errors`
says so for what may pass by itself: timeouts, broken connections, status 500 and above.

    retry                0     1     2     then
    wait, delay 30 s     30    60    120   the result stands
    wait, delay 0 s      1     1     1     the result stands
"""

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

from shared.contracts.query_vocabulary import DEFAULT_DELAY_S, MAX_RETRIES
from worker.queries.reply import Failure

MIN_WAIT_S: Final = 1.0
"""No retry comes sooner, whatever delay and server say."""
MAX_WAIT_S: Final = 86_400.0
"""No wait is longer: a server that asks for more than a day is not believed."""

_PASSES_BY_ITSELF: Final = frozenset({Failure.TIMEOUT, Failure.LOST, Failure.SERVER_ERROR})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and how long in between; from the run's settings."""

    delay_s: float = DEFAULT_DELAY_S
    """Seconds between queries; the base of the waits."""
    max_retries: int = MAX_RETRIES
    """Retries of status 429."""
    retry_errors: int = 0
    """Retries of timeouts, broken connections and status 500 and above."""


def retry_wait_s(
    policy: RetryPolicy, failure: Failure | None, *, retries: int, retry_after_s: float | None = None
) -> float | None:
    """Decides what follows a reply.

    Args:
        policy: the run's settings.
        failure: why the reply is no answer; None when it is one.
        retries: how often this query has been sent again before.
        retry_after_s: what the server asked for, see `read_retry_after`.

    Returns:
        Seconds to wait before sending again, or None: the reply is the result.

    >>> [retry_wait_s(RetryPolicy(), Failure.RATE_LIMITED, retries=n) for n in range(4)]
    [30.0, 60.0, 120.0, None]
    >>> retry_wait_s(RetryPolicy(delay_s=0), Failure.RATE_LIMITED, retries=0, retry_after_s=7)
    7.0
    """
    if retries >= _allowed(policy, failure):
        return None
    backoff = policy.delay_s * 2.0 ** min(retries, 32)
    return float(min(max(backoff, retry_after_s or 0.0, MIN_WAIT_S), MAX_WAIT_S))


def read_retry_after(header: str | None, *, now_s: float) -> float | None:
    """Reads a `Retry-After` header: whole seconds or an HTTP date.

    Args:
        header: its value; None when the reply had none.
        now_s: seconds since the epoch, for dates.

    Returns:
        Seconds from 0 to a day, or None for what is neither.

    >>> read_retry_after("120", now_s=0), read_retry_after("soon", now_s=0), read_retry_after("-3", now_s=0)
    (120.0, None, None)
    >>> read_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now_s=15)
    45.0
    """
    text = (header or "").strip()
    if not text.isascii() or not text:
        return None
    if text.isdigit():
        return MAX_WAIT_S if len(text) > len("86400") else min(float(text), MAX_WAIT_S)
    try:
        seconds = parsedate_to_datetime(text).timestamp() - now_s
    except (ValueError, OverflowError, OSError):
        return None
    return min(max(seconds, 0.0), MAX_WAIT_S)


def _allowed(policy: RetryPolicy, failure: Failure | None) -> int:
    """Returns how many retries this kind of failure gets."""
    if failure is Failure.RATE_LIMITED:
        return policy.max_retries
    return policy.retry_errors if failure in _PASSES_BY_ITSELF else 0
