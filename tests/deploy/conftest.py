"""What tests of deploy/ share: a Redis started as a deployment starts it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.deployment import DEPLOY
from tests.support.ports import free_port
from tests.support.processes import Processes
from tests.support.redis_server import program_for_tests


def server_command(args: list[str], folder: Path, port: int) -> list[str]:
    """The command line of a container's Redis, with places of this machine for those of the container."""
    program, *rest = args
    assert program == "valkey-server"
    places = {"/run/secrets/redis-conf": folder / "redis-conf", "/data": folder}
    return [program_for_tests(), *(str(places.get(word, word)) for word in rest), "--port", str(port)]


@pytest.fixture
def container_redis(tmp_path: Path, processes: Processes) -> Callable[[list[str]], dict[str, str]]:
    """Starts a Redis by a container's arguments, with fresh secrets; returns the variables of its clients."""

    def start(args: list[str]) -> dict[str, str]:
        secrets = tmp_path / "secrets"
        subprocess.run(["sh", str(DEPLOY / "make-secrets.sh"), str(secrets)], check=True, capture_output=True)
        port = free_port()
        url = (secrets / "redis-url").read_text().replace("redis:6379", f"127.0.0.1:{port}")
        (secrets / "redis-url").write_text(url)
        processes.start(*server_command(args, secrets, port))
        return {"PROCTOR_REDIS_URL_FILE": str(secrets / "redis-url"), "REDIS_PORT": str(port)}

    return start
