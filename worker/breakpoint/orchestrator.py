"""The flow of one turn, in the nine steps of the breakpoint specification, top to bottom.

    request -> extract -> decide -> guardrail -> trace -> retrieve -> generate -> update -> respond

It is pure: the caller loads and stores the thread, the time comes with the turn, and the model is an
interface. `worker.breakpoint.thread_decider` passes it whole batches; every turn takes this path.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from shared.clock import iso_utc
from shared.contracts.turn_vocabulary import MAX_CONSUMED_SIGNALS, Role, SummaryPolicy
from worker.breakpoint.affect import signal_of_reply
from worker.breakpoint.closure import flagged_messages, render_closure_signals
from worker.breakpoint.engine import (
    BreakpointDecision,
    RuleDecision,
    decide_with_rule,
    should_freeze_summary_at_peak,
)
from worker.breakpoint.memento import FROM_REQUEST, KeptMemento, Latest, resolve_baseline, updated
from worker.breakpoint.turn_wire import SignalItem, WireAffectSignal, WireShape, WireTurn

ETAG_CONFLICT: Final = "etag_conflict"
SKIP: Final = BreakpointDecision.SKIP
USER: Final = Role.USER
META_AFFECT: Final = b"affect_signal"
"""Its presence in a turn's `meta` is checked in the bytes: most have none, and decoding takes time."""


@dataclass(frozen=True)
class RunPolicy:
    """The settings of a run that affect how its turns are decided."""

    run: str
    """The run's id."""
    submitted_ms: int
    """Time of the submit, epoch milliseconds; used as the time of turns without `ts`."""
    summary_policy: str = SummaryPolicy.GUARDRAIL
    """What keeps a proposed summary out: `guardrail` or `breakpoints`."""
    live: str = ""
    """For which decisions the model is called: `must`, `should`, `all`; empty: answers are recorded."""
    signals_once: bool = False
    """Whether a signal counts once in its thread; otherwise it counts in each turn that sends it."""

    @cached_property
    def submitted_at(self) -> str:
        """The time of submit as text."""
        return iso_utc(self.submitted_ms)

    def blocks_summary(self, decision: BreakpointDecision) -> bool:
        """Returns whether the policy rejects a proposed summary independently of peaks."""
        return decision is SKIP and self.summary_policy == SummaryPolicy.BREAKPOINTS


SignalName: TypeAlias = tuple[str, str]
"""The `endMessageId` and `kind` of a signal, which identify it in its thread."""


def _name_of(item: SignalItem) -> SignalName:
    return item.end_message_id, item.kind.value


@dataclass(slots=True)
class Thread:
    """The state of a conversation after one turn and before the next; only step 8 changes it."""

    thread_id: str
    """Which conversation."""
    count: int = 0
    """How many of its turns are decided."""
    latest: Latest | None = None
    """Its memento, once it has one."""
    recent: msgspec.Raw | None = None
    """Messages of its last live turns, as encoded by `worker.breakpoint.context`."""
    consumed: tuple[SignalName, ...] = ()
    """The signals that have counted in turns of runs that count each once, the latest last."""

    @property
    def etag(self) -> str:
        """The concurrency token of the thread's state."""
        return str(self.count)

    def fresh(self, signals: Sequence[SignalItem]) -> Sequence[SignalItem]:
        """Returns the signals that have not counted yet."""
        return [item for item in signals if _name_of(item) not in self.consumed]

    def consume(self, signals: Sequence[SignalItem]) -> None:
        """Remembers signals; those that are sent again stay remembered longest."""
        if signals:
            names = dict.fromkeys(map(_name_of, signals))
            kept = [name for name in self.consumed if name not in names]
            self.consumed = (*kept, *names)[-MAX_CONSUMED_SIGNALS:]

    def advance(self, latest: Latest) -> Latest:
        """Takes over the state after a decided turn; it is committed to the ledger with its batch."""
        self.latest = latest
        self.count += 1
        return latest


class TurnReply(NamedTuple):
    """The reply of the model to a turn."""

    shape: WireShape | None
    """The summary it proposes."""
    affect_signal: WireAffectSignal | None
    """The emotion that it recognised in the turn."""
    response: str | None = None
    """The answer itself; None when the turn was not answered live."""


class Model(Protocol):
    """Answers turns live; without one, the recorded shape of a turn is its answer."""

    def is_worth_a_call(self, turn: WireTurn, decision: BreakpointDecision) -> bool:
        """Returns whether the turn is to be answered by the model."""

    def retrieve_context(
        self, thread_id: str, message: str, request_thread_memento: KeptMemento
    ) -> Sequence[str]:
        """Returns the paragraphs about the thread that the prompt contains."""

    def generate(self, turn: WireTurn, context: Sequence[str], closure: str) -> TurnReply:
        """Calls the model and returns its reply."""


class Refusal(NamedTuple):
    """Why a turn was not decided; nothing was changed."""

    code: str
    """For programs."""
    message: str
    """For people."""


