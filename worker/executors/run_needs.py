"""What a run needs of a worker, and for how long its items are left to others that have it."""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from shared import plugins
from shared.clock import now_ms
from shared.codecs.parked_items import ParkedState, WaitReason
from worker.outcomes import Deferred

NOWHERE_WAIT_MS: Final = 3_000
"""How long an item waits where no live worker has what its run needs."""
ELSEWHERE_WAIT_MS: Final = 300
"""The same where one has it, whichever takes the chunk next."""


class RunNeeds:
    """The needs of one run in one process.

    Args:
        needed: keys of what it needs, as `shared.plugins` names it.
        allow_code: whether this process may run code beside a bench.
        others: reads what each live worker has.
    """

    def __init__(
        self, needed: Sequence[str], *, allow_code: bool, others: Callable[[], Collection[frozenset[str]]]
    ) -> None:
        self.lacking = plugins.lacking(needed, allow_code=allow_code)
        """Keys of what this process lacks."""
        self._needed, self._others = frozenset(needed), others
        self._wait_ms = NOWHERE_WAIT_MS

    def look(self) -> None:
        """Finds out whether another worker has what is lacking here, which reads from Redis."""
        is_elsewhere = self.lacking and any(self._needed <= has for has in self._others())
        self._wait_ms = ELSEWHERE_WAIT_MS if is_elsewhere else NOWHERE_WAIT_MS

    def check(self) -> None:
        """Leaves an item to another worker if this one lacks something.

        Raises:
            Deferred: it does.
        """
        if self.lacking:
            text = f"waiting for a worker that {plugins.having(self.lacking)}"
            raise Deferred(now_ms() + self._wait_ms, ParkedState(WaitReason.PLUGIN, text=text))
