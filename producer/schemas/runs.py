"""What commands print about runs: one run, its events, lists, what was changed, and the comparison of two."""

from typing import Annotated, Literal

from pydantic import Field, RootModel

from producer.schemas.cases import CaseLine, CasesRun, CasesSummary
from producer.schemas.parts import (
    Count,
    Counts,
    Document,
    ErrorOfCommand,
    Exit,
    Gate,
    KindName,
    Part,
    Version,
)
from producer.schemas.queries import QueriesRun, QueriesSummary, QueryLine
from producer.schemas.turns import TurnLine, TurnsRun, TurnsSummary
from shared.contracts.mementos import OptionalKey
from shared.names import RunState


class RunDocument(RootModel[Annotated[TurnsRun | CasesRun | QueriesRun, Field(discriminator="kind")]]):
    """What run, watch, resume, retry, rescore and runs show print with --json: one run."""


class ItemLinesDocument(Document):
    """What show prints with --json for items: their lines, as results --format jsonl has them."""

    run_id: str
    kind: KindName
    items: tuple[CaseLine | QueryLine | TurnLine, ...]


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
    error: ErrorOfCommand
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
