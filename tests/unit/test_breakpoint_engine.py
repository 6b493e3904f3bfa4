"""The document's unit tests of the decision engine and the guardrail, and the tables behind them."""

from itertools import product
from typing import Any

import pytest

from shared.contracts.turn_vocabulary import AffectPhase, IntensityBucket
from shared.contracts.turns import Turn
from tests.support.conversations import memento, signals, turn
from worker.breakpoint.engine import (
    ACK_TOKENS,
    DECISION_OF_RULE,
    MUST_SIGNAL_KINDS,
    SHOULD_SIGNAL_KINDS,
    BreakpointDecision,
    BreakpointSignalKind,
    decide_breakpoint_action,
    decide_with_rule,
    explain,
    extract_breakpoint_signal_kinds,
    is_ack_only_message,
    should_freeze_summary_at_peak,
)

SUBSTANCE = "Please move the meeting to Friday."


def test_must_signal_classification() -> None:
    """A `decision_made` signal makes a turn a `must`."""
    assert decide_breakpoint_action(message=SUBSTANCE, signal_kinds=["decision_made"]) == "must"


def test_skip_ack_detection() -> None:
    """An `ack_only` signal with an ack message makes a turn a `skip`."""
    assert decide_breakpoint_action(message="ok thanks", signal_kinds=["ack_only"]) == "skip"


def test_peak_guardrail_freeze() -> None:
    """At a peak of high intensity a `should` freezes the summary and a `must` does not."""
    assert should_freeze_summary_at_peak(phase="peak", intensity_bucket="high", decision="should") is True
    assert should_freeze_summary_at_peak(phase="peak", intensity_bucket="high", decision="must") is False


def test_decisions_are_exactly_three() -> None:
    """There are three decisions, each equal to its plain text."""
    assert list(BreakpointDecision) == ["must", "should", "skip"]


def test_signal_kinds_are_partitioned() -> None:
    """Four kinds are MUST, three are SHOULD, and `ack_only` is in neither."""
    assert {"decision_made", "scope_changed", "pivot", "answer_provided"} == MUST_SIGNAL_KINDS
    assert {"open_loop_created", "open_loop_resolved", "risk_or_conflict"} == SHOULD_SIGNAL_KINDS
    assert set(BreakpointSignalKind) == MUST_SIGNAL_KINDS | SHOULD_SIGNAL_KINDS | {"ack_only"}


