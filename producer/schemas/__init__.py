"""JSON Schemas of what Proctor prints, writes and reads, for programs that read or write the other side.

Those of outputs are files beside this one: `defs.json` holds the parts that they share, and each schema is
handed out with the parts that it needs. Those of inputs are made from the models that check them.
"""

import json
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from shared.errors import UsageError

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_HERE: Final = Path(__file__).parent
_SHARED: Final = "defs"
_REFERENCE: Final = "#/$defs/"


class _Input(NamedTuple):
    """Where the model of an input is."""

    title: str
    module: str
    model: str


_INPUTS: Final = {
    "input-turns": _Input("A line of a file of turns.", "shared.contracts.turns", "Turn"),
    "input-bench": _Input(
        "A configuration of test cases, in YAML or JSON.", "shared.contracts.case_config", "BenchConfig"
    ),
    "input-outputs": _Input("A line of recorded outputs (--outputs).", "producer.load.recorded", "OutputRow"),
    "input-baselines": _Input("A file of baselines of queries.", "shared.contracts.queries", "Baseline"),
}


def names() -> dict[str, str]:
    """Returns the titles of all schemas by name.

    >>> names()["run"][:16], "input-turns" in names(), "defs" in names()
    ('What run, watch,', True, False)
    """
    files = sorted(path.stem for path in _HERE.glob("*.json") if path.stem != _SHARED)
    told = {name: str(_read(name)["title"]) for name in files}
    return told | {name: each.title for name, each in _INPUTS.items()}


def schema_of(name: str) -> dict[str, Any]:
    """Returns a schema that needs no other file.

    Raises:
        UsageError: there is none of this name.

    >>> sorted(schema_of("report")["$defs"])
    ['file', 'gate']
    """
    known = names()
    if name not in known:
        raise UsageError(f"there is no schema {name}", hint="`proctor config schema` lists them")
    head = {"$schema": DIALECT, "$id": f"urn:proctor:1:{name}", "title": known[name]}
    if name in _INPUTS:
        return {**head, **_of_model(name)}
    body = _read(name)
    defs = _parts(body)
    return {**head, **body, **({"$defs": defs} if defs else {})}


def _of_model(name: str) -> dict[str, Any]:
    """Makes the schema of an input from the model that checks it."""
    found = _INPUTS[name]
    schema: dict[str, Any] = getattr(import_module(found.module), found.model).model_json_schema()
    schema.pop("title")
    if name != "input-baselines":
        return schema
    defs = schema.pop("$defs", {})
    queries = {"type": "array", "items": {"$ref": f"{_REFERENCE}baseline"}, "minItems": 1}
    whole = {"type": "object", "properties": {"version": True, "queries": queries}, "required": ["queries"]}
    return {"anyOf": [whole, queries], "$defs": {**defs, "baseline": schema}}


def _parts(body: Any) -> dict[str, Any]:
    """Collects the parts that a schema needs, and those that they need."""
    shared, found = _read(_SHARED), dict[str, Any]()
    waiting = list(_references(body))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = shared[name]
            waiting += _references(shared[name])
    return dict(sorted(found.items()))


def _references(value: Any) -> Iterator[str]:
    """Yields the names of the parts that are referred to."""
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(_REFERENCE)
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


@cache
def _read(name: str) -> dict[str, Any]:
    """Reads one of the files."""
    content: dict[str, Any] = json.loads((_HERE / f"{name}.json").read_text(encoding="utf-8"))
    return content
