"""Resuming runs that were cut short."""

import json
from typing import TYPE_CHECKING

from shared.ledger.ledger import Ledger
from shared.names import RunState
from tests.support.cli import Cli
from tests.support.processes import Processes
from tests.support.tree import ROOT

if TYPE_CHECKING:
    import redis


def test_a_turns_run_that_was_cut_short_goes_on(processes: Processes, redis_client: "redis.Redis") -> None:
    """`resume` decides what has no result yet; once all is decided it only tells the ending."""
    cli, example = Cli(processes), ROOT / "examples" / "turns.jsonl"
    run = cli("submit", example).out.strip()
    state, _ = Ledger(redis_client).control(run, RunState.INCOMPLETE)
    assert state == RunState.INCOMPLETE
    assert cli("watch", run).code == 4
    for _ in range(2):
        done = cli("resume", run, "--json")
        ended = json.loads(done.out)
        assert (done.code, ended["state"]) == (0, "finished")
        assert ended["counts"]["decided"] == len(example.read_bytes().splitlines())


def test_a_run_that_is_lost_while_it_is_watched_is_exit_3(
    processes: Processes, redis_client: "redis.Redis"
) -> None:
    """A run that was there and is gone with its data is no wrong id: the machine lost it."""
    cli, example = Cli(processes), ROOT / "examples" / "turns.jsonl"
    run = cli("submit", example).out.strip()
    watching = cli.start("watch", run)
    watching.wait_for("no worker is alive")
    redis_client.flushall()
    assert watching.wait(15) == 3
    assert f"error: run {run} is gone" in watching.errors
    assert cli("watch", run).code == 2
