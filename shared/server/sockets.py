"""Timeouts that detect dead connections to Redis: the same for ledger, broker and commands.

A connection may be half open: the other side is gone (its host died, a firewall or load balancer dropped the
connection) without any notice. It is detected by:

    a reply that does not come     `REPLY_TIMEOUT_S`, `BROKER_REPLY_TIMEOUT_S`; idle connections of the same
                                   pool are closed with it
    a worker waiting for messages  `HEALTH_CHECK_S`: its BRPOP is answered each second, or the connection is
                                   closed within twice this time
    an idle connection             keep-alive probes of the kernel, `TCP_OPTIONS`

A healthy server that pauses for longer (a fork, a slow disk) is no problem: repeated scripts and wake-ups are
idempotent.
"""

import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

REPLY_TIMEOUT_S: Final = 3.0
"""How long to wait for a reply before the connection is given up and the call sent over a new one."""
BROKER_REPLY_TIMEOUT_S: Final = 2.0
"""The same of a broker, whose commands are short. A chunk's end may wait for the ledger, the publisher and
Celery's events, one after the other."""
HEALTH_CHECK_S: Final = 3
"""Interval of health checks of a connection that only receives."""
_WANTED: Final[Mapping[str, int]] = {
    "TCP_KEEPIDLE": 15,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 8_000,
}
TCP_OPTIONS: Final[Mapping[int, int]] = MappingProxyType(
    {getattr(socket, name): value for name, value in _WANTED.items() if hasattr(socket, name)}
)
"""Options of TCP sockets, as far as this system has them: probes after 15 s without traffic, dead after
three unanswered ones (seconds), and data that is not acknowledged for 8 s (milliseconds) end a connection."""


def close_idle(client: Any) -> None:
    """Closes the idle connections of a redis-py client.

    They are probably as dead as one that has just timed out, and each would cost another timeout.

    Args:
        client: of redis-py.
    """
    client.connection_pool.disconnect(inuse_connections=False)
