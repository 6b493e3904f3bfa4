"""Counts how often a schema's parts meet an instance, so that what multiplies is refused.

Twenty definitions, each of which refers to the next one twice, ask a million questions about one value.
Whether it is valid is found quickly all the same, up to a point; a list of all errors is not.
"""

from collections.abc import Iterator
from typing import Any, Final

MAX_IN_PLACE: Final = 20_000
"""Questions that a schema may ask about one value."""
MAX_VISITS: Final = 5_000
"""Questions about a whole instance up to which all errors are listed."""
TOO_MANY: Final = 1 << 60
"""Stands for a number that is not worth counting."""

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLES: Final = ("not", "if", "then", "else")
_ITEMS: Final = ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems")
_VALUES: Final = ("patternProperties", "additionalProperties", "unevaluatedProperties")
_SCALAR: Final = 0


def has_references(schema: Any) -> bool:
    """Whether anything in a schema refers to something; without it nothing multiplies.

    >>> has_references({"items": {"$ref": "#"}}), has_references({"type": "object"})
    (True, False)
    """
    return any(name in part for part in _parts(schema) for name in REFERENCES)


def is_explosive(schema: Any) -> bool:
    """Whether some part of a schema asks too many questions about one value.

    >>> doubling = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)}
    >>> is_explosive({"$defs": {**doubling, "d30": {}}, "$ref": "#/$defs/d0"})
    True
    """
    counting = VisitCounter(schema, most_pairs=TOO_MANY)
    return has_references(schema) and any(
        counting.visits(part, _SCALAR) > MAX_IN_PLACE for part in _parts(schema)
    )


class VisitCounter:
    """Counts for one schema document."""

    def __init__(self, root: Any, *, most_pairs: int = 4 * MAX_IN_PLACE) -> None:
        """Begins to count.

        Args:
            root: the document.
            most_pairs: parts with their instances that are looked at before the number counts as too large.
        """
        self._root = root
        self._most_pairs = most_pairs
        self._known: dict[tuple[int, int], int] = {}

    def visits(self, schema: Any, instance: Any) -> int:
        """How many parts of the document meet the instance and what is in it, from this part on."""
        if not isinstance(schema, dict):
            return 1
        key = (id(schema), id(instance))
        known = self._known.get(key)
        if known is not None:
            return known
        if len(self._known) >= self._most_pairs:
            return TOO_MANY
        self._known[key] = 0  # a ring of references asks nothing new
        total = 1
        try:
            for part, value in self._next(schema, instance):
                total = min(TOO_MANY, total + self.visits(part, value))
        except RecursionError:
            total = TOO_MANY
        self._known[key] = total
        return total

    def _next(self, schema: dict[str, Any], instance: Any) -> Iterator[tuple[Any, Any]]:
        """The parts that are asked next, each with what it is asked about."""
        for name in REFERENCES:
            if name in schema:
                yield self._target(schema[name]), instance
        for name in _LISTS:
            yield from ((part, instance) for part in _many(schema.get(name)))
        yield from ((schema[name], instance) for name in _SINGLES if name in schema)
        yield from ((part, instance) for part in _many(schema.get("dependentSchemas")))
        if isinstance(instance, dict):
            named = schema.get("properties")
            for name, part in named.items() if isinstance(named, dict) else ():
                if name in instance:
                    yield part, instance[name]
            for name in _VALUES:
                parts = _many(schema.get(name)) if name == "patternProperties" else [schema.get(name)]
                yield from ((part, value) for part in parts if part for value in instance.values())
        elif isinstance(instance, list):
            parts = [part for name in _ITEMS for part in _many_or_one(schema.get(name))]
            yield from ((part, value) for part in parts for value in instance)

    def _target(self, reference: Any) -> Any:
        """What a reference inside the document means; the whole document where that is not easily named."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return self._root
        found = self._root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found:
                return self._root
            found = found[name]
        return found


def _many(parts: Any) -> list[Any]:
    """The schemas of a list or of an object's values."""
    if isinstance(parts, dict):
        return list(parts.values())
    return parts if isinstance(parts, list) else []


def _many_or_one(part: Any) -> list[Any]:
    """The schemas of a keyword that holds one, or a list."""
    return part if isinstance(part, list) else [part] if isinstance(part, dict) else []


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object in a schema."""
    stack = [schema]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            yield part
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)
