"""Several producers, runs and workers share threads; killed or steered, each thread keeps its order."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.invariants import let_ledger_time_pass
from tests.support.processes import Processes
from tests.support.thread_oracle import (
    Ran,
    Row,
    check_namespace,
    order_of,
    policy_of,
    restarts,
)
from tests.support.trial import Trial, woven_turns

if TYPE_CHECKING:
    from pathlib import Path

    import redis

THREADS: Final = 60
TURNS: Final = 100
CHUNK_TURNS: Final = 40
NAMESPACE: Final = "shared"


@pytest.fixture
def trial(redis_client: "redis.Redis", redis_url: str, processes: Processes) -> Trial:
    """Runs on the session's server."""
    return Trial(redis_client, redis_url, processes)


def request(request_id: str, message: str) -> dict[str, Any]:
    """A turn that several producers send."""
    return {"threadId": "asked", "messageId": "m", "clientRequestId": request_id, "message": message}


def file_of(trial: Trial, tag: str, *more: dict[str, Any]) -> "Path":
    """Writes a file about the threads that all files are about."""
    return trial.file([*woven_turns(THREADS, TURNS, tag=f"{tag}-"), *more])


def submit_together(trial: Trial, files: dict[str, "Path"]) -> dict[str, str]:
    """Lets one producer a file submit at the same time, in chunks so small that the work has a middle."""

    def send(file: "Path") -> str:
        return trial.submit(file, namespace=NAMESPACE, chunk_turns=CHUNK_TURNS)

    with ThreadPoolExecutor(len(files)) as producers:
        return dict(zip(files, producers.map(send, files.values()), strict=True))


@pytest.mark.chaos
def test_threads_that_runs_share_keep_their_order(trial: Trial) -> None:
    """Five producers, three workers, one killed, a run paused, one cancelled and retried: one history.

    It is longer than 40 lines, because what happens, happens to the same runs at the same time.
    """
    workers = trial.workers("one@test", "two@test", "three@test")
    for worker in workers.values():
        worker.freeze()
    same = [request(f"same-{number}", "once") for number in range(5)]
    files = {
        "plain": file_of(trial, "plain", *same, request("clash", "this")),
        "other": file_of(trial, "other", *same, request("clash", "that")),
        "paused": file_of(trial, "paused", *same),
        "cancelled": file_of(trial, "cancelled"),
    }
    runs = submit_together(trial, files)

    # The work begins, and in its middle everything happens at once.
    for worker in workers.values():
        worker.thaw()
    for run in runs.values():
        trial.middle(run, 0.05)
    victim, _ = trial.freeze_at_work(workers, *runs.values())
    for tag, action in (("paused", "pause"), ("cancelled", "cancelled")):
        state, wakes = trial.ledger.control(runs[tag], action)
        assert state in {"paused", "cancelling", "cancelled"}
        trial.publisher.publish(wakes)
    workers[victim].kill()
    # Also for the others: whatever they hold is taken from them.
    let_ledger_time_pass(trial.client, trial.lease_s)
    files["late"] = file_of(trial, "late", *same)
    late = trial.cli("submit", files["late"], "--namespace", NAMESPACE)
    runs["late"] = late.out.strip()
    assert late.code == 0, late

    for tag in ("plain", "other", "late"):
        trial.finished(runs[tag])
    trial.finished(runs["cancelled"], state="cancelled")
    was_left = trial.info(runs["cancelled"])
    assert trial.info(runs["paused"]).state == "paused"
    assert trial.cli("resume", runs["paused"], "--json").code == 0
    trial.finished(runs["paused"])
    retried = trial.cli("retry", runs["cancelled"], "--json")
    assert retried.code == 0, retried
    assert 0 < was_left.done < was_left.total

    rows = {tag: trial.check_outputs(run) for tag, run in runs.items()}
    check_namespace([ran(rows[tag], files[tag]) for tag in runs])
    for tag in runs:
        backwards = {restarts(order_of(rows[tag], f"t{thread}")) for thread in range(THREADS)}
        # What a cancelled run never decided is decided at the end of its threads.
        assert backwards <= ({0, 1} if tag == "cancelled" else {0}), tag
    requests_were_answered_once([row for found in rows.values() for row in found])
    trial.nothing_is_left(fetched=True)


def ran(rows: list[Row], file: "Path") -> Ran:
    """A run, for the judge."""
    return Ran(rows, file.read_bytes().splitlines(), policy_of(rows))


def requests_were_answered_once(rows: list[Row]) -> None:
    """Asserts that a repeated request has one decision and copies of it, and other content is refused."""
    asked = [row for row in rows if row["result"]["threadId"] == "asked"]
    assert len(asked) == 4 * 5 + 2
    refused = [row["error"]["code"] for row in asked if row["outcome"] == "error"]
    assert refused == ["idempotency_conflict"]
    answers = {json.dumps(row["result"], sort_keys=True) for row in asked if row["outcome"] == "decided"}
    assert len(answers) == 5 + 1
    assert len([row for row in asked if row["outcome"] == "decided" and not row["cached"]]) == 5 + 1
