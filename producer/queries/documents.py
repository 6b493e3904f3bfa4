"""The types of what Proctor prints and writes of queries: the summary with metrics and targets, lines."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from producer.documents import Count, Line, OutcomeRates, Part, Percentiles, Rate, RunDocument, Time

Status = Literal["PASS", "FAIL", "N/A"]


class CategoryMetrics(Part, frozen=True):
    """The harness's metrics of one category."""

    total: Count
    in_scope: Count
    oos: Count
    citation_applicable: Count
    deflection_rate: float
    citation_accuracy: float
    hallucination_rate: float
    avg_latency_ms: float


class Metrics(Part, frozen=True):
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


class JudgedTarget(Part, frozen=True):
    """A metric against its target."""

    metric: str
    relation: Literal[">=", "<"]
    threshold: float
    value: float
    status: Status


class QueryRates(OutcomeRates, frozen=True):
    """Shares of the queries that each metric counts."""

    deflection_rate: Rate
    citation_accuracy: Rate
    citation_accuracy_raw: Rate
    hallucination_rate: Rate
    oos_handling_rate: Rate
    latency_under_5s: Rate

    def of(self, metric: str) -> Rate | None:
        """Returns the rate of a metric; None where it is not a share."""
        found: Rate | None = getattr(self, metric, None)
        return found


class QueriesSummary(Part, kw_only=True, frozen=True):
    """The figures of a queries run."""

    metrics: Metrics
    targets: tuple[JudgedTarget, ...]
    rates: QueryRates
    latency_ms: Annotated[Percentiles, Meta(description="As the client measured it, of answers.")]
    server_latency_ms: Annotated[Percentiles, Meta(description="As the server reports it, where it does.")]
    latency_n: Count
    vacuous_deflections: Count
    retried: Count
    errors: dict[str, Count]
    source: str
    duration_s: float | None
    api_url: str
    delay_s: float
    concurrency: Count
    fold_apostrophes: bool | UnsetType = UNSET
    queries_per_s: float | None


QueriesRun = RunDocument[QueriesSummary]
"""The document of a queries run."""


class WrittenCheck(Struct, frozen=True, rename={"passed": "pass"}):
    """What one check found; the other keys are its own."""

    passed: bool


class AnsweredQuery(Part, frozen=True):
    """What the API answered to a query, and how the answer fared."""

    id: str
    category: str
    query: str
    is_oos: bool
    response: dict[str, Any] | None
    checks: dict[str, WrittenCheck]
    overall_pass: bool
    client_latency_ms: Count | None
    error: str | None


class QueryLine(Line, kw_only=True, frozen=True):
    """A line of a queries run as .jsonl, and of results --format jsonl.

    Of an item without a result (skipped), result is null.
    """

    item_id: Annotated[str, Meta(pattern="^query-[0-9]+$")]
    kind: Literal["queries"]
    outcome: Literal["passed", "failed", "error", "skipped"]
    result: AnsweredQuery | None


class HarnessConfig(Part, frozen=True):
    """The settings of the run, as the harness records them."""

    delay: float
    api_url: str
    start_from: str
    version: str


class QueriesReport(Part, frozen=True):
    """A queries run as .json: the results file of the evaluation harness."""

    run_id: str
    timestamp: Time
    config: HarnessConfig
    metrics: Metrics
    results: list[AnsweredQuery]
