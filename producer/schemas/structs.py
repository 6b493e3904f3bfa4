"""Makes JSON Schemas from the types of documents: what is not `UNSET` by default is required."""

from collections.abc import Mapping, Sequence
from inspect import cleandoc
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from msgspec.json import schema_components

from producer.cases.documents import GitState
from producer.cases.results import CaseResult, CheckRow, StageEntry, TokenUsage
from producer.documents import Percentiles

Schema = dict[str, Any]
STORED: Final = frozenset(each.__name__ for each in (CaseResult, CheckRow, GitState, StageEntry, TokenUsage))
"""What is read as any release stored it: it may lack what has a default, and have keys of a later release."""
NOTHING: Final[Schema] = {"type": "object", "properties": {}, "additionalProperties": False}


class Document(NamedTuple):
    """What one schema is made from."""

    type: Any
    """A struct."""
    title: str = ""
    """What it is; by default the first paragraph of its docstring, and the rest is the description."""
    constants: Mapping[str, str] = {}
    """Keys that have one value here, whatever their type allows."""
    lists: Mapping[str, Sequence[Any]] = {}
    """Structs of which lists consist that the type leaves open, by their keys."""
    parts: Mapping[str, Any] = {}
    """Structs that stand under keys which the type leaves open."""


class ByTag(NamedTuple):
    """A document of several forms, which one of its keys tells apart."""

    title: str
    tag: str
    """The key."""
    forms: "Mapping[str, Document | ByTag]"
    """By the values of the key."""


def title_of(document: Document | ByTag) -> str:
    """Returns what a document is, in one sentence."""
    return document.title or ("" if isinstance(document, ByTag) else _paragraphs(document.type)[0])


def schema_of_struct(document: Document | ByTag) -> Schema:
    """Returns the schema of a document, with title, description and the parts that it refers to."""
    body, parts = _schema(document)
    description = "" if document.title or isinstance(document, ByTag) else _paragraphs(document.type)[1]
    head = {"title": title_of(document), **({"description": description} if description else {})}
    body.pop("description", None)
    return {**body, **head, **({"$defs": parts} if parts else {})}


def _schema(document: Document | ByTag) -> tuple[Schema, Schema]:
    """Returns the schema of a document, and those of its parts by their names."""
    if isinstance(document, Document):
        return _object(document)
    parts, branches = Schema(), list[Schema]()
    for value, form in document.forms.items():
        inner, more = _schema(form)
        parts |= more
        branches.append({"if": {"properties": {document.tag: {"const": value}}}, "then": inner})
    tags = {document.tag: {"enum": list(document.forms)}}
    # A validator follows the tag, and so reports what is wrong inside of that form only.
    return {"type": "object", "properties": tags, "required": [document.tag], "allOf": branches}, parts


def _object(document: Document) -> tuple[Schema, Schema]:
    """Returns the schema of one struct."""
    types = [document.type, *document.parts.values(), *chain.from_iterable(document.lists.values())]
    references, found = schema_components(types, ref_template="#/$defs/{name}")
    parts = {name: _part(name, part) for name, part in found.items()}
    first, *others = references
    body, left = parts.pop(first["$ref"].removeprefix("#/$defs/")), iter(others)
    inner = {key: next(left) for key in document.parts}
    for key, structs in document.lists.items():
        forms = list(islice(left, len(structs)))
        inner[key] = {"type": "array", "items": {"anyOf": forms} if len(forms) > 1 else forms[0]}
    body["properties"] |= inner
    body["required"] = [*dict.fromkeys([*body["required"], *inner])]
    for key, value in document.constants.items():
        body["properties"][key] = {"const": value}
        body["required"] = [*dict.fromkeys([*body["required"], key])]
    return body, parts


def _part(name: str, part: Schema) -> Schema:
    """Removes what msgspec adds for readers of files: titles, and defaults, which documents always hold."""
    closed = {key: value for key, value in part.items() if key != "title"}
    if "description" in closed:
        closed["description"] = cleandoc(closed["description"])
    if "properties" not in closed:
        return closed
    properties, needed = closed["properties"], closed["required"]
    if name in STORED:
        closed["additionalProperties"] = False
    else:
        needed = [key for key in properties if "default" in properties[key] or key in needed]
    bare = {
        key: {
            word: False if word == "additionalProperties" and "properties" in each else value  # `tally_of`
            for word, value in each.items()
            if word != "default"
        }
        for key, each in properties.items()
    }
    closed |= {"properties": bare, "required": needed}
    return {"anyOf": [closed, NOTHING]} if name == Percentiles.__name__ else closed


def _paragraphs(struct: Any) -> tuple[str, str]:
    """Splits a docstring into its first paragraph and the rest."""
    title, _, description = cleandoc(struct.__doc__ or "").partition("\n\n")
    return title, description
