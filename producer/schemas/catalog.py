"""The JSON Schemas by name: outputs from the models beside this file, inputs from the contracts.

Only `proctor config schema` and tests import this: the models take half a second to build.
"""

from collections.abc import Mapping
from enum import Enum
from inspect import cleandoc
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from producer.aggregate.comparison import CompareDocument
from producer.aggregate.ranking import RankDocument
from producer.cases.documents import CasesRun
from producer.cases.results import CaseLine
from producer.cli import service_documents
from producer.load.recorded import OutputRow
from producer.queries.documents import QueriesReport, QueriesRun, QueryLine
from producer.schemas import checks, runs, turns
from producer.schemas.structs import ByTag, Document, schema_of_struct, title_of
from producer.turns.documents import TraceLine, TurnLine, TurnsRun
from shared.contracts.case_config import BenchConfig
from shared.contracts.queries import Baseline
from shared.contracts.turns import Turn
from shared.errors import UsageError

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_RUNS: Final[Mapping[str, Any]] = {"turns": TurnsRun, "cases": CasesRun, "queries": QueriesRun}


def _run(kind: str, **more: str) -> Document:
    """The document of a run of one kind."""
    return Document(_RUNS[kind], constants={"kind": kind, **more})


OUTPUTS: Final[Mapping[str, type[BaseModel] | Document | ByTag]] = {
    "cache": Document(service_documents.CacheDocument),
    "cache-clear": Document(service_documents.CacheCleared),
    "compare": Document(CompareDocument),
    "config": Document(service_documents.ConfigDocument),
    "dead": Document(service_documents.DeadDocument),
    "dead-discard": Document(service_documents.DeadDiscarded),
    "dead-show": Document(service_documents.DeadItemDocument),
    "decide": Document(service_documents.DecideDocument),
    "doctor": Document(service_documents.DoctorDocument),
    "error": Document(service_documents.ErrorDocument),
    "limits": Document(service_documents.LimitsDocument),
    "limits-reset": Document(service_documents.LimitsReset),
    "limits-set": Document(service_documents.LimitsSet),
    "limits-unset": Document(service_documents.LimitsUnset),
    "line-cases": Document(CaseLine),
    "line-events": runs.EventLine,
    "line-queries": Document(QueryLine),
    "line-traces": Document(TraceLine),
    "line-turns": Document(TurnLine),
    "models": Document(service_documents.ModelsDocument),
    "notify": runs.NotifyDocument,
    "rank": Document(RankDocument),
    "report": Document(service_documents.ReportDocument),
    "report-cases": _run("cases")._replace(
        title="A cases run as .json: the document of run, and every result.", results=CaseLine
    ),
    "report-queries": Document(QueriesReport),
    "report-turns": _run("turns")._replace(
        title="A turns run as .json: the document of run, and every result.", results=TurnLine
    ),
    "retry": Document(service_documents.RetryDocument),
    "run": runs.RunDocument,
    "runs": Document(service_documents.RunsDocument),
    "runs-rm": Document(service_documents.RunsRemoved),
    "schemas": Document(service_documents.SchemasDocument),
    "show": runs.ItemLinesDocument,
    "state": Document(service_documents.StateDocument),
    "status": Document(service_documents.StatusDocument),
    "submit": Document(service_documents.SubmitDocument),
    "threads": Document(service_documents.ThreadsDocument),
    "threads-rm": Document(service_documents.ThreadsRemoved),
    "threads-show": turns.ThreadDocument,
    "validate": Document(service_documents.ValidateDocument),
}
"""The models of what Proctor prints and writes; their docstrings are the titles."""

_INPUTS: Final[Mapping[str, tuple[str, type[BaseModel]]]] = {
    "input-turns": ("A line of a file of turns.", Turn),
    "input-bench": ("A configuration of test cases, in YAML or JSON.", BenchConfig),
    "input-outputs": ("A line of recorded outputs (--outputs).", OutputRow),
    "input-baselines": ("A file of baselines of queries.", Baseline),
}


