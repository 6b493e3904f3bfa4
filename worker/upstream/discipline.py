"""Puts together what one worker process needs to call upstreams; the lifecycle makes one and closes it.

upstream = Upstream(process.ledger, on_away=process.give_up)
outcome = await upstream.gate.call(endpoint, send, owner=lease.token)
upstream.close()
"""

from collections.abc import Callable

from shared.errors import RedisUnreachableError
from shared.ledger import Ledger
from shared.ledger.calls import ScriptCaller
from worker.upstream.gate import Gate
from worker.upstream.limiter import Limiter
from worker.upstream.port import Port
from worker.upstream.scripts import compose_all


class Upstream:
    """The discipline of one process; its coroutines run on one event loop.

    Args:
        ledger: whose server and patience are used.
        on_away: called, in a thread, when Redis stayed away for longer than the patience: ends the process.
    """

    def __init__(self, ledger: Ledger, *, on_away: Callable[[RedisUnreachableError], object]) -> None:
        caller = ScriptCaller(
            ledger.caller.client, patience_s=ledger.caller.patience_s, scripts=compose_all()
        )
        self._port = Port(caller, on_away=on_away)
        self.gate = Gate(Limiter(self._port))
        """The one door."""

    def close(self) -> None:
        """Ends its thread, after what was said before; nothing can be called any more."""
        self._port.close()
