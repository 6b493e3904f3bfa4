"""Builds turns and mementos, and decides them through the worker's own path without a queue."""

import json
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from shared.codecs.turn_batches import pack_batch
from shared.codecs.turn_lines import expand
from worker.breakpoint.thread_decider import Batch, RunPolicy, ThreadOutcome, decide_thread

SUBMITTED_MS: Final = 1_767_225_600_000
SUBMITTED_AT: Final = "2026-01-01T00:00:00.000Z"
EARLIER: Final = "2025-12-31T23:00:00Z"

POLICY: Final = RunPolicy("r1", SUBMITTED_MS)
BREAKPOINTS_ONLY: Final = RunPolicy("r1", SUBMITTED_MS, "breakpoints")
SIGNALS_ONCE: Final = RunPolicy("r1", SUBMITTED_MS, signals_once=True)


@dataclass(frozen=True)
class Decided:
    """What became of the turns of one thread."""

    outcome: ThreadOutcome
    """As the worker gets it."""
    rows: list[dict[str, Any]]
    """The lines, parsed: results, or errors with their results."""
    codes: list[str]
    """One code per turn."""


def turn(message: str = "Let us begin.", **keys: Any) -> dict[str, Any]:
    """A turn of the thread `t`."""
    return {"threadId": "t", "message": message, **keys}


def signals(*kinds: str, **keys: Any) -> dict[str, Any]:
    """Signals of these kinds, in order."""
    items = [
        {"endMessageId": f"m{at}", "kind": kind, "confidence": "high", "source": "model", **keys}
        for at, kind in enumerate(kinds)
    ]
    return {"updatedAt": EARLIER, "items": items}


def shape(arc: str, **lists: list[str]) -> dict[str, Any]:
    """A proposed summary."""
    return {"arc": arc, "active": [], "parked": [], "decisions": [], "next": [], **lists}


def felt(intensity: float, label: str = "overwhelm", confidence: Any = "high") -> dict[str, Any]:
    """An affect signal."""
    return {"label": label, "intensity": intensity, "confidence": confidence}


def memento(phase: str = "settled", bucket: str = "low", **keys: Any) -> dict[str, Any]:
    """A client's memento of the thread `t`, v0.2."""
    return {
        "mementoId": "mem-1",
        "threadId": "t",
        "createdTs": EARLIER,
        "version": "memento-v0.2",
        "arc": "before",
        "active": ["a"],
        "parked": ["p"],
        "decisions": ["d"],
        "next": ["n"],
        "affect": {
            "points": [],
            "rollup": {"phase": phase, "intensityBucket": bucket, "updatedAt": EARLIER},
        },
        **keys,
    }


def with_memento(**keys: Any) -> dict[str, Any]:
    """A turn's context with a client's memento."""
    return {"thread_memento": memento(**keys)}


def batch(turns: Iterable[dict[str, Any]], policy: RunPolicy = POLICY, first_index: int = 0) -> Batch:
    """Turns as they wait in a thread's inbox."""
    lines = [json.dumps(one).encode() for one in turns]
    indexes = range(first_index, first_index + len(lines))
    return Batch(policy, 0, pack_batch(indexes, lines))


def decide(
    *turns: dict[str, Any],
    state: bytes = b"",
    policy: RunPolicy = POLICY,
    known: MutableMapping[str, bytes] | None = None,
    first_index: int = 0,
) -> Decided:
    """Decides turns of the thread `t`, as one batch."""
    outcome = decide_thread(
        thread="t",
        state=state,
        batches=[batch(turns, policy, first_index)],
        known={} if known is None else known,
    )
    [stored] = outcome.blocks
    block = stored._replace(lines=expand(stored.codes, stored.lines))
    outcome = outcome._replace(blocks=[block])
    return Decided(outcome, [json.loads(line) for line in block.lines], block.codes)
