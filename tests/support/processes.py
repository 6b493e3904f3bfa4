"""Starts programs under test, keeps their output, and makes sure that none of them outlives the tests.

Every process started below the test session inherits a mark in its environment. A server that has detached
itself from its parent is found again by that mark, and by nothing as broad as a name.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

import psutil

from tests.support.eventually import eventually
from tests.support.fork_server import Forked, ForkServer

MARK_NAME: Final = "TEST_SESSION_MARK"
SHORT_LEASE_S: Final = 5.0
"""How long claims of programs under test last: what follows comes soon, in the same proportions."""
ENDED: Final = frozenset({psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD})


def mark_this_session() -> str:
    """Puts a fresh mark into our environment, for all processes started from now on."""
    os.environ[MARK_NAME] = uuid4().hex
    return os.environ[MARK_NAME]


def is_running(pid: int) -> bool:
    """Whether a process with this id runs; a zombie has ended."""
    try:
        return psutil.Process(pid).status() not in ENDED
    except psutil.NoSuchProcess:
        return False


def marked_processes() -> list[psutil.Process]:
    """Lists the running processes that were started, however indirectly, by this test session."""
    mark = os.environ[MARK_NAME]
    return [
        process for process in psutil.process_iter() if process.pid != os.getpid() and _has(process, mark)
    ]


def _has(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK_NAME) == mark and process.status() not in ENDED
    except psutil.Error:
        return False


def describe(processes: Sequence[psutil.Process]) -> str:
    """Writes one line per process, for a failing check."""
    lines = []
    for process in processes:
        with suppress(psutil.Error):
            lines.append(f"{process.pid}: {' '.join(process.cmdline())[:300]}")
    return "\n".join(lines)


@dataclass
class Process:
    """One program under test; standard output and error go to files, so that no pipe can fill up."""

    popen: subprocess.Popen[bytes] | Forked
    out: Path
    err: Path
    family: list[psutil.Process] = field(default_factory=list)
    """Descendants seen so far: they are remembered, because they change parents when theirs dies."""

    @property
    def pid(self) -> int:
        """The process id."""
        return self.popen.pid

    @property
    def output(self) -> str:
        """What it wrote to standard output so far."""
        return self.out.read_text(errors="replace")

    @property
    def errors(self) -> str:
        """What it wrote to standard error so far."""
        return self.err.read_text(errors="replace")

    def output_text(self) -> str:
        """Both outputs, for messages of failing tests."""
        return f"--- stdout\n{self.output}\n--- stderr\n{self.errors}"

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.popen.poll() is None

    def wait_for(self, text: str, within_s: float = 15.0) -> None:
        """Waits until it has written `text` to either output; fails at once when it ends before."""

        def seen() -> bool:
            ended = not self.is_running()
            if text in self.output or text in self.errors:
                return True
            if ended:
                return False
            raise AssertionError(f"{text!r} was not written within {within_s} s\n{self.output_text()}")

        assert eventually(seen, within_s), (
            f"ended ({self.popen.returncode}) before {text!r}\n{self.output_text()}"
        )

    def wait(self, within_s: float = 30.0) -> int:
        """Waits for its end and returns its exit code (negative: the signal that ended it)."""
        try:
            return self.popen.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {within_s} s\n{self.output_text()}") from None

    def tree(self) -> list[psutil.Process]:
        """Lists its running descendants, those included that have lost their parent since we last looked."""
        known = {process.pid for process in self.family}
        with suppress(psutil.NoSuchProcess):
            found = psutil.Process(self.pid).children(recursive=True)
            self.family += [child for child in found if child.pid not in known]
        return [process for process in self.family if process.is_running() and is_running(process.pid)]

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to this process only; nothing happens when it has ended."""
        if self.is_running():
            self.popen.send_signal(number)

    def terminate(self) -> None:
        """Asks it to end (SIGTERM)."""
        self.send(signal.SIGTERM)

    def freeze(self) -> None:
        """Stops it where it is (SIGSTOP)."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets a frozen process go on (SIGCONT)."""
        self.send(signal.SIGCONT)

    def kill(self) -> None:
        """Ends it without a chance to clean up (SIGKILL), and waits until it is gone."""
        self.tree()
        self.send(signal.SIGKILL)
        self.popen.wait(10)

    def kill_tree(self) -> None:
        """Kills it and all its descendants, and waits until all are gone."""
        descendants = self.tree()
        self.send(signal.SIGKILL)
        kill_all(descendants)
        self.popen.wait(10)

    def stop(self, within_s: float = 15.0) -> int:
        """Asks it to end and waits; kills the whole tree when it does not within its time."""
        self.tree()
        self.terminate()
        try:
            return self.popen.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill_tree()
            raise AssertionError(
                f"did not end within {within_s} s of SIGTERM\n{self.output_text()}"
            ) from None


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """Kills processes by id and waits until they are gone; psutil guards against reused ids."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()

    def all_gone() -> None:
        # Not psutil.wait_procs: it takes a second for processes that are not our children.
        assert not [process.pid for process in processes if is_running(process.pid) and process.is_running()]

    eventually(all_gone)


class Processes:
    """The programs of one test: start them here and they are gone when the test ends.

    Args:
        folder: for their output.
        env: their environment, unless they are given another.
        forks: starts commands of ours; without it each begins with a new interpreter.
    """

    def __init__(self, folder: Path, env: Mapping[str, str], forks: ForkServer | None = None) -> None:
        self.folder = folder
        self.forks = forks
        self.env = dict(env)
        self.started: list[Process] = []

    def __iter__(self) -> Iterator[Process]:
        return iter(self.started)

    def start(
        self,
        *args: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: Path | None = None,
        user: str | None = None,
        new_session: bool = False,
    ) -> Process:
        """Starts a program with its outputs in files of the test's folder.

        Args:
            args: program and arguments.
            env: environment instead of the test's own (`proctor_env`).
            cwd: working folder, default the test's folder.
            stdin: file to read from, default nothing.
            user: run as this user (needs root).
            new_session: detach it from our terminal and process group.
        """
        number = len(self.started)
        out, err = self.folder / f"{number}.out", self.folder / f"{number}.err"
        source = stdin if stdin is not None else Path(os.devnull)
        command = [str(arg) for arg in args]
        merged = {**(self.env if env is None else env), MARK_NAME: os.environ[MARK_NAME]}
        where = self.folder if cwd is None else cwd
        popen: subprocess.Popen[bytes] | Forked
        with out.open("wb") as to_out, err.open("wb") as to_err, source.open("rb") as from_in:
            if self.forks is not None and user is None and self.forks.can_start(command, merged):
                files = [from_in.fileno(), to_out.fileno(), to_err.fileno()]
                popen = self.forks.start(command, merged, where, files, session=new_session)
            else:
                popen = subprocess.Popen(
                    command,
                    stdin=from_in,
                    stdout=to_out,
                    stderr=to_err,
                    env=merged,
                    cwd=where,
                    user=user,
                    start_new_session=new_session,
                )
        process = Process(popen, out, err)
        self.started.append(process)
        return process

    def run(self, *args: str | Path, within_s: float = 30.0, env: Mapping[str, str] | None = None) -> Process:
        """Starts a program and waits for its end; look at `popen.returncode`, `output` and `errors`."""
        process = self.start(*args, env=env)
        process.wait(within_s)
        return process

    def close(self) -> None:
        """Kills what still runs, with all descendants."""
        for process in self.started:
            process.thaw()
            process.kill_tree()
