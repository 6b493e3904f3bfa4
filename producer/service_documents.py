"""The types of what commands print with `--json` that is not the document of a run.

Each is built by its command, read by attribute where it is printed for people, and encoded by
`Output.document`. The file is longer than 500 lines: it is a list with an entry for each command.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from producer.documents import (
    SCHEMA_VERSION,
    Count,
    Exit,
    Fraction,
    ItemError,
    JudgedGate,
    KindName,
    Part,
    Percentiles,
    StateName,
    Time,
    Version,
    WrittenFile,
)
from producer.options import SubmittedRun
from shared.contracts.turn_vocabulary import AffectPhase, IntensityBucket

NonNegative = Annotated[float, Meta(ge=0)]
Rule = Annotated[int, Meta(ge=1, le=6)]
Decision = Annotated[str, Meta(extra_json_schema={"enum": ["must", "should", "skip"]})]
Phase = Annotated[str, Meta(extra_json_schema={"enum": [each.value for each in AffectPhase]})]
Intensity = Annotated[str, Meta(extra_json_schema={"enum": [each.value for each in IntensityBucket]})]
Bound = float | UnsetType
"""A limit; absent where it is not set."""


class CommandError(Part, frozen=True):
    """Why a command failed."""

    code: str
    message: str
    hint: str | None


class ErrorDocument(Part, kw_only=True, frozen=True):
    """What any command prints with --json when it fails."""

    schema_version: Version = SCHEMA_VERSION
    error: CommandError
    exit: Exit


class SubmitDocument(Part, kw_only=True, frozen=True):
    """What submit and run --detach print with --json."""

    schema_version: Version = SCHEMA_VERSION
    run_id: str
    kind: KindName
    total: Count
    threads: Count
    duplicate: bool
    exit: Exit = 0

    @classmethod
    def of(cls, submitted: SubmittedRun) -> "SubmitDocument":
        """Says which run was submitted."""
        return cls(
            run_id=submitted.run,
            kind=submitted.kind.name,
            total=submitted.total,
            threads=submitted.threads,
            duplicate=submitted.duplicate,
        )


class ItemsDocument(Part, kw_only=True, frozen=True):
    """What show prints with --json for items: their lines, as results --format jsonl has them."""

    schema_version: Version = SCHEMA_VERSION
    run_id: str
    kind: KindName
    items: tuple[Any, ...]
    exit: Exit = 0


class StateDocument(Part, kw_only=True, frozen=True):
    """What cancel, pause and resume --detach print with --json: the state a run is in now."""

    schema_version: Version = SCHEMA_VERSION
    run_id: str
    state: StateName
    exit: Exit = 0


class RetryDocument(Part, kw_only=True, frozen=True):
    """What retry --detach prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    run_id: str
    retried: Count
    left: Count
    exit: Exit = 0


class ReportDocument(Part, kw_only=True, frozen=True):
    """What report -o prints with --json: the files it wrote."""

    schema_version: Version = SCHEMA_VERSION
    run_id: str
    files: tuple[WrittenFile, ...]
    gates: tuple[JudgedGate, ...] | UnsetType = UNSET
    exit: Exit


class RunsRemoved(Part, kw_only=True, frozen=True):
    """What runs rm prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    removed: tuple[str, ...]
    exit: Exit = 0


class TextsForgotten(Part, kw_only=True, frozen=True):
    """What runs forget prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    forgotten: tuple[str, ...]
    exit: Exit = 0


class ListedRun(Part, frozen=True):
    """A run in a list."""

    run_id: str
    name: Annotated[str, Meta(description="As `--name` gave it; empty without one.")]
    title: Annotated[str, Meta(description="What lists call it: its name, that of its bench, or its input.")]
    description: str
    kind: KindName
    state: StateName
    namespace: str
    total: Count
    done: Count
    threads: Count
    created_at: Time
    finished_at: Time | None
    source: str
    why: Annotated[str, Meta(description="Why it makes no progress; empty when nothing holds it.")]
    rate_s: Annotated[
        float | UnsetType | None,
        Meta(description="Recent items per second; only with status --watch, null until it is known."),
    ] = UNSET


