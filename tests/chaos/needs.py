"""What a fault needs of the cluster that it strikes: which programs work on its runs, and further parts."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.support.tools import forbidden, require_tool


class Setup(Enum):
    """Which programs work on the runs."""

    WORKERS = "runs are submitted to the workers of `proctor worker`"
    LOADING = "the same, but the fault strikes while they are submitted"
    BORROWED = "`proctor run` on the workers of `proctor worker`"
    COMMANDS = "`proctor run`, each with workers of its own"
    EMBEDDED = "`proctor run` without a URL, on the embedded server"


@dataclass(frozen=True)
class Needs:
    """What a fault needs of its cluster."""

    setup: Setup = Setup.WORKERS
    broker: bool = False
    """Whether wake-ups have a server of their own."""
    clock: bool = False
    """Whether libfaketime is there, and the server's clock can be moved."""
    full_disk: bool = False
    """Whether each `proctor run` writes a report to a disk that has no room for it."""


def faketime_library() -> str:
    """Finds libfaketime; skips the test when it is not installed."""
    program = Path(require_tool("faketime", package="faketime"))
    found = sorted(program.resolve().parents[1].glob("lib/*/faketime/libfaketime.so.1"))
    assert found, "faketime is installed without its library"
    return str(found[0])


def as_is(*command: str | Path) -> Sequence[str | Path]:
    """Leaves a command line as it is."""
    return command


def with_small_disk(folder: Path, *command: str | Path) -> Sequence[str | Path]:
    """Makes the command line that runs a command with a disk of 4 kB at a folder, in a mount namespace."""
    if os.geteuid() != 0:
        forbidden("mounting a disk", "only root may")
    folder.mkdir(exist_ok=True)
    script = 'mount -t tmpfs -o size=4k none "$0" && exec "$@"'
    return (require_tool("unshare", package="util-linux"), "--mount", "sh", "-c", script, folder, *command)
