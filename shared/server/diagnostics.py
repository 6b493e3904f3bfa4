"""The checks of `proctor doctor`: machine, data folder and server, each with a status and a fix.

A check does not raise for a problem; it returns it. `fail` means that Proctor will not work, `warn` that it
works, but slower than it could, or with data at risk.
"""

import fcntl
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from time import time
from typing import Any, Final, Literal, NamedTuple

import redis

from shared.errors import FULL_HINT, REFUSING_HINTS, NoServerError, ProctorError
from shared.ledger.calls import refused_write
from shared.ledger.memory import RunMemory, format_run_memory, is_full, largest_runs
from shared.server.connection import read_config
from shared.server.embedded.server_places import (
    DATA_DIR_HINT,
    MAX_SOCKET_PATH_BYTES,
    prepare_data_dir,
    prepare_socket,
)
from shared.server.embedded.server_program import find_program
from shared.server.requirements import OLDEST_SERVER, server_version, why_unsuitable

Status = Literal["ok", "warn", "fail"]

OLDEST_PYTHON: Final = (3, 11)
MOST_CLOCK_DIFFERENCE_S: Final = 2.0
LEAST_FREE_BYTES: Final = 500_000_000
MOST_MEMORY_PCT: Final = 80


class Diagnosis(NamedTuple):
    """The result of one check."""

    name: str
    """Short and stable: `server version`."""
    status: Status
    """`ok`, `warn` or `fail`."""
    detail: str
    """Finding of the check."""
    fix: str = ""
    """What to do; empty when there is nothing to do."""


def check_machine(data_dir: Path, *, embedded: bool) -> list[Diagnosis]:
    """Checks this machine.

    Args:
        data_dir: the data folder; made when missing.
        embedded: whether Proctor starts its own server here; otherwise its absence is no failure.
    """
    checks = [
        check_python(sys.version_info[:3]),
        check_platform(sys.platform),
        check_program(needed=embedded),
    ]
    checks.append(check_data_dir(data_dir))
    if checks[-1].status != "fail":
        checks.append(check_locks(data_dir))
        checks.append(check_disk(data_dir, shutil.disk_usage(data_dir).free))
        checks.append(check_socket(data_dir, needed=embedded))
    return checks


def check_server_of(
    client: redis.Redis, *, workers: Mapping[str, int] | None = None, behind_sentinels: bool = False
) -> list[Diagnosis]:
    """Checks a server that answers.

    Args:
        client: a client of ours.
        workers: live workers by kind, when they are known.
        behind_sentinels: whether sentinels may make another server the master.

    Raises:
        redis.RedisError: it stopped answering.
    """
    info = client.info()
    seconds, micros = client.time()
    refusal = refused_write(client)
    checks = [
        check_version(info),
        check_role(info),
        check_persistence(info, read_config(client, "appendfsync")),
        check_eviction(info),
        check_memory(info),
        check_writes(refusal, largest_runs(client) if refusal.startswith("OOM ") else ()),
        check_clock(float(seconds) + float(micros) / 1e6, time()),
    ]
    if behind_sentinels:
        checks.append(check_replicas(info))
    return checks if workers is None else [*checks, check_workers(workers)]


def check_python(version: tuple[int, ...]) -> Diagnosis:
    """Judges the interpreter.

    >>> check_python((3, 10, 4)).status
    'fail'
    """
    text = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return Diagnosis("python", "fail", f"{text} is older than 3.11", "install Python 3.11 or newer")
    return Diagnosis("python", "ok", text)


def check_platform(platform: str) -> Diagnosis:
    """Judges the operating system.

    >>> check_platform("win32").fix
    'run Proctor in WSL or a container'
    """
    if platform.startswith("win"):
        return Diagnosis("system", "fail", "Windows has no unix signals", "run Proctor in WSL or a container")
    return Diagnosis("system", "ok", platform)


def check_program(*, needed: bool) -> Diagnosis:
    """Checks for a server program to start."""
    try:
        program = find_program()
    except NoServerError as error:
        return Diagnosis("server program", "fail" if needed else "warn", error.message, error.hint)
    version = ".".join(map(str, program.version))
    return Diagnosis(
        "server program", "ok", f"{program.path.name} {version} ({program.source}: {program.path})"
    )


