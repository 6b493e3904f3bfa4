"""Makes a call and repeats it where that can help, for models as well as APIs.

Short waits are slept here; for longer ones the item frees its slot, and the ledger keeps its attempts.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, TypeVar

from shared.clock import now_ms
from shared.codecs.parked_items import History, ParkedState, WaitReason
from shared.upstream.failure_reasons import FailureReason
from worker.outcomes import Deferred
from worker.upstream.failures import UpstreamError
from worker.upstream.retry import GiveUp, RetryAt, frees_slot

T = TypeVar("T")
OnFailure: TypeAlias = Callable[[UpstreamError, int, float | None], None]
"""Logs and counts a call that failed: why, which call it was (from 1), seconds until the next one or None."""


class PlansRetry(Protocol):
    """Decides what follows a call that failed; both policies are in `worker.upstream.retry`."""

    def __call__(
        self, history: History, reason: FailureReason, *, now_ms: int, wait_s: float | None
    ) -> tuple[History, RetryAt | GiveUp]:
        """Returns the history including this call, and what to do next."""


class CallsMade:
    """The calls that are made for an item, or for one of its judges.

    Args:
        history: earlier calls, including those of other workers.
    """

    __slots__ = ("history",)

    def __init__(self, history: History = History()) -> None:  # noqa: B008 - immutable
        self.history = history

    async def until_answered(
        self, call: Callable[[], Awaitable[T]], plan: PlansRetry, on_failure: OnFailure
    ) -> T:
        """Calls until there is an answer.

        Args:
            call: makes one call.
            plan: decides what follows a failure.
            on_failure: logs and counts each failure.

        Raises:
            UpstreamError: there is no answer, and another call would not help.
            Deferred: the next call is too far in the future to wait for it here, or `call` was deferred.
        """
        while True:
            try:
                answer = await call()
            except UpstreamError as failure:
                error = failure
            else:
                self.history = self.history._replace(attempts=self.history.attempts + 1)
                return answer
            attempt = self.history.attempts + 1
            self.history, step = plan(self.history, error.reason, now_ms=now_ms(), wait_s=error.wait_s)
            if isinstance(step, GiveUp):
                on_failure(error, attempt, None)
                raise error
            wait_ms = max(0, step.ms - now_ms())
            on_failure(error, attempt, wait_ms / 1000)
            if frees_slot(error.reason, wait_ms):
                raise Deferred(step.ms, ParkedState(WaitReason.RETRY))
            await asyncio.sleep(wait_ms / 1000)
