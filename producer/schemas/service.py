"""What commands print about the queue, its limits and cache, failed items, this machine and input files."""

from typing import Annotated, Any, Literal

from pydantic import Field

from producer.schemas.parts import CommandError, Count, Document, ItemError, KindName, Part, Time
from producer.schemas.runs import ListedRun
from shared.contracts.mementos import OptionalKey
from shared.server.diagnostics import Status

NonNegative = Annotated[float, Field(ge=0)]


class ErrorDocument(Document):
    """What any command prints with --json when it fails."""

    error: CommandError


class Queue(Part):
    """One kind's queue."""

    kind: KindName
    queued: Count | None
    """Wake-ups that no worker has taken yet; null while the broker does not answer."""
    handed_out: Count
    delayed: Count
    runs: Count
    workers: Count
    open_items: Count
    """Items without a result, of the newest hundred runs."""


class Worker(Part):
    """A worker process."""

    name: str
    kinds: tuple[KindName, ...]
    capacity: Count
    heard_s: NonNegative
    """Seconds since its last heartbeat."""


class StatusDocument(Document):
    """What status prints with --json: queues, workers, the last runs."""

    redis: str
    embedded: bool
    queues: tuple[Queue, ...]
    workers: tuple[Worker, ...]
    runs: tuple[ListedRun, ...]
    dead: Count


class DeadItem(Part):
    """An item of the dead set."""

    run_id: str
    item_id: str
    name: str
    """The id that the item has in its file, with model, thread or repetition where several share it."""
    kind: KindName
    attempts: Count
    at: Time
    error: ItemError


class DeadDocument(Document):
    """What dead list prints with --json."""

    dead: tuple[DeadItem, ...]


class DeadItemDocument(Document, DeadItem):
    """What dead show prints: one item of the dead set."""

    payload: Any
    result: Any


class DeadDiscarded(Document):
    """What dead discard and dead purge print with --json."""

    discarded: Count


class Limits(Part):
    """The limits that are set."""

    rpm: OptionalKey[float] = None
    tpm: OptionalKey[float] = None
    concurrency: OptionalKey[float] = None
    pace_s: OptionalKey[float] = None


class LimitState(Part):
    """The limits of an endpoint, and where they stand."""

    key: str
    account: str
    place: str
    in_flight: Count
    adaptive: float | None
    adaptive_rpm: float | None
    paused_ms: Count
    breaker: Literal["closed", "open", "half-open"]
    open_ms: Count
    next_ms: Count
    latency_ms: float | None
    free: int | None
    set: Limits


class LimitsDocument(Document):
    """What limits show prints with --json."""

    limits: tuple[LimitState, ...]


class LimitsSet(Document):
    """What limits set prints with --json."""

    key: str
    set: Limits


class LimitsUnset(Document):
    """What limits unset prints with --json."""

    unset: tuple[str, ...]


class LimitsReset(Document):
    """What limits reset prints with --json."""

    reset: Count


class Cache(Part):
    """The cache of model answers."""

    answers: Count
    bytes: Count
    hits: Count
    misses: Count
    hit_rate: Annotated[float, Field(ge=0, le=1)] | None
    ttl_s: float


class CacheDocument(Document):
    """What cache info prints with --json."""

    cache: Cache


class CacheCleared(Document):
    """What cache clear prints with --json."""

    cleared: Count


class DoctorCheck(Part):
    """One check of this machine."""

    name: str
    status: Status
    detail: str
    fix: str


class DoctorDocument(Document):
    """What doctor prints with --json."""

    checks: tuple[DoctorCheck, ...]


class Setting(Part):
    """A setting, and where its value comes from."""

    name: str
    env: str
    value: Any
    origin: str


class ConfigDocument(Document):
    """What config show prints with --json."""

    settings: tuple[Setting, ...]


class ListedSchema(Part):
    """The name and title of a schema."""

    name: str
    title: str


class SchemasDocument(Document):
    """What config schema prints with --json: the names of the schemas."""

    schemas: tuple[ListedSchema, ...]


class Price(Part):
    """US dollars per million tokens."""

    prompt_per_million: NonNegative
    completion_per_million: NonNegative


class Model(Part):
    """A model that a configuration names."""

    model: str
    role: Literal["model", "judge", "check"]
    provider: str | None
    """From the model's name."""
    api_base: str | None
    """Null: the provider's own endpoint."""
    api_key_env: str | None
    """The variable that holds the key; null: none is sent, or none is known."""
    key_present: bool | None
    """Whether the command's environment has it; null without a variable."""
    price: Price | None
    """US dollars; null where it is not known."""


class ModelsDocument(Document):
    """What models prints with --json."""

    models: tuple[Model, ...]


class Estimate(Part):
    """What a run would call and cost."""

    calls: Count
    judge_calls: Count
    prompt_tokens: Count
    cost_usd: float | None
    """Of the models under test."""
    check_calls: Count
    judge_cost_usd: float | None
    """Of the judges, if each is called each time."""
    check_cost_usd: float | None
    assumed_answer_tokens: int | None
    """Of checks that call a model."""


class FileCounts(Part):
    """What is in a file; which keys there are depends on the kind."""

    chunks: OptionalKey[Count] = None
    threads: OptionalKey[Count] = None
    calls: OptionalKey[Count] = None
    cases: OptionalKey[Count] = None
    models: OptionalKey[Count] = None
    repeat: OptionalKey[Count] = None
    recorded: OptionalKey[Count] = None
    total: Count


class ValidateDocument(Document):
    """What validate and --dry-run print with --json: what is in a file."""

    mode: OptionalKey[str] = None
    models: OptionalKey[tuple[str, ...]] = None
    judge_model: str | None = None
    judge_models: OptionalKey[tuple[str, ...]] = None
    estimate: OptionalKey[Estimate] = None
    file: str
    kind: KindName
    counts: FileCounts
