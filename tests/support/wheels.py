"""Builds the wheel of the project and unpacks it, as an installer would."""

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.support.tree import ROOT


def built_wheel(folder: Path) -> Path:
    """Builds the wheel without network and without an isolated environment."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))


def unpacked(wheel: Path, folder: Path) -> Path:
    """Unpacks a wheel into a folder of packages."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder
