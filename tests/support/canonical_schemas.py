"""One form for JSON Schemas that allow the same documents, so that a change of what is allowed shows.

References are resolved, sentences for people are left out, and what can be written in several ways is sorted.
"""

import json
from collections.abc import Mapping
from typing import Any

FOR_PEOPLE = frozenset({"title", "description", "$schema", "$id", "$defs", "default", "examples"})
SAYS_NOTHING: Mapping[str, tuple[Any, ...]] = {
    "additionalProperties": (True, {}),
    "items": ({},),
    "required": ([],),
    "properties": ({},),
}


def canonical(schema: Mapping[str, Any]) -> Any:
    """Returns the form of a schema that stands alone.

    >>> canonical({"anyOf": [{"type": "null"}, {"const": "b", "type": "string"}], "title": "A"})
    {'anyOf': [{'enum': ['b']}, {'type': 'null'}]}
    """
    return _canonical(schema, schema.get("$defs", {}))


def _canonical(schema: Any, parts: Mapping[str, Any]) -> Any:
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _canonical(parts[schema["$ref"].removeprefix("#/$defs/")], parts)
    if "const" in schema or "enum" in schema:
        return {"enum": sorted(schema.get("enum", [schema.get("const")]), key=str)}
    form = {key: _value(key, schema[key], parts) for key in sorted(schema.keys() - FOR_PEOPLE)}
    return {key: value for key, value in form.items() if value not in SAYS_NOTHING.get(key, ())}


def _value(key: str, value: Any, parts: Mapping[str, Any]) -> Any:
    """The form of what stands under a keyword."""
    match key:
        case "anyOf" | "allOf" | "oneOf":
            return sorted(_flat(key, value, parts), key=_text)
        case "properties":
            return {name: _canonical(each, parts) for name, each in sorted(value.items())}
        case "required":
            return sorted(value)
        case "minimum" | "maximum":
            return float(value)
        case _:
            return _canonical(value, parts)


def _flat(key: str, forms: Any, parts: Mapping[str, Any]) -> list[Any]:
    """The forms of a list, and those of equal lists in it."""
    found = list[Any]()
    for form in (_canonical(each, parts) for each in forms):
        found += form[key] if isinstance(form, dict) and form.keys() == {key} else [form]
    return found


def _text(form: Any) -> str:
    return json.dumps(form, sort_keys=True)
