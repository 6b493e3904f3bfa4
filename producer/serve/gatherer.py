"""Gathers turns of all callers into micro-runs, and hands each caller the results of its turns."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Final, NamedTuple, TypeVar

from producer.serve.micro_runs import MicroRun, MicroRuns, ServedTurn
from producer.serve.turn_bodies import AcceptedTurn
from shared.clock import now_ms
from shared.codecs.live_pieces import LivePiece
from shared.errors import ProctorError
from shared.ledger.calls import FORESEEN

GATHER_S: Final = 0.005
"""Shortest time between the starts of two micro-runs; a single turn is submitted at once."""
MOST_BYTES: Final = 1 << 20
"""Bound of a micro-run besides `MOST_TURNS`: it is one chunk, which the order of the workers needs."""
BUSY_S: Final = 0.02
"""How long turns wait at most, beyond `GATHER_S`, while `MOST_UNDER_WAY` micro-runs are decided."""
MOST_UNDER_WAY: Final = 3
"""Two that a worker process decides at a time, and one that follows."""
LOOK_S: Final = 0.25
"""A run whose end has not been reported for this long is polled."""
ADOPT_S: Final = 30.0
"""Time between two searches for micro-runs of servers that have gone."""
THREADS: Final = 4
"""Calls to Redis at a time: one submits, one listens, two read and fold."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Waiting(NamedTuple):
    """The turns of one request, and the futures that it awaits."""

    turns: Sequence[AcceptedTurn]
    ids: "asyncio.Future[list[str]]"
    """Set when they are submitted: `run.index` of each."""
    results: "asyncio.Future[list[ServedTurn]]"
    is_kept: bool
    """Whether the results are kept for later requests."""
    on_piece: Callable[[LivePiece], None] | None
    """Takes pieces of the answer to a single turn while it is written."""
    accepted_ms: int
    """When they came, epoch milliseconds."""


class _UnderWay(NamedTuple):
    """A micro-run whose end is awaited."""

    micro: MicroRun
    requests: Sequence[Waiting]
    since_s: float


