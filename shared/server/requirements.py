"""What a Redis server must be to carry the ledger, and the rights (ACL) that our user needs on it; pure.

The rights are those of the ledger, which its Lua scripts and the readers of results use, and of Celery's
transport: messages, events, remote control. Nothing beyond them is granted.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from shared.keys import PREFIX

OLDEST_SERVER: Final = (6, 2)
"""Celery's transport returns lost messages with `ZRANGE … BYSCORE REV`, which older servers do not have."""
USER: Final = "proctor"
PASSWORD: Final = "PASSWORD"  # noqa: S105 - the word that a person replaces
LEDGER: Final = (
    "ping info memory|usage time select exec multi publish",
    "eval evalsha script|load script|exists",
    "del exists get set unlink persist pexpire pexpireat pttl strlen scan",
    "hdel hexists hget hgetall hincrby hlen hmget hscan hset hsetnx hvals",
    "lindex llen lpop lpush lrange lrem rpush",
    "blpop expire xadd xrange xrevrange xtrim",  # of `proctor serve`
    "sadd scard sismember smembers srem sunion",
    "zadd zcard zpopmin zrandmember zrange zrangebyscore zrem zremrangebyscore zrevrange zscore",
)
"""Commands of the ledger, its readers and the limits."""
TRANSPORT: Final = ("brpop client|unblock rpop watch unwatch psubscribe punsubscribe",)
"""Commands that only Celery's transport needs."""
INTRODUCTION: Final = "client|setinfo"
"""Sent by the client library on connect. Redis 7.0 does not have it and refuses its name in a rule."""
SINCE_7_2: Final = "waitaof"
"""Commands that older servers do not have, and whose names they refuse."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a server is not suitable for the ledger."""

    what: str
    """Continues a sentence whose subject is the server."""
    fix: str
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
    """Checks a server by its `INFO`; None if it is suitable.

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


def durability_risk(info: Mapping[str, Any]) -> str:
    """Returns what a crash of a server would lose; empty if its append-only file is on.

    >>> durability_risk({"aof_enabled": 1})
    ''
    """
    if int(info.get("aof_enabled", 0)):
        return ""
    return "Redis keeps no append-only file (appendonly no): if it crashes, runs and results are lost"


def commands(version: tuple[int, ...]) -> tuple[str, ...]:
    """Lists the commands, with subcommands behind a bar.

    Args:
        version: of the server, as `server_version` reads it.

    >>> "waitaof" in commands((7, 0, 15)), "waitaof" in commands((8, 0))
    (False, True)
    """
    newer = (SINCE_7_2,) if version >= (7, 2) else ()
    if not (7, 0) <= version < (7, 2):
        newer = (*newer, INTRODUCTION)
    return tuple(sorted(" ".join((*LEDGER, *TRANSPORT, *newer)).split()))


def channels(database: int) -> tuple[str, ...]:
    """Lists the channels of remote control and events, which Celery names after the database.

    They are listed one by one because `PSUBSCRIBE` is allowed for exactly the patterns of the user, and not
    for those that a wider one would cover.

    >>> channels(0)
    ('proctor:/0.celery.pidbox', 'proctor:/0.celeryev/*')
    """
    return (f"{PREFIX}/{database}.celery.pidbox", f"{PREFIX}/{database}.celeryev/*")


def acl_line(
    version: tuple[int, ...], *, database: int = 0, user: str = USER, password: str = PASSWORD
) -> str:
    """Writes the command that makes the user.

    Args:
        version: of the server.
        database: number of the database in the URL.
        user: its name.
        password: its password.

    >>> acl_line((7, 0)).split()[:8]
    ['ACL', 'SETUSER', 'proctor', 'reset', 'on', '>PASSWORD', 'resetchannels', '~proctor:*']
    """
    listening = " ".join(f"&{channel}" for channel in channels(database))
    rights = " ".join(f"+{command}" for command in commands(version))
    return f"ACL SETUSER {user} reset on >{password} resetchannels ~{PREFIX}* {listening} {rights}"
