"""Judges by a server's `INFO` whether it can carry the ledger: pure, so that every kind can be tried."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

OLDEST_SERVER: Final = (6, 2)
"""Celery's transport returns lost messages with `ZRANGE … BYSCORE REV`, which older servers do not know."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a server cannot carry the ledger."""

    what: str
    """Continues a sentence whose subject is the server."""
    mend: str
    """What to do about it."""


def server_version(info: Mapping[str, Any]) -> tuple[int, ...]:
    """Reads the version that a server claims to be compatible with, out of its `INFO`.

    >>> server_version({"redis_version": "7.0.15"})
    (7, 0, 15)
    """
    numbers = []
    for part in str(info.get("redis_version", "")).split("."):
        with suppress(ValueError):
            numbers.append(int(part))
    return tuple(numbers)


def why_unsuitable(info: Mapping[str, Any]) -> Unfit | None:
    """Judges a server by its `INFO`; None when it is fit.

    >>> why_unsuitable({"redis_version": "6.0.16"}).what
    'is version 6.0.16, and 6.2 or newer is needed'
    """
    if info.get("redis_mode") == "sentinel":
        return Unfit("is a sentinel, not a server", "write the URL as sentinel://HOST:PORT/MASTER")
    if info.get("redis_mode") == "cluster" or info.get("cluster_enabled"):
        return Unfit("is a Redis Cluster", "use one server, or several with runs spread over them")
    if server_version(info) < OLDEST_SERVER:
        version = info.get("redis_version", "unknown")
        return Unfit(f"is version {version}, and 6.2 or newer is needed", "upgrade it, or use another server")
    if info.get("role") == "slave":
        return Unfit("is a read-only replica", "name the primary server in the URL")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        return Unfit(
            f"throws keys away when memory is short (maxmemory-policy {policy})",
            "set `maxmemory-policy noeviction` in its configuration",
        )
    return None


def what_is_at_risk(info: Mapping[str, Any]) -> str:
    """Says what a crash of a server would lose; empty when its append-only file is on.

    >>> what_is_at_risk({"aof_enabled": 1})
    ''
    """
    if int(info.get("aof_enabled", 0)):
        return ""
    return "Redis keeps no append-only file (appendonly no): if it crashes, runs and results are lost"