class Gatherer:
    """Decides the turns of one namespace; belongs to one event loop.

    Args:
        runs: submits and reads micro-runs.
        max_waiting: turns that may wait for their decisions.
        most_turns: of several requests in a micro-run; with a model 1, so that no answer waits for another.
        on_submit: told the turns of each micro-run.
    """

    def __init__(
        self, runs: MicroRuns, max_waiting: int, most_turns: int, on_submit: Callable[[int], None]
    ) -> None:
        self._on_submit = on_submit
        self._runs, self._max_waiting, self._most_turns = runs, max_waiting, most_turns
        self._gathered = deque[Waiting]()
        self._under_way: dict[str, _UnderWay] = {}
        self._early = set[str]()
        """Runs that ended while they were being submitted."""
        self._news, self._ended = asyncio.Event(), asyncio.Event()
        self._threads = ThreadPoolExecutor(THREADS, "serve")
        self._tasks = set[asyncio.Task[None]]()
        self.waiting = 0
        """Turns that were accepted and have no decision yet."""

    def start(self) -> None:
        """Begins to submit and to listen."""
        for work in (self._submit_all, self._listen, self._look, self._adopt):
            self._spawn(work())

    @property
    def runs(self) -> MicroRuns:
        """What submits and reads micro-runs."""
        return self._runs

    @property
    def queued(self) -> int:
        """Turns that were accepted and are in no micro-run yet."""
        return sum(len(request.turns) for request in self._gathered)

    @property
    def is_full(self) -> bool:
        """Whether no more turns can be accepted now."""
        return self.waiting >= self._max_waiting

    def accept(
        self,
        turns: Sequence[AcceptedTurn],
        *,
        is_kept: bool = False,
        on_piece: Callable[[LivePiece], None] | None = None,
    ) -> Waiting:
        """Queues turns; they are decided whether or not anybody waits for the results.

        Args:
            turns: consecutive turns of one caller.
            is_kept: whether results are kept for later requests.
            on_piece: takes pieces of the answer to a single turn while it is written.
        """
        loop = asyncio.get_running_loop()
        request = Waiting(turns, loop.create_future(), loop.create_future(), is_kept, on_piece, now_ms())
        request.ids.add_done_callback(_seen)
        request.results.add_done_callback(_seen)
        self.waiting += len(turns)
        self._gathered.append(request)
        self._news.set()
        return request

    async def drain(self, within_s: float) -> bool:
        """Waits until no turn is pending; returns whether that happened in time."""
        deadline_s = monotonic() + within_s
        while self.waiting and monotonic() < deadline_s:  # noqa: ASYNC110 - rarely awaited, and changed by every run that ends
            await asyncio.sleep(GATHER_S)
        return not self.waiting

    async def close(self) -> None:
        """Stops all tasks; workers still decide the turns that were submitted."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _submit_all(self) -> None:
        """Submits what was gathered, one run after the other: their order is that of the turns."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._gathered:
                began_s = monotonic()
                await self._submit(self._taken())
                await asyncio.sleep(max(0.0, began_s + GATHER_S - monotonic()))
                await self._room()

    async def _room(self) -> None:
        """Waits a moment while several micro-runs are decided: few large ones are done sooner than many."""
        if self._most_turns > 1 and len(self._under_way) >= MOST_UNDER_WAY and self.queued < self._most_turns:
            self._ended.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), BUSY_S)

    def _taken(self) -> list[Waiting]:
        """Takes as many requests as fit a micro-run, and at least one."""
        taken, turns, size = list[Waiting](), 0, 0
        while self._gathered:
            request = self._gathered[0]
            turns += len(request.turns)
            size += sum(len(turn.line) for turn in request.turns)
            if taken and (turns > self._most_turns or size > MOST_BYTES):
                break
            taken.append(self._gathered.popleft())
        return taken

    async def _submit(self, requests: Sequence[Waiting]) -> None:
        """Submits the turns of some requests."""
        turns = [turn for request in requests for turn in request.turns]
        accepted_ms = [request.accepted_ms for request in requests for _ in request.turns]
        is_kept = any(request.is_kept for request in requests)
        self._early.clear()
        try:
            is_heard = any(request.on_piece for request in requests)
            micro = await self._in_thread(
                partial(self._runs.submit, turns, accepted_ms, is_kept=is_kept, is_heard=is_heard)
            )
        except FORESEEN as error:
            self._fail(requests, error)
            return
        self._on_submit(len(turns))
        self._under_way[micro.run] = _UnderWay(micro, requests, monotonic())
        at = 0
        for request in requests:
            if not request.ids.done():
                request.ids.set_result([f"{micro.run}.{at + one}" for one in range(len(request.turns))])
            at += len(request.turns)
        if micro.run in self._early:
            self._end(micro.run)

    async def _listen(self) -> None:
        """Finishes runs that the ledger reports as ended."""
        await self._for_ever(self._heard, 0.0)

    async def _heard(self) -> None:
        heard = await self._in_thread(self._runs.heard)
        for piece in heard.pieces:
            self._hand_out(piece)
        for run in heard.ended:
            self._end(run)

    def _hand_out(self, piece: LivePiece) -> None:
        """Gives a piece of an answer to the caller who waits for it, if there is one."""
        each, before = self._under_way.get(piece.run), 0
        for request in each.requests if each else ():
            if before <= piece.index < before + len(request.turns) and request.on_piece is not None:
                request.on_piece(piece)
            before += len(request.turns)

    async def _look(self) -> None:
        """Polls runs whose end has not been reported for a while."""
        await self._for_ever(self._look_once, LOOK_S)

    async def _look_once(self) -> None:
        before_s = monotonic() - LOOK_S
        silent = [run for run, each in self._under_way.items() if each.since_s < before_s]
        for run in await self._in_thread(partial(self._runs.ended_among, silent)) if silent else ():
            self._end(run)

    async def _adopt(self) -> None:
        """Folds runs that nobody folded."""
        await self._for_ever(
            lambda: self._in_thread(partial(self._runs.adopt, frozenset(self._under_way))), ADOPT_S
        )

    def _end(self, run: str) -> None:
        """Finishes a run that has ended, once."""
        if each := self._under_way.pop(run, None):
            self._ended.set()
            self._spawn(self._finish(each))
        else:
            self._early.add(run)

    async def _finish(self, each: _UnderWay) -> None:
        """Hands out the results of a run, and folds it."""
        try:
            found = await self._in_thread(partial(self._runs.read, each.micro))
        except ProctorError as error:
            self._fail(each.requests, error)
            return
        except FORESEEN:  # Redis is away: `_look` finds the end once more
            self._under_way[each.micro.run] = each
            return
        at = 0
        for request in each.requests:
            if not request.results.done():
                request.results.set_result(found[at : at + len(request.turns)])
            at += len(request.turns)
            self.waiting -= len(request.turns)
        with suppress(*FORESEEN):  # `adopt` finds it later
            if any(request.is_kept for request in each.requests):
                await self._in_thread(partial(self._runs.keep_results, each.micro.run, enumerate(found)))
            await self._in_thread(partial(self._runs.fold, each.micro.run))

    def _fail(self, requests: Sequence[Waiting], error: Exception) -> None:
        """Tells callers that their turns have no result."""
        for request in requests:
            self.waiting -= len(request.turns)
            for future in (request.ids, request.results):
                if not future.done():
                    future.set_exception(error)

    async def _for_ever(self, work: Callable[[], Awaitable[None]], pause_s: float) -> None:
        """Repeats work for ever, also after errors of Redis."""
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - the server goes on whatever Redis answers
                logger.warning("serve cannot read", extra={"reason": str(error)})
                await asyncio.sleep(1.0)
            await asyncio.sleep(pause_s)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _spawn(self, work: "Awaitable[None]") -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _seen(future: "asyncio.Future[Any]") -> None:
    """Reads the exception of a future that nobody awaits any more, which asyncio would report."""
    if not future.cancelled():
        future.exception()
