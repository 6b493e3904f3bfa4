"""Finds the programs that some tests need; a missing one is a skip that names it (see conftest.py above)."""

import shutil
from typing import Final, NoReturn

import pytest

FORBIDDEN: Final = "not permitted here: "
"""How the reason of a skip begins that no package can mend: this machine's kernel or user forbids it."""


def require_tool(*names: str, package: str = "") -> str:
    """Path of the first of these programs that is installed; skips the test when there is none.

    Args:
        names: program names, the preferred one first.
        package: what to install to have it, by default the first name.
    """
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.skip(f"needs {' or '.join(names)} on PATH (package {package or names[0]})")


def forbidden(what: str, why: str) -> NoReturn:
    """Skips a test of what this machine does not permit; also where a missing tool is an error."""
    pytest.skip(f"{FORBIDDEN}{what}: {why}")
