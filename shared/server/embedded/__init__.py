"""A local Redis server for people who have none: found, started, guarded and stopped for them."""

from shared.server.embedded.launcher import RunningServer, ensure
from shared.server.embedded.server_places import socket_path

__all__ = ["RunningServer", "ensure", "socket_path"]
