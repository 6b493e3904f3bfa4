"""The ledger as Python sees it: one method per script, values in and values out.

What the scripts promise stands at the head of each file in `lua/`. Methods that return wakes leave publishing
them to the caller; one that dies before it did has lost wake-ups, which the steward repeats.
"""

from shared.ledger.loading import LoadingCalls
from shared.ledger.operating import OperatingCalls
from shared.ledger.working import WorkingCalls


class Ledger(LoadingCalls, WorkingCalls, OperatingCalls):
    """The truth about runs, chunks and items; safe to share between threads.

    Every call waits for a Redis that is away, up to `patience_s`, and then raises `RedisUnreachableError`.
    """
