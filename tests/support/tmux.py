"""A real terminal for tests: a tmux server of the test's own with one pane, whose screen can be read."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Self

from tests.support.eventually import eventually
from tests.support.tools import require_tool


class Pane:
    """A terminal that runs one line of shell: `with Pane("proctor status", columns=80, …) as pane: …`.

    Args:
        line: what the shell runs; the pane stays when it has ended.
        columns: cells of a line.
        rows: lines.
        cwd: where it runs.
        env: its environment.
    """

    def __init__(self, line: str, *, columns: int, rows: int, cwd: Path, env: Mapping[str, str]) -> None:
        self._tmux = require_tool("tmux")
        self._folder = mkdtemp(prefix="tm-")  # short: the path of a socket has 107 bytes at most
        self._env = {**env, "TMUX_TMPDIR": self._folder, "LC_ALL": "C.UTF-8"}
        self._env.pop("TMUX", None)
        size = ["-x", str(columns), "-y", str(rows)]
        self._do("-f", "/dev/null", "new-session", "-d", *size, "-c", str(cwd), f"{line}; exec cat")

    def __enter__(self) -> Self:
        """Nothing to do: the pane is open."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the server with all that runs in it."""
        self._do("kill-server")
        shutil.rmtree(self._folder, ignore_errors=True)

    def screen(self, *, escapes: bool = False) -> list[str]:
        """The lines of the screen; one that was wrapped comes as one, and so is wider than the pane."""
        text = self._do("capture-pane", "-p", "-J", *(["-e"] if escapes else []))
        return [line.rstrip() for line in text.split("\n")]

    def press(self, key: str) -> None:
        """Presses a key, as tmux names it."""
        self._do("send-keys", key)

    def resize(self, *, columns: int) -> None:
        """Makes the terminal narrower or wider, as somebody does who drags its edge."""
        self._do("resize-window", "-x", str(columns))

    def type(self, text: str) -> None:
        """Types a text, letter by letter."""
        self._do("send-keys", "-l", text)

    def wait_for(self, text: str, within_s: float = 30.0) -> list[str]:
        """Waits until a text stands on the screen, and returns its lines."""

        def seen() -> None:
            """Looks once."""
            assert text in "\n".join(self.screen())

        eventually(seen, within_s)
        return self.screen()

    def clear_line(self, text: str, within_s: float = 30.0) -> None:
        """Empties the line and waits until its text is gone; after Ctrl-C keys that are typed may be lost."""
        self.press("C-u")

        def gone() -> None:
            """Looks once."""
            assert text not in "\n".join(self.screen())

        eventually(gone, within_s)

    def _do(self, *arguments: str) -> str:
        """Runs one command of tmux."""
        command = [self._tmux, "-L", "test", *arguments]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=True, timeout=20)
        return done.stdout
