"""Forks commands and workers from a process that has imported them: imports are most of what they cost.

`make test` starts hundreds of them. Each is a process of its own with its own arguments, environment,
folder, files and signals, as at a shell; only its imports were done before. The commands of the documents and
all of `make test-chaos` begin with a new interpreter each time, and so does a program whose environment
changes the interpreter itself (`PYTHON…`, the locale).

A command that starts workers has a spare process, a fork made before the command began, which becomes their
supervisor: a child of the command like the program that it stands for.

Run as a program, this file is the server: `python -m tests.support.fork_server FD`.
"""

import gc
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from runpy import run_module
from typing import Any, Final, NamedTuple

MODULES: Final = ("producer", "worker")
PRELOADED: Final = ("producer", "shared")
WORKER_PARTS: Final = (
    "worker.start",
    "worker.supervisor",
    "worker.executors.turns",
    "worker.executors.cases",
    "worker.executors.queries",
    "worker.upstream.model_clients",
)
WITH_WORKERS: Final = {"run", "resume", "retry", "rescore", "rank", "demo"}
"""Commands that start workers."""
INTERPRETER: Final = ("PYTHON", "LC_", "LANG", "TZ", "LD_")
"""Prefixes of variables that an interpreter reads when it starts."""
MESSAGE_BYTES: Final = 1 << 20


class Program(NamedTuple):
    """What a forked process becomes."""

    module: str
    arguments: list[str]
    env: dict[str, str]
    folder: str
    session: bool
    """Whether it has a session of its own."""


class Forked:
    """A command that the server forked, with what tests use of `subprocess.Popen`."""

    def __init__(self, channel: socket.socket, args: Sequence[str]) -> None:
        self.args = list(args)
        self.returncode: int | None = None
        self._channel = channel
        self.pid = int(channel.recv(64))

    def poll(self) -> int | None:
        """Returns the exit code, or None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end.

        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout` seconds.
        """
        if self.returncode is None:
            if not select.select([self._channel], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = int(self._channel.recv(64) or -signal.SIGKILL)
            self._channel.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it without a chance to clean up."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The server of one test process.

    Args:
        env: what commands usually run with; the interpreter's variables are taken from it.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = interpreter_part(env)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        with theirs:
            self._popen = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.support.fork_server", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=dict(env),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def can_start(self, command: Sequence[str], env: Mapping[str, str]) -> bool:
        """Whether it is `python -P -m producer …` or a worker, in an interpreter like the server's."""
        return is_ours(command) and interpreter_part(env) == self._env

    def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        files: Sequence[int],
        *,
        session: bool,
    ) -> Forked:
        """Starts a command.

        Args:
            command: as at a shell.
            env: its environment.
            cwd: its working folder.
            files: the file descriptors of its standard input, output and error.
            session: give it a session of its own.
        """
        request = _request(command, env, cwd, session=session)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._socket, [request], [*files, theirs.fileno()])
        return Forked(ours, command)

    def close(self) -> None:
        """Ends the server; commands that still run go on."""
        self._socket.close()
        self._popen.wait(10)


def is_ours(command: Sequence[str]) -> bool:
    """Whether a command is a module that is forked.

    >>> is_ours([sys.executable, "-P", "-m", "worker", "--burst"]), is_ours(["bash", "-c", "true"])
    (True, False)
    """
    return tuple(command[:3]) == (sys.executable, "-P", "-m") and command[3] in MODULES


def _request(command: Sequence[str], env: Mapping[str, str], folder: Path, *, session: bool) -> bytes:
    return json.dumps(Program(command[3], list(command[4:]), dict(env), str(folder), session)).encode()


