"""The schemas of outputs allow what they allowed before; `make golden` writes what they allow now."""

import json
import os
from typing import Final

import pytest

from producer.schemas.catalog import OUTPUTS, schema_of
from tests.golden.test_golden import WRITE
from tests.support.canonical_schemas import canonical
from tests.support.tree import ROOT

KEPT: Final = ROOT / "tests" / "golden" / "schemas.jsonl"


def test_schemas_allow_what_they_allowed() -> None:
    """In a form that does not depend on how a schema is written or made."""
    found = {name: canonical(schema_of(name)) for name in OUTPUTS}
    if WRITE in os.environ:
        KEPT.write_text("".join(f"{json.dumps(each)}\n" for each in found.items()), encoding="utf-8")
    kept = dict(map(json.loads, KEPT.read_text(encoding="utf-8").splitlines()))
    differing = [name for name in found.keys() | kept.keys() if found.get(name) != kept.get(name)]
    if differing:
        pytest.fail(f"not as kept: {sorted(differing)}; if that is meant, run `make golden` and commit")
