"""Several hosts on one machine: a network namespace each, with an address of its own, joined by a bridge.

    with Network("redis", "one") as network:
        one = network.hosts["one"]
        processes.start(*one.command("proctor", "worker"))
        one.unplug()
        one.plug()

The bridge has a namespace too, so that nothing of it is seen outside; names are new each time, and the end
of the block removes everything, whatever happened inside.
"""

import ctypes
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self
from uuid import uuid4

from tests.support.tools import forbidden, require_tool

NAMESPACES: Final = Path("/run/netns")
NEW_NETWORK: Final = 0x40000000
"""CLONE_NEWNET of <sched.h>: what `setns` is to enter."""
SUBNET: Final = "10.77.0"
"""Of the hosts' addresses; the namespaces keep it apart from all other networks."""
BRIDGE: Final = "bridge"
WITHIN_S: Final = 20.0


@dataclass(frozen=True)
class Host:
    namespace: str
    """The name of its network namespace."""
    address: str
    """Its IPv4 address."""
    switch: str
    """The namespace of the bridge."""
    port: str
    """Its end of the cable at the bridge."""

    def command(self, *command: str | Path) -> tuple[str, ...]:
        """Returns the command line that runs a command on this host; the process id is the command's own."""
        return (require_tool("ip", package="iproute2"), "netns", "exec", self.namespace, *map(str, command))

    def unplug(self) -> None:
        """Cuts it off: packets are lost in both directions, and no connection gets an end."""
        ip("-n", self.switch, "link", "set", self.port, "down")

    def plug(self) -> None:
        """Connects it again."""
        ip("-n", self.switch, "link", "set", self.port, "up")

    def listener(self) -> socket.socket:
        """Opens a listening socket on this host, on a free port, for a server in this process."""

        def listen() -> socket.socket:
            # A thread that has entered a namespace is thrown away; what it has opened stays there.
            libc = ctypes.CDLL(None, use_errno=True)
            with (NAMESPACES / self.namespace).open("rb") as handle:
                if libc.setns(handle.fileno(), NEW_NETWORK):
                    raise OSError(ctypes.get_errno(), f"setns {self.namespace}")
            return socket.create_server((self.address, 0))

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(listen).result(WITHIN_S)


class Network:
    """Hosts that reach each other and nothing else.

    Args:
        names: of the hosts.
    """

    def __init__(self, *names: str) -> None:
        self._mark = f"pt-{uuid4().hex[:6]}"
        switch = f"{self._mark}-switch"
        self.hosts = {
            name: Host(f"{self._mark}-{name}", f"{SUBNET}.{number}", switch, f"port{number}")
            for number, name in enumerate(names, 1)
        }
        self._switch = switch
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        require_tool("ip", package="iproute2")
        with ExitStack() as undo:
            try:
                self._add(self._switch, undo)
                ip("-n", self._switch, "link", "add", BRIDGE, "type", "bridge")
                ip("-n", self._switch, "link", "set", BRIDGE, "up")
                for host in self.hosts.values():
                    self._add(host.namespace, undo)
                    _connect(host)
            except subprocess.CalledProcessError as error:
                forbidden("network namespaces", error.stderr.decode().strip())
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _add(self, namespace: str, undo: ExitStack) -> None:
        """Adds a namespace, with its loopback, for as long as the network lasts."""
        ip("netns", "add", namespace)
        undo.callback(partial(ip, "netns", "delete", namespace))
        ip("-n", namespace, "link", "set", "lo", "up")


def _connect(host: Host) -> None:
    """Lays the cable from a host to the bridge."""
    end = ("peer", "name", "eth0", "netns", host.namespace)
    ip("-n", host.switch, "link", "add", host.port, "type", "veth", *end)
    ip("-n", host.switch, "link", "set", host.port, "master", BRIDGE)
    host.plug()
    ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
    ip("-n", host.namespace, "link", "set", "eth0", "up")


def ip(*arguments: str) -> None:
    """Runs one command of iproute2."""
    command = (require_tool("ip", package="iproute2"), *arguments)
    subprocess.run(command, check=True, capture_output=True, timeout=WITHIN_S)
