"""Unpacks the last release from the project's own history, to run it beside this one."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.tools import require_tool
from tests.support.tree import ROOT

RELEASE: Final = "7088535496f0c0823776c2ff8749d560f71a760e"
"""The commit of the last release; replace it when a release is made."""
FOLDERS: Final = ("shared", "worker", "producer")


def unpack(folder: Path) -> Path:
    """Unpacks the last release into a folder, for PYTHONPATH; skips the test where there is no history."""
    # A checkout may belong to another user than the tests run as.
    git = (require_tool("git"), "-C", str(ROOT), "-c", "safe.directory=*")
    found = subprocess.run(
        [*git, "cat-file", "-e", f"{RELEASE}^{{commit}}"], capture_output=True, check=False
    )
    if found.returncode:
        pytest.skip(f"needs the git history with {RELEASE[:7]} (git fetch --unshallow)")
    archive = subprocess.run([*git, "archive", RELEASE, *FOLDERS], capture_output=True, check=True).stdout
    subprocess.run([require_tool("tar"), "-x", "-C", str(folder)], input=archive, check=True)
    return folder
