"""A file becomes a run, all of it or nothing, and the same key twice is one run; on a real Redis."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared import keys
from shared.codecs.turn_batches import unpack_batch
from shared.contracts.query_run import QueryRun
from shared.contracts.turn_vocabulary import SIGNALS_ONCE, SummaryPolicy
from shared.errors import (
    IdempotencyConflictError,
    InputError,
    UsageError,
)
from shared.kinds import CASES, TURNS
from shared.ledger.bounds import FIRST_LAYOUT, OPTIONS_LAYOUT
from shared.ledger.ledger import Ledger
from shared.ledger.times import Times
from shared.names import RunState
from shared.runs import RunInfo
from tests.support.eventually import eventually
from tests.support.inline_worker import InlineWorker
from tests.support.turn_files import stdin, turn_lines, write_turns

if TYPE_CHECKING:
    import redis


def test_a_file_becomes_a_run(
    inline_worker: InlineWorker, redis_client: "redis.Redis", tmp_path: Path
) -> None:
    """All lines are there, whole threads in chunks, with the submit's settings; the first are published."""
    path = write_turns(tmp_path / "a.jsonl", turn_lines(30, 10))
    seen = list[int]()
    options = SubmitOptions(
        chunk_turns=100, summary_policy=SummaryPolicy.BREAKPOINTS, on_progress=seen.append
    )
    run = submit(inline_worker.ledger, inline_worker, Source(path), options=options)
    assert (run.kind, run.total, run.threads, run.duplicate) == (TURNS, 300, 30, False)
    info = inline_worker.store.info(run.run)
    assert (info.state, info.total, info.done, info.threads) == (RunState.RUNNING, 300, 0, 30)
    assert (info.snapshot["source"], info.snapshot["summary_policy"]) == ("a.jsonl", "breakpoints")
    assert seen[-1] == 300
    assert [(wake.chunk, wake.items, wake.first) for wake in inline_worker.wakes] == [
        ("0", 100, "t0"),
        ("1", 100, "t10"),
    ]
    batch: Any = redis_client.hget(keys.items_key(run.run), "1.3")
    indexes, body = unpack_batch(batch)
    assert indexes == list(range(130, 140))
    assert body.split(b"\n") == path.read_bytes().split(b"\n")[130:140]


def test_options_that_earlier_workers_ignore_have_a_layout_of_their_own(
    inline_worker: InlineWorker, tmp_path: Path
) -> None:
    """A run with `--signals-once` or `--fold-apostrophes` is left alone by workers that would ignore it."""
    turns = Source(write_turns(tmp_path / "a.jsonl", turn_lines(1, 1)))
    query = {"id": "Q-1", "category": "sla", "query": "?", "is_oos": False}
    query |= {"expected_docs": [], "must_contain": [], "must_not_contain": []}
    queries = tmp_path / "b.json"
    queries.write_text(json.dumps([query]))
    options = (
        (turns, SubmitOptions(), FIRST_LAYOUT),
        (turns, SubmitOptions(signals_once=True), OPTIONS_LAYOUT),
        (Source(queries), SubmitOptions(), FIRST_LAYOUT),
        (Source(queries), SubmitOptions(queries=QueryRun(fold_apostrophes=True)), OPTIONS_LAYOUT),
    )
    for source, chosen, layout in options:
        run = submit(inline_worker.ledger, inline_worker, source, options=chosen)
        info = inline_worker.store.info(run.run)
        assert info.layout == layout
        assert run_settings_of(info) == (chosen.signals_once, chosen.queries.fold_apostrophes)


def run_settings_of(info: RunInfo) -> tuple[bool, bool]:
    """What workers read of the two options in a snapshot."""
    return bool(info.snapshot.get(SIGNALS_ONCE)), QueryRun.from_snapshot(info.snapshot).fold_apostrophes


def test_a_stream_becomes_a_run(inline_worker: InlineWorker) -> None:
    """Standard input is loaded like a file, and named `stdin`."""
    run = submit(inline_worker.ledger, inline_worker, stdin(turn_lines(2, 2)))
    assert run.total == 4
    assert inline_worker.store.info(run.run).source == "stdin"


def test_run_ids_are_in_the_order_of_time(inline_worker: InlineWorker) -> None:
    """Later runs have larger ids."""
    runs = [submit(inline_worker.ledger, inline_worker, stdin(turn_lines(1, 1))).run for _ in range(3)]
    assert runs == sorted(set(runs))
    assert all(run.startswith("run-") and len(run) == 19 for run in runs)


def test_the_same_key_is_the_same_run(inline_worker: InlineWorker, tmp_path: Path) -> None:
    """A repeated submit answers the first run's id, whether it has ended or not, from a file or a stream."""
    turns = turn_lines(5, 4)
    options = SubmitOptions(idempotency_key="nightly 7")
    first = submit(
        inline_worker.ledger, inline_worker, Source(write_turns(tmp_path / "a", turns)), options=options
    )
    again = submit(inline_worker.ledger, inline_worker, stdin(turns), options=options)
    assert again == first._replace(duplicate=True)
    inline_worker.work()
    published = inline_worker.published
    assert submit(inline_worker.ledger, inline_worker, stdin(turns), options=options).run == first.run
    assert len(inline_worker.store.list()) == 1
    assert inline_worker.published == published