class ListedStream(Part, frozen=True):
    """The stream of a namespace in a list: turns of `proctor serve`; today begins at midnight, UTC."""

    name: Annotated[str, Meta(description="What results, report and compare take.")]
    namespace: str
    turns_today: Count
    decisions_today: dict[str, Count]
    errors_today: Count
    turns_per_s: Annotated[float, Meta(description="In the last minute.")]
    kept: Annotated[Count, Meta(description="Turns that are kept in full.")]
    kept_since: Time | None
    latency_ms: Annotated[
        Percentiles | UnsetType, Meta(description="Of today, from acceptance to decision, right to 5 %.")
    ] = UNSET


class RunsDocument(Part, kw_only=True, frozen=True):
    """What runs list prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    runs: tuple[ListedRun, ...]
    streams: Annotated[
        tuple[ListedStream, ...] | UnsetType, Meta(description="Only where proctor serve has taken turns.")
    ] = UNSET
    exit: Exit = 0


class QueueState(Part, frozen=True):
    """One kind's queue."""

    kind: KindName
    queued: Annotated[
        Count | None,
        Meta(description="Wake-ups that no worker has taken yet; null while the broker does not answer."),
    ]
    handed_out: Count
    delayed: Count
    runs: Count
    workers: Count
    open_items: Annotated[Count, Meta(description="Items without a result, of the newest hundred runs.")]


class WorkerState(Part, frozen=True):
    """A worker process."""

    name: str
    kinds: tuple[KindName, ...]
    capacity: Count
    heard_s: Annotated[NonNegative, Meta(description="Seconds since its last heartbeat.")]


class StatusDocument(Part, kw_only=True, frozen=True):
    """What status prints with --json: queues, workers, the last runs."""

    schema_version: Version = SCHEMA_VERSION
    redis: str
    embedded: bool
    queues: tuple[QueueState, ...]
    workers: tuple[WorkerState, ...]
    runs: tuple[ListedRun, ...]
    dead: Count
    exit: Exit = 0


class DeadEntry(Part, frozen=True):
    """An item of the dead set."""

    run_id: str
    item_id: str
    name: Annotated[
        str,
        Meta(
            description="The id that the item has in its file, with model, thread or repetition where "
            "several share it."
        ),
    ]
    kind: KindName
    attempts: Count
    at: Time
    error: ItemError


class DeadDocument(Part, kw_only=True, frozen=True):
    """What dead list prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    dead: tuple[DeadEntry, ...]
    exit: Exit = 0


class DeadItemDocument(Part, kw_only=True, frozen=True):
    """What dead show prints: one item of the dead set."""

    schema_version: Version = SCHEMA_VERSION
    run_id: str
    item_id: str
    name: Annotated[
        str,
        Meta(
            description="The id that the item has in its file, with model, thread or repetition where "
            "several share it."
        ),
    ]
    kind: KindName
    at: Time
    attempts: Count
    error: ItemError
    payload: Any
    result: Any
    exit: Exit = 0


class DeadDiscarded(Part, kw_only=True, frozen=True):
    """What dead discard and dead purge print with --json."""

    schema_version: Version = SCHEMA_VERSION
    discarded: Count
    exit: Exit = 0


class LabelRow(Part, kw_only=True, frozen=True):
    """What a person says of one answer, as labels export and labels import have it."""

    run_id: str = ""
    item_id: Annotated[
        str, Meta(description="Position in its run, such as case-3; read only where the run is the same.")
    ] = ""
    name: Annotated[
        str, Meta(description="Name of the item, by which a label finds its item in another run.")
    ] = ""
    verdict: Literal["pass", "fail", "defer"]
    reviewer: str = ""
    note: str = ""
    tags: list[str] = []  # noqa: RUF012 - msgspec copies it
    answer: Annotated[
        str, Meta(description="Digest of the answer that was seen; empty: whatever the answer is.")
    ] = ""
    at: str = ""


class LabelsDocument(Part, kw_only=True, frozen=True):
    """What labels list prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    run_id: str
    labels: list[LabelRow]
    reviewers: list[str]
    decided: Annotated[Count, Meta(description="Answers with the verdict of most of their reviewers.")]
    disputed: Annotated[Count, Meta(description="Answers on which reviewers are evenly divided.")]
    shared: Annotated[Count, Meta(description="Answers that at least two reviewers decided.")]
    kappa: Annotated[
        float | None,
        Meta(description="Agreement beyond chance: Cohen's kappa of two, Krippendorff's alpha of more."),
    ]
    exit: Exit = 0


