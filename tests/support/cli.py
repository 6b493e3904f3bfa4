"""Runs the command line as a real process, the way a person at a shell does."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.eventually import eventually
from tests.support.processes import Process, Processes

PROCTOR: Final = (sys.executable, "-P", "-m", "producer")
WITHIN_S: Final = 40.0


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    def __str__(self) -> str:
        """All of it, for messages of failing tests."""
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Cli:
    """`proctor` with a data folder, and so a Redis, of the test's own.

    Args:
        processes: starts it.
        host: makes the command line that runs a command on another host; by default here.
    """

    def __init__(
        self,
        processes: Processes,
        host: Callable[..., Sequence[str | Path]] = lambda *command: command,
    ) -> None:
        self.processes, self.host = processes, host

    def __call__(
        self,
        *arguments: str | Path,
        stdin: Path | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        within_s: float = WITHIN_S,
    ) -> Done:
        """Runs one command to its end."""
        process = self.start(*arguments, stdin=stdin, cwd=cwd, env=env)
        code = process.wait(within_s)
        return Done(code, process.output, process.errors)

    def start(
        self,
        *arguments: str | Path,
        stdin: Path | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Process:
        """Starts one command and returns while it runs."""
        merged = None if env is None else {**self.processes.env, **env}
        command = self.host(*PROCTOR, *arguments)
        return self.processes.start(*command, stdin=stdin, cwd=cwd, env=merged, new_session=True)

    def eventually(self, condition: Callable[[], bool], within_s: float = 15.0) -> None:
        """Waits until something is true."""

        def holds() -> None:
            assert condition()

        eventually(holds, within_s)
