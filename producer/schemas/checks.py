"""The JSON Schema of checks, from their table: editors complete kinds and options, and mark what is unknown.

It takes everything that `parse_checks` takes. What needs more than its shape, such as a regular expression
or a model that is named nowhere, is verified when a bench is loaded.
"""

from typing import Any, Final

import yaml
from pydantic import TypeAdapter

from worker.validation.checks.kind import CheckKind
from worker.validation.checks.parsing import COMMON_OPTIONS, MAX_PATH, OPTION_EXAMPLES
from worker.validation.checks.table import ROWS

NAME: Final = "check"
"""Among the definitions of a schema."""


def check_definition() -> dict[str, Any]:
    """Returns the schema of one check as people write it.

    >>> check_definition()["anyOf"][0]["enum"]
    ['json', 'refusal', 'no_refusal']
    """
    bare = [kind.name for kind in ROWS if kind.takes_bare_word]
    return {
        "description": f"A check; checks may stand in each other, {MAX_PATH} steps deep at most.",
        "anyOf": [{"enum": bare}, *map(_kind, ROWS)],
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
    """The schema of a type, as it is written."""
    return TypeAdapter(wanted).json_schema()
