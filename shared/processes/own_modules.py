"""Starts modules of this installation in interpreters that import nothing from the current folder.

`python -m` searches the current folder first, where a file called `redis.py` would be imported instead of
the library. `-P` leaves that folder out.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PACKAGES_ROOT: Final = Path(__file__).resolve().parents[2]
"""The folder of our packages; `celery -A` searches the app in the current folder first."""


def module_command(module: str, *arguments: str) -> list[str]:
    """Returns the command line that runs a module of this installation, from any folder."""
    return [sys.executable, "-P", "-m", module, *arguments]


def module_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns an environment in which `module_command` finds our packages, also those of a bare checkout."""
    if str(PACKAGES_ROOT) in sys.path[1:]:
        return dict(environment)
    paths = [str(PACKAGES_ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths)}