class DecidedTurn(msgspec.Struct, frozen=True, gc=False):
    """The result of a turn."""

    verdict: RuleDecision
    """Decision, rule and reason."""
    peak_guardrail_active: bool
    """Whether the peak froze the summary."""
    summary_updated: bool
    """Whether a proposed summary was applied, even an equal one."""
    source: str
    """Source of the baseline memento."""
    previous: Latest
    """The baseline itself."""
    latest: Latest
    """The thread's memento after the turn."""
    response: str | None
    """The live answer, if there is one."""


Trace = Callable[[BreakpointDecision, bool, str], None]
"""Takes the decision, whether the guardrail is active, and the baseline's source."""


def run_turn(
    turn: WireTurn,
    thread: Thread,
    policy: RunPolicy,
    message_id: str,
    *,
    model: Model | None = None,
    trace: Trace | None = None,
) -> DecidedTurn | Refusal:
    """Takes one turn through the flow.

    With its comments it is longer than 40 lines: the nine steps belong together, in one piece.

    Args:
        turn: a validated turn.
        thread: its conversation; changed when the turn is decided, untouched when it is refused.
        policy: the settings of the turn's run.
        message_id: the turn's identity, its own or the default.
        model: answers live; None for recorded shapes only.
        trace: takes the breakpoint event, before anything is retrieved or generated; without one, it is
            derived from the committed result (`worker.breakpoint.trace`).
    """
    # 1. Request: a stale token is refused; the memento that the turn starts from is resolved.
    if turn.thread_memento_etag is not None and turn.thread_memento_etag != thread.etag:
        return Refusal(ETAG_CONFLICT, f"thread_memento_etag is stale: the thread is at {thread.etag}")
    now = turn.ts or policy.submitted_at
    previous, source = resolve_baseline(turn, thread.latest, now)

    # 2. Its signals are extracted.
    signals = accepted_signals(turn, source)

    # 3. The engine decides what the turn is worth.
    verdict = decide(turn, thread.fresh(signals) if policy.signals_once else signals)

    # 4. The guardrail reads the state before the turn, once for both trace and update.
    peak_guardrail_active = is_summary_frozen(previous, verdict.decision)

    # 5. The decision is traced.
    if trace is not None:
        trace(verdict.decision, peak_guardrail_active, source)

    # 6. and 7. A recorded answer is used unchanged; else context is retrieved and the model generates one.
    if model is None or not model.is_worth_a_call(turn, verdict.decision):
        proposed, affect_signal, response = turn.model_shape, affect_signal_of(turn), None
    else:
        context = model.retrieve_context(turn.thread_id, turn.message, previous.memento)
        proposed, affect_signal, response = model.generate(turn, context, closure_of(turn, signals))

    # 8. The summary is updated, unless it is frozen. Affect is the user's, and is updated at a peak too.
    shape = None if peak_guardrail_active or policy.blocks_summary(verdict.decision) else proposed
    measured = affect_signal if turn.role is USER else None
    latest = thread.advance(updated(previous, shape, measured, message_id, now))
    if policy.signals_once:
        thread.consume(signals)

    # 9. The response contains the decision and the thread's new state.
    return DecidedTurn(verdict, peak_guardrail_active, shape is not None, source, previous, latest, response)


def affect_signal_of(turn: WireTurn) -> WireAffectSignal | None:
    """Returns the emotion that came with a turn: its `affectSignal`, else `affect_signal` of its `meta`."""
    if turn.affect_signal is not None or not turn.meta or META_AFFECT not in bytes(turn.meta):
        return turn.affect_signal
    meta = msgspec.json.decode(turn.meta)
    return signal_of_reply(meta.get("affect_signal")) if isinstance(meta, dict) else None


def accepted_signals(turn: WireTurn, source: str) -> Sequence[SignalItem]:
    """Returns the signals that apply: those of the turn, else those of its memento if that is the baseline.

    Signals of an ignored memento, which belongs to another thread or lost against the reference, do not
    count.
    """
    signals = turn.signals
    if signals is None and source == FROM_REQUEST and turn.context and turn.context.thread_memento:
        signals = turn.context.thread_memento.signals
    return () if signals is None else signals.items


def decide(turn: WireTurn, signals: Sequence[SignalItem]) -> RuleDecision:
    """Applies the rules of the engine to a turn."""
    return decide_with_rule(
        message=turn.message,
        signal_kinds=[item.kind for item in signals],
        context_window_pressure=turn.context_window_pressure,
        drift_risk=turn.drift_risk,
        summary_changed=turn.summary_changed,
    )


def is_summary_frozen(previous: Latest | KeptMemento, decision: BreakpointDecision) -> bool:
    """Applies the peak guardrail to the thread's state before the turn."""
    rollup = previous.affect.rollup
    return should_freeze_summary_at_peak(
        phase=rollup.phase, intensity_bucket=rollup.intensity_bucket, decision=decision
    )


def closure_of(turn: WireTurn, signals: Sequence[SignalItem]) -> str:
    """Renders the part of the prompt about closed loops."""
    meta = msgspec.json.decode(turn.meta) if turn.meta else None
    return render_closure_signals(signals, flagged_messages(meta))
