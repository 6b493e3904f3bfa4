"""Holds compose.yaml to what no schema knows: hardening, limits, times, secrets, a Redis fit for ledgers."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.cli import Cli
from tests.support.deployed_redis import check_redis
from tests.support.deployment import (
    DEPLOY,
    SUPERVISOR_MARGIN_S,
    compose,
    default_grace_s,
    is_ours,
    seconds,
    services,
)
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.processes import Processes
from tests.support.redis_server import program_for_tests
from tests.support.tools import require_tool

PINNED: Final = re.compile(r"(\$\{IMAGE:-)?[a-z/]+:v?\d+\.\d+\.\d+[a-z0-9.-]*(@sha256:[0-9a-f]{64})?\}?")


@pytest.mark.parametrize("name", services())
def test_every_service_is_hardened(name: str) -> None:
    """A service has a read-only root, a user, no rights and no way to them, limits, restarts and a probe."""
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"], "and no seccomp profile but the default"
    assert re.fullmatch(r"[1-9]\d*:\d+", service["user"])
    limits = service["deploy"]["resources"]["limits"]
    assert {"cpus", "memory", "pids"} <= set(limits)
    assert service["restart"] == ("no" if "cli" in service.get("profiles", ()) else "unless-stopped")
    assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}
    assert PINNED.fullmatch(service["image"]), f"{service['image']} is not pinned"


@pytest.mark.parametrize("name", services())
def test_ports_are_open_on_loopback_only(name: str) -> None:
    """What is published is published to this machine; Redis and the exporter are not published at all."""
    ports = services()[name].get("ports", [])
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert not ports or name in {"flower", "prometheus", "grafana", "serve"}


@pytest.mark.parametrize("name", [name for name, each in services().items() if is_ours(each["image"])])
def test_there_is_more_time_to_stop_than_the_grace_period(name: str) -> None:
    """Docker kills later than a supervisor does, which kills later than the grace period."""
    service = services()[name]
    grace_s = float(service["environment"].get("PROCTOR_GRACE_S", default_grace_s()))
    assert seconds(service["stop_grace_period"]) > grace_s + SUPERVISOR_MARGIN_S


def test_there_is_a_worker_service_a_kind() -> None:
    """Each kind has a service of its own, without a fixed name or port, so that `--scale` works."""
    for kind in ("turns", "cases", "queries"):
        service = services()[f"worker-{kind}"]
        assert service["command"][:3] == ["worker", "--queues", kind]
        assert not {"container_name", "ports", "hostname"} & set(service)


def test_what_is_mounted_is_declared() -> None:
    """Secrets, volumes and networks of services are declared, and all that is declared is used."""
    used: dict[str, set[str]] = {"secrets": set(), "volumes": set(), "networks": set()}
    for service in services().values():
        used["secrets"] |= set(service.get("secrets", ()))
        used["networks"] |= set(service["networks"])
        sources = {volume.split(":")[0] for volume in service.get("volumes", ())}
        used["volumes"] |= {source for source in sources if not source.startswith(".")}
    assert {name: set(compose()[name]) for name in used} == used


def test_no_secret_stands_in_the_environment() -> None:
    """No variable and no argument of a service holds a password: they name files below /run/secrets."""
    for service in services().values():
        for name, value in service.get("environment", {}).items():
            is_secret = re.search("PASSWORD|AUTH|REDIS_URL|KEY|TOKEN", name)
            assert not is_secret or str(value).startswith("/run/secrets/"), name
        assert "requirepass" not in str(service.get("command"))


def test_secrets_are_made_once(tmp_path: Path) -> None:
    """make-secrets.sh makes every secret that compose.yaml names, closed to others, and keeps them."""
    folder = tmp_path / "secrets"
    command = ["sh", str(DEPLOY / "make-secrets.sh"), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    made = {path.name: path.read_text() for path in folder.iterdir()}
    assert {each["file"].rpartition("/")[2] for each in compose()["secrets"].values()} == set(made)
    assert folder.stat().st_mode & 0o077 == 0
    password = made["redis-password"].strip()
    assert re.fullmatch("[0-9a-f]{32}", password)
    assert made["redis-url"] == f"redis://:{password}@redis:6379/0\n"
    subprocess.run(command, check=True, capture_output=True)
    assert {path.name: path.read_text() for path in folder.iterdir()} == made


def test_the_redis_of_compose_can_carry_the_ledger(
    container_redis: Callable[[list[str]], dict[str, str]], cli: Cli
) -> None:
    """With compose's arguments and secrets the server pleases `proctor doctor` and asks for a password."""
    check_redis(services()["redis"]["command"], container_redis, cli)


def test_the_probe_of_redis_needs_the_password(tmp_path: Path, processes: Processes) -> None:
    """The shell line of the health check says PONG with the password file and fails without the right one."""
    cli_program = require_tool("valkey-cli", "redis-cli", package="redis-tools")
    port = free_port()
    (tmp_path / "password").write_text("open sesame\n".replace(" ", "-"))
    processes.start(program_for_tests(), "--port", str(port), "--requirepass", "open-sesame", "--save", "")
    line = services()["redis"]["healthcheck"]["test"][1].replace("$$", "$")
    line = line.replace("valkey-cli", f"{cli_program} -p {port}")

    def probe(password_file: Path) -> int:
        text = line.replace("/run/secrets/redis-password", str(password_file))
        return subprocess.run(["sh", "-c", text], capture_output=True, check=False, env=os.environ).returncode

    def answers() -> None:
        assert probe(tmp_path / "password") == 0

    eventually(answers)
    (tmp_path / "wrong").write_text("guess\n")
    assert probe(tmp_path / "wrong") != 0
