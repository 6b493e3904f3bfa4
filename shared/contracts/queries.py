"""The contracts of the queries workload: one baseline of the input file, one result of a query.

Strict: `"is_oos": "false"` or a string where a list belongs is refused, since both would be silently mistaken
for something else (a non-empty text is true; a string is a list of characters).

>>> Baseline.model_validate(
...     {"id": "Q-01", "category": "sla", "query": "?", "is_oos": False,
...      "expected_docs": [], "must_contain": [], "must_not_contain": []}
... ).oos_decline_signals
[]
"""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from shared.contracts.query_vocabulary import MAX_QUERY_CHARS

MAX_ID_CHARS: Final = 200
MAX_CATEGORY_CHARS: Final = 80


def _not_blank(text: str) -> str:
    """Refuses blank text: an empty keyword is found in every answer."""
    if not text.strip():
        raise PydanticCustomError("blank", "text must not be blank")
    return text


def _encodable(text: str) -> str:
    r"""Refuses halves of surrogate pairs ("\ud800"), which no file and no request can carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("surrogate", "text holds half of a surrogate pair") from None
    return text


Text = Annotated[str, AfterValidator(_not_blank), AfterValidator(_encodable)]
Id = Annotated[Text, StringConstraints(max_length=MAX_ID_CHARS)]
Keywords = list[Text]
OptionalKeywords = Annotated[Keywords, BeforeValidator(lambda value: [] if value is None else value)]


class Baseline(BaseModel):
    """One query of the baselines file with what a good answer looks like; unknown keys are kept."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    id: Id
    """Unique in the file, such as Q-01."""
    category: Annotated[Text, StringConstraints(max_length=MAX_CATEGORY_CHARS)]
    """What it is about: booking, customs, carrier, sla, edge_case, or one of your own."""
    query: Annotated[Text, StringConstraints(max_length=MAX_QUERY_CHARS)]
    """The text that is sent."""
    is_oos: bool
    """Whether the knowledge base cannot answer it, so that a good answer declines."""
    expected_docs: Keywords
    """Parts of document ids, one of which must be among the related documents."""
    must_contain: Keywords
    """Each of these must be in the answer."""
    must_not_contain: Keywords
    """None of these may be in the answer: they would be made up."""
    oos_decline_signals: OptionalKeywords = Field(default_factory=list)
    """Phrases of which a declining answer has at least one."""
    should_contain: OptionalKeywords = Field(default_factory=list)
    """Nice to have; never judged."""


class _Check(BaseModel):
    """What the checks have in common."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    passed: Annotated[bool, Field(alias="pass")]
    """The verdict."""


class MustContain(_Check):
    """Are all required keywords in the answer?"""

    total: Annotated[int, Field(ge=0)]
    """Keywords asked for."""
    matched: Annotated[int, Field(ge=0)]
    """Keywords found."""
    missing: list[str]
    """Keywords not found."""


class MustNotContain(_Check):
    """Is the answer free of signs of invention?"""

    found: list[str]
    """The signs found."""


class ExpectedDocs(_Check):
    """Is one of the expected documents among the related ones?"""

    expected: list[str]
    """The patterns asked for."""
    found: list[str]
    """The patterns met."""


class CitationPresent(_Check):
    """Does the answer name a source?"""

    applicable: bool
    """Whether there was anything to cite."""
    source_count: Annotated[int, Field(ge=0)]
    """Entries in `sources`."""
    citation_count: Annotated[int, Field(ge=0)]
    """Entries in `citations`."""
    reason: str | None = None
    """Why the check does not apply; absent when it does."""


class OosHandling(_Check):
    """Does the answer to an out-of-scope query decline?"""

    applicable: bool
    """Whether the query is out of scope."""
    signals_found: list[str]
    """The phrases that say so."""


class Latency(_Check):
    """Did the answer come in time?"""

    latency_ms: Annotated[int, Field(ge=0)]
    """As reported by the server, or measured by the client."""
    threshold_ms: int
    """What it must stay below."""


class Checks(BaseModel):
    """The six checks of one answer."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    must_contain: MustContain
    """Required keywords."""
    must_not_contain: MustNotContain
    """Signs of invention."""
    expected_docs: ExpectedDocs
    """Expected documents."""
    citation_present: CitationPresent
    """A source is named."""
    oos_handling: OosHandling
    """Out of scope is declined."""
    latency: Latency
    """In time."""


class QueryResult(BaseModel):
    """The result of one query."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    id: str
    """The baseline's id."""
    category: str
    """The baseline's category."""
    query: str
    """What was sent."""
    is_oos: bool
    """Whether it is out of scope."""
    response: dict[str, Any] | None
    """The reply's body; None when there was none to judge."""
    checks: Checks
    """The verdicts."""
    overall_pass: bool
    """Whether every applicable check passed."""
    client_latency_ms: Annotated[int, Field(ge=0)]
    """Measured from here."""
    error: str | None
    """Why there is no answer; None when there is one."""
