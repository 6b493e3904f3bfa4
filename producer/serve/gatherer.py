"""Gathers turns of all callers into micro-runs, and hands each caller the results of its turns."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from threading import Event
from time import monotonic
from typing import Any, Final, NamedTuple, TypeVar

from producer.serve.micro_runs import MicroRuns, ServedTurn
from producer.serve.turn_bodies import AcceptedTurn
from shared.clock import now_ms
from shared.codecs.live_pieces import LivePiece
from shared.ledger.calls import AWAY, FORESEEN

GATHER_S: Final = 0.005
"""Shortest time between the starts of two micro-runs; a single turn is submitted at once."""
MOST_BYTES: Final = 1 << 20
"""Requests go together up to it, besides `MOST_TURNS`: a micro-run is one chunk, which the order of its turns
needs. A larger request is a micro-run of its own."""
BUSY_S: Final = 0.02
"""How long turns wait at most, beyond `GATHER_S`, while `MOST_UNDER_WAY` micro-runs are decided."""
MOST_UNDER_WAY: Final = 3
"""Two that a worker process decides at a time, and one that follows."""
LOOK_S: Final = 0.25
"""A run whose end has not been reported for this long is polled."""
ADOPT_S: Final = 30.0
"""Time between two searches for micro-runs of servers that have gone."""
PAUSE_S: Final = 1.0
"""After an error of Redis."""
FOLD_S: Final = 0.05
"""How long micro-runs that were answered wait to be folded together: nobody waits for that."""
THREADS: Final = 4
"""Calls to Redis at a time: one submits, one listens and reads, one looks, one folds."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Waiting:
    """The turns of one request, and the futures that it awaits."""

    turns: Sequence[AcceptedTurn]
    ids: "asyncio.Future[list[str]]"
    """Set when they are submitted, and before the results: `run.index` of each."""
    results: "asyncio.Future[Sequence[ServedTurn]]"
    is_kept: bool
    """Whether the results are kept for later requests; set, too, when the caller waits no longer."""
    on_piece: Callable[[LivePiece], None] | None
    """Takes pieces of the answer to a single turn while it is written."""
    accepted_ms: int
    """When they came, epoch milliseconds."""


class _UnderWay(NamedTuple):
    """A micro-run whose end is awaited."""

    requests: Sequence[Waiting]
    since_s: float = inf
    """Since when it has been submitted."""


