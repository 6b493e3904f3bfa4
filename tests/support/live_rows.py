"""Rows of turns that a model answered, was spared or gave up on, as the store reads them."""

from dataclasses import replace
from typing import Any, Final

from shared.codecs.turn_lines import expand
from shared.names import RunState
from shared.runs import RunInfo, TurnRow
from tests.support.conversations import POLICY, batch, turn
from tests.support.run_infos import info
from worker.breakpoint.live_decisions import ModelAnswer, decide_live
from worker.breakpoint.thread_decider import Refusal
from worker.breakpoint.trace import TracedCall

LIVE: Final = replace(POLICY, live="should")
PAID: Final = TracedCall("m", attempts=2, latency_ms=40, cost_usd=0.25, prompt_tokens=10, completion_tokens=5)
FREE: Final = TracedCall("m", latency_ms=40)
CACHED: Final = TracedCall("m", cached=True, latency_ms=40, cost_usd=0.25, prompt_tokens=10)


def rows_of(*steps: tuple[dict[str, Any], TracedCall | ModelAnswer | Refusal | None]) -> list[TurnRow]:
    """Rows of turns, with what was answered to each that is asked."""
    rows, state, known = list[TurnRow](), b"", dict[str, bytes]()
    for at, (sent, answer) in enumerate(steps):
        heard = (
            ModelAnswer('{"response": "<b>Yes</b>"}', answer) if isinstance(answer, TracedCall) else answer
        )
        outcome = decide_live(
            thread="t", state=state, batches=[batch([sent], LIVE, at)], known=known, answer=heard
        ).outcome
        [block] = outcome.blocks
        [line] = expand(block.codes, block.lines)
        rows.append(TurnRow(at, block.codes[0], line, 1_000, 1_060, 1))
        state = outcome.state
    return rows


ROWS: Final = rows_of(
    (turn("Rome?", clientRequestId="c1"), PAID),
    (turn("ok"), None),
    (turn("When?"), FREE),
    (turn("Where?"), CACHED),
    (turn("How?"), Refusal("upstream_timeout", "no answer")),
    (turn("Rome?", clientRequestId="c1"), None),
)


def live_info(total: int) -> RunInfo:
    """A finished run with a model."""
    finished = info(state=RunState.FINISHED, total=total)
    return replace(finished, snapshot={**finished.snapshot, "asking": {"model": "m", "live": "should"}})
