"""Starts local workers and Flower as child processes, alone or as a group, and stops them in order.

The producer never imports the worker: it starts it as a program. A child gets a session of its own, so that
Ctrl-C reaches only this process, which stops the children.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Final, NoReturn, Self

from producer.cli.output import Output, Style, printable
from shared.errors import InfrastructureError, UsageError
from shared.kinds import Kind, all_kinds
from shared.processes.own_modules import module_command, module_environment
from shared.settings import Settings, variable_of

LOG_BYTES: Final = 10_000_000
"""A log file above this size is moved to `….1` before the next start."""
KILL_AFTER_S: Final = 10.0
"""How long beyond its own grace period, or after `Child.hurry`, a child may take to end."""
READY: Final = "ready "
"""How the line begins that workers write when they take work."""
PREFIX_STYLES: Final[tuple[Style, ...]] = ("cyan", "yellow", "green")
"""Colours of the names in front of the lines of a group."""
TASK_COLUMNS: Final = "name,state,kwargs,result,runtime,worker,received"
"""Columns of Flower's task list: `kwargs` contains the run, whose id or its beginning can be searched for."""


def child_environment(settings: Settings) -> dict[str, str]:
    """Returns the environment of a child: this process's, with its servers, data folder and installation.

    Without a server in the settings the child uses the embedded one of the data folder, like this process.
    """
    environment = dict(os.environ)
    environment["PROCTOR_DATA_DIR"] = str(settings.data_dir.absolute())
    for name, url in (("PROCTOR_REDIS_URL", settings.redis_url), ("PROCTOR_BROKER_URL", settings.broker_url)):
        environment.pop(name, None)
        environment.pop(f"{name}_FILE", None)
        if url:
            environment[name] = url
    if settings.allow_code:
        environment[variable_of("allow_code")] = "1"
    environment["PYTHONUNBUFFERED"] = "1"
    return module_environment(environment)


def flower_environment(settings: Settings) -> dict[str, str]:
    """Returns the environment of Flower: that of a child, with the login, which no command line shows."""
    environment = child_environment(settings)
    if settings.flower_auth:
        environment["FLOWER_BASIC_AUTH"] = settings.flower_auth
    return environment


def worker_command(
    settings: Settings,
    *,
    kinds: Sequence[Kind] | None = None,
    processes: int | None = None,
    in_flight: int | None = None,
    burst: bool = False,
    with_parent: bool = False,
    unsandboxed_validators: bool = False,
) -> list[str]:
    """Returns the command line of a supervisor of worker processes.

    Args:
        settings: defaults for the other arguments.
        kinds: what to work on; None: every kind.
        processes: how many.
        in_flight: items in flight per process.
        burst: end when every run of the kinds is final.
        with_parent: end when the process that starts it is gone, which is detected by the end of the standard
            input.
        unsandboxed_validators: run validators also where they cannot be locked down.
    """
    names = ",".join(map(str, all_kinds() if kinds is None else kinds))
    command = module_command("worker", "--supervise", "-Q", names)
    command += [
        "--processes",
        str(processes or settings.processes),
        "-j",
        str(in_flight or settings.in_flight),
    ]
    flags = {
        "--burst": burst,
        "--stop-on-eof": with_parent,
        "--allow-unsandboxed-validators": unsandboxed_validators,
    }
    return [*command, *(flag for flag, is_wanted in flags.items() if is_wanted)]


def flower_command(
    *, address: str, port: int, url_prefix: str = "", allow_control: bool = False, with_parent: bool = False
) -> list[str]:
    """Returns the command line of Flower with our settings; run it in `PACKAGES_ROOT`.

    Args:
        address: where it listens.
        port: where it listens.
        url_prefix: of its pages, behind a proxy.
        allow_control: let its pages control workers.
        with_parent: as of `worker_command`.
    """
    command = module_command("worker.flower", *(["--stop-on-eof"] if with_parent else []))
    command += [f"--address={address}", f"--port={port}", f"--tasks_columns={TASK_COLUMNS}"]
    command += [f"--read_only={not allow_control}"]
    return [*command, f"--url_prefix={url_prefix}"] if url_prefix else command


def check_port(address: str, port: int, *, option: str = "--port") -> None:
    """Checks whether a port is free, before a child fails with a traceback.

    Args:
        address: of this machine.
        port: 0 is any that is free.
        option: names the port on the command line, for the hint.

    Raises:
        UsageError: it is taken, or the address is not one of this machine.
    """
    try:
        with socket.create_server((address, port)):
            pass
    except OSError as error:
        number = error.errno or 0  # of resolving a name it is below 0
        reason = os.strerror(number).lower() if number > 0 else error.strerror or str(error)
        raise UsageError(
            f"cannot listen on {address}:{port}: {reason}", hint=f"choose another {option}"
        ) from None


