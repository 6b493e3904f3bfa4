"""Tests the schema stage's tool: errors with their places, and schemas that cannot be used."""

import socket
from time import process_time
from typing import Any

import pytest
from pydantic import ValidationError

from shared.errors import ConfigError
from worker.validation import schema as schema_module
from worker.validation.schema import MAX_PROBLEMS, SchemaError, SchemaValidator

INVOICE = {
    "type": "object",
    "required": ["id", "lines"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"a/b": {"type": "integer", "minimum": 1}}},
        },
    },
}


def test_a_valid_instance_has_no_errors() -> None:
    """The list is empty, and `validate` returns the instance."""
    checks = SchemaValidator(INVOICE)
    instance = {"id": "1", "lines": [{"a/b": 1}]}
    assert checks.errors(instance) == []
    assert checks.validate(instance) is instance


def test_each_error_names_its_place_and_keyword() -> None:
    """Places are JSON pointers, into the instance and into the schema."""
    errors = SchemaValidator(INVOICE).errors({"lines": [{}, {"a/b": 0}], "x": 1})
    assert {(error.pointer, error.keyword) for error in errors} == {
        ("", "required"),
        ("", "additionalProperties"),
        ("/lines/1/a~1b", "minimum"),
    }
    worst = next(error for error in errors if error.keyword == "minimum")
    assert worst.schema_pointer == "/properties/lines/items/properties/a~1b/minimum"
    assert str(worst) == "/lines/1/a~1b: 0 is less than the minimum of 1"


def test_pydantic_is_the_door() -> None:
    """Errors are raised as pydantic's, whose places and types they keep."""
    with pytest.raises(ValidationError) as caught:
        SchemaValidator(INVOICE).validate({"id": "1", "lines": [{"a/b": "1"}]})
    [error] = caught.value.errors()
    assert (error["loc"], error["type"]) == (("lines", 0, "a/b"), "type")


@pytest.mark.parametrize(
    ("schema", "instance"),
    [
        ({"type": "integer"}, "42"),
        ({"type": "boolean"}, "yes"),
        ({"items": {"type": "string"}}, [1]),
        ({"properties": {"a": {"type": "string"}}}, {"a": None}),
        ({"type": "integer"}, True),
        ({"multipleOf": 3}, 3 * 10**50 + 1),
        (False, {}),
    ],
)
def test_nothing_is_coerced(schema: Any, instance: Any) -> None:
    """What a lax model would convert is an error."""
    assert SchemaValidator(schema).errors(instance)


def test_true_and_the_empty_schema_accept_everything() -> None:
    """Booleans are schemas too."""
    assert SchemaValidator(schema=True).errors({"a": [1]}) == []
    assert SchemaValidator({}).errors(None) == []


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "nope"}, 'at /type: "nope"'),
        ({"properties": 3}, "at /properties: 3"),
        ({"pattern": "(("}, "at /pattern"),
        ({"$ref": "#/nope"}, "'/nope' does not exist"),
        ({"$schema": "https://example.com/mine"}, "Unknown meta-schema"),
        ([], "not list"),
        (None, "not NoneType"),
        ("x", "not str"),
        ({"const": object()}, "no JSON"),
        ({"const": "\ud800"}, "no JSON"),
    ],
)
def test_an_unusable_schema_is_a_configuration_error(schema: Any, reason: str) -> None:
    """It is reported when the schema is read, with the place inside of it."""
    with pytest.raises(SchemaError, match=reason) as caught:
        SchemaValidator(schema)
    assert isinstance(caught.value, ConfigError)
    assert len(caught.value.message) < 500


