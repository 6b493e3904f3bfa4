"""Decides how a turn is processed: `must`, `should` or `skip`, and whether the summary is frozen at a peak.

Six rules, first match wins. The functions are deterministic and use no clock, store or network, so that the
rules can be tested exhaustively.

    rule  condition                                  decision
    1     the summary was changed from outside       must
    2     any MUST signal                            must
    3     any SHOULD signal                          should
    4     context window pressure or drift risk      should
    5     an `ack_only` signal, or an ack message    skip
    6     nothing of the above                       should
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from shared.contracts.turn_vocabulary import AffectPhase, IntensityBucket, ThreadMementoSignalKind

BreakpointSignalKind = ThreadMementoSignalKind


class BreakpointDecision(StrEnum):
    """How much processing a turn deserves."""

    MUST = "must"
    """A decision point: the summary must be updated, even at a peak."""
    SHOULD = "should"
    """Standard processing; the summary may be frozen at a peak."""
    SKIP = "skip"
    """An acknowledgment: nothing to decide."""


MUST_SIGNAL_KINDS: Final = frozenset(
    {
        BreakpointSignalKind.DECISION_MADE,
        BreakpointSignalKind.SCOPE_CHANGED,
        BreakpointSignalKind.PIVOT,
        BreakpointSignalKind.ANSWER_PROVIDED,
    }
)
SHOULD_SIGNAL_KINDS: Final = frozenset(
    {
        BreakpointSignalKind.OPEN_LOOP_CREATED,
        BreakpointSignalKind.OPEN_LOOP_RESOLVED,
        BreakpointSignalKind.RISK_OR_CONFLICT,
    }
)
ACK_TOKENS: Final = frozenset(
    {"ok", "okay", "kk", "thx", "thanks", "got", "it", "sounds"}
    | {"good", "cool", "yep", "yup", "sure", "all", "right"}
)
_GAP: Final = r"[\s.,!?]"
_ACK_MESSAGE: Final = re.compile(rf"{_GAP}*+(?:(?:{'|'.join(sorted(ACK_TOKENS))})(?:{_GAP}++|\Z))++")
"""Ack words with gaps around them. Possessive: a long message costs no more than reading it once."""


class RuleDecision(NamedTuple):
    """A decision and the rule that made it."""

    decision: BreakpointDecision
    """What the turn is worth."""
    rule: int
    """Which of the six rules matched."""
    reason: str
    """The same in words."""


class Explanation(NamedTuple):
    """All results of the engine for one message."""

    decision: BreakpointDecision
    """What the message is worth."""
    rule: int
    """Which of the six rules matched."""
    reason: str
    """The same in words."""
    ack: bool
    """Whether the message alone is an acknowledgment."""
    freeze: bool
    """Whether the peak guardrail would freeze the summary."""


# Accessing an Enum member costs a lookup; these are read for every turn.
_MUST: Final = BreakpointDecision.MUST
_ACK_ONLY: Final = BreakpointSignalKind.ACK_ONLY
_PEAK: Final = AffectPhase.PEAK
_HIGH: Final = IntensityBucket.HIGH

DECISION_OF_RULE: Final = {
    1: BreakpointDecision.MUST,
    2: BreakpointDecision.MUST,
    3: BreakpointDecision.SHOULD,
    4: BreakpointDecision.SHOULD,
    5: BreakpointDecision.SKIP,
    6: BreakpointDecision.SHOULD,
}
"""What each rule decides."""


def _verdict(rule: int, reason: str) -> RuleDecision:
    """Returns the verdict of a rule."""
    return RuleDecision(DECISION_OF_RULE[rule], rule, reason)


_SUMMARY_CHANGED: Final = _verdict(1, "the summary was changed from outside")
_MUST_SIGNAL: Final[dict[str, RuleDecision]] = {
    kind: _verdict(2, f"MUST signal {kind}") for kind in MUST_SIGNAL_KINDS
}
_SHOULD_SIGNAL: Final[dict[str, RuleDecision]] = {
    kind: _verdict(3, f"SHOULD signal {kind}") for kind in SHOULD_SIGNAL_KINDS
}
_BY_SIGNAL: Final = (_MUST_SIGNAL, _SHOULD_SIGNAL)
_KINDS: Final = frozenset(BreakpointSignalKind)
_PRESSURE: Final = _verdict(4, "context window pressure")
_DRIFT: Final = _verdict(4, "drift risk")
_ACK_SIGNAL: Final = _verdict(5, "signal ack_only")
_ACK_TEXT: Final = _verdict(5, "the message is only an acknowledgment")
_DEFAULT: Final = _verdict(6, "no other rule matched")


def is_ack_only_message(message: str) -> bool:
    """Returns whether every word of a message is an acknowledgment.

    Punctuation `.,!?` separates words like white space; a message without words is no acknowledgment.

    >>> is_ack_only_message("Sounds good!"), is_ack_only_message("ok let's do it"), is_ack_only_message("!!!")
    (True, False, False)
    """
    return _ACK_MESSAGE.fullmatch(message.lower()) is not None


def decide_with_rule(
    *,
    message: str,
    signal_kinds: Iterable[str] = (),
    context_window_pressure: bool = False,
    drift_risk: bool = False,
    summary_changed: bool = False,
) -> RuleDecision:
    """Decides a turn and names the rule that matched; see `decide_breakpoint_action` for the arguments.

    The kinds are taken as they are: turns of a file were checked when they were loaded.

    >>> decide_with_rule(message="ok thanks", signal_kinds=["pivot"])
    RuleDecision(decision=<BreakpointDecision.MUST: 'must'>, rule=2, reason='MUST signal pivot')
    """
    if summary_changed:
        return _SUMMARY_CHANGED
    kinds = tuple(signal_kinds)
    for verdict_of in _BY_SIGNAL if kinds else ():
        for kind in kinds:
            if kind in verdict_of:
                return verdict_of[kind]
    if context_window_pressure:
        return _PRESSURE
    if drift_risk:
        return _DRIFT
    if _ACK_ONLY in kinds:
        return _ACK_SIGNAL
    return _ACK_TEXT if is_ack_only_message(message) else _DEFAULT


def decide_breakpoint_action(
    *,
    message: str,
    signal_kinds: Iterable[str] | None = (),
    context_window_pressure: bool = False,
    drift_risk: bool = False,
    summary_changed: bool = False,
) -> BreakpointDecision:
    """Classifies one turn.

    Args:
        message: the text of the turn.
        signal_kinds: kinds of the signals that came with it, as members or plain text; None for none.
        context_window_pressure: the context window is getting full.
        drift_risk: the conversation may be drifting.
        summary_changed: the summary was changed from outside.

    Raises:
        ValueError: a signal is of none of the eight kinds.

    >>> str(decide_breakpoint_action(message="yep!"))
    'skip'
    >>> decide_breakpoint_action(message="yep!", signal_kinds=["pivots"])
    Traceback (most recent call last):
        ...
    ValueError: 'pivots' is not a signal kind
    """
    return decide_with_rule(
        message=message,
        signal_kinds=known_kinds(signal_kinds),
        context_window_pressure=context_window_pressure,
        drift_risk=drift_risk,
        summary_changed=summary_changed,
    ).decision


def should_freeze_summary_at_peak(
    *, phase: str | None = None, intensity_bucket: str | None = None, decision: str
) -> bool:
    """The peak guardrail: at a peak only a `must` may change the summary.

    Args:
        phase: where the thread's emotion is heading, if known.
        intensity_bucket: how strong it is, if known.
        decision: what the turn is worth.

    >>> should_freeze_summary_at_peak(phase="peak", decision="should")
    True
    """
    is_peak_or_high = phase == _PEAK or intensity_bucket == _HIGH
    return is_peak_or_high and decision != _MUST


def extract_breakpoint_signal_kinds(packet: Any) -> list[BreakpointSignalKind]:
    """Lists the signal kinds of a turn in order, wherever the turn carries its signals.

    Args:
        packet: a turn, as a mapping or as the validated contract; a missing level means no signals. Signals
            of a memento that belongs to another thread are ignored, as the memento itself is.

    >>> items = [{"kind": "pivot"}, {"kind": "ack_only"}]
    >>> extract_breakpoint_signal_kinds({"context": {"thread_memento": {"signals": {"items": items}}}})
    [<ThreadMementoSignalKind.PIVOT: 'pivot'>, <ThreadMementoSignalKind.ACK_ONLY: 'ack_only'>]
    """
    signals = _get(packet, "signals")
    if signals is None:
        memento = _get(_get(packet, "context"), "thread_memento")
        thread, owner = _get(packet, "threadId"), _get(memento, "threadId")
        if thread is None or owner is None or thread == owner:
            signals = _get(memento, "signals")
    return [BreakpointSignalKind(_get(item, "kind")) for item in _get(signals, "items") or ()]


def known_kinds(signal_kinds: Iterable[str] | None) -> tuple[BreakpointSignalKind, ...]:
    """Returns signal kinds as members, in order; None stands for no signals.

    Raises:
        ValueError: one is none of the eight, or a single text is given where a list belongs.

    >>> known_kinds(["pivot"]), known_kinds(None)
    ((<ThreadMementoSignalKind.PIVOT: 'pivot'>,), ())
    """
    if isinstance(signal_kinds, str):
        raise ValueError(f"signal_kinds is the text {signal_kinds!r}: give a list of kinds")  # noqa: TRY004 - a text is a sequence of texts, so its type is right and its value is not
    kinds = tuple(signal_kinds or ())
    for kind in kinds:
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ValueError(f"{kind!r} is not a signal kind")
    return tuple(map(BreakpointSignalKind, kinds))


def explain(
    message: str,
    signal_kinds: Iterable[str] | None = (),
    *,
    context_window_pressure: bool = False,
    drift_risk: bool = False,
    summary_changed: bool = False,
    phase: str | None = None,
    intensity_bucket: str | None = None,
) -> Explanation:
    """Decides one message and explains the result, for `proctor decide`.

    Raises:
        ValueError: a signal is of none of the eight kinds.

    >>> explain("ok thanks", phase="peak")[2:]
    ('the message is only an acknowledgment', True, True)
    """
    verdict = decide_with_rule(
        message=message,
        signal_kinds=known_kinds(signal_kinds),
        context_window_pressure=context_window_pressure,
        drift_risk=drift_risk,
        summary_changed=summary_changed,
    )
    freeze = should_freeze_summary_at_peak(
        phase=phase, intensity_bucket=intensity_bucket, decision=verdict.decision
    )
    return Explanation(*verdict, ack=is_ack_only_message(message), freeze=freeze)


def _get(value: Any, name: str) -> Any:
    """Reads a field of a mapping or of an object; None when it is not there."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
