"""Keeps worker processes running: starts and restarts them, and ends them when it ends.

    worker ends       started again after 0.5 s, doubling to 30 s while it keeps failing soon
    exit code 2       a setting that no restart mends: the supervisor ends with it
    --burst           a worker that ended with 0 found nothing left to do; the last one ends the supervisor
    SIGTERM           drains all workers, however often it comes; what outlives the grace period is killed
    SIGINT            drains; at the second one (Ctrl-C twice) running items are returned at once
    SIGQUIT           returns running items at once
    kill -9           the kernel kills the workers; elsewhere their standard input ends, which ends them

It waits in one place, for a worker's end, a signal or its parent's end, and costs nothing meanwhile.
An embedded server is looked after by a thread of its own, in case its guard is killed.
"""

import logging
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

from shared.errors import ProctorError
from shared.processes.own_modules import module_command, module_environment
from shared.server.in_use import Closeable, resolve_target
from shared.settings import Settings
from worker.command_line import UNSANDBOXED, Options, node_name
from worker.forking import IS_SAFE, LOOKING, ChildProcess, ForkedProcess

FIRST_PAUSE_S: Final = 0.5
"""Before a worker that ended is started again."""
LONGEST_PAUSE_S: Final = 30.0
STABLE_S: Final = 30.0
"""A worker that ran for longer is restarted with the first pause again."""
USAGE_EXIT: Final = 2
MARGIN_S: Final = 5.0
"""How long beyond its grace period a worker may take before it is killed."""
STOP_NOW_S: Final = 5.0
"""How long a worker may take to end without its grace period."""
SERVER_CHECK_S: Final = 2.0
"""How often the embedded server is checked."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class SupervisedWorker:
    """One worker process, over all its restarts."""

    name: str
    """Its node name, the same after each restart, so that Flower shows one row."""
    process: ChildProcess | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    """Time when it is due to be started; times are those of the monotonic clock."""
    failures: int = 0
    """How often in a row it ended before it was stable."""
    is_finished: bool = False
    """Whether it is not to be started again."""

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs or waits to be started."""
        return None if self.process is None else self.process.poll()

    def send(self, number: int) -> None:
        """Sends it a signal, if it runs."""
        if self.process is not None:
            self.process.send_signal(number)


def supervise(options: Options, settings: Settings, work: Callable[[Options], int]) -> int:
    """Runs worker processes until stopped.

    Args:
        options: of the command line.
        settings: for the number of processes and their grace period.
        work: is one worker process until it ends, and returns its exit code.

    Returns:
        The exit code.
    """
    names = [
        node_name(options.kinds, number + 1) for number in range(options.processes or settings.processes)
    ]

    def fork(name: str) -> ChildProcess:
        child = replace(options, name=name, stop_on_eof=True, supervise=False)
        return ForkedProcess(lambda: work(child))

    def start(name: str) -> ChildProcess:
        # A group of its own: Ctrl-C in a terminal signals only the supervisor, which drains the workers.
        command = worker_command(options, name)
        environment = module_environment(os.environ)
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=sys.stderr, env=environment, process_group=0
        )

    supervisor = Supervisor(
        names, fork if IS_SAFE else start, settings.grace_s, stop_on_eof=options.stop_on_eof
    )
    return supervisor.run(is_burst=options.burst)


def keep_embedded_server(settings: Settings, lease: Closeable) -> None:
    """Keeps the embedded server running while this process runs, from a thread of its own.

    Worker processes only wait for an unavailable Redis; the embedded one is restarted by its guard, or by
    this thread if the guard was killed too.

    Args:
        settings: whose data folder.
        lease: keeps the server running now; each check replaces it.
    """

    def check(held: Closeable) -> None:
        pause = threading.Event()
        while True:
            pause.wait(SERVER_CHECK_S)
            try:
                with LOOKING:
                    fresh = resolve_target(settings).lease
            except ProctorError:
                continue  # the worker processes report what is wrong
            held.close()
            held = fresh

    threading.Thread(target=check, args=(lease,), name="embedded server", daemon=True).start()


def worker_command(options: Options, name: str) -> list[str]:
    """Writes the command line of one worker process; it reads its standard input to its end."""
    command = module_command(
        "worker", "--stop-on-eof", "--name", name, "-Q", ",".join(map(str, options.kinds))
    )
    if options.in_flight is not None:
        command += ["-j", str(options.in_flight)]
    flags = {"--burst": options.burst, UNSANDBOXED: options.unsandboxed_validators}
    return [*command, *(flag for flag, is_wanted in flags.items() if is_wanted)]


