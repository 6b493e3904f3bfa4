"""Finds out at which commit a configuration was run, for reports."""

import subprocess
from pathlib import Path
from typing import Final

PATIENCE_S: Final = 2.0
"""How long git is waited for; a report can do without it."""
_COMMAND: Final = ("git", "rev-parse", "HEAD", "--abbrev-ref", "HEAD")
_DETACHED: Final = "HEAD"


def git_info(folder: Path) -> dict[str, str | None] | None:
    """Returns commit and branch of the repository that a folder is in.

    Args:
        folder: of the configuration.

    Returns:
        `commit_hash` and `branch`, which is None where no branch is checked out; None where there is no
        repository, no commit or no git.
    """
    try:
        result = subprocess.run(
            _COMMAND, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    commit, _, branch = result.stdout.strip().partition("\n")
    return {"commit_hash": commit, "branch": None if branch in ("", _DETACHED) else branch}