def become(command: Sequence[str], environment: Mapping[str, str], *, cwd: Path | None = None) -> NoReturn:
    """Replaces this process by another program, which then receives signals and sets the exit code.

    Raises:
        InfrastructureError: the program cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    try:
        if cwd is not None:
            os.chdir(cwd)
        os.execve(command[0], list(command), environment)  # noqa: S606 - no shell wanted, and no path search
    except OSError as error:
        raise InfrastructureError(f"{command[0]} cannot be started: {error.strerror}") from error


def open_log(settings: Settings, name: str) -> tuple[Path, IO[bytes]]:
    """Opens a log file of the data folder for appending; a large old one steps aside.

    Raises:
        OSError: the data folder cannot be written.
    """
    folder = settings.data_dir / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.log"
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path, path.open("ab")


class Child:
    """A child process that was started here."""

    def __init__(
        self,
        name: str,
        process: "subprocess.Popen[bytes]",
        *,
        grace_s: float,
        log: Path | None,
        returns_items: bool,
    ) -> None:
        self.name = name
        self.process = process
        self.log = log
        self._grace_s = grace_s
        self._returns_items = returns_items
        self._is_stopping = False
        self.is_ready = threading.Event()
        """Set when the child says so, or has ended; only while its output is read by a group."""

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        grace_s: float,
        log: tuple[Path, IO[bytes]] | None = None,
        cwd: Path | None = None,
        with_parent: bool = False,
        returns_items: bool = False,
    ) -> "Child":
        """Starts a program.

        Args:
            name: what messages call it.
            command: program and arguments.
            environment: all of its environment.
            grace_s: how long it may take to end after SIGTERM.
            log: where its output goes; None: to a pipe that the caller reads.
            cwd: its folder; None: ours.
            with_parent: its standard input is a pipe that ends with this process, rather than empty.
            returns_items: SIGQUIT makes it return its running items to the queue and end.

        Raises:
            InfrastructureError: the program cannot be started.
        """
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if with_parent else subprocess.DEVNULL,
                stdout=subprocess.PIPE if log is None else log[1],
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise InfrastructureError(f"{name} cannot be started: {error.strerror}") from error
        finally:
            if log is not None:
                log[1].close()
        path = None if log is None else log[0]
        return cls(name, process, grace_s=grace_s, log=path, returns_items=returns_items)

    @property
    def exit_code(self) -> int | None:
        """How the child ended; None while it runs."""
        return self.process.poll()

    def ask_to_stop(self) -> None:
        """Sends SIGTERM, once: finish or give back what is running, then end."""
        if not self._is_stopping and self.process.poll() is None:
            self._is_stopping = True
            self.process.terminate()

    def ends_within(self, within_s: float) -> bool:
        """Waits for the end of the child; returns whether it came in time."""
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """Ends the child: SIGTERM, its grace period, then SIGKILL for it and its session."""
        self.ask_to_stop()
        if not self.ends_within(self._grace_s + KILL_AFTER_S):
            self.kill()

    def stop_now(self) -> None:
        """Ends the child without waiting for running items, which go back to the queue; SIGKILL comes last.

        Ctrl-C meanwhile kills it.
        """
        try:
            if self._returns_items and self.process.poll() is None:
                self.process.send_signal(signal.SIGQUIT)
            if not (self._returns_items and self.ends_within(KILL_AFTER_S)):
                self.kill()
        except KeyboardInterrupt:
            self.kill()
            raise

    def kill(self) -> None:
        """Ends the child and everything in its session at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # its own session, so its own group
        self.process.wait()


class ProcessGroup:
    """Child processes whose output is shown line by line with their name in front."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._children: list[Child] = []
        self._ended: SimpleQueue[Child] = SimpleQueue()
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def add(self, child: Child) -> None:
        """Shows the output of a child from now on."""
        style = PREFIX_STYLES[len(self._children) % len(PREFIX_STYLES)]
        self._children.append(child)
        reader = threading.Thread(
            target=self._read, args=(child, style), name=f"log of {child.name}", daemon=True
        )
        self._readers.append(reader)
        reader.start()

    def _read(self, child: Child, style: Style) -> None:
        """Writes a child's lines until it has closed its output, then reports its end."""
        prefix = self._output.paint(f"{child.name:<8}|", style, error=True)
        stream: IO[bytes] | None = child.process.stdout
        for line in stream or ():
            text = line.decode(errors="replace").rstrip()
            self._output.note(f"{prefix} {printable(text)}")
            if text.startswith(READY):
                child.is_ready.set()
        child.is_ready.set()
        self._ended.put(child)

    def watch(self, *, essential: str) -> None:
        """Waits until the essential child ends by itself.

        Raises:
            InfrastructureError: it ended; the other children still run and have to be stopped.
        """
        while True:
            child = self._ended.get()
            code = child.process.wait()
            message = f"{child.name} ended by itself (exit code {code})"
            if child.name == essential:
                raise InfrastructureError(message, hint="the lines above say why")
            self._output.warn(message)

    def stop(self) -> None:
        """Ends all children, the last started first.

        A second Ctrl-C ends them at once, and running items go back to the queue; a third one kills them.
        """
        try:
            for child in reversed(self._children):
                child.stop()
            for reader in self._readers:
                reader.join(1.0)
        except KeyboardInterrupt:
            self._output.note("ending at once: running items go back to the queue; Ctrl-C again kills all")
            self._stop_now()
            raise
        finally:
            self._children.clear()

    def _stop_now(self) -> None:
        try:
            for child in self._children:
                child.stop_now()
        except KeyboardInterrupt:
            for child in self._children:
                child.kill()
            raise


def last_log_line(path: Path) -> str:
    """Returns the last line of a log file, for an error message; empty when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 8192))
            text = log.read().decode(errors="replace")
    except OSError:
        return ""
    return next((_readable(line.strip()) for line in reversed(text.splitlines()) if line.strip()), "")


def _readable(line: str) -> str:
    """Formats a line of a log for a message.

    >>> _readable('{"event": "worker gives up", "reason": "Redis does not answer"}'), _readable("error: no")
    ('worker gives up: Redis does not answer', 'error: no')
    """
    try:
        event = json.loads(line)
        return ": ".join(str(event[name]) for name in ("event", "reason") if event.get(name))
    except (ValueError, TypeError, AttributeError, KeyError):
        return line
