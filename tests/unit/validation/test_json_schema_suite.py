"""Runs the official tests of JSON Schema (tests/data/json_schema_suite) through the schema stage's tool."""

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from worker.validation.schema import SchemaValidator

SUITE: Final = Path(__file__).parents[2] / "data" / "json_schema_suite" / "suite.json.xz"

DIALECTS: Final = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
REQUIRED: Final = {"draft7": 913, "draft2019-09": 1227, "draft2020-12": 1257}
"""How many tests each draft has, so that none is lost on the way."""


@cache
def suite() -> dict[str, Any]:
    """The packed suite."""
    loaded: dict[str, Any] = json.loads(lzma.decompress(SUITE.read_bytes()))
    return loaded


def in_dialect(schema: Any, draft: str) -> Any:
    """The schema with its draft named, as the suite asks for where a schema does not say it."""
    if isinstance(schema, dict) and "$schema" not in schema:
        return {"$schema": DIALECTS[draft], **schema}
    return schema


def remotes(draft: str) -> dict[str, Any]:
    """The documents that the draft's schemas refer to."""
    return {
        uri: in_dialect(document, draft) if f"/{draft}/" in uri else document
        for uri, document in suite()["remotes"].items()
    }


@pytest.mark.parametrize("draft", DIALECTS)
def test_every_required_test_passes(draft: str) -> None:
    """All required tests of the draft give the verdict that the suite gives, through the pydantic door."""
    resources = remotes(draft)
    wrong, number = [], 0
    for name, groups in suite()["drafts"][draft].items():
        for group in groups:
            needs_remotes = "localhost:1234" in json.dumps(group["schema"])
            checks = SchemaValidator(
                in_dialect(group["schema"], draft), resources=resources if needs_remotes else None
            )
            for test in group["tests"]:
                number += 1
                if (not checks.errors(test["data"])) is not test["valid"]:
                    wrong.append(f"{name}: {group['description']}: {test['description']}")
    assert not wrong, "\n".join(wrong)
    assert number == REQUIRED[draft]