def check_data_dir(data_dir: Path) -> Diagnosis:
    """Writes into the data folder."""
    try:
        places = prepare_data_dir(data_dir)
        with TemporaryFile(dir=places.folder) as probe:
            probe.write(b"proctor")
            probe.flush()
    except ProctorError as error:
        return Diagnosis("data folder", "fail", error.message, error.hint)
    except OSError as error:
        return Diagnosis(
            "data folder", "fail", f"{data_dir} cannot be written: {error.strerror}", DATA_DIR_HINT
        )
    return Diagnosis("data folder", "ok", str(places.folder))


def check_locks(data_dir: Path) -> Diagnosis:
    """Takes a lock in the data folder twice: the second must be refused."""
    with NamedTemporaryFile(dir=data_dir) as first:
        try:
            fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with Path(first.name).open("rb") as second:
                fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return Diagnosis("locks", "ok", "a file lock keeps others out")
        except OSError as error:
            return Diagnosis(
                "locks", "fail", f"{data_dir} has no file locks: {error.strerror}", DATA_DIR_HINT
            )
    return Diagnosis("locks", "fail", f"{data_dir} has file locks that keep nobody out", DATA_DIR_HINT)


def check_disk(data_dir: Path, free_bytes: int) -> Diagnosis:
    """Judges the disk space that is left for the server's data.

    >>> check_disk(Path("/data"), 2_000_000).detail
    '2 MB are free for /data'
    """
    detail = f"{free_bytes // 1_000_000:,} MB are free for {data_dir}"
    return (
        Diagnosis("disk", "ok", detail)
        if free_bytes >= LEAST_FREE_BYTES
        else Diagnosis("disk", "warn", detail, "make room")
    )


def check_socket(data_dir: Path, *, needed: bool) -> Diagnosis:
    """Checks for a place for the socket, short enough and private."""
    try:
        path = prepare_socket(prepare_data_dir(data_dir))
    except ProctorError as error:
        return Diagnosis("socket path", "fail" if needed else "warn", error.message, error.hint)
    length = len(str(path).encode())
    return Diagnosis("socket path", "ok", f"{path} ({length} of {MAX_SOCKET_PATH_BYTES} bytes)")


def check_version(info: Mapping[str, Any]) -> Diagnosis:
    """Judges the server's version.

    >>> check_version({"redis_version": "6.0.16"}).status
    'fail'
    """
    name = str(info.get("server_name", "redis"))
    text = str(info.get(f"{name}_version", info.get("redis_version", "unknown")))
    if server_version(info) < OLDEST_SERVER:
        return Diagnosis("server version", "fail", f"{name} {text} is older than 6.2", "upgrade the server")
    return Diagnosis("server version", "ok", f"{name} {text}")


def check_role(info: Mapping[str, Any]) -> Diagnosis:
    """Judges whether it is a single server that can be written.

    >>> check_role({"redis_version": "7.0.0", "redis_mode": "cluster"}).detail
    'is a Redis Cluster'
    """
    unfit = why_unsuitable({**info, "redis_version": "6.2", "maxmemory_policy": "noeviction"})
    if unfit is not None:
        return Diagnosis("server role", "fail", unfit.what, unfit.fix)
    return Diagnosis("server role", "ok", "one server, writable")


def check_persistence(info: Mapping[str, Any], appendfsync: str | None) -> Diagnosis:
    """Checks what a crash of the server would lose.

    Args:
        info: the server's `INFO`.
        appendfsync: that setting, None if it cannot be read.

    >>> check_persistence({"aof_enabled": 0}, None).status
    'warn'
    """
    if not int(info.get("aof_enabled", 0)):
        fix = "set `appendonly yes` and `appendfsync everysec` in its configuration"
        return Diagnosis("persistence", "warn", "appendonly is off: a crash of the server loses runs", fix)
    if appendfsync == "no":
        return Diagnosis(
            "persistence", "warn", "appendfsync is `no`: a power cut loses work", "set it to `everysec`"
        )
    if info.get("aof_last_write_status", "ok") != "ok":
        return Diagnosis(
            "persistence", "fail", "the server cannot write its append-only file", "make room on its disk"
        )
    return Diagnosis("persistence", "ok", f"appendonly yes, appendfsync {appendfsync or 'unknown'}")