def test_the_same_key_publishes_what_a_killed_submit_did_not(inline_worker: InlineWorker) -> None:
    """A producer died between seal and publishing: the same submit again sends its wake-ups at once."""
    options, turns = SubmitOptions(idempotency_key="k", chunk_turns=4), turn_lines(2, 4)
    first = submit(inline_worker.ledger, inline_worker, stdin(turns), options=options)
    lost = list(inline_worker.wakes)
    inline_worker.wakes.clear()
    submit(inline_worker.ledger, inline_worker, stdin(turns), options=options)
    assert list(inline_worker.wakes) == lost
    assert inline_worker.work() == 2
    assert inline_worker.store.info(first.run).state == RunState.FINISHED


def test_a_slow_loader_keeps_its_run(redis_client: "redis.Redis") -> None:
    """Input that pauses for longer than the lease of a loader is still loaded: its process renews it."""
    times = Times.of(0.5)
    worker = InlineWorker(redis_client)
    ledger = Ledger(redis_client, patience_s=5.0, times=times)

    def ledger_ms() -> int:
        ledger.tick("steward", [], 0)
        return int(redis_client.hget(keys.CLOCK_KEY, "lc") or 0)

    def pause(_loaded: int) -> None:
        start_ms = ledger_ms()

        def has_passed() -> None:
            assert ledger_ms() - start_ms > 2 * times.loader_ms

        eventually(has_passed)

    options = SubmitOptions(on_progress=pause, await_disk=False)
    run = submit(ledger, worker, stdin(turn_lines(2, 2)), options=options)
    assert worker.store.info(run.run).total == 4


@pytest.mark.parametrize(
    "changed",
    [
        SubmitOptions(idempotency_key="k", summary_policy=SummaryPolicy.BREAKPOINTS),
        SubmitOptions(idempotency_key="k", namespace="other"),
    ],
)
def test_other_settings_under_the_same_key_are_refused(
    inline_worker: InlineWorker, changed: SubmitOptions
) -> None:
    """A key stands for content and for the settings that decide what comes out."""
    submit(
        inline_worker.ledger,
        inline_worker,
        stdin(turn_lines(1, 2)),
        options=SubmitOptions(idempotency_key="k"),
    )
    with pytest.raises(IdempotencyConflictError, match="'k' belongs to run-"):
        submit(inline_worker.ledger, inline_worker, stdin(turn_lines(1, 2)), options=changed)


def test_other_content_under_the_same_key_is_refused(inline_worker: InlineWorker) -> None:
    """One changed letter is other content; the first run stays as it was."""
    options = SubmitOptions(idempotency_key="k")
    first = submit(inline_worker.ledger, inline_worker, stdin(turn_lines(1, 2)), options=options)
    changed = turn_lines(1, 2)
    changed[1]["message"] = "Turn 1"
    with pytest.raises(IdempotencyConflictError) as caught:
        submit(inline_worker.ledger, inline_worker, stdin(changed), options=options)
    assert caught.value.exit_code == 2
    assert [info.run for info in inline_worker.store.list()] == [first.run]


def test_a_live_loader_of_the_same_key_is_waited_for(inline_worker: InlineWorker) -> None:
    """While another submit loads the key, this one waits, says so, and takes over when that one gives up."""
    loader = "other"
    inline_worker.ledger.open(
        "run-other", kind="turns", namespace="", key="k", token=loader, snapshot=b"{}", ttl_s=60
    )
    reasons = list[str]()

    def give_up(why: str) -> None:
        reasons.append(why)
        inline_worker.ledger.discard("run-other", loader)

    options = SubmitOptions(idempotency_key="k", on_wait=give_up)
    run = submit(inline_worker.ledger, inline_worker, stdin(turn_lines(1, 2)), options=options)
    assert reasons == ["another submit with this key is loading run-other"]
    assert inline_worker.store.info(run.run).state == RunState.RUNNING


def test_a_namespace_must_be_a_name(inline_worker: InlineWorker) -> None:
    """A namespace that could not stand in a key is refused before anything is loaded."""
    with pytest.raises(UsageError, match="namespace 'a b' cannot be used"):
        submit(
            inline_worker.ledger,
            inline_worker,
            stdin(turn_lines(1, 1)),
            options=SubmitOptions(namespace="a b"),
        )


def test_a_kind_that_the_input_is_not_is_an_input_error(inline_worker: InlineWorker) -> None:
    """Turns that are submitted as a bench are refused, and nothing of them is left."""
    with pytest.raises(InputError, match="threadId: unknown key"):
        submit(inline_worker.ledger, inline_worker, stdin(turn_lines(1, 1)), kind=CASES)
    assert not inline_worker.store.list()
