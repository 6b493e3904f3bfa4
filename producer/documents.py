"""The types of the documents that Proctor prints and writes: the parts that several have, and that of a run.

They are encoded once, where they leave the program (`as_json`), and `config schema` is made from them. What
an object may lack is `UNSET`, and its key is then absent. A docstring is the description of its schema.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from shared.names import Outcome, RunState

SCHEMA_VERSION: Final = 2
"""Version of all documents; it rises when a key is removed or changes its meaning."""

Count = Annotated[int, Meta(ge=0)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Time = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$")]
KindName = Annotated[str, Meta(extra_json_schema={"enum": ["turns", "cases", "queries"]})]
StateName = Annotated[str, Meta(extra_json_schema={"enum": [state.value for state in RunState]})]
"""A state; for people also `interrupted`, which is in no document that is written."""
Exit = Annotated[int, Meta(ge=0, le=255, description="The exit code of the command.")]
Version = Annotated[
    Literal[2],
    Meta(description="Version of the format; it rises when a key is removed or changes its meaning."),
]
Name = Annotated[str | UnsetType, Meta(description="As `--name` gave it; absent without one.")]


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A closed object: a key that is not declared does not fit."""


def tally_of(names: Sequence[str]) -> Meta:
    """Describes an object with a count for each name.

    >>> tally_of(["must"]).extra_json_schema["required"]
    ['must']
    """
    count = {"type": "integer", "minimum": 0}
    properties = dict.fromkeys(names, count)
    return Meta(
        extra_json_schema={
            "properties": properties,
            "required": list(names),
            "additionalProperties": False,
        }
    )


def as_json(document: Struct, *, indent: int | None = None) -> str:
    """Encodes a document; characters stay as they are.

    >>> as_json(Counts(total=1, passed=1))
    '{"total": 1, "passed": 1, "failed": 0, "error": 0, "skipped": 0, "decided": 0}'
    """
    return json.dumps(msgspec.to_builtins(document), ensure_ascii=False, indent=indent)


class Percentiles(Part, omit_defaults=True, frozen=True):
    """Nearest-rank percentiles in milliseconds."""

    p50: Count = -1
    p90: Count = -1
    p95: Count = -1
    p99: Count = -1
    max: Count = -1

    def __bool__(self) -> bool:
        """Whether there are any; without values the object is empty."""
        return self.p50 >= 0

    def named(self) -> Mapping[str, int]:
        """Returns them by name.

        >>> Percentiles().named()
        {}
        """
        return msgspec.structs.asdict(self) if self else {}


class PercentileInterval(Part, frozen=True):
    """The 95% interval of a percentile, by order statistics; null where too few values give no bound."""

    low: Count | None
    high: Count | None


class PercentileIntervals(Part, omit_defaults=True, frozen=True):
    """How sure percentiles are; without values the object is empty."""

    p50: PercentileInterval | UnsetType = UNSET
    p95: PercentileInterval | UnsetType = UNSET
    p99: PercentileInterval | UnsetType = UNSET


class Rate(Part, frozen=True):
    """A share with its 95% Wilson interval; answers to one case are taken as related."""

    value: Fraction
    low: Fraction
    high: Fraction
    n: Count

    def rounded(self) -> "Rate":
        """Returns it as documents have it.

        >>> Rate(0.75, 0.30064, 0.95441, 4).rounded()
        Rate(value=0.75, low=0.3006, high=0.9544, n=4)
        """
        return Rate(round(self.value, 4), round(self.low, 4), round(self.high, 4), self.n)


class OutcomeRates(Part, frozen=True):
    """Shares of all items."""

    pass_rate: Rate
    pass_rate_of_judged: Annotated[
        Rate, Meta(description="Of the items that passed, failed or ended in error; not of skipped ones.")
    ]
    pass_rate_of_answered: Annotated[
        Rate,
        Meta(description="Of the items that passed or failed; those that ended in error have no answer."),
    ]
    error_rate: Rate


class ItemError(Part, frozen=True):
    """Why an item has no answer that could be judged."""

    code: str
    message: str
    status: Annotated[
        int | UnsetType,
        Meta(description="HTTP status of a reply that was no answer; absent where there was no reply."),
    ] = UNSET


_OUTCOMES: Final = (Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED, Outcome.DECIDED)


