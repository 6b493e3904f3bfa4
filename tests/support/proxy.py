"""A TCP door in front of a Redis server that can be slammed or go silent, or act at a chosen message.

client ── TCP ── door ── unix socket ── server
"""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

PIECE_BYTES: Final = 1 << 16
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER so that closing is a reset, as from a firewall that forgot the connection."""


@dataclass(frozen=True)
class Trap:
    """Something to do when a message passes; the message itself gets lost."""

    word: bytes
    """What the message holds."""
    act: Callable[[], object]
    """What to do, once."""
    is_reply: bool = False
    """Whether it is looked for in what the server says, else in what clients say."""
    after: bool = False
    """For a client's message: let it through, and act when its reply comes, which then gets lost."""
    sprung: threading.Event = field(default_factory=threading.Event)
    """Set when it has happened."""

    def spring(self) -> None:
        """Does it, the first time."""
        if not self.sprung.is_set():
            self.sprung.set()
            self.act()


class Door:
    """Forwards everything, until a method changes that.

    Args:
        server: the server's unix socket.
    """

    def __init__(self, server: Path) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_closed = False
        self.trap: Trap | None = None
        self.cuts = 0
        self._is_refusing = False
        self.flows = threading.Event()
        """Cleared while nothing is forwarded."""
        self.flows.set()
        self.silences = 0
        """How often it went silent; connections from before the last time carry nothing any more."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        # Closing a socket wakes nobody who waits in accept(); shutting it down does.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.flows.set()
        self.cut()

    @property
    def url(self) -> str:
        """Where clients come in."""
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"

    def cut(self) -> None:
        """Resets every connection; what was under way on them is lost, replies too."""
        with self._lock:
            sockets, self._open = self._open, set()
        self.cuts += bool(sockets)
        for each in sockets:
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def refuse(self) -> None:
        """Resets every connection, and each new one at once, until `admit`."""
        self._is_refusing = True
        self.cut()

    def admit(self) -> None:
        """Accepts connections again."""
        self._is_refusing = False

    def hold(self) -> None:
        """Forwards nothing and closes nothing until `release`: a black hole."""
        self.flows.clear()

    def release(self) -> None:
        """Forwards what was held back, as TCP sends again after an outage."""
        self.flows.set()

    def fall_silent(self) -> None:
        """Swallows all data on the connections there are, both ways; new ones work."""
        self.silences += 1

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_refusing:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._server))
            except OSError:  # the server is away: so are we
                client.close()
                server.close()
                continue
            _Passage(self, client, server).start()

    def enter(self, *sockets: socket.socket) -> None:
        """Notes the two ends of a connection."""
        with self._lock:
            self._open.update(sockets)

    def leave(self, *sockets: socket.socket) -> None:
        """Closes the two ends of a connection."""
        with self._lock:
            self._open.difference_update(sockets)
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class _Passage:
    """One connection through the door."""

    def __init__(self, door: Door, client: socket.socket, server: socket.socket) -> None:
        self._door, self._client, self._server = door, client, server
        self._silences = door.silences
        self._loses_reply = False
        self._ends = threading.Semaphore(0)

    def start(self) -> None:
        self._door.enter(self._client, self._server)
        for target in (self._requests, self._replies, self._clean):
            threading.Thread(target=target, daemon=True).start()

    def _requests(self) -> None:
        self._pump(self._client, self._server, self._lets_request_pass)

    def _replies(self) -> None:
        self._pump(self._server, self._client, self._lets_reply_pass)

    def _clean(self) -> None:
        """Closes the sockets once neither direction uses them any more."""
        self._ends.acquire()
        self._door.leave(self._client, self._server)
        self._ends.acquire()
        self._client.close()
        self._server.close()

    def _pump(self, source: socket.socket, to: socket.socket, passes: Callable[[bytes], bool]) -> None:
        with suppress(OSError):
            while (piece := source.recv(PIECE_BYTES)) and passes(piece):
                self._door.flows.wait()
                if self._silences == self._door.silences:
                    to.sendall(piece)
        self._ends.release()

    def _lets_request_pass(self, piece: bytes) -> bool:
        trap = self._door.trap
        if trap is None or trap.is_reply or trap.sprung.is_set() or trap.word not in piece:
            return True
        if trap.after:
            self._loses_reply = True
            return True
        trap.spring()
        return False

    def _lets_reply_pass(self, piece: bytes) -> bool:
        trap = self._door.trap
        if trap is None or trap.sprung.is_set():
            return True
        if self._loses_reply or (trap.is_reply and trap.word in piece):
            trap.spring()
            return False
        return True
