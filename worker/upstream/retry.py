"""What follows a model call that failed: pure arithmetic, without a clock, a queue or a sleep.

Waits are drawn from the whole range between zero and a limit that doubles (full jitter), so that callers who
failed together do not come back together. What the upstream asks for is waited in full, and a little more.

    failed attempt     1      2      3      4      5 (the last)
    wait, seconds      0-1    0-2    0-4    0-8    -

A refusal for too many requests is no attempt: only the total of the waits ends it.

>>> rules, history = RetryRules(), History()
>>> history, step = after_failure(rules, history, Trouble.SERVER_ERROR, now_ms=1000, draw=lambda: 0.5)
>>> step, history.attempts
(RetryAt(ms=1500, is_attempt=True), 1)
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import random
from typing import Final, NamedTuple

from worker.upstream.failures import RETRYABLE, Trouble

MOST_DOUBLINGS: Final = 30
"""2**30 seconds are 34 years: beyond every cap, and no float is ever infinite."""
MOST_DIGITS: Final = 15
"""Of a number that was written down."""


@dataclass(frozen=True, slots=True)
class RetryRules:
    """How often and how long; from the run's settings."""

    max_attempts: int = 5
    """Attempts in all, the first included; a refusal for too many requests is none."""
    retry_total_s: float = 600.0
    """Most seconds that an item may spend waiting between its attempts."""
    base_s: float = 1.0
    """Limit of the first wait, in seconds; it doubles with each failure."""
    cap_s: float = 60.0
    """The limit stops growing here, in seconds."""


class History(NamedTuple):
    """What an item has been through; kept in the ledger while the item is parked."""

    attempts: int = 0
    """Attempts that were made."""
    throttled: int = 0
    """Refusals for too many requests since the last attempt."""
    waited_ms: int = 0
    """Milliseconds of waits so far."""
    code: str = ""
    """What the last call ended with."""

    def pack(self) -> str:
        """Writes all but the attempts as the text that goes into the ledger's `Try.error`.

        >>> History(2, 1, 350, "upstream_timeout").pack()
        'upstream_timeout 1 350'
        """
        return f"{self.code} {self.throttled} {self.waited_ms}"

    def parked(self, reason: str) -> str:
        """Writes the same with what the item waits for now, for people.

        >>> History(2, 1, 350, "upstream_timeout").parked("rate")
        'upstream_timeout 1 350 rate'
        """
        return f"{self.pack()} {reason}"

    @classmethod
    def unpack(cls, attempts: int, text: str) -> "History":
        """Reads what `pack` or `parked` wrote; anything else counts as the code alone.

        >>> History.unpack(2, "upstream_timeout 1 350")
        History(attempts=2, throttled=1, waited_ms=350, code='upstream_timeout')
        >>> History.unpack(0, "")
        History(attempts=0, throttled=0, waited_ms=0, code='')
        """
        match text.split(" "):
            case [code, throttled, waited, *_] if is_count(throttled) and is_count(waited):
                return cls(attempts, int(throttled), int(waited), code)
            case _:
                return cls(attempts, 0, 0, text)


def is_count(text: str) -> bool:
    """Whether a text is a whole number that may have been counted: Python reads no number of 5,000 digits.

    >>> is_count("350"), is_count("-1"), is_count("1" * 5_000)
    (True, False, False)
    """
    return len(text) <= MOST_DIGITS and text.isdecimal()


class RetryAt(NamedTuple):
    """The item is to be tried again."""

    ms: int
    """When, in epoch milliseconds of the caller's clock."""
    is_attempt: bool
    """Whether what just failed counts as an attempt."""


class GiveUp(NamedTuple):
    """The item ends in an error."""

    code: str
    """Its error code."""


def after_failure(
    rules: RetryRules,
    history: History,
    trouble: Trouble,
    *,
    now_ms: int,
    wait_s: float | None = None,
    draw: Callable[[], float] = random,
) -> tuple[History, RetryAt | GiveUp]:
    """Decides what follows a call that failed.

    Args:
        rules: the run's settings.
        history: what the item had been through before this call.
        trouble: how the call ended.
        now_ms: the caller's clock, epoch milliseconds.
        wait_s: what the upstream asked us to wait.
        draw: source of uniform numbers in [0, 1); tests pass their own.

    Returns:
        What the item has been through now, and what to do.

    >>> after_failure(RetryRules(), History(), Trouble.RATE_LIMITED, now_ms=0, wait_s=7, draw=lambda: 0.5)[1]
    RetryAt(ms=7500, is_attempt=False)
    >>> after_failure(RetryRules(), History(), Trouble.REFUSED, now_ms=0)[1]
    GiveUp(code='upstream_refused')
    """
    is_attempt = trouble is not Trouble.RATE_LIMITED
    history = history._replace(
        attempts=history.attempts + is_attempt,
        throttled=0 if is_attempt else history.throttled + 1,
        code=str(trouble),
    )
    if trouble not in RETRYABLE or history.attempts >= rules.max_attempts:
        return history, GiveUp(history.code)
    wait_ms = round(1000 * backoff_s(rules, history.attempts + history.throttled, draw, wait_s))
    if history.waited_ms + wait_ms > 1000 * rules.retry_total_s:
        return history, GiveUp(history.code)
    history = history._replace(waited_ms=history.waited_ms + wait_ms)
    return history, RetryAt(now_ms + wait_ms, is_attempt)


def backoff_s(
    rules: RetryRules, failures: int, draw: Callable[[], float], wait_s: float | None = None
) -> float:
    """Draws the seconds to wait.

    Args:
        rules: base and cap.
        failures: failures so far, from 1.
        draw: source of uniform numbers in [0, 1).
        wait_s: what the upstream asked for; then as much as the first wait is added, for jitter.

    >>> [backoff_s(RetryRules(), n, lambda: 0.5) for n in (1, 2, 3, 20)]
    [0.5, 1.0, 2.0, 30.0]
    """
    if wait_s is not None:
        return wait_s + draw() * rules.base_s
    return draw() * min(rules.cap_s, rules.base_s * 2.0 ** min(failures - 1, MOST_DOUBLINGS))
