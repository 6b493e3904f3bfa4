"""The JSON Schemas of inputs, from the contracts that check them, and of checks, from their table.

They take everything that is loaded; what needs more than its shape is verified when a file is loaded.
"""

from collections.abc import Mapping
from typing import Any, Final

import yaml
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaValue

from producer.cases.recorded import OutputRow
from shared.contracts.case_config import BenchConfig
from shared.contracts.http_config import HttpConfig
from shared.contracts.queries import Baseline
from shared.contracts.turns import Turn
from worker.validation.checks.kind import MANY_CHECKS, CheckKind
from worker.validation.checks.parsing import COMMON_OPTIONS, MAX_PATH, OPTION_EXAMPLES
from worker.validation.checks.table import ROWS

_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "input-turns": Turn,
    "input-bench": BenchConfig,
    "input-outputs": OutputRow,
    "input-baselines": Baseline,
}
NAME: Final = "check"
"""Among the definitions of a schema."""


def schema_of_input(name: str) -> JsonSchemaValue:
    """Makes the schema of an input, without its title."""
    model = _MODELS[name]
    schema = {key: value for key, value in model.model_json_schema().items() if key != "title"}
    if model is BenchConfig:
        return _with_checks(schema)
    if model is not Baseline:
        return schema
    defs = schema.pop("$defs", {})
    listed = {"type": "array", "items": {"$ref": "#/$defs/baseline"}, "minItems": 1}
    api = HttpConfig.model_json_schema()
    defs |= api.pop("$defs")
    properties = {"version": True, "queries": listed, "api": {"$ref": "#/$defs/api"}}
    whole = {"type": "object", "properties": properties, "required": ["queries"]}
    return {"anyOf": [whole, listed], "$defs": {**defs, "api": api, "baseline": schema}}


def _with_checks(schema: JsonSchemaValue) -> JsonSchemaValue:
    """Adds what a check is, wherever a bench has a list of them."""
    definitions = schema["$defs"]
    definitions["CaseEntry"]["properties"]["checks"]["anyOf"][0] = MANY_CHECKS
    schema["properties"]["default_checks"] |= MANY_CHECKS
    return {**schema, "$defs": {**definitions, NAME: check_definition()}}


def check_definition() -> dict[str, Any]:
    """Returns the schema of one check as people write it.

    >>> check_definition()["anyOf"][0]["enum"]
    ['json', 'xml', 'refusal', 'no_refusal', 'verdict', 'answer_relevance']
    """
    bare = [kind.name for kind in ROWS if kind.takes_bare_word]
    return {
        "description": f"A check; checks may stand in each other, {MAX_PATH} steps deep at most.",
        "anyOf": [{"enum": bare}, *map(_kind, ROWS), _of_plugins()],
    }


def _of_plugins() -> dict[str, Any]:
    """The schema of checks that packages have registered: one key is the name of a plug-in."""
    name = r"^plugin\.[\w.-]+$"
    options = {each: _option(each, wanted) for each, wanted in COMMON_OPTIONS.items()}
    has_name = {"not": {"propertyNames": {"not": {"pattern": name}}}}
    keys = {"patternProperties": {name: True}, "properties": options, "additionalProperties": False}
    return {
        "title": "plugin.NAME",
        "description": "Passes when the function of a plug-in says so.",
        "anyOf": [{"type": "string", "pattern": name}, {"type": "object", **keys, **has_name}],
    }


def _kind(kind: CheckKind) -> dict[str, Any]:
    """The schema of checks of one kind."""
    options = {**kind.options, **COMMON_OPTIONS}
    if not kind.reads_text:
        del options["json_path"]
    example = yaml.safe_load(kind.example)
    return {
        "title": kind.name,
        "description": f"Passes when {kind.passes_when}.",
        "examples": [example],
        "type": "object",
        "properties": {
            kind.name: _argument(kind),
            **{name: _option(name, wanted) for name, wanted in options.items()},
        },
        "required": [kind.name],
        "additionalProperties": False,
    }


def _argument(kind: CheckKind) -> dict[str, Any]:
    """The schema of what a check compares with."""
    if kind.nested is not None:
        return dict(kind.nested.schema)
    return {"enum": [None, True]} if kind.argument is None else _of_type(kind.argument)


def _option(name: str, wanted: Any) -> dict[str, Any]:
    """The schema of an option."""
    example = OPTION_EXAMPLES.get(name)
    return {**_of_type(wanted), **({} if example is None else {"examples": [yaml.safe_load(example)]})}


def _of_type(wanted: Any) -> dict[str, Any]:
    """The schema of a type, as it is written, with its models in their places."""
    schema = TypeAdapter(wanted).json_schema()
    found: dict[str, Any] = _inlined(schema, schema.pop("$defs", {}))
    return found


def _inlined(schema: Any, models: Mapping[str, Any]) -> Any:
    """Puts models in place of the references to them."""
    match schema:
        case {"$ref": str(name)}:
            return _inlined(models[name.removeprefix("#/$defs/")], models)
        case dict():
            return {key: _inlined(value, models) for key, value in schema.items()}
        case list():
            return [_inlined(each, models) for each in schema]
        case _:
            return schema
