"""Starts the command line: `proctor …` and `python -m producer …` both end here."""

import signal
import sys

from producer.cli.errors import TerminatedError
from producer.cli.main import run


def _interrupt(_number: int, _frame: object) -> None:
    """Treats the end of the session like Ctrl-C, so that what was started is stopped."""
    raise TerminatedError


def obey_signals() -> None:
    """Makes SIGTERM and a lost terminal end the command in order, unless somebody chose to ignore them."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def main() -> None:
    """Runs one command and ends the process with its exit code."""
    obey_signals()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
