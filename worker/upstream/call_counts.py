"""Counts what becomes of calls, in memory; every few seconds one script adds that to the fleet's counters.

A call pays some microseconds for its counts and no round trip. `shared.observability.counters` has the names.
"""

from bisect import bisect_left
from collections import Counter
from itertools import count
from threading import Lock
from typing import Final
from uuid import uuid4

from shared.observability.counters import LATENCY_BOUNDS_S, CallCount, upstream_label
from worker.upstream.script_batcher import ScriptBatcher

FLUSH_S: Final = 2.0
"""How often counts are sent."""
MICROS: Final = 1_000_000
OK: Final = "ok"
"""The result of a call that was answered."""

_CALLS_OK: Final = CallCount.CALLS + OK
_LATENCY: Final = [f"{CallCount.LATENCY}{place}" for place in range(len(LATENCY_BOUNDS_S) + 1)]


class CallCounts:
    """Counts for the coroutines of one process.

    Args:
        scripts: runs this package's scripts.
    """

    def __init__(self, scripts: ScriptBatcher) -> None:
        self._scripts = scripts
        self._process = uuid4().hex[:12]
        self._serials = count(1)
        self._lock = Lock()
        self._counts = Counter[tuple[str, str]]()
        scripts.every(FLUSH_S, self._flush)

    def add(self, upstream: str, counter: str, amount: int = 1) -> None:
        """Adds to a counter.

        Args:
            upstream: a model, or the URL of an API.
            counter: one of `shared.observability.counters.CallCount`, with its label.
            amount: how much.
        """
        label = upstream_label(upstream)
        with self._lock:
            self._counts[label, counter] += amount

    def call_ended(self, upstream: str, result: str, latency_s: float) -> None:
        """Counts a call by its result and its latency.

        Args:
            upstream: where it went.
            result: `OK`, or why there is no answer.
            latency_s: how long it took.
        """
        label = upstream_label(upstream)
        result = _CALLS_OK if result == OK else CallCount.CALLS + result
        bucket = _LATENCY[bisect_left(LATENCY_BOUNDS_S, latency_s)]
        with self._lock:
            counts = self._counts
            counts[label, result] += 1
            counts[label, bucket] += 1
            counts[label, CallCount.LATENCY_US] += round(MICROS * latency_s)

    def close(self) -> None:
        """Sends what is left, after all earlier calls of the batcher."""
        arguments = self._take()
        if arguments:
            self._scripts.post("add_counts", *arguments)

    def _flush(self) -> None:
        """Sends what has come together; in the batcher's thread."""
        arguments = self._take()
        if arguments:
            self._scripts.caller.run("add_counts", *arguments)

    def _take(self) -> list[str | int]:
        """Takes all counts, as a numbered batch; empty when there are none."""
        with self._lock:
            taken, self._counts = self._counts, Counter[tuple[str, str]]()
        if not taken:
            return []
        flat: list[str | int] = [self._process, next(self._serials)]
        for (label, counter), amount in taken.items():
            flat += (label, counter, amount)
        return flat
