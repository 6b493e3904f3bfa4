"""Keeps worker processes running: starts them, starts them again, and takes all with it when it ends.

    child ends        started again after 0.5 s, doubling to 30 s while it keeps dying young
    exit code 2       a setting that no restart mends: the supervisor ends with it
    --burst           a child that ended with 0 has found nothing left to do; the last one ends the supervisor
    SIGTERM           drains all children, however often it comes; what outlives the grace period is killed
    SIGINT            drains; the second one (Ctrl-C twice) hurries
    SIGQUIT           hurries: running items are given back at once
    kill -9           the kernel kills the children; elsewhere their standard input ends, and they with it

It waits in one place, for a child's end, a signal, or the end of its own parent, and costs nothing meanwhile.
Celery is not imported here.
"""

import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Final

from shared.settings import Settings
from worker.options import UNSANDBOXED, Options, node_name
from worker.parent_watch import on_stdin_end

FIRST_PAUSE_S: Final = 0.5
"""Before a child that ended is started again."""
LONGEST_PAUSE_S: Final = 30.0
GROWN_UP_S: Final = 30.0
"""A child that lived for longer starts with the first pause again."""
USAGE_EXIT: Final = 2
MARGIN_S: Final = 5.0
"""How long beyond its grace period a child may take before it is killed."""
HURRIED_S: Final = 5.0
"""How long a child may take to end when it is hurried."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Child:
    """One worker process, through all its lives."""

    name: str
    """Its node name, the same in each life, so that Flower shows one row."""
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    start_at: float = 0.0
    """When it is due to be started; times are those of the monotonic clock."""
    deaths: int = 0
    """How often in a row it died young."""
    is_over: bool = False
    """Whether it is not to be started again."""

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs or waits to be started."""
        return None if self.process is None else self.process.poll()

    def send(self, number: int) -> None:
        """Sends it a signal, if it runs."""
        if self.process is not None:
            self.process.send_signal(number)


def supervise(options: Options, settings: Settings) -> int:
    """Runs worker processes until told to stop.

    Args:
        options: of the command line.
        settings: for the number of processes and their grace period.

    Returns:
        The exit code.
    """
    names = [
        node_name(options.kinds, number + 1) for number in range(options.processes or settings.processes)
    ]
    supervisor = Supervisor(names, lambda name: child_command(options, name), settings.grace_s)
    if options.stop_on_eof:
        on_stdin_end(supervisor.ask_to_stop)
    return supervisor.run(is_burst=options.burst)


def child_command(options: Options, name: str) -> list[str]:
    """Writes the command line of one worker process; it reads its standard input to its end."""
    isolation = ["-P"] if sys.flags.safe_path else []
    command = [sys.executable, *isolation, "-m", "worker", "--stop-on-eof", "--name", name]
    command += ["-Q", ",".join(map(str, options.kinds))]
    if options.in_flight is not None:
        command += ["-j", str(options.in_flight)]
    flags = {"--burst": options.burst, UNSANDBOXED: options.unsandboxed_validators}
    return [*command, *(flag for flag, is_wanted in flags.items() if is_wanted)]


class Supervisor:
    """Some child processes that are to run for as long as it does.

    Args:
        names: of the children.
        command: makes the command line of the child with a name.
        grace_s: how long a child may take to end when it is asked to.
    """

    def __init__(self, names: Sequence[str], command: Callable[[str], list[str]], grace_s: float) -> None:
        self._children = [Child(name) for name in names]
        self._command = command
        self._grace_s = grace_s
        self._is_ending = False
        self._is_hurried = False
        self._news, self._bell = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._news, False)

    def ask_to_stop(self) -> None:
        """Begins the drain, from any thread or signal handler; later calls have no effect."""
        self._is_ending = True
        self._ring()

    def hurry(self) -> None:
        """Ends the children without waiting for running items; from any thread and from signal handlers."""
        self._is_ending = self._is_hurried = True
        self._ring()

    def _ring(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._bell, b"\0")

    def run(self, *, is_burst: bool = False) -> int:
        """Keeps the children running until asked to stop; returns the exit code."""
        self._listen()
        code = 0
        while not self._is_ending:
            for child in self._children:
                code = code or self._look_after(child, is_burst=is_burst)
            if code or all(child.is_over for child in self._children):
                break  # looked at before waiting: nobody is left who could bring news
            self._wait(self._until_next_start())
        self._end()
        return code

    def _listen(self) -> None:
        signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler, or the wake-up pipe stays silent

    def _on_signal(self, number: int, _frame: object) -> None:
        # A second SIGTERM is no hurry: service managers and scripts repeat it, people press Ctrl-C.
        if number == signal.SIGQUIT or (number == signal.SIGINT and self._is_ending):
            self.hurry()
        else:
            self.ask_to_stop()

    def _look_after(self, child: Child, *, is_burst: bool) -> int:
        """Starts a child that is due, and notes the end of one; returns an exit code that is to end us."""
        code = child.exit_code
        if code is not None:
            self._note_end(child, code, is_burst=is_burst)
            if code == USAGE_EXIT:
                return code
        if child.process is None and not child.is_over and monotonic() >= child.start_at:
            self._start(child)
        return 0

    def _start(self, child: Child) -> None:
        child.started_at = monotonic()
        # A group of its own: Ctrl-C in a terminal is for us, and we tell the children once.
        child.process = subprocess.Popen(
            self._command(child.name), stdin=subprocess.PIPE, stdout=sys.stderr, process_group=0
        )

    def _note_end(self, child: Child, code: int, *, is_burst: bool) -> None:
        lived_s = monotonic() - child.started_at
        self._release(child)
        if is_burst and code == 0:
            child.is_over = True
            return
        child.deaths = 0 if lived_s >= GROWN_UP_S else child.deaths + 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** max(0, child.deaths - 1))
        child.start_at = monotonic() + pause_s
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        reason = f"{how}; it is started again in {pause_s:g} s"
        extra = {"ended": child.name, "reason": reason, "exit_code": code, "pause_s": pause_s}
        logger.warning("worker ended", extra=extra)

    def _release(self, child: Child) -> None:
        if child.process is not None and child.process.stdin is not None:
            child.process.stdin.close()
        child.process = None

    def _until_next_start(self) -> float | None:
        waiting = [child.start_at for child in self._children if child.process is None and not child.is_over]
        return max(0.0, min(waiting) - monotonic()) if waiting else None

    def _wait(self, within_s: float | None) -> None:
        """Waits for any news: a signal (SIGCHLD too), a request to stop, or time being over."""
        if select.select([self._news], [], [], within_s)[0]:
            with suppress(BlockingIOError):
                while os.read(self._news, 1024):
                    pass

    def _end(self) -> None:
        """Ends all children: drains them, hurries them on request, kills those that outlive their time."""
        self._tell(signal.SIGTERM)
        deadline, is_hurried = monotonic() + self._grace_s + MARGIN_S, False
        while any(child.process is not None and child.exit_code is None for child in self._children):
            if self._is_hurried and not is_hurried:
                deadline, is_hurried = monotonic() + HURRIED_S, True
                self._tell(signal.SIGQUIT)
            if monotonic() >= deadline:
                left = [child.name for child in self._children if child.exit_code is None and child.process]
                logger.warning(
                    "worker killed", extra={"ended": ",".join(left), "reason": "it did not end in time"}
                )
                self._tell(signal.SIGKILL)
                deadline = float("inf")
            self._wait(max(0.0, min(deadline - monotonic(), MARGIN_S)))
        for child in self._children:
            self._release(child)

    def _tell(self, number: int) -> None:
        for child in self._children:
            child.send(number)
