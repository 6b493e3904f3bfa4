"""The check `json_schema`: the JSON value in the output keeps to a schema."""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.schema import SchemaValidator

MAX_SHOWN_PROBLEMS: Final = 5
"""Schema errors that a reason names."""


def _usable(schema: Any) -> Any:
    """Refuses what is no schema."""
    if not isinstance(schema, dict | bool):
        raise PydanticCustomError("schema", "expected a JSON schema, or a file with one")
    SchemaValidator(schema)
    return schema


Schema = Annotated[
    Any,
    BeforeValidator(lambda schema: schema, json_schema_input_type=dict[str, Any] | bool | str),
    AfterValidator(_usable),
]
"""In a bench also the path of a file, whose content stands here when it is read."""


def json_schema(check: Check, subject: Subject) -> Score:
    """Validates any JSON value, not only objects.

    >>> json_schema(Check("json_schema", {"type": "array", "minItems": 2}), Subject("[1]")).reason
    'breaks the schema: the whole: [1] has less than 2 items'
    """
    parsed = subject.parsed
    if parsed.error:
        return no(parsed.error)
    problems = SchemaValidator(check.argument).errors(parsed.value)
    if not problems:
        return yes("keeps to the schema")
    named = [str(problem) for problem in problems[:MAX_SHOWN_PROBLEMS]]
    if len(problems) > len(named):
        named.append(f"and {len(problems) - len(named)} more")
    errors = [problem.as_document() for problem in problems[:MAX_SHOWN_PROBLEMS]]
    return no(f"breaks the schema: {'; '.join(named)}", errors=errors)
