"""Runs as the store reads them, made up."""

from shared.kinds import TURNS
from shared.names import RunState
from shared.runs import RunInfo


def info(state: RunState = RunState.FINISHED, total: int = 6) -> RunInfo:
    """A run as the store reads it."""
    return RunInfo(
        run="run-1",
        kind=TURNS,
        state=state,
        namespace="run-1",
        created_ms=1_000,
        sealed_ms=2_000,
        finished_ms=4_000 if state == RunState.FINISHED else None,
        total=total,
        done=total,
        tally={"must": 99},
        threads=2,
        generation=0,
        snapshot={"v": 1, "source": "a.jsonl", "summary_policy": "guardrail"},
    )
