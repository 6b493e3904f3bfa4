"""Holds what was printed against the schema that `proctor config schema` prints for it."""

import json
from functools import cache
from typing import Any

import jsonschema_rs

from producer.schemas.catalog import schema_of


def hold(name: str, printed: Any) -> Any:
    """Checks a document, or its text, and returns it."""
    document = json.loads(printed) if isinstance(printed, str | bytes) else printed
    errors = [
        f"{'/'.join(map(str, error.instance_path))}: {error.message}"
        for error in _validator(name).iter_errors(document)
    ]
    assert not errors, f"{name}: {errors[:5]}"
    return document


@cache
def _validator(name: str) -> Any:
    """Compiles a schema once."""
    return jsonschema_rs.validator_for(schema_of(name))