def test_a_schema_nested_without_end_is_refused() -> None:
    """Depth that would exhaust the stack is an error like the others."""
    schema: dict[str, Any] = {}
    for _ in range(100_000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(SchemaError):
        SchemaValidator(schema)
    while schema:
        schema = schema["properties"]["a"]


@pytest.mark.parametrize("place", ["file:///etc/passwd", "other.json", "urn:example:x"])
def test_nothing_is_fetched(place: str) -> None:
    """References to files, hosts and elsewhere are refused at once, with the way out."""
    with pytest.raises(SchemaError, match="nothing is fetched") as caught:
        SchemaValidator({"$ref": place})
    assert "$defs" in caught.value.hint


def test_no_host_is_asked() -> None:
    """A reference over HTTP is refused without a connection to the host."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(SchemaError, match="nothing is fetched"):
            SchemaValidator({"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"})
        server.settimeout(0)
        with pytest.raises(BlockingIOError):  # nobody waits to be accepted
            server.accept()


def test_documents_that_come_with_a_schema_can_be_referred_to() -> None:
    """What is handed over by URI is not fetched, and a schema is not mixed up with its namesake."""
    schema = {"$ref": "urn:example:age"}
    whole = SchemaValidator(schema, resources={"urn:example:age": {"type": "integer"}})
    text = SchemaValidator(schema, resources={"urn:example:age": {"type": "string"}})
    assert whole.errors(1) == text.errors("1") == []
    assert whole.errors("1")
    assert text.errors(1)


@pytest.mark.parametrize(
    ("schema", "instance"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 60 + "!"),
        ({"pattern": r"^(?=(a+)+$)(a|aa)+\2$"}, "a" * 60 + "!"),
        ({"patternProperties": {"^(a+)+$": False}}, {"a" * 60 + "!": 1}),
        ({"$ref": "#"}, {}),
        (
            {
                "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
                "$ref": "#/$defs/a",
            },
            1,
        ),
        ({"uniqueItems": True}, [{"a": index} for index in range(20_000)]),
    ],
    ids=["bomb", "look-ahead", "property names", "itself", "a ring", "unique items"],
)
def test_hostile_schemas_come_to_an_end(schema: dict[str, Any], instance: Any) -> None:
    """Regular-expression bombs, rings of references and quadratic keywords end within two seconds."""
    before = process_time()
    SchemaValidator(schema).errors(instance)
    assert process_time() - before < 2


def doubling(keyword: str, levels: int, last: Any) -> dict[str, Any]:
    """A few definitions, each of which asks the next one twice."""
    steps = {
        f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}]}
        for level in range(levels)
    }
    return {"$defs": {**steps, f"d{levels}": last}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_schema_that_multiplies_is_refused(keyword: str) -> None:
    """A trillion questions about one value are a configuration error; a thousand are not."""
    with pytest.raises(SchemaError, match="more than 20,000 questions"):
        SchemaValidator(doubling(keyword, 40, {"type": "string"}))
    assert SchemaValidator(doubling(keyword, 8, {"type": "string"})).errors(1)


def test_errors_that_multiply_with_depth_are_not_listed() -> None:
    """A recursive choice fails a deep instance quickly, with one error instead of a billion."""
    choice = {"anyOf": [{"$ref": "#/$defs/n"}, {"title": "again", "$ref": "#/$defs/n"}]}
    checks = SchemaValidator(
        {"$defs": {"n": {"properties": {"a": choice}, "required": ["b"]}}, "$ref": "#/$defs/n"}
    )
    instance: dict[str, Any] = {}
    for _ in range(100):
        instance = {"a": instance, "b": 1}
    before = process_time()
    [problem] = checks.errors(instance)
    assert process_time() - before < 1
    assert "more ways than can be listed" in problem.message
    assert [problem.keyword for problem in checks.errors({"a": {}, "b": 1})] == ["anyOf"]


@pytest.mark.parametrize("instance", [{"a": "\ud800"}, {1: 2}, {"a": b"x"}, {"a": {1}}])
def test_what_is_no_json_breaks_every_schema(instance: Any) -> None:
    """Values that cannot be in an output are an error, never an exception of the library."""
    [problem] = SchemaValidator({"maxProperties": 0}).errors(instance)
    assert problem.message


def test_errors_are_bounded() -> None:
    """Ten thousand errors are listed as fifty, each short."""
    errors = SchemaValidator({"items": {"type": "string", "maxLength": 2}}).errors(["x" * 9_000] * 10_000)
    assert len(errors) == MAX_PROBLEMS
    assert max(len(error.message) for error in errors) < 400


def test_schemas_are_compiled_once_and_the_oldest_are_forgotten() -> None:
    """Equal schemas share their compiled form, of which a process keeps a bounded number."""
    compiled = schema_module._COMPILED
    first = SchemaValidator({"const": "kept"})
    assert SchemaValidator({"const": "kept"})._adapter is first._adapter
    for index in range(schema_module.MAX_COMPILED + 5):
        SchemaValidator({"const": index})
    assert len(compiled._adapters) == schema_module.MAX_COMPILED
    assert SchemaValidator({"const": "kept"})._adapter is not first._adapter


def test_one_and_one_point_nought_are_different_schemas() -> None:
    """The cache does not take 1, 1.0 and true for one another."""
    assert SchemaValidator({"const": True}).errors(1)
    assert not SchemaValidator({"const": 1}).errors(1)


def test_of_a_large_instance_the_first_error_is_named() -> None:
    """An output of half a million wrong values would otherwise keep a worker busy for seconds."""
    checks = SchemaValidator({"type": "array", "items": {"type": "string"}})
    started = process_time()
    assert [str(error) for error in checks.errors([1] * 500_000)] == ['/0: 1 is not of type "string"']
    assert process_time() - started < 2
    assert checks.errors(["a"] * 500_000) == []
    assert len(checks.errors([1] * 1_000)) == 50