def interpreter_part(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that change the interpreter itself; a folder that a path has twice changes nothing.

    >>> interpreter_part({"PYTHONPATH": "/src:/src", "HOME": "/root"})
    {'PYTHONPATH': '/src'}
    """
    found = {name: value for name, value in env.items() if name.startswith(INTERPRETER)}
    return {name: ":".join(dict.fromkeys(value.split(":"))) for name, value in found.items()}


def preload() -> None:
    """Imports what commands import, so that forked ones find it done."""
    for package in PRELOADED:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.endswith(("__main__", ".otel")):
                import_module(module.name)
    for name in (*WORKER_PARTS, *import_module("worker.kinds").WORKER_MODULES):
        if name != "worker.app":  # which reads the environment
            import_module(name)
    gc.freeze()


def serve(requests: socket.socket) -> str:
    """Forks for each request until the tests are gone; in forked processes returns the module to run."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)  # noqa: FBT003 - the library has no keyword for it
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([requests, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _report_ends(running)
        if requests not in ready:
            continue
        request, files, _, _ = socket.recv_fds(requests, MESSAGE_BYTES, 4)
        if not request:
            os._exit(0)
        channel = socket.socket(fileno=files.pop())
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (requests, woken, waker, channel, *running.values()):
                other.close()
            program = Program(*json.loads(request))
            if program.module == "producer" and WITH_WORKERS.intersection(program.arguments):
                program, files = _with_spare(program, files)
            _become(program, files)
            return program.module
        running[pid] = channel
        channel.send(str(pid).encode())
        for file in files:
            os.close(file)


def _report_ends(running: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            channel = running.pop(ended[0])
            with suppress(OSError):
                channel.send(str(os.waitstatus_to_exitcode(ended[1])).encode())
            channel.close()


def _with_spare(program: Program, files: list[int]) -> tuple[Program, list[int]]:
    """Forks a spare process.

    Returns:
        The same program; in the spare, what the command asks it to become, with its files.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid:
        theirs.close()
        _Popen.spare = (pid, ours)
        subprocess.Popen = _Popen  # type: ignore[misc] # which the command finds instead
        return program, files
    ours.close()
    for file in files:
        os.close(file)
    with theirs:
        request, given, _, _ = socket.recv_fds(theirs, MESSAGE_BYTES, 3)
    if not request:
        os._exit(0)
    return Program(*json.loads(request)), given


class _Popen(subprocess.Popen[Any]):
    """Lets the spare process become the first worker that a command starts."""

    spare: tuple[int, socket.socket] | None = None

    def _execute_child(self, args: Any, *rest: Any) -> None:
        """Starts a program; the arguments are those of the library, from Python 3.11 on."""
        (cwd, env), pipes, session = rest[4:6], rest[9:15], rest[20]
        files = [pipes[0], pipes[3], pipes[5]]
        is_like = env is not None and interpreter_part(env) == interpreter_part(os.environ)
        if _Popen.spare is None or min(files) < 0 or not (is_like and is_ours(args)):
            super()._execute_child(args, *rest)  # type: ignore[misc] # the stubs leave it out
            return
        (pid, channel), _Popen.spare = _Popen.spare, None
        with channel:
            request = _request(args, env, Path(cwd or Path.cwd()), session=session)
            socket.send_fds(channel, [request], files)
        self.pid, self._child_created = pid, True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined] # likewise


def _become(program: Program, files: list[int]) -> None:
    """Makes the forked process what a shell would have started."""
    module, arguments, env, folder, session = program
    if session:
        os.setsid()
    os.chdir(folder)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [module, *arguments]
    unbuffered = bool(env.get("PYTHONUNBUFFERED"))
    sys.stdin = TextIOWrapper(os.fdopen(0, "rb"), encoding="utf-8")
    sys.stdout = TextIOWrapper(os.fdopen(1, "wb"), encoding="utf-8", write_through=unbuffered)
    sys.stderr = TextIOWrapper(
        os.fdopen(2, "wb"), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )


if __name__ == "__main__":
    preload()
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        forked = serve(connection)
    run_module(forked, run_name="__main__", alter_sys=True)