class LabelsImported(Part, kw_only=True, frozen=True):
    """What labels import and labels add print with --json."""

    schema_version: Version = SCHEMA_VERSION
    run_id: str
    imported: Count
    of_other_answers: Annotated[
        Count, Meta(description="Labels that were left out, because the run has another answer.")
    ] = 0
    exit: Exit = 0


class LimitsOfKey(Part, frozen=True):
    """The limits that are set."""

    rpm: Bound = UNSET
    tpm: Bound = UNSET
    concurrency: Bound = UNSET
    pace_s: Bound = UNSET


class LimitState(Part, frozen=True):
    """The limits of an endpoint, and where they stand."""

    key: str
    account: str
    in_flight: Count
    adaptive: float | None
    paused_ms: Count
    breaker: Annotated[str, Meta(extra_json_schema={"enum": ["closed", "open", "half-open"]})]
    open_ms: Count
    next_ms: Count
    latency_ms: float | None
    place: str
    adaptive_rpm: float | None
    free: int | None
    set: LimitsOfKey


class LimitsDocument(Part, kw_only=True, frozen=True):
    """What limits show prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    limits: tuple[LimitState, ...]
    exit: Exit = 0


class LimitsSet(Part, kw_only=True, frozen=True):
    """What limits set prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    key: str
    set: LimitsOfKey
    exit: Exit = 0


class LimitsUnset(Part, kw_only=True, frozen=True):
    """What limits unset prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    unset: tuple[str, ...]
    exit: Exit = 0


class LimitsReset(Part, kw_only=True, frozen=True):
    """What limits reset prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    reset: Count
    exit: Exit = 0


class CacheContents(Part, frozen=True):
    """The cache of model answers."""

    answers: Count
    bytes: Count
    hits: Count
    misses: Count
    hit_rate: Fraction | None
    ttl_s: float


class CacheDocument(Part, kw_only=True, frozen=True):
    """What cache info prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    cache: CacheContents
    exit: Exit = 0


class CacheCleared(Part, kw_only=True, frozen=True):
    """What cache clear prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    cleared: Count
    exit: Exit = 0


class ListedPlugin(Part, frozen=True):
    """A plug-in of an installed package."""

    kind: str
    name: str
    package: str | None
    version: str | None
    workers: int


class PluginsDocument(Part, kw_only=True, frozen=True):
    """What plugins prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    plugins: tuple[ListedPlugin, ...]
    workers: int
    exit: Exit = 0


class DoctorCheck(Part, frozen=True):
    """One check of this machine."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    fix: str


class DoctorDocument(Part, kw_only=True, frozen=True):
    """What doctor prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    checks: tuple[DoctorCheck, ...]
    exit: Exit


class ListedSetting(Part, frozen=True):
    """A setting, and where its value comes from."""

    name: str
    env: str
    value: Any
    origin: str


class ConfigDocument(Part, kw_only=True, frozen=True):
    """What config show prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    settings: tuple[ListedSetting, ...]
    exit: Exit = 0


class ListedSchema(Part, frozen=True):
    """The name and title of a schema."""

    name: str
    title: str


class SchemasDocument(Part, kw_only=True, frozen=True):
    """What config schema prints with --json: the names of the schemas."""

    schema_version: Version = SCHEMA_VERSION
    schemas: tuple[ListedSchema, ...]
    exit: Exit = 0


