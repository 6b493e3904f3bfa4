"""Results can be read while a run goes on: each row once, in order, and the same as after its end."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from producer.access import Access
from producer.report_files import ReportFile
from producer.reporting import IncrementalReports, write_reports
from producer.turns.retry import retry_turns
from shared.runs import TurnRow
from shared.runs.growing import GrowingRun
from shared.settings import Settings
from tests.support.inline_worker import InlineWorker
from tests.support.turn_files import turn_lines


def taken(worker: InlineWorker, growing: GrowingRun) -> list[TurnRow]:
    """All rows that can be had now."""
    rows = list[TurnRow]()
    while (pages := growing.next(worker.store)) is not None:
        rows += [row for page in pages for row in page]
    return rows


def rest(worker: InlineWorker, growing: GrowingRun, run: str) -> list[TurnRow]:
    """The rows that were not read before the run's end."""
    pages = growing.rest(worker.store, worker.store.info(run))
    assert pages is not None
    return [row for page in pages for row in page]


@pytest.mark.parametrize("turns", [None, 1])
def test_rows_are_read_as_chunks_are_decided(
    inline_worker: InlineWorker, submitted: Callable[..., str], turns: int | None
) -> None:
    """After each chunk its rows can be had, also those of batches that were decided in parts."""
    run = submitted(turn_lines(20, 6, interleaved=True), chunk_turns=30)
    growing, rows = GrowingRun(run), list[TurnRow]()
    inline_worker.register()
    while inline_worker.wakes:
        inline_worker.work(chunks=1, turns=turns)
        rows += taken(inline_worker, growing)
        assert [row.index for row in rows] == list(range(len(rows)))
    assert len(rows) == 120
    assert growing.is_read
    assert rest(inline_worker, growing, run) == []
    assert rows == list(inline_worker.store.rows(run))


def test_early_rows_bring_their_input(inline_worker: InlineWorker, submitted: Callable[..., str]) -> None:
    """Rows that are read early and late have their messages, as those of a run that has ended."""
    run = submitted(turn_lines(2, 20), chunk_turns=10)
    growing = GrowingRun(run, with_payload=True)
    inline_worker.register()
    inline_worker.work(chunks=1)
    early = taken(inline_worker, growing)
    inline_worker.work()
    rows = early + rest(inline_worker, growing, run)
    assert early
    assert rows == [row for page in inline_worker.store.pages(run, with_payload=True) for row in page]
    assert [json.loads(row.payload)["message"] for row in rows] == [f"turn {at}" for at in range(20)] * 2


def test_what_was_not_read_before_the_end_is_the_rest(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """Early and late rows together are those of the run, whenever the reading began."""
    run = submitted(turn_lines(40, 10), chunk_turns=100)
    growing = GrowingRun(run)
    assert taken(inline_worker, growing) == []
    inline_worker.register()
    inline_worker.work(chunks=1)
    early = taken(inline_worker, growing)
    inline_worker.work()
    assert len(early) == 100
    assert not growing.is_read
    assert early + rest(inline_worker, growing, run) == list(inline_worker.store.rows(run))


def test_a_cancelled_run_has_its_skipped_turns_in_the_rest(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """Chunks that were given up are not taken for decided ones."""
    run = submitted(turn_lines(40, 10), chunk_turns=100)
    growing = GrowingRun(run)
    inline_worker.work(chunks=1)
    inline_worker.ledger.control(run, "cancelled")
    early = taken(inline_worker, growing)
    late = rest(inline_worker, growing, run)
    assert [row.code for row in early + late] == [row.code for row in inline_worker.store.rows(run)]
    assert [row.index for row in early + late] == list(range(400))


def test_a_retry_meanwhile_makes_what_was_read_worthless(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """Rows that were read may have been replaced: all of them must be read anew."""
    turns = turn_lines(10, 4)
    turns[0]["thread_memento_etag"] = "3"
    run = submitted(turns)
    growing = GrowingRun(run)
    inline_worker.register()
    inline_worker.work()
    taken(inline_worker, growing)
    retry_turns(inline_worker.ledger, inline_worker, inline_worker.store, run)
    inline_worker.work()
    assert growing.rest(inline_worker.store, inline_worker.store.info(run)) is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full: there is none here")
def test_a_full_disk_meanwhile_costs_nothing_when_there_is_room_at_the_end(
    inline_worker: InlineWorker, submitted: Callable[..., str], redis_url: str, tmp_path: Path
) -> None:
    """A report that cannot be written while the run goes on does not end it, and is whole at its end."""
    run = submitted(turn_lines(40, 10), chunk_turns=100)
    access = Access(Settings.from_environment().override("test", redis_url=redis_url))
    files = [ReportFile("jsonl", tmp_path / "all.jsonl")]
    (tmp_path / f".all.jsonl.{os.getpid()}.part").symlink_to("/dev/full")
    early = IncrementalReports.of(access, run, files)
    assert early is not None
    inline_worker.register()
    inline_worker.work()
    early.gather(0.5)
    info = inline_worker.store.info(run)
    assert early.end(info) is None
    assert list(tmp_path.glob("*all*")) == []
    write_reports(access, info, files)
    assert len(files[0].path.read_bytes().splitlines()) == 400
    access.close()
