"""The rules hold for every input: priority, acknowledgments, the guardrail, and phases."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.turn_vocabulary import AffectPhase, IntensityBucket, ThreadMementoSignalKind
from tests.support.turn_strategies import intensities, text
from worker.breakpoint.affect import rollup
from worker.breakpoint.engine import (
    ACK_TOKENS,
    MUST_SIGNAL_KINDS,
    SHOULD_SIGNAL_KINDS,
    BreakpointDecision,
    decide_breakpoint_action,
    decide_with_rule,
    is_ack_only_message,
    should_freeze_summary_at_peak,
)

kinds = st.lists(st.sampled_from(ThreadMementoSignalKind), max_size=8)
pieces = st.sampled_from(
    [*sorted(ACK_TOKENS), "OK", "ok\u212a", "\u212a\u212a", "no", "'s", ";", "\u200b", "x"]
)
gaps = st.sampled_from([" ", "  ", ".", ",", "!", "?", "\t", "\n", "\u00a0", "\u2003", "\x1c", ""])
chatter = st.lists(pieces | gaps, max_size=12).map("".join) | text(0, 60)


def is_ack_by_the_book(message: str) -> bool:
    """The document's algorithm, step by step."""
    normal = message.lower()
    for mark in ".,!?":
        normal = normal.replace(mark, " ")
    tokens = normal.split()
    return len(tokens) > 0 and all(token in ACK_TOKENS for token in tokens)


def rule_by_the_book(
    message: str, signal_kinds: Sequence[str], *, pressure: bool, drift: bool, changed: bool
) -> tuple[str, int]:
    """The document's table, row by row."""
    rows = [
        (changed, "must"),
        (any(kind in MUST_SIGNAL_KINDS for kind in signal_kinds), "must"),
        (any(kind in SHOULD_SIGNAL_KINDS for kind in signal_kinds), "should"),
        (pressure or drift, "should"),
        ("ack_only" in signal_kinds or is_ack_by_the_book(message), "skip"),
        (True, "should"),
    ]
    return next((decision, rule) for rule, (holds, decision) in enumerate(rows, 1) if holds)


@given(chatter)
def test_acknowledgments_follow_the_book(message: str) -> None:
    """The fast check says what the document's algorithm says."""
    assert is_ack_only_message(message) is is_ack_by_the_book(message)


@given(
    st.lists(st.sampled_from(sorted(ACK_TOKENS)), min_size=1, max_size=5),
    st.lists(gaps, min_size=6, max_size=6),
)
def test_acknowledgments_survive_punctuation(words: list[str], between: list[str]) -> None:
    """Ack words stay an ack with any punctuation and white space around them."""
    message = between[-1] + "".join(word + (gap or " ") for word, gap in zip(words, between, strict=False))
    assert is_ack_only_message(message.upper()) is True


def test_a_long_message_is_read_once() -> None:
    """Twenty thousand hostile characters are no trouble."""
    for message in (
        "ok " * 6_666 + "x",
        "ok" * 10_000,
        " " * 20_000,
        "ok," * 6_666,
        "o" * 20_000,
        "okay" * 5_000,
    ):
        assert is_ack_only_message(message) is is_ack_by_the_book(message)


@given(chatter, kinds, st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_the_priority_table(message: str, signal_kinds: list[str], flags: tuple[bool, bool, bool]) -> None:
    """First match wins, whatever else is true; kinds may be plain texts; the answer never varies."""
    pressure, drift, changed = flags
    expected = rule_by_the_book(message, signal_kinds, pressure=pressure, drift=drift, changed=changed)
    for spelling in (signal_kinds, [str(kind) for kind in signal_kinds], tuple(signal_kinds)):
        verdict = decide_with_rule(
            message=message,
            signal_kinds=spelling,
            context_window_pressure=pressure,
            drift_risk=drift,
            summary_changed=changed,
        )
        assert (verdict.decision, verdict.rule) == expected


@given(chatter, kinds)
def test_order_of_signals_does_not_matter(message: str, signal_kinds: list[str]) -> None:
    """Signals decide by their kinds, not by their places."""
    decisions = {
        decide_breakpoint_action(message=message, signal_kinds=some)
        for some in (signal_kinds, signal_kinds[::-1], signal_kinds * 2)
    }
    assert len(decisions) == 1


@given(
    st.sampled_from([*AffectPhase, None, "unknown"]),
    st.sampled_from([*IntensityBucket, None, "unknown"]),
    st.sampled_from(BreakpointDecision),
)
def test_must_is_never_frozen_and_peaks_always_freeze_the_rest(
    phase: str | None, bucket: str | None, decision: BreakpointDecision
) -> None:
    """The guardrail is one formula."""
    frozen = should_freeze_summary_at_peak(phase=phase, intensity_bucket=bucket, decision=decision)
    assert frozen is ((phase == "peak" or bucket == "high") and decision != "must")


@given(st.lists(intensities, max_size=5))
def test_rollups_depend_on_the_last_two(points: list[float]) -> None:
    """Bucket and phase are those of the last two points, and the bucket that of the last alone."""
    rolled = rollup(points)
    assert rolled == rollup(points[-2:])
    assert rolled.intensity_bucket == rollup(points[-1:]).intensity_bucket
    assert rolled.phase in set(AffectPhase)
