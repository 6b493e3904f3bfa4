"""The displayed progress of a run as plain values: rate, time left, and why it waits.

Pure: no Redis, no clock, no terminal. `follow` measures, `drawing`, `view` and `events` show.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from producer.report.cells import plain
from producer.text import cost, count, duration, rate, share
from shared.kinds import TURNS, Kind
from shared.names import FINAL_STATES, Outcome, RunState

WINDOW_S: Final = 5.0
"""Time over which the rate is measured: short enough to be current, long enough not to flicker."""
MESSAGE_CHARS: Final = 60
"""Longest part of a failure's message in a line of a log."""


class FailedItem(NamedTuple):
    """An item that ended in error."""

    item: str
    """Its name."""
    code: str
    """Its error code."""
    message: str
    """Its message; may come from an upstream, so untrusted."""


class Calls(NamedTuple):
    """Calls of a run to upstreams; empty for a run that makes no calls."""

    spent_usd: float | None = None
    """Cost so far by its budget; None without a cap."""
    cap_usd: float | None = None
    """The cost cap, if any."""
    limits: tuple[str, ...] = ()
    """Usage of the limits of its models and APIs."""
    failed: tuple[FailedItem, ...] = ()
    """The last items that ended in error, the newest first."""
    in_flight: int | None = None
    """Calls in flight, across all workers; None if they are not counted."""


