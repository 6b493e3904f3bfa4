"""The rights that Proctor's user needs on a Redis server with access rules (ACL), and nothing beyond them.

ledger      what the Lua scripts call, and what reads results
transport   what Celery's transport calls: messages, events, remote control
"""

from typing import Final

from shared.keys import PREFIX

USER: Final = "proctor"
PASSWORD: Final = "PASSWORD"  # noqa: S105 - the word that a person replaces
LEDGER: Final = (
    "ping info memory|usage time select exec multi publish",
    "eval evalsha script|load script|exists",
    "del exists get set unlink persist pexpire pexpireat pttl strlen scan",
    "hdel hexists hget hgetall hincrby hlen hmget hscan hset hsetnx hvals",
    "lindex llen lpop lpush lrange lrem rpush",
    "sadd scard sismember smembers srem sunion",
    "zadd zcard zpopmin zrandmember zrange zrangebyscore zrem zremrangebyscore zrevrange zscore",
)
"""Commands of the ledger, its readers and the limits."""
TRANSPORT: Final = ("brpop rpop watch unwatch psubscribe punsubscribe",)
"""Commands that only Celery's transport needs."""
INTRODUCTION: Final = "client|setinfo"
"""How the client library introduces itself. Redis 7.0 does not have it and refuses its name in a rule."""
SINCE_7_2: Final = "waitaof"
"""Commands that older servers do not know, and whose names they refuse."""


def commands(version: tuple[int, ...]) -> tuple[str, ...]:
    """Lists the commands, with subcommands behind a bar.

    Args:
        version: of the server, as `shared.server.requirements.server_version` reads it.

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
