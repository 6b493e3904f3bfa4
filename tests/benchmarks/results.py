"""The form of all results of benchmarks, how a terminal shows them, and the JSON file that keeps them.

Each figure is compared with one of the same run, so that it says something on any machine: a bare loop that
does the least of the same work, another tool, or the rate that an upstream and the calls in flight allow.
"""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec
import psutil
import pytest

from shared.server.embedded.server_program import find_program
from tests.support.processes import kill_all, mark_this_session, marked_processes
from tests.support.tree import ROOT

PACKAGES: Final = ("aiohttp", "celery", "kombu", "litellm", "msgspec", "pydantic", "redis")
"""Dependencies whose versions are written down."""
TIMES: Final = "\N{MULTIPLICATION SIGN}"


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure that was measured."""

    workload: str
    """What was run; the figures of one workload share a table."""
    parameter: str
    """Which size or form of it."""
    measure: str
    """What the figure is: `rate`, `CPU`, `time`."""
    value: float
    unit: str
    bound: str = ""
    """What the figure is limited by."""
    reference: str = ""
    """What it is compared with, of the same run; empty for a reference."""
    ratio: float | None = None
    """The figure divided by that of the reference."""
    series: str = ""
    """The line that the figure has in a plot; empty for none."""
    size: float = 0.0
    """Where on the line."""

    def beside(self, reference: str, value: float) -> "Figure":
        """The same figure compared with a reference.

        >>> rate = Figure(workload="w", parameter="all", measure="rate", value=90.0, unit="a second")
        >>> rate.beside("the ideal", 120).ratio
        0.75
        """
        return msgspec.structs.replace(self, reference=reference, ratio=float(f"{self.value / value:.4g}"))

    def at(self, series: str, size: float) -> "Figure":
        """The same figure as a point of a plot."""
        return msgspec.structs.replace(self, series=series, size=size)

    def shown(self) -> str:
        """The figure with its unit.

        >>> Figure(workload="w", parameter="all", measure="rate", value=54321.0, unit="turns/s").shown()
        '54,321 turns/s'
        """
        return f"{digits(self.value)} {self.unit}"

    def compared(self) -> str:
        """The ratio with what it is to."""
        return "" if self.ratio is None else f"{digits(self.ratio)} {TIMES} {self.reference}"


class Missing(msgspec.Struct, frozen=True):
    """Something that could not be measured."""

    name: str
    why: str


class Machine(msgspec.Struct, frozen=True):
    """Where figures were measured."""

    cpu: str
    cores: int
    memory_gb: float
    system: str
    python: str
    server: str
    """The Redis server's program and version."""
    packages: Mapping[str, str]
    """Versions by name."""


class Report(msgspec.Struct, frozen=True):
    """All figures of one run of benchmarks."""

    command: str
    commit: str
    measured_at: str
    """Date and time, UTC."""
    load: float
    """Processes that wanted to run in the minute before: on a quiet machine less than 0.5."""
    scale: float
    """Share of the full sizes."""
    machine: Machine
    figures: tuple[Figure, ...]
    missing: tuple[Missing, ...]

    def of(self, workload: str) -> list[Figure]:
        """The figures of a workload, in the order in which they were measured."""
        return [figure for figure in self.figures if figure.workload == workload]


Bench = Callable[[float], Iterator[Figure | Missing]]
"""Measures a workload at a share of its full size."""


class NotHereError(Exception):
    """A workload cannot be measured on this machine; the text says why."""


def digits(number: float) -> str:
    """Writes a figure with three digits or more.

    >>> digits(12345.6), digits(99.96), digits(9.87), digits(0.0123)
    ('12,346', '100', '9.87', '0.0123')
    """
    if abs(number) >= 99.95:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def sized(number: int, scale: float, least: int = 10) -> int:
    """How many items a workload has at a share of its full size.

    >>> sized(1_000, 1.0), sized(1_000, 0.1), sized(1_000, 0.001)
    (1000, 100, 10)
    """
    return max(least, round(number * scale))


def line(found: Figure | Missing) -> str:
    """A line of the terminal."""
    if isinstance(found, Missing):
        return f"  not measured: {found.name}: {found.why}"
    figure = found
    parts = f"  {figure.parameter:<54} {figure.measure:<8} {figure.shown():>18}   {figure.compared()}"
    return parts.rstrip()


def collect(benches: Mapping[str, Bench], scale: float, command: str) -> Report:
    """Measures workloads one after the other, and prints each figure when it is there."""
    mark_this_session()
    load, found = os.getloadavg()[0], list[Figure | Missing]()
    for name, bench in benches.items():
        print(name, flush=True)
        for each in _tried(name, bench, scale):
            found.append(each)
            print(line(each), flush=True)
        kill_all(marked_processes())
    return Report(
        command=command,
        commit=commit(),
        measured_at=datetime.now(UTC).isoformat(" ", "minutes").removesuffix("+00:00"),
        load=round(load, 2),
        scale=scale,
        machine=machine(),
        figures=tuple(each for each in found if isinstance(each, Figure)),
        missing=tuple(each for each in found if isinstance(each, Missing)),
    )


def _tried(name: str, bench: Bench, scale: float) -> Iterator[Figure | Missing]:
    """Runs a bench as far as it can be run here."""
    try:
        yield from bench(scale)
    except (NotHereError, pytest.skip.Exception) as why:
        yield Missing(name, str(why))


def made_by(target: str) -> str:
    """The command that this program was started with."""
    arguments = shlex.join(sys.argv[1:])
    return f'make {target} ARGS="{arguments}"' if arguments else f"make {target}"


def write(report: Report, path: Path) -> None:
    """Writes a report as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}: {len(report.figures)} figures")


def read(path: Path) -> Report:
    """Reads a report.

    Raises:
        msgspec.ValidationError: the file is not a report.
    """
    return msgspec.json.decode(path.read_bytes(), type=Report)


def machine() -> Machine:
    """Describes this machine."""
    return Machine(
        cpu=_cpu_model(),
        cores=os.cpu_count() or 1,
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
        system=f"{platform.system()} {platform.release().partition('-')[0]}, {platform.machine()}",
        python=f"{platform.python_version()}, {platform.python_compiler()}",
        server=_first_line([str(find_program().path), "--version"]).partition(" sha")[0],
        packages={name: version(name) for name in PACKAGES},
    )


def commit() -> str:
    """The commit of this tree, with a note if files differ from it; empty without its history."""
    # A checkout may belong to another user.
    git = ["git", "-C", str(ROOT), "-c", "safe.directory=*"]
    name = _first_line([*git, "rev-parse", "--short=7", "HEAD"])
    is_changed = name and _first_line([*git, "status", "--porcelain", "--untracked-files=no"])
    return f"{name} with changes" if is_changed else name


def _first_line(command: Sequence[str]) -> str:
    """The first line that a program prints; empty where there is no such program."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return next(iter(done.stdout.splitlines()), "")


def _cpu_model() -> str:
    """The processor's name, as Linux has it."""
    try:
        found: Iterable[str] = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        found = ()
    names = (each.partition(":")[2].strip() for each in found if each.startswith("model name"))
    return next(names, platform.processor() or "unknown")
