"""JSON schemas: a pydantic type adapter calls jsonschema-rs, which decides.

A pydantic model made from a schema checks types and required fields only and passes 43 % of the official
test suite; jsonschema-rs passes all of it (drafts 4 to 2020-12, chosen by `$schema`, else 2020-12). Errors
come out in pydantic's form, with the place of each as a JSON pointer.

A schema is hostile text as well: it may fetch nothing, no pattern of it may run for long, and what is wrong
with it is reported when it is read, as a configuration error, never as a verdict about an output.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, NoReturn

import msgspec
from pydantic import PlainValidator, TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from shared.contracts.case_vocabulary import pointer
from shared.errors import ConfigError
from worker.validation.display import cut
from worker.validation.expansion import MAX_IN_PLACE, MAX_VISITS, VisitCounter, has_references, is_explosive

if TYPE_CHECKING:
    import jsonschema_rs

MAX_COMPILED: Final = 64
"""Schemas that a process keeps ready."""
MAX_SCHEMA_BYTES: Final = 4 << 20
"""A larger schema is refused."""
MAX_PROBLEMS: Final = 50
"""Errors that are reported of one instance."""
MAX_LISTED_VALUES: Final = 20_000
"""Values of an instance whose errors are all listed, about 0.1 s if each is wrong; 500,000 take 5 s."""
MAX_BACKTRACKS: Final = 10_000
"""Steps back that a pattern may take in one text before it counts as not found."""
MAX_MESSAGE_CHARS: Final = 300
"""Characters of one error's text."""

_ELSEWHERE: Final = re.compile(r"Resource '(.*)' is not present in a registry and retrieving it failed")


class SchemaError(ConfigError):
    """The schema cannot be used: it is invalid, refers to something elsewhere, or is too large."""

    code = "schema"


class SchemaProblem(NamedTuple):
    """One way in which an instance breaks the schema."""

    pointer: str
    """Place in the instance, as a JSON pointer; empty for the whole."""
    keyword: str
    """What the schema asks for, such as `minimum`."""
    message: str
    """In words."""
    schema_pointer: str
    """Place in the schema, as a JSON pointer."""

    def __str__(self) -> str:
        return f"{self.pointer or 'the whole'}: {self.message}"

    def as_document(self) -> dict[str, str]:
        """As it is stored and printed."""
        return self._asdict()


class SchemaValidator:
    """Checks instances against one JSON schema.

    Formats are not asserted, as the drafts have it by default.

    >>> checks = SchemaValidator({"type": "object", "properties": {"age": {"type": "integer"}}})
    >>> checks.errors({"age": 42})
    []
    >>> print(*checks.errors({"age": "42"}))
    /age: "42" is not of type "integer"
    """

    def __init__(self, schema: Any, *, resources: Mapping[str, Any] | None = None) -> None:
        """Compiles the schema, or takes what was compiled before.

        Args:
            schema: any JSON schema, true and false included.
            resources: documents by URI that the schema may refer to; nothing else is to be had.

        Raises:
            SchemaError: it cannot be used.
        """
        self._adapter = _COMPILED.adapter(schema, resources or {})

    def validate(self, instance: Any) -> Any:
        """Returns the instance if it keeps to the schema.

        Raises:
            ValidationError: it does not; the errors' `loc` and `type` are place and keyword.
        """
        return self._adapter.validate_python(instance)

    def errors(self, instance: Any) -> list[SchemaProblem]:
        """Returns the ways in which an instance breaks the schema, at most 50; none when it is valid."""
        try:
            self.validate(instance)
        except ValidationError as error:
            return [
                SchemaProblem(
                    pointer(details["loc"]),
                    details["type"],
                    details["ctx"]["message"],
                    details["ctx"]["schema_pointer"],
                )
                for details in error.errors(include_url=False, include_input=False)
            ]
        return []


