"""Finds TCP ports that nobody listens on, and keeps them for the process that asked."""

import random
import socket
from typing import Final

PORTS: Final = range(10_000, 16_000)
"""Below what Linux (32768), macOS (49152) and gVisor (16000) give to a socket that asks for any port.

A port of those may go to another server of another test before the one that it was found for listens.
"""


def free_port() -> int:
    """A TCP port of loopback that nobody listens on now, and that no other test is given.

    Raises:
        RuntimeError: if all of `PORTS` are taken.
    """
    for port in random.sample(PORTS, len(PORTS)):
        if reserve(port):
            return port
    message = f"all ports from {PORTS.start} to {PORTS.stop - 1} are taken"
    raise RuntimeError(message)


def reserve(port: int) -> bool:
    """Reserves a port for as long as this process lives: whether it was free.

    The UDP port of the same number is what processes of tests compete for: the system gives it to one only,
    frees it when that ends however it ends, and leaves the TCP port to the server under test.
    """
    with socket.socket() as probe, socket.socket(type=socket.SOCK_DGRAM) as reservation:
        try:
            probe.bind(("127.0.0.1", port))
            reservation.bind(("127.0.0.1", port))
        except OSError:
            return False
        reservation.detach()
        return True
