"""Keeps several child processes together: one prefixed log, ended in the reverse order of their start."""

import threading
from queue import SimpleQueue
from typing import IO, Final, Self

from producer.cli.output import Output, Style, printable
from producer.cli.services import Child
from shared.errors import InfrastructureError

PREFIX_STYLES: Final[tuple[Style, ...]] = ("cyan", "yellow", "green")


class Together:
    """Children whose output is shown line by line with their name in front."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._children: list[Child] = []
        self._ended: SimpleQueue[Child] = SimpleQueue()
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def add(self, child: Child) -> None:
        """Shows what a child says from now on."""
        style = PREFIX_STYLES[len(self._children) % len(PREFIX_STYLES)]
        self._children.append(child)
        reader = threading.Thread(
            target=self._read, args=(child, style), name=f"log of {child.name}", daemon=True
        )
        self._readers.append(reader)
        reader.start()

    def _read(self, child: Child, style: Style) -> None:
        """Writes a child's lines until it has closed its output, then tells that it ended."""
        prefix = self._output.paint(f"{child.name:<8}|", style, error=True)
        stream: IO[bytes] | None = child.process.stdout
        for line in stream or ():
            text = line.decode(errors="replace").rstrip()
            self._output.note(f"{prefix} {printable(text)}")
        self._ended.put(child)

    def watch(self, *, essential: str) -> None:
        """Waits until a child that the others are nothing without ends by itself.

        Raises:
            InfrastructureError: it ended; the others are still there and are to be stopped.
        """
        while True:
            child = self._ended.get()
            code = child.process.wait()
            message = f"{child.name} ended by itself (exit code {code})"
            if child.name == essential:
                raise InfrastructureError(message, hint="the lines above say why")
            self._output.warn(message)

    def stop(self) -> None:
        """Ends all children, the last started first.

        A second Ctrl-C ends them at once, and running items go back to the queue; a third one kills them.
        """
        try:
            for child in reversed(self._children):
                child.stop()
            for reader in self._readers:
                reader.join(1.0)
        except KeyboardInterrupt:
            self._output.note("ending at once: running items go back to the queue; Ctrl-C again kills all")
            self._hurry()
            raise
        finally:
            self._children.clear()

    def _hurry(self) -> None:
        try:
            for child in self._children:
                child.hurry()
        except KeyboardInterrupt:
            for child in self._children:
                child.kill()
            raise
