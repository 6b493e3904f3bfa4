"""Holds the rule of conftest.py: where nothing may be skipped, a skip is a failure that says why."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tools import FORBIDDEN
from tests.support.tree import ROOT

SUITE = f"""
import pytest
def test_skips(): pytest.skip("needs chromium")
def test_is_forbidden(): pytest.skip({FORBIDDEN!r} + "network namespaces")
def test_passes(): pass
@pytest.mark.xfail(reason="known")
def test_expected_to_fail(): assert False
"""


@pytest.mark.parametrize(
    ("required", "result"), [("", "1 passed, 2 skipped"), ("1", "1 failed, 1 passed, 1 skipped")]
)
def test_a_skip_fails_only_where_nothing_may_be_skipped(tmp_path: Path, required: str, result: str) -> None:
    """The variable fails a skip for want of a tool, with its reason, and leaves what the machine forbids."""
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_suite.py").write_text(SUITE)
    env = {**os.environ, "PROCTOR_REQUIRE_TOOLS": required}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-ra",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert f"{result}, 1 xfailed" in done.stdout
    assert "needs chromium" in done.stdout