def check_eviction(info: Mapping[str, Any]) -> Diagnosis:
    """Judges what the server does when its memory is full.

    >>> check_eviction({"maxmemory_policy": "allkeys-lru"}).status
    'fail'
    """
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy == "noeviction":
        return Diagnosis("eviction", "ok", "noeviction")
    fix = "set `maxmemory-policy noeviction` in its configuration"
    return Diagnosis("eviction", "fail", f"{policy} throws keys away when memory is short", fix)


def check_memory(info: Mapping[str, Any]) -> Diagnosis:
    """Judges how full the server's memory is.

    >>> check_memory({"used_memory": 90_000_000, "maxmemory": 100_000_000}).detail
    '90 MB of 100 MB are used'
    """
    used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if not most:
        return Diagnosis("memory", "ok", f"{used // 1_000_000:,} MB are used, without a limit")
    detail = f"{used // 1_000_000:,} MB of {most // 1_000_000:,} MB are used"
    if is_full(info):
        return Diagnosis("memory", "fail", f"{detail}: Redis is full", FULL_HINT)
    if used * 100 > most * MOST_MEMORY_PCT:
        return Diagnosis("memory", "warn", detail, FULL_HINT)
    return Diagnosis("memory", "ok", detail)


def check_writes(refusal: str, largest: Sequence[RunMemory] = ()) -> Diagnosis:
    """Judges whether the server takes writes now.

    Args:
        refusal: as `refused_write` returns it.
        largest: the runs that hold most of its memory.

    >>> check_writes("NOREPLICAS Not enough good replicas to write.").fix
    'its min-replicas-to-write asks for a replica that is in step: start one'
    """
    if not refusal:
        return Diagnosis("writes", "ok", "accepted")
    word = refusal.split(maxsplit=1)[0]
    held = f"; {format_run_memory(largest)}" if largest else ""
    return Diagnosis(
        "writes", "fail", f"refused: {refusal}{held}", REFUSING_HINTS.get(word, "look at its log")
    )


def check_replicas(info: Mapping[str, Any]) -> Diagnosis:
    """Judges whether a fail-over keeps what the master has confirmed.

    >>> check_replicas({"connected_slaves": 1}).status
    'fail'
    >>> check_replicas({"connected_slaves": 2, "min_slaves_good_slaves": 2}).detail
    '2 replicas, 2 of them up to date'
    """
    replicas = int(info.get("connected_slaves", 0))
    if "min_slaves_good_slaves" not in info:  # the server leaves it out while the setting is 0
        fix = "set `min-replicas-to-write 1` and `min-replicas-max-lag 10` on every server of the group"
        what = "min-replicas-to-write is 0: a master that was replaced goes on taking writes, which are lost"
        return Diagnosis("replicas", "fail", what, fix)
    good = int(info["min_slaves_good_slaves"])
    detail = f"{replicas} replicas, {good} of them up to date"
    if good == 0:
        return Diagnosis("replicas", "fail", f"{detail}: the server refuses writes", "start a replica")
    return Diagnosis("replicas", "ok", detail)


def check_clock(server_s: float, here_s: float) -> Diagnosis:
    """Checks the difference between our clock and the server's, which is used for leases and limits.

    >>> check_clock(100.0, 110.0).detail
    'this machine is 10.0 s ahead of the server'
    """
    ahead_s = here_s - server_s
    if abs(ahead_s) <= MOST_CLOCK_DIFFERENCE_S:
        return Diagnosis("clock", "ok", f"{abs(ahead_s):.1f} s from the server's")
    word = "ahead of" if ahead_s > 0 else "behind"
    fix = "synchronise the clocks (NTP): shown times are off, work is not"
    return Diagnosis("clock", "warn", f"this machine is {abs(ahead_s):.1f} s {word} the server", fix)


def check_workers(workers: Mapping[str, int]) -> Diagnosis:
    """Checks whether a worker is alive for each kind.

    >>> check_workers({"turns": 2, "cases": 0}).detail
    'turns 2, cases 0'
    """
    detail = ", ".join(f"{kind} {number}" for kind, number in workers.items())
    if all(workers.values()):
        return Diagnosis("workers", "ok", detail)
    return Diagnosis("workers", "warn", detail, "start some: proctor worker (`proctor run` starts its own)")
