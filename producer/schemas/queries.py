"""What Proctor prints and writes of queries: the summary with metrics and targets, lines, report."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from producer.queries.documents import Status
from producer.schemas.parts import (
    Count,
    Line,
    OutcomeRates,
    Part,
    Percentiles,
    Rate,
    RunFigures,
    RunHead,
)
from shared.contracts.mementos import OptionalKey
from shared.names import Outcome, RunState


class CategoryMetrics(Part):
    """The harness's metrics of one category."""

    total: Count
    in_scope: Count
    oos: Count
    citation_applicable: Count
    deflection_rate: float
    citation_accuracy: float
    hallucination_rate: float
    avg_latency_ms: float


class Metrics(Part):
    """The harness's metrics; rates in per cent."""

    deflection_rate: float
    citation_accuracy: float
    citation_accuracy_raw: float
    citation_applicable_queries: Count
    citation_na_queries: Count
    hallucination_rate: float
    oos_handling_rate: float
    avg_latency_ms: float
    latency_under_5s: float
    total_queries: Count
    successful_queries: Count
    failed_queries: Count
    in_scope_queries: Count
    oos_queries: Count
    by_category: dict[str, CategoryMetrics]


class Target(Part):
    """A metric against its target."""

    metric: str
    relation: Literal[">=", "<"]
    threshold: float
    value: float
    status: Status


class QueryRates(OutcomeRates):
    """Shares of the queries that each metric counts."""

    deflection_rate: Rate
    citation_accuracy: Rate
    citation_accuracy_raw: Rate
    hallucination_rate: Rate
    oos_handling_rate: Rate
    latency_under_5s: Rate


class QueriesSummary(RunFigures):
    """The figures of a queries run."""

    metrics: Metrics
    targets: tuple[Target, ...]
    rates: QueryRates
    latency_ms: Percentiles
    """As the client measured it, of answers."""
    server_latency_ms: Percentiles
    """As the server reports it, where it does."""
    latency_n: Count
    vacuous_deflections: Count
    api_url: str
    delay_s: float
    concurrency: Count
    fold_apostrophes: OptionalKey[bool] = None
    queries_per_s: float | None


class QueriesRun(RunHead):
    """The document of a queries run."""

    kind: Literal["queries"]
    state: RunState
    summary: QueriesSummary


class Check(Part):
    """What one check found; the other keys are its own."""

    model_config = ConfigDict(extra="allow")

    passed: bool = Field(alias="pass")


class QueryResult(Part):
    """What the API answered to a query, and how the answer fared."""

    id: str
    category: str
    query: str
    is_oos: bool
    response: dict[str, Any] | None
    checks: dict[str, Check]
    overall_pass: bool
    client_latency_ms: Count | None
    error: str | None


class QueryLine(Line):
    """A line of a queries run as .jsonl, and of results --format jsonl.

    Of an item without a result (skipped), result is null.
    """

    item_id: Annotated[str, Field(pattern="^query-[0-9]+$")]
    kind: Literal["queries"]
    outcome: Literal[Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED]
    result: QueryResult | None
