"""The contract of one test case: what is asked, and what a good answer looks like.

Strict at the door: an unknown key is refused, since a misspelt `expected` would turn a check into none.

>>> Case.model_validate({"input": "Capital of France?", "expected": {"capital": "Paris"}}).is_freeform
False
>>> Case.model_validate({"input": "Tell me a joke."}).is_freeform
True
"""

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo
from pydantic_core import PydanticCustomError

from shared.contracts.case_vocabulary import MAX_INPUT_CHARS, CaseStatus, Stage, pattern_error, why_not_json

__all__ = ["Case", "CaseStatus", "Stage"]

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


def _is_json(expected: dict[str, Any]) -> dict[str, Any]:
    """Refuses what no model can answer: values that JSON does not have."""
    problem = why_not_json(expected)
    if problem is not None:
        raise PydanticCustomError("not_json", "{problem}", {"problem": problem})
    return expected


Text = Annotated[str, AfterValidator(_not_blank), AfterValidator(_encodable)]
Encodable = Annotated[str, AfterValidator(_encodable)]
Pattern = Annotated[Text, AfterValidator(_compiles)]
JsonObject = Annotated[dict[str, Any], AfterValidator(_is_json)]


class Case(BaseModel):
    """One test case; None everywhere below `input` means that this is not checked."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )

    id: Annotated[Text, StringConstraints(max_length=MAX_ID_CHARS)] | None = None
    """A name of its own, unique in the file."""
    input: Annotated[Text, StringConstraints(max_length=MAX_INPUT_CHARS)]
    """What the model is asked."""
    expected: JsonObject | None = None
    """The object that the output must be; `{}` asks for an empty one."""
    reference: Encodable | None = None
    """A good answer in words, for ROUGE-L; it never decides."""
    regex_pattern: Pattern | None = None
    """Must be found somewhere in the output, as by `re.search` with MULTILINE."""
    validator: Text | None = None
    """The function of the validators file that must accept the output."""
    label: Literal["pass", "fail"] | None = None
    """What a person said of the output, to measure judges by; it never decides."""
    json_schema: dict[str, Any] | bool | None = Field(default=None, alias="schema")
    """The JSON schema that the object must keep to."""
    json_extraction: Literal["strict", "lenient"] = "strict"
    """`lenient` also finds an object amid prose, without a fence."""

    @property
    def is_freeform(self) -> bool:
        """Whether nothing at all is said about the answer, so that a person looks at it."""
        return not self.has_checks and self.reference is None

    @property
    def has_checks(self) -> bool:
        """Whether any stage can fail."""
        return self.needs_json or self.regex_pattern is not None or self.validator is not None

    @property
    def needs_json(self) -> bool:
        """Whether the output must hold a JSON object."""
        return self.expected is not None or self.json_schema is not None
