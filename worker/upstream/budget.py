"""Keeps runs below their cost cap: reserves before a call, settles after it, over the whole fleet.

    reserve ── ok ───► the call ──► settle     with what it cost; nothing for a call that was not billed
      ├── wait ──► other calls have reserved what is left, and may end up cheaper: when one of ours ends,
      │            or after a moment; first come, first served; after two seconds the item is parked
      └── over ──► nothing is reserved any more and there is no room: the run ends as incomplete

A call is estimated from the length of its prompt and from `max_tokens`. Without `max_tokens` answers
may get longer than assumed, and the run may end up above its cap by what those under way cost more; near the
cap that is one answer, because there calls go one at a time. What a process that died had reserved counts as
spent one lease later: it was perhaps billed. Hits of the cache cost nothing.
"""

from collections.abc import Sequence
from itertools import count
from time import monotonic
from typing import Final, NamedTuple
from uuid import uuid4

from shared.clock import now_ms
from shared.codecs.parked_items import ParkedState, WaitReason
from shared.names import RunState
from shared.upstream.costs import NANOS, over_text, to_nanos
from worker.outcomes import Deferred, EndRun
from worker.upstream.constants import WAIT_MS, draw_park_ms
from worker.upstream.limiter import MOST_QUEUES
from worker.upstream.script_batcher import ScriptBatcher, ScriptFailedError
from worker.upstream.wait_queue import WaitQueue, WakeReason

POLL_S: Final = 0.25
"""How often the first in the queue asks whether calls of other processes have ended."""


class Estimate(NamedTuple):
    """What a call may cost."""

    usd: float
    """As estimated."""
    least_usd: float | None = None
    """What its prompt alone costs, where the length of the answer is a guess; None: the estimate is none."""


class Reservation(NamedTuple):
    """Money that a call may spend."""

    run: str
    """The run whose budget is reserved."""
    call: str
    """Unique."""
    model: str
    """Which is called."""


class Budget:
    """Reserves and settles for the coroutines of one process.

    Args:
        scripts: runs this package's scripts.
    """

    def __init__(self, scripts: ScriptBatcher) -> None:
        self._scripts = scripts
        self._process = uuid4().hex[:12]
        self._serials = count(1)
        self._held: dict[str, Reservation] = {}
        self._queues: dict[str, WaitQueue] = {}
        scripts.every(scripts.renew_s, self._renew)

    async def reserve(self, run: str, model: str, estimate: Estimate, cap_usd: float) -> Reservation:
        """Reserves what a call may cost; waits up to two seconds for other calls to end up cheaper.

        Args:
            run: whose budget.
            model: which is called.
            estimate: what the call may cost.
            cap_usd: what the run was submitted with; a cap set later goes before it.

        Raises:
            Deferred: other calls have reserved what is left.
            EndRun: the cap is reached: nothing is under way, and the call does not fit.
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        hold = Reservation(run, f"{self._process}:{next(self._serials)}", model)
        try:
            await self._reserve(hold, estimate, cap_usd)
        except (Deferred, EndRun):
            raise
        except BaseException:  # cancelled, perhaps after it was reserved
            self.settle(hold, 0.0)
            raise
        self._held[hold.call] = hold
        return hold

    def settle(self, hold: Reservation, usd: float | None, *, is_answer: bool = False) -> None:
        """Settles what a call has cost.

        Args:
            hold: of the call.
            usd: what it cost; None: not known, it counts as it was estimated.
            is_answer: whether the model answered, so that the cost says something about its answers.
        """
        self._held.pop(hold.call, None)
        cost = "" if usd is None else str(to_nanos(usd))
        self._scripts.post("settle_cost", hold.run, hold.call, cost, hold.model if is_answer and cost else "")
        queue = self._queues.get(hold.run)
        if queue is not None:
            queue.wake_next(WakeReason.CALL_ENDED)

    async def _reserve(self, hold: Reservation, estimate: Estimate, cap_usd: float) -> None:
        """Repeats the script until its answer is not to wait."""
        queue, woken, flat = self._queue_of(hold.run), None, reserve_arguments(hold, estimate, cap_usd)
        deadline = monotonic() + WAIT_MS / 1000
        if queue.waiters:
            woken = await queue.wait(WAIT_MS / 1000, is_first=False)
        while True:
            match await self._scripts.run("reserve", *flat):
                case [b"ok"]:
                    queue.wake_next(WakeReason.POLL)  # where there was room for one there may be more
                    return
                case [b"over", bytes(spent), bytes(cap)]:
                    queue.wake_next(WakeReason.POLL)  # the next one learns it too
                    text = over_text(estimate.usd, int(spent) / NANOS, int(cap) / NANOS)
                    raise EndRun(RunState.INCOMPLETE, text)
                case [b"wait"] if woken is WakeReason.TIMED_OUT or monotonic() >= deadline:
                    raise Deferred(now_ms() + draw_park_ms(), ParkedState(WaitReason.BUDGET))
                case [b"wait"]:
                    woken = await queue.wait(max(0.0, deadline - monotonic()), is_first=woken is not None)
                case answer:
                    raise ScriptFailedError(f"reserve.lua answered {answer!r}")

    def _queue_of(self, run: str) -> WaitQueue:
        queue = self._queues.get(run)
        if queue is None:
            if len(self._queues) >= MOST_QUEUES:
                self._queues = {name: queue for name, queue in self._queues.items() if queue.waiters}
            queue = self._queues[run] = WaitQueue()
            queue.poll_s = POLL_S
        return queue

    def _renew(self) -> None:
        """Renews the reservations of what is under way; in the batcher's thread."""
        flat = [text for hold in list(self._held.values()) for text in (hold.run, hold.call)]
        if flat:
            self._scripts.caller.run("renew_reservations", *flat)


def reserve_arguments(hold: Reservation, estimate: Estimate, cap_usd: float) -> Sequence[str | int]:
    """Writes a reservation as `reserve.lua` takes it.

    >>> reserve_arguments(Reservation("r1", "c1", "m"), Estimate(0.5, 0.1), 2.0)
    ('r1', 'c1', 500000000, 100000000, 2000000000, 'm')
    """
    least = "" if estimate.least_usd is None else to_nanos(estimate.least_usd)
    return hold.run, hold.call, to_nanos(estimate.usd), least, to_nanos(cap_usd), hold.model
