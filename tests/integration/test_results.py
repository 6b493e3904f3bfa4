"""Results stream back in input order, each turn once, whatever state the run is in; on a real Redis."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from producer.document import run_document
from producer.load.source import Source
from producer.report.formats import format_of
from producer.submit import submit
from shared.errors import RedisUnreachableError, UnknownRunError
from shared.keys import mementos_key, results_key
from shared.kinds import CASES, TURNS
from shared.names import RunState
from shared.runs import RunStore
from shared.server.client import RedisTarget
from tests.support.inline_worker import NAME, InlineWorker
from tests.support.redis_server import RedisServer
from tests.support.turn_files import turn_lines

if TYPE_CHECKING:
    import redis


def lines_of(worker: InlineWorker, run: str, form: str = "jsonl") -> Iterator[dict[str, Any]]:
    """The lines of a report."""
    out = io.BytesIO()
    run_document(worker.store, run, reports=[format_of(TURNS, form)(out, worker.store.info(run))])
    return map(json.loads, out.getvalue().splitlines())


def test_results_come_in_input_order(inline_worker: InlineWorker, submitted: Callable[..., str]) -> None:
    """Interleaved threads in many chunks: one line for each turn, in the order of the file."""
    turns = turn_lines(40, 25, interleaved=True)
    run = submitted(turns, chunk_turns=90)
    inline_worker.register()
    inline_worker.work()
    lines = list(lines_of(inline_worker, run))
    assert [line["index"] for line in lines] == list(range(1_000))
    assert [line["result"]["messageId"] for line in lines] == [turn["messageId"] for turn in turns]
    # The ETag counts the thread's committed turns: each thread was decided in its own order.
    assert [line["result"]["etag"] for line in lines] == [str(1 + at // 40) for at in range(1_000)]
    assert {line["outcome"] for line in lines} == {"decided"}


def test_the_document_counts_what_the_rows_say(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """Numbers of the document equal those counted from the lines; traces are one for each turn."""
    run = submitted(turn_lines(10, 10, interleaved=True) + turn_lines(1, 5, message="ok thanks"))
    inline_worker.register()
    inline_worker.work()
    document = run_document(inline_worker.store, run)
    lines = list(lines_of(inline_worker, run))
    counted = Counter(line["result"]["decision"] for line in lines)
    assert document.summary.decisions == {"must": 0, "should": counted["should"], "skip": 5}
    assert document.counts.decided == document.counts.total == 105
    assert (document.state, document.exit, document.summary.threads) == ("finished", 0, 10)
    events = [event["transmissionId"] for event in lines_of(inline_worker, run, "traces")]
    assert events == [f"{run}:{index}" for index in range(105)]


def test_a_running_run_shows_what_it_has(inline_worker: InlineWorker, submitted: Callable[..., str]) -> None:
    """While a run goes on its results are there in order, and nothing is called skipped."""
    run = submitted(turn_lines(40, 10), chunk_turns=100)
    inline_worker.work(chunks=1)
    lines = list(lines_of(inline_worker, run))
    assert [line["index"] for line in lines] == list(range(100))
    document = run_document(inline_worker.store, run)
    assert (document.state, document.exit) == ("running", 0)
    assert (document.counts.decided, document.counts.skipped) == (100, 0)
    assert inline_worker.store.info(run).done == 100


def test_turns_decided_one_at_a_time_are_put_together(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """A batch that was committed in parts reads as one, in the middle of the run and at its end."""
    run = submitted(turn_lines(3, 4, interleaved=True))
    inline_worker.register()
    inline_worker.work(chunks=2, turns=1)
    assert [line["index"] for line in lines_of(inline_worker, run)] == [0, 1, 2, 3, 4, 5]
    inline_worker.work(turns=1)
    assert [line["result"]["etag"] for line in lines_of(inline_worker, run)] == [
        str(1 + at // 3) for at in range(12)
    ]
    assert inline_worker.store.info(run).state == RunState.FINISHED


def test_a_cancelled_run_names_what_it_skipped(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """Turns that a cut-short run never decided are skipped in every format, and the exit code is 4."""
    run = submitted(turn_lines(40, 10), chunk_turns=100)
    inline_worker.work(chunks=1)
    inline_worker.ledger.control(run, "cancelled")
    lines = list(lines_of(inline_worker, run))
    assert [line["index"] for line in lines] == list(range(400))
    assert [line["outcome"] for line in lines] == ["decided"] * 100 + ["skipped"] * 300
    assert lines[-1]["result"] is None
    document = run_document(inline_worker.store, run)
    assert (document.state, document.exit) == ("cancelled", 4)
    assert document.counts.skipped == 300


def test_runs_of_a_namespace_keep_their_own_results(
    inline_worker: InlineWorker, submitted: Callable[..., str]
) -> None:
    """Two runs share threads: each has its own rows in its own order, the thread's turns are counted on."""
    first = submitted(turn_lines(5, 3), namespace="shared")
    second = submitted(turn_lines(5, 3), namespace="shared")
    inline_worker.register()
    inline_worker.work()
    assert [line["result"]["etag"] for line in lines_of(inline_worker, first)] == ["1", "2", "3"] * 5
    assert [line["result"]["etag"] for line in lines_of(inline_worker, second)] == ["4", "5", "6"] * 5


