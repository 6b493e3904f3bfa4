"""Watches a family of processes from outside: CPU time and peak memory of each role, whoever started it.

The processes are found by the mark that `tests.support.processes` puts into the environment, so that those
which detach themselves are counted too. A Redis server, which writes its title over its environment, is found
as a child of its guard.
"""

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import psutil

from tests.support.eventually import eventually
from tests.support.processes import mark_this_session, marked_processes
from tests.support.tree import ROOT

SAMPLE_S: Final = 0.05
"""Between two looks at known processes; what a process does after the last look is not seen."""
DISCOVERY_SAMPLES: Final = 5
"""Looks between two searches for new processes."""
ROLES: Final = ("producer", "worker", "redis")
PROCESSES: Final = 2
SERVERS: Final = ("valkey-server", "redis-server")


@dataclass
class Usage:
    """What one process has used."""

    role: str
    cpu_s: float = 0.0
    peak_rss: int = 0


@dataclass
class RoleUsage:
    """What all processes of one role have used."""

    cpu_s: float = 0.0
    """Together."""
    peak_rss: int = 0
    """Of the largest one."""
    processes: int = 0


def role_of(command: Sequence[str]) -> str | None:
    """The role of a process, by its command line.

    >>> role_of(["python", "-P", "-m", "worker", "--supervise"]), role_of(["/bin/valkey-server *:0"])
    ('worker', 'redis')
    """
    if command and Path(command[0].split(" ")[0]).name in SERVERS:
        return "redis"
    words = set(command)
    if {"worker", "celery"} & words:
        return "worker"
    return "producer" if "producer" in words else None


@contextmanager
def proctor_data() -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder for one run and the environment that keeps everything in it; ends when all servers have."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        settings = {"PROCTOR_DATA_DIR": str(folder / "data"), "PROCTOR_EMBEDDED_IDLE_S": "1"}
        settings |= {"PROCTOR_PROCESSES": str(PROCESSES), "XDG_RUNTIME_DIR": name, "PYTHONPATH": str(ROOT)}
        yield folder, settings

        def all_gone() -> None:
            assert not marked_processes()

        eventually(all_gone, within_s=30)


def _family() -> set[psutil.Process]:
    """Our own descendants, every marked process, and the children of those."""
    found = set(psutil.Process().children(recursive=True))
    for process in marked_processes():
        found.add(process)
        with suppress(psutil.Error):
            found.update(process.children(recursive=True))
    return found


@dataclass
class Watch:
    """Samples all marked processes while it is entered: `with Watch(role_of) as watch: …`."""

    role_of: Callable[[list[str]], str | None]
    """Names the role of a command line; None: not counted."""
    usage: dict[psutil.Process, Usage | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        mark_this_session()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def roles(self) -> dict[str, RoleUsage]:
        """Usage by role so far."""
        result: dict[str, RoleUsage] = {}
        for usage in list(self.usage.values()):
            if usage is not None:
                role = result.setdefault(usage.role, RoleUsage())
                role.cpu_s += usage.cpu_s
                role.peak_rss = max(role.peak_rss, usage.peak_rss)
                role.processes += 1
        return result

    def _run(self) -> None:
        looks = 0
        while not self._done.is_set():
            if looks % DISCOVERY_SAMPLES == 0:
                self._discover()
            self._sample()
            looks += 1
            self._done.wait(SAMPLE_S)
        self._sample()

    def _discover(self) -> None:
        for process in _family():
            if self.usage.get(process) is None:
                try:
                    role = self.role_of(process.cmdline())
                except psutil.Error:
                    role = None
                self.usage[process] = Usage(role) if role else None

    def _sample(self) -> None:
        for process, usage in self.usage.items():
            if usage is None:
                continue
            try:
                with process.oneshot():
                    times, memory = process.cpu_times(), process.memory_info()
            except psutil.Error:
                continue
            usage.cpu_s = max(usage.cpu_s, times.user + times.system)
            usage.peak_rss = max(usage.peak_rss, memory.rss)