NO_CALLS: Final = Calls()


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a run."""

    run: str
    state: str
    done: int
    total: int
    tally: Mapping[str, int]
    elapsed_s: float
    workers: int
    """Worker processes alive."""
    queued: int | None
    """Wake-up calls that no worker has taken yet; None while the broker does not answer."""
    rate_s: float | None = None
    """Current items per second; None before the second snapshot."""
    source: str = ""
    """The name of the input."""
    why: str = ""
    """Why it makes no progress, in one sentence; empty while it does."""
    kind: Kind = TURNS
    """Its kind."""
    calls: Calls = NO_CALLS
    """Its calls to upstreams."""
    is_freeform: bool = False
    """Whether its outputs are only shown, not checked."""

    @property
    def cost_usd(self) -> float | None:
        """Cost so far; None if unknown.

        The budget is more current; results include what was spent after the budget was last read.
        """
        micros = self.tally.get("cost_micro_usd")
        stored = micros / 1e6 if micros else None
        return max((usd for usd in (self.calls.spent_usd, stored) if usd is not None), default=None)

    @property
    def left_s(self) -> float | None:
        """Seconds left at the current rate; None if unknown."""
        if not self.rate_s or self.state != RunState.RUNNING:
            return None
        return (self.total - self.done) / self.rate_s


class View(Protocol):
    """Shows snapshots of a run."""

    def loading(self, source: str, items: int) -> None:
        """Shows how much of the input was read."""

    def note(self, text: str) -> None:
        """Shows a note once."""

    def show(self, progress: Progress) -> None:
        """Shows a snapshot."""

    def close(self) -> None:
        """Restores the terminal."""


@dataclass(slots=True)
class Meter:
    """Measures the rate over the last seconds."""

    samples: deque[tuple[float, int]] = field(default_factory=deque)

    def rate(self, now_s: float, done: int) -> float | None:
        """Adds a sample and returns items per second, or None after the first.

        >>> meter = Meter()
        >>> meter.rate(0.0, 0), meter.rate(2.0, 100), meter.rate(8.0, 100)
        (None, 50.0, 0.0)
        """
        self.samples.append((now_s, done))
        while len(self.samples) > 2 and self.samples[1][0] <= now_s - WINDOW_S:  # noqa: PLR2004 - a rate needs two samples
            self.samples.popleft()
        first_s, first = self.samples[0]
        return max(0, done - first) / (now_s - first_s) if now_s > first_s else None


def decisions(tally: Mapping[str, int], kind: Kind = TURNS) -> list[tuple[str, str]]:
    """Returns counts of outcomes as word and number; errors and retries only if there are some.

    >>> decisions({"must": 2, "skip": 1200, "error": 1})
    [('must', '2'), ('should', '0'), ('skip', '1,200'), ('errors', '1')]
    """
    pairs = [(word, count(tally.get(word, 0))) for word in kind.outcomes if word != Outcome.ERROR]
    pairs += [(f"{word}s", count(tally[word])) for word in (Outcome.ERROR,) if tally.get(word)]
    pairs += [(word, count(tally[word])) for word in ("retried",) if tally.get(word)]
    if tally.get("asked") or tally.get("avoided"):
        pairs.append(("calls", count(tally.get("asked", 0) - tally.get("from_cache", 0))))
        pairs.append(("avoided", count(tally.get("avoided", 0))))
    return pairs


def outcomes(progress: Progress) -> list[tuple[str, str]]:
    """Returns counts of outcomes of a run as word and number.

    >>> from shared.kinds import CASES
    >>> tally = {"passed": 6, "error": 1}
    >>> outcomes(Progress("c-1", "running", 7, 9, tally, 2.0, 2, 1, kind=CASES, is_freeform=True))
    [('not checked', '6'), ('errors', '1')]
    """
    pairs = decisions(progress.tally, progress.kind)
    if not progress.is_freeform:
        return pairs
    verdicts = (Outcome.PASSED, Outcome.FAILED)
    answers = sum(progress.tally.get(word, 0) for word in verdicts)
    return [("not checked", count(answers)), *(pair for pair in pairs if pair[0] not in verdicts)]


def money(progress: Progress) -> list[tuple[str, str]]:
    """Returns what the run paid so far, with its cap if it has one; empty if that is unknown.

    >>> money(Progress("c-1", "running", 5, 10, {}, 2.0, 2, 1, calls=Calls(0.0123, 1.0)))
    [('paid', '$0.01 of $1.00')]
    """
    spent, cap = progress.cost_usd, progress.calls.cap_usd
    if spent is None:
        return []
    return [("paid", cost(spent) if cap is None else f"{cost(spent)} of {cost(cap)}")]


def without_numbers(why: str) -> str:
    """Masks the numbers of a wait reason, which count down, so that equal reasons compare equal.

    >>> without_numbers("the next call may go in 12 s") == without_numbers("the next call may go in 9 s")
    True
    """
    return re.sub(r"\d[\d.,:]*", "#", why)


def figures(progress: Progress) -> list[tuple[str, str]]:
    """Returns rate, time, calls in flight, queue and workers as word and number, if known.

    An empty queue is left out: all that is left is in the hands of workers.
    """
    pairs = []
    if progress.rate_s is not None and progress.state == RunState.RUNNING:
        pairs.append(("rate", rate(progress.rate_s)))
    pairs.append(("elapsed", duration(progress.elapsed_s)))
    if progress.left_s is not None:
        pairs.append(("left", duration(progress.left_s)))
    if progress.calls.in_flight is not None and progress.state not in FINAL_STATES:
        pairs.append(("in flight", count(progress.calls.in_flight)))
    if progress.queued != 0:
        pairs.append(("queue", count(progress.queued)))
    return [*pairs, ("workers", count(progress.workers))]


def plain_line(progress: Progress) -> str:
    r"""Formats a snapshot as one line of a log.

    >>> plain_line(Progress("t-1", "running", 5, 10, {"must": 5}, 2.0, 2, 1, 2.5))
    't-1 running 5/10 (50%) must 5 should 0 skip 0 | rate 2.5/s elapsed 2.0 s left 2.0 s queue 1 workers 2'
    """
    done = f"{count(progress.done)}/{count(progress.total)} ({share(progress.done, progress.total)})"
    pairs = [*outcomes(progress), *money(progress)]
    words = " ".join(f"{word} {number}" for word, number in pairs)
    rest = " ".join(f"{word} {number}" for word, number in figures(progress))
    line = f"{progress.run} {progress.state} {done} {words} | {rest}"
    line += "".join(f" | limit {limit}" for limit in progress.calls.limits)
    for failed in progress.calls.failed[:1]:
        message = plain(failed.message, MESSAGE_CHARS)
        line += f" | last failure: {failed.item} {failed.code} {message}".rstrip()
    return f"{line} | waiting: {progress.why}" if progress.why else line
