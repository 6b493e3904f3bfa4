"""What runs with a cost cap have cost so far, for `watch`, reports and `resume --max-cost`.

The scripts of `worker/upstream` keep the figures, in billionths of a dollar; this file reads them and
raises caps.
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shared import keys
from shared.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.ledger.calls import ScriptCaller

NANOS: Final = 1_000_000_000
"""The unit of the scripts is this part of a dollar: whole numbers, so that no sum drifts."""
MOST_USD: Final = 1_000_000.0
"""A higher cap is a mistake; and sums stay exact in Lua's numbers."""


class Cost(NamedTuple):
    """The cost of a run with a cost cap."""

    cap_usd: float | None
    """Its cap, if one was set by hand after the submit; None: the one in its settings."""
    spent_usd: float
    """Billed cost, or cost that counts as billed."""
    held_usd: float
    """Cost reserved by calls in flight."""
    over_usd: float | None = None
    """What the call may cost for which there was no room; None while there is."""

    @property
    def is_over(self) -> bool:
        """Whether the last reservation exceeded the cap."""
        return self.over_usd is not None


def to_nanos(usd: float) -> int:
    """Writes dollars as the scripts count them.

    >>> to_nanos(0.1), to_nanos(1e-10)
    (100000000, 0)
    """
    return round(usd * NANOS)


def checked_cap(usd: float) -> float:
    """Returns a cap.

    Raises:
        UsageError: it is no number from 0 to `MOST_USD`.

    >>> checked_cap(0.5)
    0.5
    """
    if not 0 <= usd <= MOST_USD:
        raise UsageError(f"a run cannot be capped at {usd:g} dollars", hint="0 to 1,000,000 can be set")
    return usd


class CostBook:
    """The costs of runs, in Redis.

    Args:
        caller: a connection; `Ledger.caller` is one.
    """

    def __init__(self, caller: "ScriptCaller") -> None:
        self._caller = caller

    def read(self, run: str) -> Cost:
        """Returns the cost of a run; zeros for a run without a cap or without calls."""
        client: Any = self._caller.client
        fields = ("cap", "spent", "held", "over")
        found = self._caller.patiently(lambda: client.hmget(keys.cost_key(run), *fields))
        return cost_from(dict(zip(fields, found, strict=True)))

    def set_cap(self, run: str, usd: float) -> None:
        """Sets another cap, which overrides the one from the submit.

        Raises:
            UsageError: it is no number from 0 to `MOST_USD`.
        """
        nanos, client = to_nanos(checked_cap(usd)), self._caller.client

        def write() -> None:
            client.hset(keys.cost_key(run), "cap", nanos)
            client.hdel(keys.cost_key(run), "over")
            left_ms = client.pttl(keys.run_key(run))
            if left_ms > 0:  # the run is final: what belongs to it ends with it
                client.pexpire(keys.cost_key(run), left_ms)

        self._caller.patiently(write)


def cost_from(fields: "Mapping[str, bytes | None]") -> Cost:
    """Reads the stored figures.

    >>> cost_from({"cap": None, "spent": b"1500000000", "held": None, "over": None})
    Cost(cap_usd=None, spent_usd=1.5, held_usd=0.0, over_usd=None)
    """
    cap, over = (None if (raw := fields[name]) is None else int(raw) / NANOS for name in ("cap", "over"))
    return Cost(cap, int(fields["spent"] or 0) / NANOS, int(fields["held"] or 0) / NANOS, over)


def over_text(next_usd: float, spent_usd: float, cap_usd: float) -> str:
    """Returns the message for people that a cap is reached.

    >>> over_text(0.02, 0.995, 1)
    'cost cap reached: $0.995 of $1 is spent, and the next call may cost $0.02'
    """
    return (
        f"cost cap reached: ${spent_usd:.6g} of ${cap_usd:.6g} is spent,"
        f" and the next call may cost ${next_usd:.6g}"
    )