class ModelPrice(Part, frozen=True):
    """US dollars per million tokens."""

    prompt_per_million: NonNegative
    completion_per_million: NonNegative
    cached_prompt_per_million: Annotated[
        NonNegative | UnsetType,
        Meta(description="Of what the provider had in its cache; only where it differs, as the next."),
    ] = UNSET
    cache_write_per_million: NonNegative | UnsetType = UNSET
    reasoning_per_million: NonNegative | UnsetType = UNSET


class ListedModel(Part, frozen=True):
    """A model that a configuration names."""

    model: str
    role: Literal["model", "judge", "check"]
    provider: Annotated[str | None, Meta(description="From the model's name.")]
    api_base: Annotated[str | None, Meta(description="Null: the provider's own endpoint.")]
    api_key_env: Annotated[
        str | None,
        Meta(description="The variable that holds the key; null: none is sent, or none is known."),
    ]
    key_present: Annotated[
        bool | None,
        Meta(description="Whether the command's environment has it; null without a variable."),
    ]
    price: Annotated[ModelPrice | None, Meta(description="US dollars; null where it is not known.")]


class ModelsDocument(Part, kw_only=True, frozen=True):
    """What models prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    models: tuple[ListedModel, ...]
    exit: Exit = 0


class RunEstimate(Part, frozen=True):
    """What a run would call and cost."""

    calls: Count
    judge_calls: Count
    prompt_tokens: Count
    cost_usd: Annotated[float | None, Meta(description="Of the models under test.")]
    check_calls: Count = 0
    judge_cost_usd: Annotated[
        float | None, Meta(description="Of the judges, if each is called each time.")
    ] = None
    check_cost_usd: float | None = 0.0
    assumed_answer_tokens: Annotated[int | None, Meta(description="Of checks that call a model.")] = None


class FileCounts(Part, frozen=True):
    """What is in a file; which keys there are depends on the kind."""

    total: Count
    cases: Count | UnsetType = UNSET
    models: Count | UnsetType = UNSET
    prompts: Count | UnsetType = UNSET
    repeat: Count | UnsetType = UNSET
    recorded: Count | UnsetType = UNSET
    chunks: Count | UnsetType = UNSET
    threads: Count | UnsetType = UNSET
    calls: Count | UnsetType = UNSET


class ValidateDocument(Part, kw_only=True, frozen=True):
    """What validate and --dry-run print with --json: what is in a file."""

    schema_version: Version = SCHEMA_VERSION
    file: str
    kind: KindName
    counts: FileCounts
    mode: str | UnsetType = UNSET
    models: tuple[str, ...] | UnsetType = UNSET
    judge_model: str | UnsetType | None = UNSET
    judge_models: tuple[str, ...] | UnsetType = UNSET
    variables: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(description="Columns of data files that are variables, because they have no documented name."),
    ] = UNSET
    estimate: RunEstimate | UnsetType = UNSET
    exit: Exit = 0


class ListedItem(Part, frozen=True):
    """An item of a file."""

    item_id: Annotated[str, Meta(description="As in the results of a run with the same options.")]
    id: Annotated[str, Meta(description="The id that it has in the file, which several items may share.")]
    name: Annotated[str, Meta(description="The id, extended by what distinguishes the item.")]
    asked: Annotated[str, Meta(description="The name without the number of a repetition.")]
    needed: Annotated[
        int | None, Meta(description="Answers of this `asked` that must pass; null: each is judged alone.")
    ]
    tags: tuple[str, ...]


class ListDocument(Part, kw_only=True, frozen=True):
    """What validate --list prints with --json: the items of a file.

    A run with the same options has them in this order.
    """

    schema_version: Version = SCHEMA_VERSION
    file: str
    kind: KindName
    items: tuple[ListedItem, ...]
    exit: Exit = 0


class DecideDocument(Part, kw_only=True, frozen=True):
    """What decide prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    decision: Decision
    rule: Rule
    reason: str
    ackOnly: bool  # noqa: N815 - the documents' own name
    peakGuardrailActive: bool  # noqa: N815 - the same
    exit: Exit = 0