class Line(Part, kw_only=True, frozen=True):
    """What a line of results holds, whatever its kind."""

    run_id: str
    index: Count
    attempts: Count
    cached: bool
    started_at: Time | None
    finished_at: Time | None
    latency_ms: Count | None
    cost_usd: float | None
    error: ItemError | None


class Counts(Part, frozen=True):
    """Items by outcome."""

    total: Count
    passed: Count = 0
    failed: Count = 0
    error: Count = 0
    skipped: Count = 0
    decided: Count = 0

    @classmethod
    def of(cls, outcomes: Mapping[Outcome, int], total: int) -> "Counts":
        """Takes items by outcome.

        >>> Counts.of({Outcome.PASSED: 2}, 3).passed
        2
        """
        return cls(total, *(outcomes.get(word, 0) for word in _OUTCOMES))

    @property
    def good(self) -> int:
        """Items that passed, and turns that were decided."""
        return self.passed + self.decided

    @property
    def answered(self) -> int:
        """Items whose answer passed or failed."""
        return self.passed + self.failed

    @property
    def done(self) -> int:
        """Items with a result."""
        return self.answered + self.decided + self.error

    def named(self) -> Mapping[str, int]:
        """Returns the outcomes that occurred.

        >>> Counts(total=3, passed=3).named()
        {'passed': 3}
        """
        by_outcome = msgspec.structs.asdict(self)
        return {word: number for word, number in by_outcome.items() if number and word != "total"}


class WrittenFile(Part, frozen=True):
    """A file that the command wrote."""

    format: str
    path: str


class JudgedGate(Part, frozen=True):
    """A condition of `--fail-on`, and whether it holds."""

    expression: str
    metric: str
    value: float | None
    relation: Annotated[str, Meta(extra_json_schema={"enum": ["<", "<=", ">", ">="]})]
    bound: float
    met: bool
    text: Annotated[str, Meta(description="What was found and what was needed, for people.")]


class Summary(Protocol):
    """What the summary of a run holds, whatever its kind."""

    @property
    def retried(self) -> int:
        """Items that were tried more than once."""

    @property
    def errors(self) -> Mapping[str, int]:
        """Items that ended in error, by their codes."""

    @property
    def source(self) -> str:
        """The input."""

    @property
    def duration_s(self) -> float | None:
        """How long the run took; None while it goes on."""

    @property
    def rates(self) -> OutcomeRates:
        """Shares of outcomes."""


S = TypeVar("S")


class RunDocument(Part, Generic[S], kw_only=True, frozen=True):
    """The document of a run."""

    schema_version: Version
    run_id: str
    name: Name = UNSET
    description: Annotated[
        str | UnsetType,
        Meta(description="What its file says that it is for; absent where it says nothing."),
    ] = UNSET
    kind: str
    state: StateName
    counts: Counts
    summary: S
    files: tuple[WrittenFile, ...]
    exit: Exit
    gates: tuple[JudgedGate, ...] | UnsetType = UNSET
    texts_forgotten_at: Annotated[
        Time | UnsetType, Meta(description="When its texts were deleted; absent of a run that has them.")
    ] = UNSET

    @property
    def missed_gates(self) -> Sequence[JudgedGate]:
        """Gates that do not hold."""
        return [gate for gate in self.gates or () if not gate.met]


class Notification(Part, Generic[S], kw_only=True, frozen=True):
    """What is posted about a run; without the summary if the body would exceed 64,000 bytes."""

    text: Annotated[
        str,
        Meta(
            description="The verdict and the first figures, in up to three lines,"
            " with `&`, `<` and `>` escaped for Slack."
        ),
    ]
    event: Literal["run.finished"] = "run.finished"
    schema_version: Version
    run_id: str
    kind: str
    state: StateName
    counts: Counts
    gates: tuple[JudgedGate, ...] | UnsetType = UNSET
    exit: Exit
    summary: S | UnsetType = UNSET


AnyRun = RunDocument[Any]
"""A run of a kind that does not matter."""


def counted(summary: Summary, counts: Counts) -> Counts:
    """Returns what verdict, exit code and gates count: items, or cases where their answers count together.

    Args:
        summary: of the run.
        counts: its items.
    """
    verdicts = getattr(summary, "case_verdicts", UNSET)
    return counts if verdicts is UNSET else verdicts.counts
