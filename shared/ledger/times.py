"""The times of the ledger's protocol: one object, from which its scripts are rendered.

All are derived from one number, the duration of a lease, so that they keep their proportions: a lease spans
many renewals, a wake-up counts as lost only after leases would have ended, and the ledger clock never
advances further past a tick than a worker may be late with one.

Times are stored in Redis as deadlines, so that processes with different settings can share a server.
"""

from dataclasses import astuple, dataclass, fields
from typing import Final, Self

from shared.ledger.bounds import lua_local
from shared.settings import LEASE_S

LEASE_MS: Final = round(1000 * LEASE_S)
"""The default lease, in whose proportions the defaults below are given."""


@dataclass(frozen=True, slots=True)
class Times:
    """How long things last in the protocol, in milliseconds."""

    lease_ms: int = LEASE_MS
    """A claim, a renewal or a worker's registration, on the ledger clock."""
    loader_ms: int = LEASE_MS
    """The lease of a loader, on the ledger clock."""
    overdue_ms: int = 2 * LEASE_MS
    """The least time after which an unclaimed wake-up counts as lost and is published again."""
    unclaimed_ms: int = LEASE_MS // 5
    """The same while a worker has been idle for as long; also how often an idle worker checks."""
    park_ms: int = LEASE_MS // 15
    """How long a suspect chunk stands aside when its worker already holds one."""
    skew_ms: int = 2 * LEASE_MS // 15
    """How far the ledger clock may advance past the last tick."""
    tick_ms: int = 3 * LEASE_MS // 50
    """A tick does nothing if another ran less than this ago."""
    period_ms: int = LEASE_MS // 15
    """Between two ticks, and between two renewals, of one process."""

    @classmethod
    def of(cls, lease_s: float) -> Self:
        """Scales all times to leases of another length.

        Args:
            lease_s: how long a claim lasts.

        >>> Times.of(LEASE_S) == Times()
        True
        >>> Times.of(3).lease_ms, Times.of(3).period_ms
        (3000, 200)
        """
        standard = astuple(cls())
        return cls(*(round(each * lease_s / LEASE_S) for each in standard))

    def lua_source(self, name: str) -> str | None:
        r"""Renders one time as a Lua local; None when there is no such time.

        >>> Times().lua_source("LEASE_MS"), Times().lua_source("BULK")
        ('local LEASE_MS = 15000\n', None)
        """
        is_time = name.isupper() and name.lower() in {each.name for each in fields(self)}
        return lua_local(name, getattr(self, name.lower())) if is_time else None


TIMES: Final = Times()
"""Those of the default lease."""
