"""The checks `json`, `json_schema` and `json_equals`, and stages 1 to 3, which compare objects."""

from collections.abc import Iterator
from itertools import islice
from json import JSONDecoder
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from shared.contracts.checks import Check
from worker.validation.checks.kind import Parsed, Score, Subject, no, yes
from worker.validation.display import show
from worker.validation.equality import explain, unordered_equal
from worker.validation.schema import MAX_PROBLEMS, SchemaValidator

JSON_OPTIONS: Final = {"where": Literal["whole", "anywhere"]}
"""`whole`: the output is nothing but JSON; `anywhere`: each object amid prose is tried."""
MAX_OBJECTS: Final = 64
NO_OBJECT: Final = "no JSON object in the output"
_DECODER: Final = JSONDecoder()


def _candidates(check: Check, subject: Subject) -> Iterator[Parsed]:
    """The JSON that a check looks at, as its option `where` says."""
    where = check.options.get("where")
    if where == "anywhere":
        yield from islice(_objects(subject.text), MAX_OBJECTS)
    elif where == "whole" and not subject.parsed.error and not _is_json(subject.text):
        yield Parsed(error="there is JSON in the output, and other text")
    else:
        yield subject.parsed


def _is_json(text: str) -> bool:
    """Whether a text is nothing but JSON."""
    try:
        _, end = _DECODER.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return False
    return not text.lstrip()[end:].strip()


def _objects(text: str) -> Iterator[Parsed]:
    """The JSON objects in a text, one behind the other."""
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield Parsed(value)
        at = text.find("{", end)


def json_found(check: Check, subject: Subject) -> Score:
    """Looks for the JSON value that the other JSON checks compare.

    >>> json_found(Check("json"), Subject("[1, 2]")).reason
    'the JSON is [1, 2]'
    >>> json_found(Check("json"), Subject("[1, 2")).reason
    "no JSON in the output: broken JSON: Expecting ',' delimiter: line 1 column 6 (char 5)"
    """
    found = next(_candidates(check, subject), Parsed(error=NO_OBJECT))
    return no(found.error) if found.error else yes(f"the JSON is {show(found.value)}")


def object_found(_: Check, subject: Subject) -> Score:
    """Looks for the object that stages 2 to 4 compare.

    >>> object_found(Check("object"), Subject('{"a": 1}')).reason
    'found in the whole text'
    """
    found = subject.object.found
    if found is None:
        return no(subject.object.error)
    of_several = f", the first of {found.blocks}" if found.blocks > 1 else ""
    return yes(f"found in the {found.source}{of_several}", source=found.source, blocks=found.blocks)


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
    last = no(NO_OBJECT)
    for parsed in _candidates(check, subject):
        last = no(parsed.error) if parsed.error else _score(check.argument, parsed.value, MAX_SHOWN_PROBLEMS)
        if last.value:
            break
    return last


def object_schema(check: Check, subject: Subject) -> Score:
    """Validates the object, and keeps every problem."""
    return _score(check.argument, subject.object.value, MAX_PROBLEMS)


def _score(schema: Any, value: Any, kept: int) -> Score:
    """Validates a value, and keeps that many problems for programs."""
    problems = SchemaValidator(schema).errors(value)
    if not problems:
        return yes("keeps to the schema")
    named = [str(problem) for problem in problems[:MAX_SHOWN_PROBLEMS]]
    if len(problems) > len(named):
        named.append(f"and {len(problems) - len(named)} more")
    errors = [problem.as_document() for problem in problems[:kept]]
    return no(f"breaks the schema: {'; '.join(named)}", errors=errors)


def json_equals(check: Check, subject: Subject) -> Score:
    """Compares any JSON value as `expected` compares objects.

    >>> json_equals(Check("json_equals", ["a", "b"]), Subject('["b", "a"]')).value
    1.0
    >>> json_equals(Check("json_equals", {"a": 1}), Subject('{"a": 2}')).reason
    '1 difference: /a: expected 1, found 2'
    """
    parsed = subject.parsed
    if parsed.error:
        return no(parsed.error)
    if unordered_equal(check.argument, parsed.value):
        return yes("equal to the expected JSON")
    return no(str(explain(check.argument, parsed.value)))


def object_equals(check: Check, subject: Subject) -> Score:
    """Compares the object with the expected one; its detail is the differences."""
    found = subject.object.value
    if unordered_equal(check.argument, found):
        return yes("equal to the expected object")
    differences = explain(check.argument, found)
    return no(str(differences), **differences.as_document())
