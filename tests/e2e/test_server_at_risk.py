"""Machines at their limits: servers that may lose runs or refuse writes, an empty environment."""

import shlex
from collections.abc import Callable
from contextlib import closing
from typing import Final

from tests.support.cli import PROCTOR, Cli
from tests.support.redis_server import RedisServer, break_snapshots
from tests.support.tree import ROOT

EXAMPLE: Final = ROOT / "examples" / "turns.jsonl"


def test_commands_say_what_a_server_may_lose_and_why_it_refuses(
    new_redis_server: Callable[..., RedisServer], cli: Cli
) -> None:
    """One line for a missing append-only file; with a full disk one line while it waits, and the error."""
    server = new_redis_server("--appendonly", "no")
    cli.processes.env |= {"PROCTOR_REDIS_URL": server.url, "PROCTOR_PATIENCE_S": "1"}
    submitted = cli("-q", "submit", EXAMPLE)
    assert submitted.code == 0, submitted
    warnings = [line for line in submitted.err.splitlines() if "append-only" in line]
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: Redis keeps no append-only file (appendonly no)")
    with closing(server.client()) as client:
        break_snapshots(server.folder, client)
    refused = cli("-q", "cancel", submitted.out.strip())
    assert refused.code == 3, refused
    waits, mend, error, hint = refused.err.splitlines()
    assert waits.startswith("warning: Redis takes no writes; waiting up to 1 s: MISCONF ")
    assert mend == "hint: make room on the server's disk, and this command goes on"
    assert error.startswith("error: Redis takes no writes: MISCONF ")
    assert hint.startswith("hint: make room on the disk of the server")
    for reading in (["status"], ["runs", "list"]):
        looked = cli(*reading)
        assert looked.code == 0, looked
        assert submitted.out.strip() in looked.out
        assert "warning: Redis cannot write its data: make room on the server's disk" in looked.err


def test_a_broker_that_is_full_fails_its_probe(
    new_redis_server: Callable[..., RedisServer], cli: Cli
) -> None:
    """A Redis that carries only wake-ups is asked whether it takes them."""
    ledger, broker = new_redis_server(), new_redis_server("--maxmemory", "100kb")
    cli.processes.env |= {"PROCTOR_REDIS_URL": ledger.url, "PROCTOR_BROKER_URL": broker.url}
    done = cli("health", "broker")
    assert done.code == 3, done
    assert done.err.startswith("the broker takes no writes: OOM ")


def test_a_bare_environment_is_enough(cli: Cli) -> None:
    """Without a home, in the C locale, with stdin and stdout closed, a run ends as anywhere else."""
    inherited = cli.processes.env.items()
    bare = {name: value for name, value in inherited if not name.startswith(("HOME", "LC_", "LANG"))}
    line = shlex.join([*PROCTOR, "run", str(EXAMPLE), "--processes", "1", "--no-progress"])
    done = cli.processes.run("sh", "-c", f"{line} <&- >&-", env={**bare, "LC_ALL": "C"})
    assert done.popen.returncode == 0, done.output_text()
    assert done.errors == ""
    runs = cli("runs", "list")
    assert "finished" in runs.out
