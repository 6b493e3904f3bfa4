"""Starts the command line: `proctor …` and `python -m producer …` both end here."""

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress
from typing import Final, NoReturn

from producer.cli.error_exit import TerminatedError
from producer.cli.main import run
from producer.cli.output import usable_streams

COLLECT_AFTER: Final = (200_000, 20, 100)
"""Thresholds of the garbage collector, see `gc.set_threshold`. Imports make fewer new objects, and nothing to
collect; with Python's own thresholds, which collect after each 700, those of `run` take a sixth longer."""


def _interrupt(number: int, _frame: object) -> None:
    """Handles the end of the session like Ctrl-C, so that started processes are stopped."""
    raise TerminatedError(signal.Signals(number).name)


def handle_signals() -> None:
    """Makes SIGTERM and SIGHUP end the command in order, unless they are ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def leave(code: int) -> NoReturn:
    """Ends the process with an exit code, without taking the interpreter apart, which takes 0.2 s.

    A Ctrl-C meanwhile would change the exit code, so it is ignored.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit._run_exitfuncs()  # noqa: SLF001 - the public way to run them is to end the interpreter
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed by the shell
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def main() -> NoReturn:
    """Runs one command and ends the process with its exit code."""
    gc.set_threshold(*COLLECT_AFTER)
    handle_signals()
    with usable_streams():
        code = run(sys.argv[1:])
    leave(code)


if __name__ == "__main__":
    main()