class _OutputSchema(GenerateJsonSchema):
    """Writes a schema without what pydantic adds for forms: field titles, defaults, sorted keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic calls it so
        """Fields are named by their keys."""
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """An absent key has no value."""
        return self.generate_inner(schema["schema"])

    def sort(
        self,
        value: JsonSchemaValue,
        parent_key: str | None = None,  # noqa: ARG002 - pydantic calls it so
    ) -> JsonSchemaValue:
        """Keys stay in the order in which they are written: what an object is comes before what is in it."""
        return value

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        """A validator follows the tag, and so reports what is wrong inside of that form only."""
        key = schema["discriminator"]
        forms = {
            tag.value if isinstance(tag, Enum) else tag: self.generate_inner(form)
            for tag, form in schema["choices"].items()
        }
        return {
            "type": "object",
            "properties": {key: {"enum": list(forms)}},
            "required": [key],
            "allOf": [
                {"if": {"properties": {key: {"const": tag}}}, "then": form} for tag, form in forms.items()
            ],
        }


def names() -> dict[str, str]:
    """Returns the titles of all schemas by name.

    >>> names()["run"][:16], "input-turns" in names()
    ('What run, watch,', True)
    """
    titles = {name: _title(output) for name, output in OUTPUTS.items()}
    return titles | {name: title for name, (title, _) in _INPUTS.items()}


def list_of(titles: Mapping[str, str]) -> service_documents.SchemasDocument:
    """Returns the list as programs get it."""
    listed = (service_documents.ListedSchema(*each) for each in titles.items())
    return service_documents.SchemasDocument(schemas=tuple(listed))


def schema_of(name: str) -> dict[str, Any]:
    """Returns a schema that needs no other file.

    Raises:
        UsageError: there is none of this name.

    >>> sorted(schema_of("report")["$defs"])
    ['Gate', 'WrittenFile']
    """
    head = {"$schema": DIALECT, "$id": f"urn:proctor:1:{name}"}
    if name in OUTPUTS:
        output = OUTPUTS[name]
        if isinstance(output, Document | ByTag):
            return {**head, **schema_of_struct(output)}
        return {**head, **_of_output(output)}
    if name in _INPUTS:
        title, model = _INPUTS[name]
        return {**head, "title": title, **_of_input(model)}
    raise UsageError(f"there is no schema {name}", hint="`proctor config schema` lists them")


def _of_output(model: type[BaseModel]) -> dict[str, Any]:
    """Makes the schema of what is printed or written; the model's docstring is title and description."""
    body = model.model_json_schema(schema_generator=_OutputSchema)
    defs = {name: _without_title(part) for name, part in body.pop("$defs", {}).items()}
    title, description = _title_and_description(model)
    titles = {"title": title, "description": description} if description else {"title": title}
    return {**body, **titles, **({"$defs": defs} if defs else {})}


def _of_input(model: type[BaseModel]) -> dict[str, Any]:
    """Makes the schema of an input from the model that checks it."""
    schema = _without_title(model.model_json_schema())
    if model is BenchConfig:
        return _with_checks(schema)
    if model is not Baseline:
        return schema
    defs = schema.pop("$defs", {})
    listed = {"type": "array", "items": {"$ref": "#/$defs/baseline"}, "minItems": 1}
    whole = {"type": "object", "properties": {"version": True, "queries": listed}, "required": ["queries"]}
    return {"anyOf": [whole, listed], "$defs": {**defs, "baseline": schema}}


def _with_checks(schema: JsonSchemaValue) -> JsonSchemaValue:
    """Adds what a check is, wherever a bench has a list of them."""
    definitions = schema["$defs"]
    definitions["CaseEntry"]["properties"]["checks"]["anyOf"][0] = checks.LIST
    schema["properties"]["default_checks"] |= checks.LIST
    return {**schema, "$defs": {**definitions, checks.NAME: checks.check_definition()}}


def _title(output: type[BaseModel] | Document | ByTag) -> str:
    """What an output is, in one sentence."""
    return title_of(output) if isinstance(output, Document | ByTag) else _title_and_description(output)[0]


def _title_and_description(model: type[BaseModel]) -> tuple[str, str]:
    """Splits a docstring into its first paragraph and the rest."""
    title, _, description = cleandoc(model.__doc__ or "").partition("\n\n")
    return title, description


def _without_title(schema: JsonSchemaValue) -> JsonSchemaValue:
    """The schema without the title that pydantic makes of a class's name."""
    return {key: value for key, value in schema.items() if key != "title"}
