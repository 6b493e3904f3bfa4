"""A chunk of single items, worked on by the worker's own code inside the test, with an engine that counts."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.broker import Publisher, make_app
from shared.codecs.packing import PLAIN
from shared.kinds import CASES
from shared.ledger.ledger import Ledger
from shared.names import Outcome
from shared.server.client import RedisTarget
from shared.settings import Settings
from tests.support.ledger_runs import rows_of, submit_cases
from worker.executors.items import Item, ItemResult, ItemsExecutor
from worker.process import WorkerProcess

if TYPE_CHECKING:
    import redis

IN_FLIGHT = 4


class CountingEngine:
    """Passes each item, and notes how many more chunks its process admits meanwhile."""

    packing = PLAIN
    together = IN_FLIGHT

    def __init__(self, process: WorkerProcess) -> None:
        self.admitted = 0
        self._process = process

    async def process(self, _item: Item) -> Any:
        """Asks for places of chunks with three items until one would have to wait."""
        while self._process.in_flight.admit(3, lambda: True):
            self.admitted += 1

    def result_of(self, _item: Item, _processed: Any) -> ItemResult:
        """The item passes."""
        return ItemResult(Outcome.PASSED, b"{}")

    def error_result(self, _item: Item, code: str, message: str) -> ItemResult:
        """Is not needed: nothing fails."""
        raise AssertionError(code, message)


def test_a_chunk_that_comes_back_takes_places_for_what_is_left_of_it(
    redis_client: "redis.Redis", redis_url: str, tmp_path: Path
) -> None:
    """With one of four items left, a process with six places admits two more chunks of three, not one."""
    ledger = Ledger(redis_client)
    process = WorkerProcess(
        "inline@test",
        {CASES: 2},
        ledger=ledger,
        publisher=Publisher(make_app(RedisTarget.parse(redis_url)), patience_s=5.0),
        settings=Settings(data_dir=tmp_path),
        in_flight=IN_FLIGHT,
    )
    [wake] = submit_cases(ledger, "r1", [["0", "1", "2", "3"]])
    rows = rows_of(ledger.claim("r1", wake.chunk, "first", "w1"))
    ledger.commit("r1", wake.chunk, "first", rows[:3], back=True)
    engine = CountingEngine(process)
    with closing(process.loop):
        summary = ItemsExecutor(process, lambda _: engine).execute(
            process.leases.open("r1", wake.chunk, wake)
        )
    assert summary["passed"] == 1
    assert engine.admitted == 2
