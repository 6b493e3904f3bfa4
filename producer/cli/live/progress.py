"""The progress of a run in words and numbers, as the live view and a log show it."""

from collections.abc import Mapping

from producer.following import Progress
from producer.report.cells import Size, plain
from producer.text import cost, count, duration, rate, share
from shared.kinds import TURNS, Kind
from shared.names import FINAL_STATES, Outcome, RunState


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

    >>> from producer.following import CallsSoFar
    >>> money(Progress("c-1", "running", 5, 10, {}, 2.0, 2, 1, calls=CallsSoFar(0.0123, 1.0)))
    [('paid', '$0.01 of $1.00')]
    """
    spent, cap = progress.cost_usd, progress.calls.cap_usd
    if spent is None:
        return []
    return [("paid", cost(spent) if cap is None else f"{cost(spent)} of {cost(cap)}")]


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
        message = plain(failed.message, Size.CELL)
        line += f" | last failure: {failed.item} {failed.code} {message}".rstrip()
    return f"{line} | waiting: {progress.why}" if progress.why else line
