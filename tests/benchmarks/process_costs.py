"""Measures what a command costs with everything it leaves behind, the embedded server included.

    python -m tests.benchmarks.process_costs proctor run bench.yaml     # prints one line of JSON

A process that detaches itself loses its parent. This program makes itself the reaper of its descendants
(`PR_SET_CHILD_SUBREAPER`, prctl(2), Linux only), so that the kernel adds up the times of all that ended.
"""

import ctypes
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from types import MappingProxyType
from typing import BinaryIO, Final

import msgspec

from tests.support.tree import ROOT

_PR_SET_CHILD_SUBREAPER: Final = 36
MOST_S: Final = 600.0
LAST_CHARS: Final = 2000


class Costs(msgspec.Struct, frozen=True):
    """What one command used."""

    exit_code: int
    cpu_s: float
    """User and system time of all its processes."""
    peak_mb: float
    """Resident memory of the largest one."""
    wall_s: float
    """Until the command itself ended."""
    output: str = ""
    """What it printed."""
    errors: str = ""
    """The end of its standard error."""


def measure(command: Sequence[str | Path], env: Mapping[str, str], folder: Path) -> Costs:
    """Runs a command in a folder, waits for all its processes, and returns what they used together."""
    program = [sys.executable, "-P", "-m", "tests.benchmarks.process_costs", *map(str, command)]
    # The measuring program is always ours, whichever tree the command is taken from.
    merged = {**os.environ, **env, "COMMAND_PYTHONPATH": env["PYTHONPATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, env=merged, cwd=folder, stdout=subprocess.PIPE, check=True, timeout=MOST_S)
    return msgspec.json.decode(done.stdout, type=Costs)


def proctor(
    arguments: Sequence[str | Path],
    data: Path,
    *,
    tree: Path = ROOT,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Costs:
    """Runs `proctor ARGUMENTS` in the parent of a data folder and measures it.

    Args:
        arguments: of the command.
        data: the data folder; one that does not exist begins with a new server.
        tree: the folder with the code.
        env: more variables.

    Raises:
        SystemExit: it ended with another code than those of a complete run.
    """
    settings = {
        "PYTHONPATH": str(tree),
        "PROCTOR_DATA_DIR": str(data),
        "PROCTOR_EMBEDDED_IDLE_S": "0.5",
        "PROCTOR_CONFIRM_CALLS": "1000000",
        "XDG_RUNTIME_DIR": str(data.parent),
    }
    costs = measure([sys.executable, "-P", "-m", "producer", *arguments], {**settings, **env}, data.parent)
    if costs.exit_code not in {0, 1}:
        message = f"{tree}: proctor {' '.join(map(str, arguments))}: exit {costs.exit_code}"
        raise SystemExit(f"{message}\n{costs.output[-LAST_CHARS:]}{costs.errors}")
    return costs


def _run(command: Sequence[str]) -> Costs:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    env = {**os.environ, "PYTHONPATH": os.environ["COMMAND_PYTHONPATH"]}
    with (
        TemporaryFile() as to_out,
        TemporaryFile() as to_err,
    ):  # no pipes: a server that stays keeps them open
        began = monotonic()
        nothing = subprocess.DEVNULL
        done = subprocess.run(command, env=env, stdin=nothing, stdout=to_out, stderr=to_err, check=False)
        wall_s = monotonic() - began
        output, errors = _text(to_out), _text(to_err)[-LAST_CHARS:]
    with suppress(ChildProcessError):  # raised when nobody is left: servers end by themselves when they idle
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = round(used.ru_utime + used.ru_stime, 4)
    return Costs(done.returncode, cpu_s, round(used.ru_maxrss / 1024, 1), round(wall_s, 4), output, errors)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


if __name__ == "__main__":
    print(msgspec.json.encode(_run(sys.argv[1:])).decode())