class ListedThread(Part, frozen=True):
    """Where a thread stands."""

    namespace: str
    thread: str
    turns: Annotated[Count, Meta(description="Turns decided so far.")]
    etag: Annotated[str, Meta(description="The same number as text, for thread_memento_etag.")]
    updated_at: Annotated[str, Meta(description="The time of the last turn.")]
    age_s: NonNegative
    phase: Phase
    intensity: Intensity
    frozen: Annotated[
        bool, Meta(description="Whether the peak guardrail keeps the summary from every turn but a must.")
    ]


class ThreadsDocument(Part, kw_only=True, frozen=True):
    """What threads list prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    threads: tuple[ListedThread, ...]
    total: Annotated[Count, Meta(description="All threads, listed or not.")]
    exit: Exit = 0


class ThreadsRemoved(Part, kw_only=True, frozen=True):
    """What threads rm prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    namespace: str
    removed: Count
    exit: Exit = 0


class LastTurn(Part, frozen=True):
    """One of the latest turns of a thread."""

    run_id: str
    item_id: str
    message_id: str
    decision: Decision | None
    rule: Rule | None
    reason: str
    frozen: bool
    summary_updated: bool
    etag: str
    error: ItemError | None
    message: str


class ThreadDocument(Part, kw_only=True, frozen=True):
    """What threads show prints with --json."""

    schema_version: Version = SCHEMA_VERSION
    namespace: str
    thread: str
    turns: Annotated[Count, Meta(description="Turns decided so far.")]
    etag: Annotated[str, Meta(description="The same number as text, for thread_memento_etag.")]
    updated_at: Annotated[str, Meta(description="The time of the last turn.")]
    age_s: NonNegative
    phase: Phase
    intensity: Intensity
    frozen: Annotated[
        bool, Meta(description="Whether the peak guardrail keeps the summary from every turn but a must.")
    ]
    used_by: Annotated[tuple[str, ...], Meta(description="Open runs that use the namespace.")]
    memento: Any
    last_turns: Annotated[
        tuple[LastTurn, ...],
        Meta(description="Oldest first, as far as the runs that hold them are kept."),
    ]
    exit: Exit = 0


class LoadingEvent(Part, kw_only=True, frozen=True):
    """Items are being read."""

    schema_version: Version = SCHEMA_VERSION
    event: Literal["loading"] = "loading"
    source: str
    items: Count


class SubmittedEvent(Part, kw_only=True, frozen=True):
    """The run is in the ledger."""

    schema_version: Version = SCHEMA_VERSION
    event: Literal["submitted"] = "submitted"
    run_id: str
    kind: KindName
    total: Count
    source: str


class FailureEvent(Part, kw_only=True, frozen=True):
    """An item failed or ended in error."""

    schema_version: Version = SCHEMA_VERSION
    event: Literal["failure"] = "failure"
    run_id: str
    item: str
    code: str
    message: str


class WaitingEvent(Part, kw_only=True, frozen=True):
    """The run makes no progress, and why."""

    schema_version: Version = SCHEMA_VERSION
    event: Literal["waiting"] = "waiting"
    run_id: str
    why: str


class ProgressEvent(Part, kw_only=True, frozen=True):
    """How far the run is."""

    schema_version: Version = SCHEMA_VERSION
    event: Literal["progress"] = "progress"
    run_id: str
    state: StateName
    done: Count
    total: Count
    tally: dict[str, Count]
    in_flight: Annotated[
        Count | None,
        Meta(description="Calls in flight over all workers; null where they are not counted."),
    ]
    why: str
    rate_s: float | None
    left_s: float | None
    elapsed_s: float
    queued: Count | None
    workers: Count | None
    limits: tuple[str, ...]
    cost_usd: float | None
    max_cost_usd: float | None


class ErrorEvent(Part, kw_only=True, frozen=True):
    """The command failed."""

    schema_version: Version = SCHEMA_VERSION
    event: Literal["error"] = "error"
    error: CommandError
    exit: Exit
