"""The types of what Proctor prints and writes of turns: the summary of a run, lines of results, traces."""

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from producer.documents import Count, Line, OutcomeRates, Part, Percentiles, RunDocument, tally_of
from shared.contracts.turn_vocabulary import Live

DECISIONS: Final = ("must", "should", "skip")
RULES: Final = ("1", "2", "3", "4", "5", "6")
Rule = Annotated[int, Meta(ge=1, le=6)]
BreakpointDecision = Literal["must", "should", "skip"]


class LiveCalls(Struct, kw_only=True, forbid_unknown_fields=True):
    """Model calls of a live run."""

    made: Count = 0
    from_cache: Count = 0
    avoided: Count = 0
    given_up: Count = 0
    unread: Count | UnsetType = UNSET
    invalid_shapes: Count | UnsetType = UNSET
    cost_usd: float | None = None
    cost_unknown: Count = 0
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    latency_ms: Percentiles | UnsetType = UNSET
    latency_n: Count | UnsetType = UNSET


class TurnsSummary(Part, kw_only=True, frozen=True):
    """The figures of a turns run."""

    calls: LiveCalls | UnsetType = UNSET
    decisions: Annotated[dict[str, Count], tally_of(DECISIONS)]
    rules: Annotated[dict[str, Count], tally_of(RULES)]
    freezes: Count
    summaries_updated: Count
    repeated_requests: Count
    retried: Count
    errors: dict[str, Count]
    source: str
    duration_s: float | None
    model: str | UnsetType = UNSET
    live: Live | UnsetType = UNSET
    threads: Count
    summary_policy: str
    signals_once: bool | UnsetType = UNSET
    namespace: str
    turns_per_s: float | None
    rates: OutcomeRates


TurnsRun = RunDocument[TurnsSummary]
"""The document of a turns run."""


class Rollup(Part, rename="camel", frozen=True):
    """Where a thread's emotion is heading."""

    phase: str
    intensity_bucket: str
    updated_at: str


class Affect(Part, frozen=True):
    """The emotion of a thread's latest turns."""

    points: list[dict[str, Any]]
    rollup: Rollup


class Memento(Part, rename="camel", frozen=True):
    """The summary of a thread."""

    memento_id: str
    id: str
    thread_id: str
    created_ts: str
    created_at: str
    updated_at: str
    version: str
    arc: str
    active: list[str]
    parked: list[str]
    decisions: list[str]
    next: list[str]
    affect: Affect


class TurnResult(Part, rename="camel", kw_only=True, frozen=True):
    """What was decided about a turn, and the thread's summary after it."""

    call: dict[str, Any] | UnsetType = UNSET
    thread_id: str
    message_id: str
    decision: BreakpointDecision | None
    rule: Rule | None
    peak_guardrail_active: bool
    summary_updated: bool
    reason: str
    source: str
    etag: str
    memento: Memento
    response: str | None


class TurnLine(Line, kw_only=True, frozen=True):
    """A line of a turns run as .jsonl, and of results --format jsonl.

    Of an item without a result (skipped), result is null.
    """

    item_id: Annotated[str, Meta(pattern="^turn-[0-9]+$")]
    kind: Literal["turns"]
    outcome: Literal["decided", "error", "skipped"]
    result: TurnResult | None
    message: Annotated[
        str | UnsetType,
        Meta(description="The text of the turn, cut after 2,000 characters; absent with --no-text."),
    ] = UNSET
    message_chars: Annotated[Count | UnsetType, Meta(description="Its length, with --no-text only.")] = UNSET


class TraceLine(
    Part, rename={"trace_run_id": "traceRunId", "transmission_id": "transmissionId"}, frozen=True
):
    """A line of results --traces."""

    trace_run_id: str
    transmission_id: str
    actor: str
    phase: str
    status: str
    summary: str
    metadata: dict[str, Any]
    ts: str