class Supervisor:
    """Runs some worker processes for as long as it runs itself.

    Args:
        names: node names of the workers.
        start: starts the worker with a name.
        grace_s: how long a worker may take to drain.
        stop_on_eof: whether the end of standard input asks it to stop.
    """

    def __init__(
        self, names: Sequence[str], start: Callable[[str], ChildProcess], grace_s: float, *, stop_on_eof: bool
    ) -> None:
        self._workers = [SupervisedWorker(name) for name in names]
        self._start_process = start
        self._grace_s = grace_s
        self._stdin = [0] if stop_on_eof else []
        self._is_stopping = False
        self._is_stopping_now = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)

    def ask_to_stop(self) -> None:
        """Begins the drain, from any thread or signal handler; later calls have no effect."""
        self._is_stopping = True
        self._wake()

    def stop_now(self) -> None:
        """Ends the workers without waiting for running items; from any thread or signal handler."""
        self._is_stopping = self._is_stopping_now = True
        self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._wake_write, b"\0")

    def run(self, *, is_burst: bool = False) -> int:
        """Keeps the workers running until stopped; returns the exit code."""
        self._listen()
        code = 0
        while not self._is_stopping:
            for worker in self._workers:
                code = code or self._check(worker, is_burst=is_burst)
            if code or all(worker.is_finished for worker in self._workers):
                break  # before waiting: nothing is left that could wake us
            self._wait(self._until_next_start())
        self._end()
        return code

    def _listen(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing is written to the pipe

    def _on_signal(self, number: int, _frame: object) -> None:
        # A second SIGTERM changes nothing: service managers and scripts repeat it, people press Ctrl-C.
        if number == signal.SIGQUIT or (number == signal.SIGINT and self._is_stopping):
            self.stop_now()
        else:
            self.ask_to_stop()

    def _check(self, worker: SupervisedWorker, *, is_burst: bool) -> int:
        """Restarts a worker that is due, or records its end; returns an exit code that ends us too."""
        code = worker.exit_code
        if code is not None:
            self._record_end(worker, code, is_burst=is_burst)
            if code == USAGE_EXIT:
                return code
        if worker.process is None and not worker.is_finished and monotonic() >= worker.start_at:
            self._start(worker)
        return 0

    def _start(self, worker: SupervisedWorker) -> None:
        if not LOOKING.acquire(timeout=FIRST_PAUSE_S):
            worker.start_at = monotonic() + FIRST_PAUSE_S
            return
        try:
            worker.started_at = monotonic()
            worker.process = self._start_process(worker.name)
        finally:
            LOOKING.release()

    def _record_end(self, worker: SupervisedWorker, code: int, *, is_burst: bool) -> None:
        ran_s = monotonic() - worker.started_at
        self._close_stdin(worker)
        if is_burst and code == 0:
            worker.is_finished = True
            return
        worker.failures = 0 if ran_s >= STABLE_S else worker.failures + 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** max(0, worker.failures - 1))
        worker.start_at = monotonic() + pause_s
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        reason = f"{how}; it is started again in {pause_s:g} s"
        extra = {"ended": worker.name, "reason": reason, "exit_code": code, "pause_s": pause_s}
        logger.warning("worker ended", extra=extra)

    def _close_stdin(self, worker: SupervisedWorker) -> None:
        if worker.process is not None and worker.process.stdin is not None:
            worker.process.stdin.close()
        worker.process = None

    def _until_next_start(self) -> float | None:
        waiting = [
            worker.start_at for worker in self._workers if worker.process is None and not worker.is_finished
        ]
        return max(0.0, min(waiting) - monotonic()) if waiting else None

    def _wait(self, within_s: float | None) -> None:
        """Waits for a signal (SIGCHLD too), a request to stop, the end of standard input, or the timeout."""
        ready = select.select([self._wake_read, *self._stdin], [], [], within_s)[0]
        if self._wake_read in ready:
            with suppress(BlockingIOError):
                while os.read(self._wake_read, 1024):
                    pass
        if self._stdin and self._stdin[0] in ready and not os.read(0, 1024):
            self._stdin = []
            self.ask_to_stop()

    def _end(self) -> None:
        """Ends all workers: drains them, stops them at once on request, kills those that take too long."""
        self._signal_all(signal.SIGTERM)
        deadline, is_forced = monotonic() + self._grace_s + MARGIN_S, False
        while any(worker.process is not None and worker.exit_code is None for worker in self._workers):
            if self._is_stopping_now and not is_forced:
                deadline, is_forced = monotonic() + STOP_NOW_S, True
                self._signal_all(signal.SIGQUIT)
            if monotonic() >= deadline:
                left = [
                    worker.name for worker in self._workers if worker.exit_code is None and worker.process
                ]
                logger.warning(
                    "worker killed", extra={"ended": ",".join(left), "reason": "it did not end in time"}
                )
                self._signal_all(signal.SIGKILL)
                deadline = float("inf")
            self._wait(max(0.0, min(deadline - monotonic(), MARGIN_S)))
        for worker in self._workers:
            self._close_stdin(worker)

    def _signal_all(self, number: int) -> None:
        for worker in self._workers:
            worker.send(number)
