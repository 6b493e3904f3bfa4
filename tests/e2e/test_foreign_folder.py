"""A working directory that somebody else has filled decides neither what code runs nor where keys go."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import run as call
from typing import Final

import pytest

from tests.support.benches import write
from tests.support.ports import free_port
from tests.support.processes import Processes
from tests.support.tree import ROOT

# `-B` as well, so that no command is forked from a process that has imported everything before.
PROCTOR: Final = (sys.executable, "-P", "-B", "-m", "producer")
START_S: Final = 60.0
TRAPS: Final = (
    *("sitecustomize", "usercustomize", "celeryconfig", "flowerconfig", "conftest", "config", "settings"),
    *("redis", "celery", "kombu", "flower", "aiohttp", "litellm", "pydantic", "click", "json", "ssl"),
)
PACKAGES: Final = ("shared", "worker", "producer", "examples")
"""Modules that Python, Celery, Flower or a careless import would take from the working directory."""
GIT_CONFIG: Final = """[core]
    repositoryformatversion = 0
    fsmonitor = {trap}
    pager = {trap}
    sshCommand = {trap}
    hooksPath = .
    attributesFile = attributes
[filter "trap"]
    clean = {trap}
    required = true
[diff "trap"]
    command = {trap}
[alias]
    rev-parse = !{trap}
"""
BENCH: Final = """name: mine
system_prompt: Answer.
models: [openai/gpt-4o]
test_cases: [{input: Hi, checks: [{contains: x}]}]
"""


@pytest.fixture
def attacker() -> Iterator[socket.socket]:
    """A place on the network where nobody may knock."""
    with closing(socket.create_server(("127.0.0.1", 0))) as door:
        door.settimeout(0)
        yield door


@pytest.fixture
def folder(tmp_path: Path, attacker: socket.socket) -> Path:
    """A folder whose files would all leave a line in `sprung` if they were executed."""
    inside, sprung = tmp_path / "theirs", tmp_path / "sprung"
    inside.mkdir()
    for package in PACKAGES:
        (inside / package).mkdir()
    for name in (*TRAPS, *(f"{package}/__init__" for package in PACKAGES)):
        path = inside / f"{name}.py"
        path.write_text(f"open({str(sprung)!r}, 'a').write({name!r} + '\\n')\n")
    trap = inside / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho git >> {sprung}\n")
    trap.chmod(0o755)
    call(["git", "init", "-q", inside], check=True)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    call(["git", "-C", inside, *author, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    (inside / ".git" / "config").write_text(GIT_CONFIG.format(trap=trap))
    (inside / ".gitattributes").write_text("* filter=trap diff=trap\n")
    # OpenSSL would wait for the other end of this pipe, and the command with it.
    os.mkfifo(inside / "o.cnf")
    place = f"127.0.0.1:{attacker.getsockname()[1]}"
    (inside / ".env").write_text(
        "OPENSSL_CONF=./o.cnf\n"
        f"OPENAI_API_BASE=http://{place}/v1\nOPENAI_BASE_URL=http://{place}/v1\n"
        f"PROCTOR_REDIS_URL=redis://{place}/0\nPROCTOR_BROKER_URL=redis://{place}/0\n"
        f"PROCTOR_DATA_DIR={inside}\nPROCTOR_KINDS=config\nPROCTOR_TRUST_ENV=1\nHTTPS_PROXY=http://{place}\n"
        f"OTEL_EXPORTER_OTLP_ENDPOINT=http://{place}\nCELERY_LOADER=config\nFLOWER_CONF=config.py\n"
    )
    (inside / ".netrc").write_text("default login me password mine\n")
    write(inside, BENCH)
    return inside


def test_nothing_in_a_folder_runs_or_moves_keys(
    processes: Processes, folder: Path, attacker: socket.socket
) -> None:
    """`up` and `run`, workers and Flower execute no file of the folder and reach none of its addresses."""
    # The key is real, the host is refused before anything is sent: the item ends as forbidden.
    env = processes.env | {"OPENAI_API_KEY": "sk-real-key-of-mine", "PROCTOR_ALLOWED_HOSTS": "127.0.0.1"}
    ports = ("--flower-port", str(free_port()), "--metrics-port", str(free_port()))
    up = processes.start(*PROCTOR, "up", "--processes", "1", *ports, cwd=folder, env=env)
    up.wait_for("Connected to", START_S)
    run = processes.start(*PROCTOR, "run", "bench.config.yaml", cwd=folder, env=env)
    assert run.wait(START_S) == 3, run.output_text()
    assert "api.openai.com is none of the hosts" in run.output_text()
    sprung = folder.parent / "sprung"
    assert not sprung.exists(), sprung.read_text()
    with pytest.raises(BlockingIOError):
        attacker.accept()
    assert ".env supplies only keys, OPENAI_API_BASE, OPENAI_BASE_URL, PROCTOR_BROKER_URL" in run.errors


def test_litellm_reads_no_env_file(folder: Path) -> None:
    """The library looks for a `.env` of its own when it is imported; here it takes nothing from one."""
    load = "from worker.upstream.litellm_client import load_library; load_library()"
    program = f"import os; {load}; print(*os.environ)"
    env = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM")}
    command = [sys.executable, "-P", "-c", program]
    done = call(
        command, cwd=folder, env={**env, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    assert "OPENAI_API_BASE" not in done.stdout.split()
    assert not (folder.parent / "sprung").exists()
