"""What commands print about runs: one run, its events, lists, what was changed, and the comparison of two."""

from typing import Annotated, Literal

from pydantic import Field, RootModel

from producer.schemas.cases import CaseLine, CasesRun, CasesSummary
from producer.schemas.parts import (
    CommandError,
    Count,
    Counts,
    Document,
    Exit,
    Fraction,
    Gate,
    KindName,
    Part,
    Rate,
    Time,
    Version,
    WrittenFile,
)
from producer.schemas.queries import QueriesRun, QueriesSummary, QueryLine
from producer.schemas.turns import TurnLine, TurnsRun, TurnsSummary
from shared.contracts.mementos import OptionalKey
from shared.names import RunState


class RunDocument(RootModel[Annotated[TurnsRun | CasesRun | QueriesRun, Field(discriminator="kind")]]):
    """What run, watch, resume, retry, rescore and runs show print with --json: one run."""


class SubmitDocument(Document):
    """What submit and run --detach print with --json."""

    run_id: str
    kind: KindName
    total: Count
    threads: Count
    duplicate: bool


class ItemsDocument(Document):
    """What show prints with --json for items: their lines, as results --format jsonl has them."""

    run_id: str
    kind: KindName
    items: tuple[CaseLine | QueryLine | TurnLine, ...]


class StateDocument(Document):
    """What cancel, pause and resume --detach print with --json: the state a run is in now."""

    run_id: str
    state: RunState


class RetryDocument(Document):
    """What retry --detach prints with --json."""

    run_id: str
    retried: Count
    left: Count


class ReportDocument(Document):
    """What report -o prints with --json: the files it wrote."""

    gates: OptionalKey[tuple[Gate, ...]] = None
    run_id: str
    files: tuple[WrittenFile, ...]


class RunsRemoved(Document):
    """What runs rm prints with --json."""

    removed: tuple[str, ...]


class ListedRun(Part):
    """A run in a list."""

    run_id: str
    name: str
    """As `--name` gave it; empty without one."""
    description: str
    kind: KindName
    state: RunState
    why: str
    """Why it makes no progress; empty when nothing holds it."""
    rate_s: float | None = None
    """Recent items per second; only with status --watch, null until it is known."""
    namespace: str
    total: Count
    done: Count
    threads: Count
    created_at: Time
    finished_at: Time | None
    source: str


class RunsDocument(Document):
    """What runs list prints with --json."""

    runs: tuple[ListedRun, ...]


class Event(Part):
    """What every event holds."""

    schema_version: Version


class Loading(Event):
    """Items are being read."""

    event: Literal["loading"]
    source: str
    items: Count


class Submitted(Event):
    """The run is in the ledger."""

    event: Literal["submitted"]
    run_id: str
    kind: KindName
    total: Count
    source: str


class ItemFailure(Event):
    """An item failed or ended in error."""

    event: Literal["failure"]
    run_id: str
    item: str
    code: str
    message: str


class Waiting(Event):
    """The run makes no progress, and why."""

    event: Literal["waiting"]
    run_id: str
    why: str


class Progress(Event):
    """How far the run is."""

    event: Literal["progress"]
    run_id: str
    state: RunState
    done: Count
    total: Count
    tally: dict[str, Count]
    why: str
    rate_s: float | None
    left_s: float | None
    elapsed_s: float
    in_flight: Count | None
    """Calls in flight over all workers; null where they are not counted."""
    queued: Count | None
    workers: Count | None
    limits: tuple[str, ...]
    cost_usd: float | None
    max_cost_usd: float | None


class FinishedTurns(TurnsRun):
    """The document of a turns run as its last event."""

    event: Literal["finished"]


class FinishedCases(CasesRun):
    """The document of a cases run as its last event."""

    event: Literal["finished"]


class FinishedQueries(QueriesRun):
    """The document of a queries run as its last event."""

    event: Literal["finished"]


class CommandFailed(Event):
    """The command failed."""

    event: Literal["error"]
    error: CommandError
    exit: Exit


Finished = Annotated[FinishedTurns | FinishedCases | FinishedQueries, Field(discriminator="kind")]
AnyEvent = Annotated[
    Loading | Submitted | ItemFailure | Waiting | Progress | Finished | CommandFailed,
    Field(discriminator="event"),
]


