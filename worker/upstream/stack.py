"""Puts together what one worker process needs to call upstreams; the lifecycle makes one and closes it.

upstream = UpstreamStack(process.ledger, on_unreachable=process.exit_with, session=process.loop.session)
outcome = await upstream.gate.call(endpoint, send, owner=lease.token)
outcome = await upstream.models.call(request, context, history, on_send=item.working)
upstream.close()
"""

import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shared import keys
from shared.errors import RedisUnreachableError
from shared.ledger.ledger import Ledger
from shared.ledger.scripts import Library, Script, compose, ledger_library
from shared.ledger.times import TIMES, Times
from shared.redaction import Redactor
from shared.settings import CACHE_TTL_S
from worker.upstream import constants
from worker.upstream.budget import Budget
from worker.upstream.cache import ResponseCache
from worker.upstream.contacts import Contacts
from worker.upstream.gate import CallGate, always
from worker.upstream.limiter import Limiter
from worker.upstream.model_caller import ModelCaller, ModelClient
from worker.upstream.script_batcher import ScriptBatcher

if TYPE_CHECKING:
    import aiohttp

FOLDER: Final = Path(__file__).parent / "lua"
NAMES: Final = (
    "acquire", "release", "renew_permits",
    "look_up", "keep_answer", "renew_leads",
    "reserve", "settle_cost", "renew_reservations",
    "answered", "unreached", "absent",
    "add_counts", "tell_piece",
)  # fmt: skip
"""The scripts of `lua/`, which stand on the ledger's keys, numbers and functions."""
RENEWALS: Final = 3
"""Renewals of a permit, a reservation or a question under way, in the time for which each is granted."""


class UpstreamStack:
    """What one process needs to call upstreams; its coroutines run on one event loop.

    Args:
        ledger: whose server and patience are used.
        on_unreachable: called, in a thread, when Redis stayed away for longer than the patience; ends the
            process.
        session: returns the process's HTTP session; called on the loop.
        confirm: says whether a claim token still holds; see `CallGate`.
        cache_ttl_s: how long answers of models are kept.
        redactor: what is replaced in answers before they are cached and judged; None: nothing.
        allow_code: whether code beside benches may run.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        on_unreachable: Callable[[RedisUnreachableError], object],
        session: "Callable[[], aiohttp.ClientSession]",
        confirm: Callable[[str], Awaitable[bool]] = always,
        cache_ttl_s: int = CACHE_TTL_S,
        redactor: Redactor | None = None,
        allow_code: bool = False,
    ) -> None:
        caller = ledger.caller.sharing(compose_all(times=ledger.times))
        renew_s = ledger.times.lease_ms / RENEWALS / 1000
        self._scripts = ScriptBatcher(caller, renew_s=renew_s, on_unreachable=on_unreachable)
        self._session = session
        self._redactor, self._allow_code = redactor, allow_code
        self.gate = CallGate(Limiter(self._scripts), confirm=confirm)
        """Makes each call within the limits."""
        self.cache = ResponseCache(self._scripts, ttl_s=cache_ttl_s)
        """Answers of models that were given before."""
        self.budget = Budget(self._scripts)
        """Budgets of runs with a cost cap."""
        self.contacts = Contacts(self._scripts)
        """Which endpoints have answered which runs."""

    @cached_property
    def models(self) -> ModelCaller:
        """Asks models, with cache, budget, limits and retry."""
        # Start-up: not needed by turns.
        from worker.upstream import credentials, model_clients, redacting  # noqa: PLC0415 - see above

        clients: ModelClient = model_clients.ModelClients(self._session, allow_code=self._allow_code)
        if self._redactor is not None:
            clients = redacting.RedactingClient(clients, self._redactor)
        return ModelCaller(
            self.gate,
            clients,
            self.cache,
            self.budget,
            self.contacts,
            key_of=lambda request: credentials.key_of(request, os.environ),
        )

    def tell(self, listener: str, piece: bytes) -> None:
        """Sends a piece of an answer to a process that listens; only on the event loop.

        Args:
            listener: its name.
            piece: see `shared.codecs.live_pieces`.
        """
        self._scripts.post("tell_piece", listener, piece)

    def close(self) -> None:
        """Ends its thread, after what was posted before; nothing can be called any more."""
        self.gate.counts.close()
        self._scripts.close()


def release_permits_of(ledger: Ledger, workers: Collection[str]) -> None:
    """Removes the permits of dead processes, which would otherwise count as calls for one more lease.

    Args:
        ledger: whose server is used.
        workers: node names, with which the claim tokens in their permits begin.
    """
    client, patiently = ledger.caller.client, ledger.caller.patiently
    for scope in patiently(lambda: client.zrange(keys.SCOPES_KEY, 0, -1)):
        place = keys.permits_key(scope.decode())
        permits = patiently(partial(client.zrange, place, 0, -1))
        theirs = [permit for permit in permits if _worker_of(permit.decode()) in workers]
        if theirs:
            patiently(partial(client.zrem, place, *theirs))


def _worker_of(permit: str) -> str:
    """Returns the worker whose claim token ends a permit.

    >>> _worker_of("7d1f 3 cases-1.4711@host.0123abcd.5")
    'cases-1.4711@host'
    """
    return permit.split(" ", 2)[-1].rsplit(".", 2)[0]


def upstream_library(times: Times) -> Library:
    """Names what the scripts are made of, with these times."""
    ledger = ledger_library(times)
    return Library((FOLDER, *ledger.folders), (*ledger.sources, constants.lua_source))


def compose_all(replaced: Mapping[str, str] | None = None, *, times: Times = TIMES) -> dict[str, Script]:
    """Reads every script by name.

    Args:
        replaced: functions to use instead of those in `lua/lib`; tests put their own clock under `now`.
        times: the ledger's; by default the standard ones.

    >>> sorted(compose_all()) == sorted(NAMES)
    True
    """
    library = upstream_library(times)
    return {name: compose(name, library, replaced) for name in NAMES}
