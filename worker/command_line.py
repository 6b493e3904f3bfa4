"""Reads the command line of `python -m worker`, which `proctor worker` starts."""

import argparse
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from shared.errors import UsageError
from shared.kinds import Kind, all_kinds, kind_named

UNSANDBOXED: Final = "--allow-unsandboxed-validators"


@dataclass(frozen=True, slots=True)
class Options:
    """The parsed options."""

    kinds: tuple[Kind, ...]
    """What to work on."""
    in_flight: int | None
    """Items in flight in one process; None: by the settings."""
    processes: int | None
    """How many processes a supervisor keeps running; None: by the settings."""
    supervise: bool
    """Whether to keep processes running rather than to be one."""
    burst: bool
    """Whether to end once every run of these kinds is final or paused."""
    name: str
    """The node name, unique in the fleet."""
    stop_on_eof: bool
    """Whether the end of standard input ends this process, which detects the end of its parent."""
    unsandboxed_validators: bool
    """Whether to run validators also where their process cannot be locked down."""


class _Parser(argparse.ArgumentParser):
    """Reports mistakes as our own errors, so that they look the same everywhere."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint="python -m worker --help")


def read_options(arguments: Sequence[str] | None = None) -> Options:
    """Reads a command line.

    Args:
        arguments: without the program's name; None reads the process's own.

    Raises:
        UsageError: it cannot be understood.
    """
    parser = _Parser(prog="worker", description="Process chunks of runs until stopped.")
    parser.add_argument(
        "-Q",
        "--queues",
        default=",".join(map(str, all_kinds())),
        help="kinds to work on, with commas (default: %(default)s)",
    )
    parser.add_argument("-j", "--in-flight", type=_number, help="items in flight per process")
    parser.add_argument("--processes", type=_number, help="worker processes (with --supervise)")
    parser.add_argument("--supervise", action="store_true", help="keep worker processes running")
    parser.add_argument("--burst", action="store_true", help="end when nothing is left to do")
    parser.add_argument("--name", default="", help="node name (default: from kinds, process id and host)")
    parser.add_argument("--stop-on-eof", action="store_true", help="end when standard input ends")
    parser.add_argument(
        UNSANDBOXED, action="store_true", help="run validators also where they cannot be locked down"
    )
    found = parser.parse_args(arguments)
    kinds = _kinds(found.queues)
    return Options(
        kinds=kinds,
        in_flight=found.in_flight,
        processes=found.processes,
        supervise=found.supervise,
        burst=found.burst,
        name=found.name or node_name(kinds, 1),
        stop_on_eof=found.stop_on_eof,
        unsandboxed_validators=found.allow_unsandboxed_validators,
    )


def node_name(kinds: Sequence[Kind], number: int) -> str:
    """Makes the node name of a worker process; the process id keeps supervisors of one host apart.

    Args:
        kinds: what it works on.
        number: counted from 1 under one supervisor.
    """
    what = "-".join(map(str, kinds)) if len(kinds) < len(all_kinds()) else "all"
    return f"{what}-{number}.{os.getpid()}@{socket.gethostname()}"


def _number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def _kinds(text: str) -> tuple[Kind, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = [kind.name for kind in all_kinds()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise UsageError(f"-Q {text!r}: kinds are {', '.join(known)}")
    return tuple(kind_named(name) for name in dict.fromkeys(names))