class EventLine(RootModel[AnyEvent]):
    """A line of run --jsonl and watch --jsonl: one event."""


class Notification(Document):
    """What `--notify` posts, whatever the kind of the run."""

    text: str
    """The verdict and the first figures, in up to three lines, with `&`, `<` and `>` escaped for Slack."""
    event: Literal["run.finished"]
    run_id: str
    state: RunState
    counts: Counts
    gates: OptionalKey[tuple[Gate, ...]] = None


class TurnsNotification(Notification):
    """What is posted about a turns run; without the summary if the body would exceed 64,000 bytes."""

    kind: Literal["turns"]
    summary: OptionalKey[TurnsSummary] = None


class CasesNotification(Notification):
    """What is posted about a cases run; without the summary if the body would exceed 64,000 bytes."""

    kind: Literal["cases"]
    summary: OptionalKey[CasesSummary] = None


class QueriesNotification(Notification):
    """What is posted about a queries run; without the summary if the body would exceed 64,000 bytes."""

    kind: Literal["queries"]
    summary: OptionalKey[QueriesSummary] = None


AnyNotification = Annotated[
    TurnsNotification | CasesNotification | QueriesNotification, Field(discriminator="kind")
]


class NotifyDocument(RootModel[AnyNotification]):
    """What --notify posts to a webhook when a run has ended."""


class Side(Part):
    """One of the two runs that are compared."""

    name: str
    source: str
    label: OptionalKey[str] = None
    """As `--name` gave it; absent without one."""


class ComparedCounts(Part):
    """Pairs of items by what became of them, and items without a partner."""

    pairs: Count
    fixed: Count
    broken: Count
    changed: Count
    unchanged: Count
    only_a: Count
    only_b: Count
    skipped_a: Count
    skipped_b: Count


class RatesOfBoth(Part):
    """A share in both runs."""

    a: Rate
    b: Rate


class McNemar(Part):
    """The test of the pairs that changed; `level_each` is the level of each of several comparisons."""

    name: Literal["mcnemar"]
    method: str
    p_value: Fraction
    exact_p: Fraction
    units: Count
    better: Count
    worse: Count
    level: Fraction
    level_each: Fraction


class Score(Part):
    """A measured value in both runs, and the interval of the difference."""

    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    n: Count
    method: str
    significant: bool


class ComparedModels(Part):
    """Two models, or two prompts, whose answers to the same cases are compared."""

    a: str
    b: str


class RankedStrength(Part):
    """Probability that an answer is preferred to that of an average model, with its 95% interval."""

    value: Fraction
    low: Fraction
    high: Fraction


class RankedModel(Part):
    """One model of a ranking."""

    name: str
    wins: Count
    losses: Count
    ties: Count
    win_rate: Rate
    strength: RankedStrength


class JudgePosition(Part):
    """Whether the judge prefers a position."""

    first_preferred: Rate
    """How often the answer shown first was preferred; half without bias."""
    orders_agree: Rate
    """In how many pairs both orders gave the same verdict."""


class RankDocument(Document):
    """What rank prints with --json."""

    run_id: str
    """Of the comparisons."""
    ranks: str
    """The run whose answers were compared."""
    pairs: Count
    """Pairs that were judged in both orders."""
    equal: Count
    """Pairs of equal answers, which tie without being judged."""
    unclear: Count
    smoothed: bool
    position: JudgePosition
    table: tuple[RankedModel, ...]
    """The strongest first; empty where no pair has a verdict in both orders."""


class Change(Part):
    """An item whose outcome changed."""

    item: str
    a: str
    b: str


class CompareDocument(Document):
    """What compare prints with --json, and writes as .json."""

    a: Side
    b: Side
    kind: KindName
    verdict: str
    regressions: tuple[str, ...]
    pass_rate: RatesOfBoth
    counts: ComparedCounts
    unchanged: dict[str, Count]
    transitions: dict[str, Count]
    changed_share: Rate
    test: McNemar
    scores: dict[str, Score]
    models: ComparedModels | None
    prompts: OptionalKey[ComparedModels] = None
    """Only where runs with one prompt each are compared, and not the same."""
    fixed: tuple[Change, ...]
    broken: tuple[Change, ...]
    changed: tuple[Change, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    files: tuple[WrittenFile, ...]
