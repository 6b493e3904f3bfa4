"""The contract of one test case: what is asked, and what a good answer looks like.

Strict at the door: an unknown key is refused, since a misspelt `expected` would turn a check into none.

>>> Case.model_validate({"input": "Capital of France?", "expected": {"capital": "Paris"}}).is_freeform
False
>>> Case.model_validate({"input": "Tell me a joke."}).is_freeform
True
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo
from pydantic_core import PydanticCustomError

from shared.contracts.case_vocabulary import (
    MAX_INPUT_CHARS,
    CaseStatus,
    Label,
    Stage,
    pattern_error,
    why_not_json,
)
from shared.contracts.transform_config import TransformConfig

__all__ = ["Case", "CaseStatus", "Stage"]

J = TypeVar("J")

MAX_ID_CHARS: Final = 200
AT_RUN_TIME: Final = {"at_run_time": True}
"""Validation context of those who judge an answer: a bad pattern is then a verdict, not an input error."""


def _not_blank(text: str) -> str:
    """Refuses blank text: a blank pattern is found everywhere, a blank prompt asks nothing."""
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


def _compiles(pattern: str, info: ValidationInfo) -> str:
    """Refuses what is no pattern."""
    problem = None if info.context == AT_RUN_TIME else pattern_error(pattern)
    if problem is not None:
        raise PydanticCustomError("pattern", "not a regular expression: {problem}", {"problem": problem})
    return pattern


def is_json(value: J) -> J:
    """Refuses values that JSON does not have: no model can answer them, and no request can carry them."""
    problem = why_not_json(value)
    if problem is not None:
        raise PydanticCustomError("not_json", "{problem}", {"problem": problem})
    return value


def _can_be_asked(text: str, info: ValidationInfo) -> str:
    """Refuses what should not be asked; what was asked is taken as it is, since its answer is paid for."""
    if info.context == AT_RUN_TIME:
        return text
    if len(text) > MAX_INPUT_CHARS:
        raise PydanticCustomError("long", "text has more than {most} characters", {"most": MAX_INPUT_CHARS})
    return _encodable(_not_blank(text))


Text = Annotated[str, AfterValidator(_not_blank), AfterValidator(_encodable)]
Encodable = Annotated[str, AfterValidator(_encodable)]
Pattern = Annotated[Text, AfterValidator(_compiles)]
JsonObject = Annotated[dict[str, Any], AfterValidator(is_json)]
JsonList = Annotated[list[Any], AfterValidator(is_json)]


class Criteria(BaseModel):
    """What a good answer looks like; files of cases, items, the pipeline and `rescore` take it from here.

    A field that is added here is read from YAML, JSON Lines and CSV, travels with the item, and is there in
    the pipeline. None means that it is not checked.
    """

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )

    expected: JsonObject | None = None
    """The object that the output must be; `{}` asks for an empty one."""
    reference: Encodable | None = None
    """A good answer in words, for ROUGE-L; it never decides."""
    regex_pattern: Pattern | None = None
    """Must be found somewhere in the output, as by `re.search` with MULTILINE."""
    validator: Text | None = None
    """The function of the validators file that must accept the output."""
    transform: TransformConfig | None = None
    """How an answer is changed before it is checked; goes before that of the bench."""
    checks: JsonList | None = None
    """Further checks: as people write them, or as they travel (`shared.contracts.checks`)."""
    at_least: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    """The mean score of `checks` from which the case passes; null: each of them must pass."""
    paid_checks: Literal["always", "needed"] | None = None
    """`always`: checks that call a model are asked even if they can no longer change the outcome."""
    label: Label | None = None
    """The verdict of a person on the output, to measure judges by; it never decides."""

    @property
    def criteria(self) -> dict[str, Any]:
        """Those that are given, by name, as they travel with an item.

        >>> Criteria(regex_pattern="^A", label="pass").criteria
        {'regex_pattern': '^A', 'label': 'pass'}
        """
        given = ((name, getattr(self, name)) for name in CRITERIA)
        return {
            name: value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value
            for name, value in given
            if value is not None and value != []
        }

    @property
    def can_fail(self) -> bool:
        """Whether any of them can fail an answer.

        >>> Criteria(regex_pattern="^A").can_fail, Criteria(reference="A good one.").can_fail
        (True, False)
        """
        return can_fail(self.criteria)

    @property
    def is_freeform(self) -> bool:
        """Whether nothing at all is required of the answer, so that a person looks at it."""
        return not self.can_fail and self.reference is None


CRITERIA: Final = tuple(Criteria.model_fields)
"""The names of all criteria, in order."""
NEVER_DECIDE: Final = frozenset({"reference", "transform", "at_least", "paid_checks", "label"})
"""Criteria that cannot fail an answer by themselves."""
NEEDS_SANDBOX: Final = frozenset({"regex_pattern", "validator"})
"""Criteria that are code of the user's."""
WRITTEN_AS_JSON: Final = frozenset({"expected", "transform", "checks", "at_least"})
"""Criteria that are no text: a CSV file has JSON in their cells."""


def can_fail(criteria: Mapping[str, Any]) -> bool:
    """Whether any of some criteria can fail an answer."""
    return not criteria.keys() <= NEVER_DECIDE


class Case(Criteria):
    """One test case as the pipeline takes it."""

    id: Annotated[Text, StringConstraints(max_length=MAX_ID_CHARS)] | None = None
    """A name of its own, unique in the file."""
    input: Annotated[str, AfterValidator(_can_be_asked)]
    """What the model is asked."""
    vars: dict[str, Any] = {}
    """Variables of the case, for functions of checks."""
    metadata: dict[str, Any] = {}
    """Facts about the case, likewise."""
    json_schema: dict[str, Any] | bool | None = Field(default=None, alias="schema")
    """The JSON schema that the object must keep to."""
    json_extraction: Literal["strict", "lenient"] = "strict"
    """`lenient` also finds an object amid prose, without a fence."""

    @property
    def can_fail(self) -> bool:
        """Whether any stage can fail."""
        return self.json_schema is not None or super().can_fail

    @property
    def needs_json(self) -> bool:
        """Whether the output must hold a JSON object."""
        return self.expected is not None or self.json_schema is not None
