"""Tells whether workers of some kinds have anything left to do: what a burst worker asks before it ends."""

from collections.abc import Collection
from typing import Any, Final

from shared import keys
from shared.ledger.base import LedgerCalls
from shared.names import RunState

AT_WORK: Final = frozenset({RunState.LOADING, RunState.RUNNING, RunState.CANCELLING})
"""States of a run that workers may wait for; a paused run waits for a person."""


def has_work(ledger: LedgerCalls, kinds: Collection[str]) -> bool:
    """Looks for a run of these kinds that loads, runs or is being cancelled.

    Args:
        ledger: the ledger.
        kinds: what the asker works on.

    Raises:
        RedisUnreachableError: no answer within the ledger's patience.
    """
    client: Any = ledger.caller.client

    def look() -> bool:
        runs = [run.decode() for run in client.sunion(keys.OPEN_KEY, keys.BUSY_KEY)]
        with client.pipeline(transaction=False) as pipeline:
            for run in runs:
                pipeline.hmget(keys.run_key(run), "kind", "state")
            return any(_text(kind) in kinds and _text(state) in AT_WORK for kind, state in pipeline.execute())

    return ledger.caller.patiently(look)


def _text(value: bytes | None) -> str:
    return (value or b"").decode()
