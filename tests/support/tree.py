"""Lists the project's own files, so that tests can hold rules over all of them."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
"""The folder that holds pyproject.toml."""

_NOT_OURS: Final = {".venv", ".git", "__pycache__", "dist", "build", "test-artifacts"}


@cache
def project_files() -> tuple[Path, ...]:
    """Every file under version control; without git, every file that is not an environment or a cache."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode == 0:
        paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not _NOT_OURS.intersection(path.parts)]
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files() -> list[Path]:
    """Every Python file of the project, tests included."""
    return [path for path in project_files() if path.suffix == ".py"]


def shown(path: Path) -> str:
    """A path as messages print it: from the project's folder.

    >>> shown(ROOT / "Makefile")
    'Makefile'
    """
    return path.relative_to(ROOT).as_posix()
