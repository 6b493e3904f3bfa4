"""The state of runs, chunks and items in Redis, changed only by small Lua scripts.

producer   open, load…, seal, wait_durable, publish the wakes
worker     per wake-up: claim, work, commit… (the last one gives the chunk back), publish the wakes
steward    one thread in each worker: tick every second, publish the wakes; renew every third of a lease
commands   control, retry, remove, forget

What is imported here needs no client of Redis: files are checked without one.
"""

from shared.ledger.types import (
    ChunkPlan,
    Claim,
    ClaimedBatch,
    ClaimedItem,
    ClaimedThread,
    Committed,
    DeadItem,
    HeldLease,
    Keep,
    Opened,
    PartCommit,
    Row,
    ThreadCommit,
    Try,
    Wake,
)

__all__ = [
    "ChunkPlan",
    "Claim",
    "ClaimedBatch",
    "ClaimedItem",
    "ClaimedThread",
    "Committed",
    "DeadItem",
    "HeldLease",
    "Keep",
    "Opened",
    "PartCommit",
    "Row",
    "ThreadCommit",
    "Try",
    "Wake",
]
