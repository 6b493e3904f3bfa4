"""What Proctor prints and writes of turns: the summary, result lines, the report, traces, threads."""
# ruff: noqa: N815 - the fields carry the documents' own names

from typing import Annotated, Any, Literal

from pydantic import Field

from producer.schemas.parts import (
    Count,
    Document,
    ItemError,
    Line,
    OutcomeRates,
    Part,
    Percentiles,
    Rule,
    RunFigures,
    RunHead,
)
from shared.contracts.mementos import OptionalKey
from shared.contracts.turn_vocabulary import AffectPhase, IntensityBucket, Live
from shared.names import Outcome, RunState
from worker.breakpoint.engine import BreakpointDecision


class Calls(Part):
    """Model calls of a live run."""

    latency_ms: OptionalKey[Percentiles] = None
    latency_n: OptionalKey[Count] = None
    made: Count
    from_cache: Count
    avoided: Count
    given_up: Count
    unread: OptionalKey[Count] = None
    invalid_shapes: OptionalKey[Count] = None
    cost_usd: float | None
    cost_unknown: Count
    prompt_tokens: Count
    completion_tokens: Count


class Decisions(Part):
    """Turns by decision."""

    must: Count
    should: Count
    skip: Count


class Rules(Part):
    """Turns by the rule that decided."""

    rule_1: Count = Field(alias="1")
    rule_2: Count = Field(alias="2")
    rule_3: Count = Field(alias="3")
    rule_4: Count = Field(alias="4")
    rule_5: Count = Field(alias="5")
    rule_6: Count = Field(alias="6")


class TurnsSummary(RunFigures):
    """The figures of a turns run."""

    model: OptionalKey[str] = None
    live: OptionalKey[Live] = None
    calls: OptionalKey[Calls] = None
    decisions: Decisions
    rules: Rules
    freezes: Count
    summaries_updated: Count
    repeated_requests: Count
    threads: Count
    summary_policy: str
    signals_once: OptionalKey[bool] = None
    namespace: str
    turns_per_s: float | None
    rates: OutcomeRates


class TurnsRun(RunHead):
    """The document of a turns run."""

    kind: Literal["turns"]
    state: RunState
    summary: TurnsSummary


class Rollup(Part):
    """Where a thread's emotion is heading."""

    phase: str
    intensityBucket: str
    updatedAt: str


class Affect(Part):
    """The emotion of a thread's latest turns."""

    points: tuple[dict[str, Any], ...]
    rollup: Rollup


class Memento(Part):
    """The summary of a thread."""

    mementoId: str
    id: str
    threadId: str
    createdTs: str
    createdAt: str
    updatedAt: str
    version: str
    arc: str
    active: tuple[str, ...]
    parked: tuple[str, ...]
    decisions: tuple[str, ...]
    next: tuple[str, ...]
    affect: Affect


class TurnResult(Part):
    """What was decided about a turn, and the thread's summary after it."""

    call: OptionalKey[dict[str, Any]] = None
    threadId: str
    messageId: str
    decision: BreakpointDecision | None
    rule: Rule | None
    peakGuardrailActive: bool
    summaryUpdated: bool
    reason: str
    source: str
    etag: str
    memento: Memento
    response: str | None


class TurnLine(Line):
    """A line of a turns run as .jsonl, and of results --format jsonl.

    Of an item without a result (skipped), result is null.
    """

    item_id: Annotated[str, Field(pattern="^turn-[0-9]+$")]
    kind: Literal["turns"]
    outcome: Literal[Outcome.DECIDED, Outcome.ERROR, Outcome.SKIPPED]
    result: TurnResult | None
    message: OptionalKey[str] = None
    """The text of the turn, cut after 2,000 characters; absent with --no-text."""
    message_chars: OptionalKey[Count] = None
    """Its length, with --no-text only."""


class Thread(Part):
    """Where a thread stands."""

    namespace: str
    thread: str
    turns: Count
    """Turns decided so far."""
    etag: str
    """The same number as text, for thread_memento_etag."""
    updated_at: str
    """The time of the last turn."""
    age_s: Annotated[float, Field(ge=0)]
    phase: AffectPhase
    intensity: IntensityBucket
    frozen: bool
    """Whether the peak guardrail keeps the summary from every turn but a must."""


class ThreadTurn(Part):
    """One of the latest turns of a thread."""

    run_id: str
    item_id: str
    message_id: str
    decision: BreakpointDecision | None
    rule: Rule | None
    reason: str
    frozen: bool
    summary_updated: bool
    etag: str
    error: ItemError | None
    message: str


class ThreadDocument(Document, Thread):
    """What threads show prints with --json."""

    used_by: tuple[str, ...]
    """Open runs that use the namespace."""
    memento: Memento
    last_turns: tuple[ThreadTurn, ...]
    """Oldest first, as far as the runs that hold them are kept."""