def test_ack_words_are_the_documents_fifteen() -> None:
    """The ack token set is the document's."""
    words = "ok, okay, kk, thx, thanks, got, it, sounds, good, cool, yep, yup, sure, all, right"
    assert set(words.split(", ")) == ACK_TOKENS
    assert all(is_ack_only_message(word) for word in ACK_TOKENS)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("ok thanks", True),
        ("Sounds good!", True),
        ("ok let's do it", False),
        ("", False),
        ("yep!", True),
        ("got it.", True),
        ("sure?", True),
        ("OKAY", True),
        ("  ok  ,  thanks  ", True),
        ("ok,thanks", True),
        ("all right...all right", True),
        ("ok\nthanks\t!", True),
        ("ok\u00a0thanks", True),
        ("   ", False),
        ("!!!", False),
        ("ok;", False),
        ("ok…", False),
        ("ok 👍", False),
        ("okk", False),
        ("okthanks", False),
        ("ok thanks but no", False),
        ("no ok", False),
        ("okay-ok", False),
        ("ok\u200bthanks", False),
        ("right?", True),
        ("it", True),
    ],
)
def test_is_ack_only_message(message: str, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    """A message is an ack when it has words and each of them is an ack word."""
    assert is_ack_only_message(message) is expected


@pytest.mark.parametrize(
    ("arguments", "decision", "rule"),
    [
        ({"summary_changed": True, "signal_kinds": ["ack_only"], "message": "ok"}, "must", 1),
        ({"signal_kinds": ["ack_only", "pivot"], "message": "ok thanks"}, "must", 2),
        ({"signal_kinds": ["open_loop_created", "answer_provided"]}, "must", 2),
        ({"signal_kinds": ["ack_only", "open_loop_resolved"], "message": "ok"}, "should", 3),
        ({"signal_kinds": ["risk_or_conflict"], "context_window_pressure": True}, "should", 3),
        ({"context_window_pressure": True, "message": "ok"}, "should", 4),
        ({"drift_risk": True, "message": "ok", "signal_kinds": ["ack_only"]}, "should", 4),
        ({"signal_kinds": ["ack_only"]}, "skip", 5),
        ({"message": "ok thanks"}, "skip", 5),
        ({"message": SUBSTANCE}, "should", 6),
        ({"message": ""}, "should", 6),
    ],
)
def test_first_matching_rule_wins(arguments: dict[str, object], decision: str, rule: int) -> None:
    """Each row of the priority table decides over the rows below it."""
    verdict = decide_with_rule(**{"message": SUBSTANCE, **arguments})  # type: ignore[arg-type] # a table's row
    assert (verdict.decision, verdict.rule) == (decision, rule)
    assert verdict.reason
    assert DECISION_OF_RULE[rule] == decision


def test_kinds_may_come_from_any_iterable() -> None:
    """Signal kinds may be members or texts, in any iterable, also one that can be read only once."""
    kinds = iter(["ack_only", BreakpointSignalKind.RISK_OR_CONFLICT])
    assert decide_breakpoint_action(message="ok", signal_kinds=kinds) == "should"


def test_signal_kinds_are_optional() -> None:
    """No kinds, whether they are left out, None or an empty list, leave the decision to the message."""
    assert decide_breakpoint_action(message="ok", signal_kinds=None) == "skip"
    assert decide_breakpoint_action(message="ok", signal_kinds=[]) == "skip"
    assert explain(SUBSTANCE, None).rule == 6


@pytest.mark.parametrize("kinds", [["pivots"], ["pivot", ""], [None], [["pivot"]], "pivot", [7]])
@pytest.mark.parametrize("more", [{}, {"summary_changed": True}])
def test_anything_but_the_eight_kinds_is_refused(kinds: Any, more: Any) -> None:
    """An unknown kind is an error whatever else decides the turn, and so is a text in place of a list."""
    with pytest.raises(ValueError, match="signal"):
        decide_breakpoint_action(message=SUBSTANCE, signal_kinds=kinds, **more)
    with pytest.raises(ValueError, match="signal"):
        explain(SUBSTANCE, kinds, **more)


@pytest.mark.parametrize(
    ("phase", "bucket", "decision"),
    list(product([*AffectPhase, None], [*IntensityBucket, None], BreakpointDecision)),
)
def test_freeze_in_all_sixty_combinations(phase: str | None, bucket: str | None, decision: str) -> None:
    """The summary freezes at a peak or high intensity unless the decision is `must`; the answer is a bool."""
    expected = (phase == "peak" or bucket == "high") and decision != "must"
    frozen = should_freeze_summary_at_peak(phase=phase, intensity_bucket=bucket, decision=decision)
    assert frozen is expected


def test_freeze_arguments_may_be_left_out() -> None:
    """Without phase and intensity nothing freezes."""
    assert should_freeze_summary_at_peak(decision="skip") is False


def test_kinds_are_extracted_in_order() -> None:
    """Kinds come in the order of the items, from a mapping and from the contract alike."""
    kinds = ["pivot", "ack_only", "open_loop_created"]
    packet = turn(context={"thread_memento": memento(signals=signals(*kinds))})
    assert extract_breakpoint_signal_kinds(packet) == kinds
    assert extract_breakpoint_signal_kinds(Turn.model_validate(packet)) == kinds
    assert extract_breakpoint_signal_kinds(turn(signals=signals(*kinds))) == kinds


@pytest.mark.parametrize(
    "packet",
    [
        {},
        {"context": None},
        {"context": {}},
        {"context": {"thread_memento": None}},
        {"context": {"thread_memento": {}}},
        {"context": {"thread_memento": {"signals": None}}},
        {"context": {"thread_memento": {"signals": {}}}},
        {"context": {"thread_memento": {"signals": {"items": []}}}},
    ],
)
def test_missing_levels_mean_no_signals(packet: dict[str, object]) -> None:
    """A level that is not there means no signals."""
    assert extract_breakpoint_signal_kinds(packet) == []


def test_signals_of_another_threads_memento_are_ignored() -> None:
    """A memento of another thread says nothing."""
    foreign = memento(signals=signals("pivot"), threadId="other")
    assert extract_breakpoint_signal_kinds(turn(context={"thread_memento": foreign})) == []


def test_an_explanation_says_everything() -> None:
    """`explain` gives decision, rule, reason, ack and freeze for one message."""
    explained = explain("ok thanks", ["open_loop_created"], intensity_bucket="high")
    assert (explained.decision, explained.rule, explained.ack, explained.freeze) == ("should", 3, True, True)
    assert explained.reason == "SHOULD signal open_loop_created"
