"""The state of the repository that a configuration is in, which a run keeps for its reports."""

import subprocess
from pathlib import Path
from typing import Final

GIT_PATIENCE_S: Final = 2.0
"""How long git is waited for; a report can do without it."""
_GIT: Final = (
    "git",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.checkStat=minimal",
    "-c",
    "core.trustctime=false",
)
"""Runs nothing that the configuration of a repository names, and compares files by size and whole seconds."""
SHORT_COMMIT_CHARS: Final = 7
_DETACHED: Final = "HEAD"


def git_info(folder: Path) -> dict[str, str | bool | None] | None:
    """Describes the state of the repository that a folder is in.

    Args:
        folder: of the configuration.

    Returns:
        `commit_hash`, `commit_short`, `branch` (None where no branch is checked out), `tag` (the last one,
        None without one) and `is_dirty`, whether tracked files differ from the commit; None where there is
        no repository, no commit or no git.
    """
    try:
        commit, branch = _git(folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD")
        tags = _git(folder, "tag", "--points-at", "HEAD")
        # Raw, because comparing contents may run filters that the repository configures.
        changes = _git(folder, "diff-index", "--raw", "HEAD", "--")
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return {
        "commit_hash": commit,
        "commit_short": commit[:SHORT_COMMIT_CHARS],
        "branch": None if branch == _DETACHED else branch,
        "is_dirty": bool(changes),
        "tag": tags[-1] if tags else None,
    }


def _git(folder: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        [*_GIT, *arguments], cwd=folder, capture_output=True, text=True, timeout=GIT_PATIENCE_S, check=True
    )
    return done.stdout.splitlines()