class _Compiled:
    """The compiled schemas of a process by the hash of their text; the longest unused one goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._adapters: OrderedDict[bytes, TypeAdapter[Any]] = OrderedDict()
        self._lock = Lock()

    def adapter(self, schema: Any, resources: Mapping[str, Any]) -> TypeAdapter[Any]:
        """The adapter of a schema with the documents it may refer to."""
        if not isinstance(schema, dict | bool):
            raise SchemaError(f"a JSON schema is an object, true or false, not {type(schema).__name__}")
        key = _fingerprint(schema, resources)
        with self._lock:
            found = self._adapters.get(key)
            if found is not None:
                self._adapters.move_to_end(key)
                return found
        made = _compile(schema, resources)
        with self._lock:
            self._adapters[key] = made
            while len(self._adapters) > self._most:
                self._adapters.popitem(last=False)
        return made


_COMPILED: Final = _Compiled(MAX_COMPILED)


def _fingerprint(schema: Any, resources: Mapping[str, Any]) -> bytes:
    """The hash of the schema's JSON text.

    Raises:
        SchemaError: it has none, or a very long one.
    """
    try:
        text = msgspec.json.encode([schema, resources] if resources else schema)
    except (TypeError, ValueError, OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise SchemaError(f"the schema is no JSON: {cut(str(error))}") from None
    if len(text) > MAX_SCHEMA_BYTES:
        raise SchemaError(f"the schema is larger than {MAX_SCHEMA_BYTES >> 20} MiB")
    return sha256(text).digest()


def _refuse(uri: str) -> NoReturn:
    """Fetches nothing: a reference could read files of the worker or ask its neighbours."""
    raise SchemaError(f"{uri} is no part of the schema")


def _compile(schema: Any, resources: Mapping[str, Any]) -> TypeAdapter[Any]:
    """Compiles a schema with the documents it may refer to.

    Raises:
        SchemaError: it cannot be used.
    """
    if is_explosive(schema):
        raise SchemaError(
            f"the JSON schema asks more than {MAX_IN_PLACE:,} questions about one value",
            hint="definitions refer to each other several times: name each once",
        )
    import jsonschema_rs  # noqa: PLC0415 - 40 ms and 8 MB; many runs have no schema

    try:
        validator = jsonschema_rs.validator_for(
            schema,
            registry=jsonschema_rs.Registry(list(resources.items()), retriever=_refuse)
            if resources
            else None,
            retriever=_refuse,
            validate_formats=False,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS),
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        elsewhere = _ELSEWHERE.match(error.message)
        if elsewhere:
            raise SchemaError(
                f"the JSON schema refers to {cut(elsewhere[1])}, no part of it, and nothing is fetched",
                hint="put what it refers to under `$defs`",
            ) from None
        place = pointer(getattr(error, "instance_path", ()))
        where = f" at {place}" if place else ""
        text = cut(error.message, MAX_MESSAGE_CHARS)
        raise SchemaError(f"the JSON schema is not usable{where}: {text}") from None
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise SchemaError(f"the JSON schema is not usable: {cut(str(error), MAX_MESSAGE_CHARS)}") from None
    return _adapter(validator, schema, jsonschema_rs.ValidationError)


def _adapter(
    validator: "jsonschema_rs.Validator", schema: Any, refusal: "type[jsonschema_rs.ValidationError]"
) -> TypeAdapter[Any]:
    """Puts the door in front: what the validator finds, pydantic raises."""
    refers = has_references(schema)

    def check(instance: Any) -> Any:
        try:
            if validator.is_valid(instance):
                return instance
            if refers and VisitCounter(schema).visits(schema, instance) > MAX_VISITS:
                errors = [_unnamed("it breaks the schema in more ways than can be listed")]
            else:
                errors = [_details(error) for error in _errors(validator, instance, refusal)]
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            errors = [_unnamed(f"it cannot be checked: {cut(str(error), MAX_MESSAGE_CHARS)}")]
        raise ValidationError.from_exception_data("JSON schema", errors)

    return TypeAdapter(Annotated[Any, PlainValidator(check)])


def _errors(
    validator: "jsonschema_rs.Validator", instance: Any, refusal: "type[jsonschema_rs.ValidationError]"
) -> "Iterable[jsonschema_rs.ValidationError]":
    """The errors of an instance; of a large one only the first, since all are made at once."""
    if not _is_large(instance):
        return islice(validator.iter_errors(instance), MAX_PROBLEMS)
    try:
        validator.validate(instance)
    except refusal as error:
        return [error]
    return []


def _is_large(instance: Any) -> bool:
    """Whether an instance has more values than all errors of it could be listed quickly."""
    stack, seen = [instance], 0
    while stack and seen <= MAX_LISTED_VALUES:
        value = stack.pop()
        inner = value.values() if type(value) is dict else value if type(value) is list else ()
        seen += len(inner)
        if seen <= MAX_LISTED_VALUES:
            stack.extend(inner)
    return seen > MAX_LISTED_VALUES


def _unnamed(message: str) -> InitErrorDetails:
    """An error of the whole instance, whose place is not known."""
    context = {"message": message, "schema_pointer": ""}
    return InitErrorDetails(type=PydanticCustomError("schema", "{message}", context), loc=(), input=None)


def _details(error: "jsonschema_rs.ValidationError") -> InitErrorDetails:
    """One error in pydantic's form."""
    context = {
        "message": cut(error.message, MAX_MESSAGE_CHARS),
        "schema_pointer": pointer(error.schema_path),
    }
    return InitErrorDetails(
        type=PydanticCustomError(error.kind.name, "{message}", context),
        loc=tuple(error.instance_path),
        input=None,
    )