class _Ended(NamedTuple):
    """A micro-run that has ended, with the results of its turns, or why they could not be read."""

    run: str
    found: Sequence[ServedTurn] | Exception


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
        self._answered = list[tuple[str, Sequence[ServedTurn]]]()
        """Runs that are to be folded, with the results that somebody fetches later."""
        self._news, self._ended = asyncio.Event(), asyncio.Event()
        self._threads = ThreadPoolExecutor(THREADS, "serve")
        self._tasks = list[asyncio.Task[None]]()
        self._listening = Future[None]()
        self._closed = Event()
        self.waiting = 0
        """Turns that were accepted and have no decision yet."""

    def start(self) -> None:
        """Begins to submit and to listen."""
        periodic = (
            (self._submit_all, 0.0),
            (self._look, LOOK_S),
            (self._fold, FOLD_S),
            (self._adopt, ADOPT_S),
        )
        self._tasks = [asyncio.create_task(self._for_ever(*each)) for each in periodic]
        self._listening = self._threads.submit(self._listen, asyncio.get_running_loop())

    @property
    def is_running(self) -> bool:
        """Whether everything that `start` began goes on."""
        return not (self._listening.done() or any(task.done() for task in self._tasks))

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
        while (self.waiting or self._answered) and monotonic() < deadline_s:  # noqa: ASYNC110 - rarely awaited, and changed by every run that ends
            await asyncio.sleep(GATHER_S)
        return not self.waiting

    async def close(self) -> None:
        """Stops all tasks; workers still decide the turns that were submitted."""
        self._closed.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _submit_all(self) -> None:
        """Waits for turns, and submits them, one run after the other: their order is that of the turns."""
        if not self._gathered:
            self._news.clear()
            await self._news.wait()
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
        is_heard = any(request.on_piece for request in requests)
        run = self._runs.next_run()
        self._under_way[run] = _UnderWay(requests)  # it may end before its submit returns
        try:
            await self._in_thread(partial(self._runs.submit, run, turns, accepted_ms, is_heard=is_heard))
        except Exception as error:  # noqa: BLE001 - its callers are told, and further turns are submitted
            self._fail(run, error)
            return
        self._on_submit(len(turns))
        if run in self._under_way:
            self._under_way[run] = _UnderWay(requests, monotonic())
        _name(run, requests)

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hears and reads what has ended, in a thread of its own until `close`."""
        while not self._closed.is_set():
            try:
                heard = self._runs.heard()
                told = partial(self._told, heard.pieces, self._read(heard.ended))
            except Exception as error:  # noqa: BLE001 - as in `_for_ever`
                if not self._closed.is_set():
                    _warn(error)
                self._closed.wait(PAUSE_S)
            else:
                loop.call_soon_threadsafe(told)

    def _told(self, pieces: Sequence[LivePiece], ended: Sequence[_Ended]) -> None:
        """Hands out what was heard."""
        for piece in pieces:
            self._hand_out(piece)
        self._end(ended)

    def _read(self, runs: Sequence[str]) -> list[_Ended]:
        """Reads the results of runs that have ended, in a thread."""
        ended = list[_Ended]()
        for run in runs:
            if each := self._under_way.get(run):
                total = sum(len(request.turns) for request in each.requests)
                try:
                    ended.append(_Ended(run, self._runs.read(run, total)))
                except Exception as error:  # noqa: BLE001 - one run that cannot be read stops no other
                    ended.append(_Ended(run, error))
        return ended

    def _hand_out(self, piece: LivePiece) -> None:
        """Gives a piece of an answer to the caller who waits for it, if there is one."""
        each, before = self._under_way.get(piece.run), 0
        for request in each.requests if each else ():
            if before <= piece.index < before + len(request.turns) and request.on_piece is not None:
                request.on_piece(piece)
            before += len(request.turns)

    async def _look(self) -> None:
        """Polls runs whose end has not been reported for a while."""
        before_s = monotonic() - LOOK_S
        silent = [run for run, each in self._under_way.items() if each.since_s < before_s]
        if silent:
            self._end(await self._in_thread(lambda: self._read(self._runs.ended_among(silent))))

    async def _fold(self) -> None:
        """Folds runs that were answered, those of a moment together."""
        answered, self._answered = self._answered, []
        if answered:
            await self._in_thread(partial(self._fold_together, answered))

    def _fold_together(self, answered: Sequence[tuple[str, Sequence[ServedTurn]]]) -> None:
        """Keeps what somebody fetches later, and folds, in a thread; `adopt` finds what fails."""
        for run, found in answered:
            self._runs.keep_results(run, enumerate(found))
        self._runs.fold([run for run, _ in answered])

    async def _adopt(self) -> None:
        """Folds runs that nobody folded."""
        await self._in_thread(partial(self._runs.adopt, frozenset(self._under_way)))

    def _end(self, ended: Sequence[_Ended]) -> None:
        """Finishes runs that have ended, each once: hands out their results."""
        for run, found in ended:
            if isinstance(found, AWAY):
                continue  # `_look` finds the end once more
            if isinstance(found, Exception):
                self._fail(run, found)
            elif each := self._under_way.pop(run, None):
                _name(run, each.requests)  # its submit may not have returned yet
                is_kept = any(request.is_kept for request in each.requests)
                self._answered.append((run, found if is_kept else []))
                at = 0
                for request in each.requests:
                    if not request.results.done():
                        request.results.set_result(found[at : at + len(request.turns)])
                    at += len(request.turns)
                    self.waiting -= len(request.turns)
            self._ended.set()

    def _fail(self, run: str, error: Exception) -> None:
        """Tells callers that the turns of a run have no result."""
        each = self._under_way.pop(run, None)
        for request in each.requests if each else ():
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
                _warn(error)
                await asyncio.sleep(PAUSE_S)
            await asyncio.sleep(pause_s)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def _name(run: str, requests: Sequence[Waiting]) -> None:
    """Tells callers under which ids the ledger has their turns."""
    at = 0
    for request in requests:
        if not request.ids.done():
            request.ids.set_result([f"{run}.{at + one}" for one in range(len(request.turns))])
        at += len(request.turns)


def _warn(error: Exception) -> None:
    if isinstance(error, FORESEEN):
        logger.warning("serve cannot read", extra={"reason": str(error)})
    else:
        logger.error("serve goes on after an error", exc_info=error)


def _seen(future: "asyncio.Future[Any]") -> None:
    """Reads the exception of a future that nobody awaits any more, which asyncio would report."""
    if not future.cancelled():
        future.exception()
