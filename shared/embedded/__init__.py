"""A local Redis server for people who have none: found, started, guarded and stopped for them."""

from shared.embedded.launcher import RunningServer, ensure
from shared.embedded.places import socket_path

__all__ = ["RunningServer", "ensure", "socket_path"]
