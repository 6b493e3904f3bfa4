"""Takes a thread of live turns from answer to answer without a queue, as a worker does."""

import json
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shared.codecs.turn_lines import expand
from tests.support.conversations import POLICY, batch
from worker.breakpoint.live_decisions import LiveOutcome, ModelAnswer, decide_live
from worker.breakpoint.thread_decider import Batch, Refusal
from worker.breakpoint.trace import TracedCall

SHOULD = replace(POLICY, live="should")
MUST = replace(POLICY, live="must")
ALL = replace(POLICY, live="all")
CALL = TracedCall("m", latency_ms=40, cost_usd=0.25, prompt_tokens=10, completion_tokens=5)


def heard(response: str = "Yes.", **keys: Any) -> ModelAnswer:
    """A reply of the model."""
    return ModelAnswer(json.dumps({"response": response, **keys}), CALL)


@dataclass
class Thread:
    """Takes a thread from answer to answer, as a worker does."""

    batches: Sequence[Batch]
    state: bytes = b""
    known: MutableMapping[str, bytes] | None = None

    def step(self, answer: ModelAnswer | Refusal | None = None) -> LiveOutcome:
        """Decides as far as the next question; takes over what was decided."""
        known = self.known if self.known is not None else {}
        step = decide_live(thread="t", state=self.state, batches=self.batches, known=known, answer=answer)
        self.state = step.outcome.state
        counts = [len(block.lines) for block in step.outcome.blocks]
        counts += [0] * (len(self.batches) - len(counts))
        self.batches = [
            replace(one, offset=one.offset + count) for one, count in zip(self.batches, counts, strict=True)
        ]
        return step


def rows(step: LiveOutcome) -> list[dict[str, Any]]:
    """The results of a step."""
    return [json.loads(line) for block in step.outcome.blocks for line in expand(block.codes, block.lines)]


def codes(step: LiveOutcome) -> list[str]:
    return [code for block in step.outcome.blocks for code in block.codes]


def prompt(step: LiveOutcome) -> str:
    """What is to be asked."""
    assert step.question is not None
    return step.question.prompt.user


def live(*turns: dict[str, Any], policy: Any = SHOULD) -> Thread:
    """A thread with these turns in its inbox."""
    return Thread([batch(turns, policy)])
