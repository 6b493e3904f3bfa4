"""Holds what the three groups of ledger calls share: the connection, the clock, names that fit into keys."""

from collections.abc import Callable, Mapping
from re import compile as compile_pattern
from typing import TYPE_CHECKING, Final

from shared.clock import now_ms
from shared.errors import UsageError
from shared.ledger.calls import ScriptCaller
from shared.ledger.scripts import Script, ledger_scripts
from shared.ledger.times import TIMES, Times

if TYPE_CHECKING:
    import redis

NAME: Final = compile_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""What a run or a namespace may be called: such names are parts of keys and of space-separated references."""
PATIENCE_S: Final = 60.0
"""How long a call waits for a Redis that is away."""
NAMESPACE_TTL_S: Final = 30 * 24 * 3600
"""How long a shared namespace is kept once no open run uses it."""


class LedgerCalls:
    """A connection to the ledger; safe to share between threads."""

    def __init__(
        self,
        client: "redis.Redis",
        *,
        patience_s: float = PATIENCE_S,
        namespace_ttl_s: int = NAMESPACE_TTL_S,
        clock: Callable[[], int] = now_ms,
        times: Times = TIMES,
        scripts: Mapping[str, Script] | None = None,
        refused_s: float | None = None,
        full_s: float | None = None,
        on_refusal: Callable[[str], object] = str,
    ) -> None:
        """Connects nothing yet.

        Args:
            client: a redis-py client that answers in bytes and does not retry by itself.
            patience_s: how long a call waits for a Redis that is away.
            namespace_ttl_s: how long a shared namespace is kept once no open run uses it; 0 for ever.
            clock: the caller's clock in epoch milliseconds, which times given to `commit` are of.
            times: how long leases and the like last; 15 s and what follows from it unless told otherwise.
            scripts: other scripts than those in `lua/`; tests put their own clock in.
            refused_s: how long a call waits for a Redis that takes no writes; None as for one that is away.
            full_s: the same where memory is the reason; None as `refused_s`.
            on_refusal: called with the reason when a call begins to wait because of it.
        """
        self.times = times
        self.caller = ScriptCaller(
            client,
            patience_s=patience_s,
            scripts=scripts or ledger_scripts(self.times),
            refused_s=refused_s,
            full_s=full_s,
            on_refusal=on_refusal,
        )
        self.namespace_ttl_s = namespace_ttl_s
        self.clock = clock

    def delay_ms(self, due_ms: int) -> int:
        """Milliseconds until a time of the caller's clock: a clock that is wrong does no harm in Redis."""
        return max(0, due_ms - self.clock()) if due_ms else 0


def checked_name(what: str, name: str) -> str:
    """Returns the name of a run or a namespace.

    Raises:
        UsageError: it holds something that cannot stand in a key.

    >>> checked_name("namespace", "support-2024")
    'support-2024'
    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{what} {name!r} cannot be used",
            hint="take letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 128",
        )
    return name
