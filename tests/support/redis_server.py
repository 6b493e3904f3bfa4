"""A real Redis server of the tests' own, with own folder and socket, to be killed, frozen and restarted."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, Self

import pytest
import redis

from shared.errors import NoServerError
from shared.server.embedded.server_program import find_program
from tests.support.eventually import eventually

PATIENCE_S: Final = 15.0
OVERRIDE: Final = "TEST_REDIS_SERVER"
"""Environment variable with another server program to run the whole suite against."""
DURABLE: Final = ("--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction")


def program_for_tests() -> str:
    """Finds a server program; skips the test, naming what is missing, when there is none."""
    try:
        return os.environ.get(OVERRIDE) or str(find_program().path)
    except NoServerError as error:
        pytest.skip(f"redis-server: {error}")


class RedisServer:
    """One server process; its data live as long as this object, over any number of restarts.

    Args:
        options: of the server's command line.
        program: the server program; by default the one that all tests use.
        host: makes the command line that runs a command on another host; by default here.
        password: of the server's default user; empty for none.
    """

    def __init__(
        self,
        *options: str,
        program: str | None = None,
        host: Callable[..., Sequence[str]] = lambda *command: command,
        password: str = "",
    ) -> None:
        self.program = program or program_for_tests()
        self.options = (*options, "--requirepass", password) if password else options
        self.host, self.password = host, password
        # Not below pytest's own folder: a socket's path may have 107 bytes (macOS: 103).
        self.folder = Path(tempfile.mkdtemp(prefix="redis-"))
        self.socket = self.folder / "s"
        self.url = f"unix://{self.socket}"
        self.log = self.folder / "log"
        self.popen: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self.popen is not None, "the server was never started"
        return self.popen.pid

    def start(self, *, wait: bool = True) -> None:
        """Starts the server on its folder, and waits until it answers."""
        fixed = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder), "--save", ""]
        with self.log.open("ab") as log:
            command = self.host(self.program, *fixed, *DURABLE, *self.options)
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if wait:
            eventually(self.ping, PATIENCE_S)

    def ping(self) -> None:
        """Raises unless the server answers and has loaded its data."""
        assert self.popen is not None, "the server was never started"
        assert self.popen.poll() is None, f"the server ended\n{self.log.read_text(errors='replace')[-2000:]}"
        with closing(self.client()) as client:
            assert client.ping()

    def client(self, *, decode_responses: bool = False, socket_timeout: float = 10.0) -> "redis.Redis":
        """Makes a plain redis-py client; close it, or leave it to the fixture."""
        return redis.Redis(
            unix_socket_path=str(self.socket),
            password=self.password or None,
            decode_responses=decode_responses,
            socket_timeout=socket_timeout,
        )

    def kill(self) -> None:
        """Ends the server without a chance to write anything (SIGKILL)."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """Ends the server in good order (SIGTERM)."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Kills the server and starts it again on the same data."""
        self.kill()
        self.start()

    def freeze(self) -> None:
        """Stops the server where it is (SIGSTOP): connections stay open and nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets a frozen server go on (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends the server and removes its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, number: signal.Signals) -> None:
        if self.popen is not None and self.popen.poll() is None:
            self.popen.send_signal(number)
            self.popen.wait(PATIENCE_S)


def break_snapshots(folder: Path, client: "redis.Redis") -> None:
    """Lets the server's last snapshot fail, as on a full disk, so that it takes no writes (MISCONF).

    `CONFIG SET save ""` ends that.
    """
    (folder / "dump.rdb").mkdir()
    client.config_set("save", "3600 1000000")
    client.bgsave()

    def has_failed() -> None:
        assert client.info("persistence")["rdb_last_bgsave_status"] == "err"

    eventually(has_failed)
