"""Stopping at each question, and asking again after a crash, comes to the same as answers at once."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.conversations import POLICY, batch, felt, shape, signals, turn
from tests.support.live_thread import CALL, Thread, codes, rows
from worker.breakpoint.context import RecentMessage, append_recent, retrieve_context
from worker.breakpoint.engine import BreakpointDecision
from worker.breakpoint.live_decisions import CALLED_DECISIONS, ModelAnswer
from worker.breakpoint.memento import KeptMemento
from worker.breakpoint.model_reply import read_reply
from worker.breakpoint.orchestrator import DecidedTurn, RunPolicy, TurnReply, run_turn
from worker.breakpoint.orchestrator import Thread as Conversation
from worker.breakpoint.prompt import prompt_of
from worker.breakpoint.turn_wire import WireTurn, decode_turns

MOODS = (None, felt(0.2, "neutral"), felt(0.85), felt(0.9, "resolve"))


def answer_to(prompt: str) -> str:
    """What the model says: a function of the prompt, so that a changed prompt changes what follows."""
    number = sum(prompt.encode()) % 7
    proposed = None if number < 3 else shape(f"arc {number}", active=[str(number)])
    return json.dumps({"response": f"answer {number}", "shape": proposed, "affect_signal": MOODS[number % 4]})


class AtOnce:
    """A model that answers while the flow waits."""

    def __init__(self, worth: frozenset[str], recent: Sequence[RecentMessage]) -> None:
        self.worth, self.recent = worth, recent

    def is_worth_a_call(self, turn: WireTurn, decision: BreakpointDecision) -> bool:
        """As the run says."""
        return turn.role == "user" and turn.model_shape is None and decision in self.worth

    def retrieve_context(self, _thread: str, _message: str, memento: KeptMemento) -> Sequence[str]:
        """Memento and last turns."""
        return retrieve_context(memento, self.recent)

    def generate(self, turn: WireTurn, context: Sequence[str], closure: str) -> TurnReply:
        """Answers."""
        read = read_reply(answer_to(prompt_of(turn.message, context, closure).user))
        return TurnReply(read.shape, turn.affect_signal or read.affect_signal, read.response)


def at_once(turns: Sequence[dict[str, Any]], policy: RunPolicy) -> list[tuple[str, bool, str | None, str]]:
    """Decision, summary updated, response and arc of each turn, without a stop."""
    thread, recent, decided = Conversation("t"), list[RecentMessage](), []
    lines = b"\n".join(json.dumps(one).encode() for one in turns)
    for index, one in enumerate(decode_turns(lines)):
        assert one is not None
        result = run_turn(
            one, thread, policy, f"t#{index}", model=AtOnce(CALLED_DECISIONS[policy.live], recent)
        )
        assert isinstance(result, DecidedTurn)
        recent = append_recent(recent, (one.role.value, one.message), *_answer(result))
        arc = result.latest.shape.arc
        decided.append((str(result.verdict.decision), result.summary_updated, result.response, arc))
    return decided


def _answer(result: DecidedTurn) -> list[tuple[str, str]]:
    return [] if result.response is None else [("assistant", result.response)]


turns = st.lists(
    st.builds(
        turn,
        st.sampled_from(["ok", "Rome?", "I have decided.", "x" * 3_000]),
        role=st.sampled_from(["user", "user", "assistant"]),
        summaryChanged=st.booleans(),
        signals=st.sampled_from([signals(), signals("pivot"), signals("open_loop_resolved")]),
    ),
    min_size=1,
    max_size=12,
)


@given(turns, st.sampled_from(["must", "should", "all"]), st.lists(st.booleans(), max_size=24))
def test_stopping_at_each_question_changes_nothing(
    turns: list[dict[str, Any]], live: str, forgotten: list[bool]
) -> None:
    """Also where an answer is forgotten and the same question asked again, as after a crash."""
    policy = replace(POLICY, live=live)
    thread, step, decided, asked = Thread([batch(turns, policy)]), None, [], 0
    while step is None or step.question is not None:
        if step is None or (forgotten and forgotten.pop()):
            again = thread.step()
            assert step is None or again.question == step.question
            step = again
        else:
            assert step.question is not None
            asked += 1
            step = thread.step(ModelAnswer(answer_to(step.question.prompt.user), CALL))
        for code, row in zip(codes(step), rows(step), strict=True):
            decided.append((row["decision"], "u" in code, row["response"], row["memento"]["arc"]))
    assert decided == at_once(turns, policy)
    assert asked == sum(row[2] is not None for row in decided)