def test_a_poisoned_turn_is_an_error_with_its_thread(
    inline_worker: InlineWorker, submitted: Callable[..., str], redis_client: "redis.Redis"
) -> None:
    """What the ledger stores of a turn that nobody survived reads like every other error."""
    run = submitted(turn_lines(1, 3, clientRequestId="c"))
    inline_worker.register()
    inline_worker.work(chunks=1, turns=1)
    state: Any = redis_client.hget(mementos_key(run), "t0")
    # As `poison_turn` in lua/lib/threads.lua writes it; tests of the ledger let workers die for it.
    redis_client.hset(results_key(run), "0.0:1", b"0|1|5|5|1|x0p\n" + state)
    poisoned = list(lines_of(inline_worker, run))[1]
    assert (poisoned["outcome"], poisoned["error"]["code"]) == ("error", "poison")
    assert poisoned["result"]["messageId"] == "t0-1"
    assert (poisoned["result"]["etag"], poisoned["result"]["decision"]) == ("1", None)
    assert run_document(inline_worker.store, run).summary.errors == {"poison": 1}


def test_an_unknown_run_is_named(inline_worker: InlineWorker) -> None:
    """Reading a run that does not exist says so, however it is read."""
    for read in (
        inline_worker.store.info,
        inline_worker.store.wait_reason,
        lambda run: list(inline_worker.store.pages(run)),
    ):
        with pytest.raises(UnknownRunError, match="no run is called 'run-x'"):
            read("run-x")


def test_runs_are_listed_newest_first(inline_worker: InlineWorker, submitted: Callable[..., str]) -> None:
    """The newest runs come first, filtered by state if asked, and no more than asked for."""
    runs = [submitted(turn_lines(1, 1)) for _ in range(5)]
    inline_worker.ledger.control(runs[2], "cancelled")
    assert [info.run for info in inline_worker.store.list()] == runs[::-1]
    assert [info.run for info in inline_worker.store.list(limit=2)] == [runs[4], runs[3]]
    assert [info.run for info in inline_worker.store.list(state="cancelled", limit=1)] == [runs[2]]
    assert inline_worker.store.list(kind=CASES) == []


def test_the_reason_to_wait_is_shown(inline_worker: InlineWorker, submitted: Callable[..., str]) -> None:
    """Without workers, paused, behind others or finished: one sentence says why a run does not move."""
    run = submitted(turn_lines(2, 1))
    assert inline_worker.store.wait_reason(run) == "no worker is alive; run `proctor worker -Q turns`"
    inline_worker.register()
    assert [found.name for found in inline_worker.store.workers(TURNS)] == [NAME]
    assert inline_worker.store.workers(CASES) == []
    assert inline_worker.store.wait_reason(run) == ""
    inline_worker.ledger.control(run, "pause")
    assert inline_worker.store.wait_reason(run) == f"it is paused; `proctor resume {run}` continues it"
    inline_worker.ledger.control(run, "resume")
    inline_worker.work()
    assert inline_worker.store.wait_reason(run) == ""


def test_a_run_behind_others_says_so(inline_worker: InlineWorker, submitted: Callable[..., str]) -> None:
    """When the window is full of another run's chunks, the next run waits for its turn."""
    for _ in range(2):
        submitted(turn_lines(400, 1), chunk_turns=10)
    inline_worker.capacity = 1
    inline_worker.register()
    last = submitted(turn_lines(40, 1), chunk_turns=10)
    assert inline_worker.store.wait_reason(last) == "it waits for its turn behind 2 other runs"


def test_reading_outlives_a_server_that_comes_back(new_redis_server: Callable[..., RedisServer]) -> None:
    """A read waits for a server that is away, and gives up after its patience with exit 3."""
    server = new_redis_server()
    with RedisTarget.parse(server.url).client() as client:
        worker = InlineWorker(client)
        run = submit(
            worker.ledger,
            worker,
            Source("-", stdin=io.BytesIO(b'{"threadId":"t","message":"hi"}')),
        ).run
        server.kill()
        server.start(wait=False)
        assert worker.store.info(run).total == 1
        server.kill()
        with pytest.raises(RedisUnreachableError):
            RunStore(client, patience_s=0.3).info(run)
