"""What the models of all outputs stand on: base classes, and parts that more than one document has."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.contracts.mementos import OptionalKey

TIME: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$"

Count = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Time = Annotated[str, Field(pattern=TIME)]
Rule = Annotated[int, Field(ge=1, le=6)]
KindName = Literal["turns", "cases", "queries"]
Exit = Annotated[int, Field(ge=0, le=255, description="The exit code of the command.")]
Version = Annotated[
    Literal[2],
    Field(description="Version of the format; it rises when a key is removed or changes its meaning."),
]


class Part(BaseModel):
    """A closed object: a key that is not declared does not fit.

    Docstrings of fields and classes become descriptions in the JSON Schema.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", use_attribute_docstrings=True)


class Document(Part):
    """The one document that a command prints with `--json`."""

    schema_version: Version
    exit: Exit


class Nothing(Part):
    """An object without keys."""


class Milliseconds(Part):
    """Nearest-rank percentiles in milliseconds."""

    p50: Count
    p90: Count
    p95: Count
    p99: Count
    max: Count


Percentiles = Milliseconds | Nothing
"""Empty without values."""


class Rate(Part):
    """A share with its 95% Wilson interval; answers to one case are taken as related."""

    value: Fraction
    low: Fraction
    high: Fraction
    n: Count


class OutcomeRates(Part):
    """Shares of all items."""

    pass_rate: Rate
    pass_rate_of_judged: Rate
    """Of the items that passed, failed or ended in error; not of skipped ones."""
    pass_rate_of_answered: Rate
    """Of the items that passed or failed; those that ended in error have no answer."""
    error_rate: Rate


class ItemError(Part):
    """Why an item has no answer that could be judged."""

    code: str
    message: str
    status: OptionalKey[int] = None
    """HTTP status of a reply that was no answer; absent where there was no reply."""


class ErrorOfCommand(Part):
    """Why a command failed."""

    code: str
    message: str
    hint: str | None


class Counts(Part):
    """Items by outcome."""

    total: Count
    passed: Count
    failed: Count
    error: Count
    skipped: Count
    decided: Count


class WrittenFile(Part):
    """A file that the command wrote."""

    format: str
    path: str


class Gate(Part):
    """A condition of `--fail-on`, and whether it holds."""

    expression: str
    metric: str
    value: float | None
    relation: Literal["<", "<=", ">", ">="]
    bound: float
    met: bool
    text: str
    """What was found and what was needed, for people."""


class RunHead(Document):
    """What the document of a run holds, whatever its kind."""

    run_id: str
    name: OptionalKey[str] = None
    """As `--name` gave it; absent without one."""
    description: OptionalKey[str] = None
    """What its file says that it is for; absent where it says nothing."""
    counts: Counts
    files: tuple[WrittenFile, ...]
    gates: OptionalKey[tuple[Gate, ...]] = None


class Line(Part):
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


class RunFigures(Part):
    """What the summary of a run holds, whatever its kind."""

    retried: Count
    errors: dict[str, Count]
    source: str
    duration_s: float | None
