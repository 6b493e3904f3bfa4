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
from typing import Final

import msgspec

from tests.support.tree import ROOT

_PR_SET_CHILD_SUBREAPER: Final = 36
MOST_S: Final = 600.0


class Costs(msgspec.Struct, frozen=True):
    """What one command used."""

    exit_code: int
    cpu_s: float
    """User and system time of all its processes."""
    peak_mb: float
    """Resident memory of the largest one."""
    wall_s: float
    """Until the command itself ended."""
    errors: str = ""
    """The end of its standard error."""


def measure(command: Sequence[str | Path], env: Mapping[str, str], folder: Path) -> Costs:
    """Runs a command in a folder, waits for all its processes, and returns what they used together."""
    program = [sys.executable, "-P", "-m", "tests.benchmarks.process_costs", *map(str, command)]
    # The measuring program is always ours, whichever tree the command is taken from.
    merged = {**os.environ, **env, "COMMAND_PYTHONPATH": env["PYTHONPATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, env=merged, cwd=folder, stdout=subprocess.PIPE, check=True, timeout=MOST_S)
    return msgspec.json.decode(done.stdout, type=Costs)


def _run(command: Sequence[str]) -> Costs:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    env = {**os.environ, "PYTHONPATH": os.environ["COMMAND_PYTHONPATH"]}
    with TemporaryFile() as to_err:  # no pipe: a server that stays would keep it open
        began = monotonic()
        nothing = subprocess.DEVNULL
        done = subprocess.run(command, env=env, stdin=nothing, stdout=nothing, stderr=to_err, check=False)
        wall_s = monotonic() - began
        to_err.seek(0)
        errors = to_err.read().decode(errors="replace")[-2000:]
    with suppress(ChildProcessError):  # raised when nobody is left: servers end by themselves when they idle
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime
    return Costs(done.returncode, round(cpu_s, 4), round(used.ru_maxrss / 1024, 1), round(wall_s, 4), errors)


if __name__ == "__main__":
    print(msgspec.json.encode(_run(sys.argv[1:])).decode())
