"""A real RabbitMQ node of the tests' own on free loopback ports, to be killed and started again on its data.

The distribution of Erlang has no unix sockets and needs a port mapper (epmd); the node gets one of its own,
which ends with it.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final, Self

import pytest
from kombu import Connection

from shared.kinds import all_kinds
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.tools import require_tool

PROGRAMS: Final = Path("/usr/lib/rabbitmq/bin")
"""Debian's own scripts; those on PATH change to the user `rabbitmq` and read /etc."""
START_S: Final = 120.0
"""How long a start may take on a busy machine; alone it takes 5 s."""
CONFIG: Final = """\
listeners.tcp.1 = 127.0.0.1:{port}
loopback_users = none
log.file.level = warning
disk_free_limit.absolute = 1MB
"""


class RabbitServer:
    """One node; its data live as long as this object, over any number of restarts.

    Args:
        config: lines of `rabbitmq.conf` beside ours.
        advanced: an Erlang term for `advanced.config`.
    """

    def __init__(self, config: str = "", advanced: str = "[].") -> None:
        if not (PROGRAMS / "rabbitmq-server").exists():
            pytest.skip(f"needs {PROGRAMS}/rabbitmq-server (package rabbitmq-server)")
        self.epmd_program = require_tool("epmd", package="erlang-base")
        self.folder = Path(tempfile.mkdtemp(prefix="rabbit-"))
        self.port, self._dist_port, self._epmd_port = free_port(), free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        (self.folder / "rabbitmq.conf").write_text(CONFIG.format(port=self.port) + config)
        (self.folder / "advanced.config").write_text(advanced)
        (self.folder / "enabled_plugins").write_text("[].")
        self._epmd: subprocess.Popen[bytes] | None = None
        self._node: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, *, wait: bool = True) -> None:
        """Starts the node on its folder, and waits until it answers."""
        env = {**os.environ, **self._environment()}
        if self._epmd is None:
            command = [self.epmd_program, "-port", str(self._epmd_port), "-address", "127.0.0.1"]
            self._epmd = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL)
        with (self.folder / "out").open("ab") as out:
            # A session of its own: the Erlang machine has children, and all of them go together.
            self._node = subprocess.Popen(
                [PROGRAMS / "rabbitmq-server"],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        if wait:
            eventually(self.ping, START_S)

    def ping(self) -> None:
        """Raises unless the node takes connections."""
        assert self._node is not None, "the node was never started"
        assert self._node.poll() is None, f"the node ended\n{self.output_text()}"
        with Connection(self.url, connect_timeout=2) as connection:
            found: Any = connection
            try:
                found.ensure_connection(max_retries=1, interval_start=0)
            except Exception as error:  # kombu's and amqp's errors have no common base
                raise AssertionError(f"{error!r}\n{self.output_text()}") from error

    def output_text(self) -> str:
        """The end of what the node wrote, for messages of failing tests."""
        return (self.folder / "out").read_text(errors="replace")[-3000:]

    def ensure_running(self) -> None:
        """Starts the node again if a test left it ended."""
        if self._node is None or self._node.poll() is not None:
            self.start()

    def delete_queues(self) -> None:
        """Removes our queues with what is in them."""
        with Connection(self.url) as connection:
            channel: Any = connection.default_channel
            for kind in all_kinds():
                channel.queue_delete(f"proctor.{kind}")

    def stop(self) -> None:
        """Ends the node in good order (SIGTERM), so that young queues are on disk."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the node without a chance to write anything (SIGKILL).

        RabbitMQ 3.10 writes the list of its quorum queues seconds later: one declared just before a kill does
        not answer any more after the next start, and has to be deleted.
        """
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._node is not None and self._node.poll() is None:
            os.killpg(self._node.pid, number)
            self._node.wait(30)

    def close(self) -> None:
        """Ends the node and its port mapper, and removes the folder."""
        self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        folder = self.folder
        return {
            "HOME": str(folder),  # where the cookie is kept
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"test-{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2",
        }
