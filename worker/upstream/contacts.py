"""Which endpoints have answered a run, and which are given up because they never did; over the whole fleet.

A mistyped port and a server that restarts fail alike. What differs is whether the endpoint has answered a
call of the run before:

    has answered      its failures pass: retries with growing waits, and the breaker
    never answered    a refused connection, an unknown host or a 404 is most likely a mistake: after the
                      second one the endpoint is given up, and calls that cannot reach it are not retried

Every item is still tried once, so that an endpoint that comes up late is used from its first answer on. A
retry of the run begins anew. While another worker waits for an answer of the endpoint, it is not given up
(`lua/unreached.lua`).
"""

from itertools import count
from typing import Final, NamedTuple
from uuid import uuid4

from shared.upstream.failure_reasons import NOT_FOUND, FailureReason
from worker.upstream.failures import UpstreamError
from worker.upstream.script_batcher import ScriptBatcher

MOST_CONTACTS: Final = 4_096
"""Endpoints of runs that a process keeps in memory."""


class Contact(NamedTuple):
    """An endpoint as one run calls it."""

    run: str
    generation: int
    """0, and one more with each retry of the run."""
    scope: str
    """The endpoint's own scope."""

    @property
    def name(self) -> str:
        """Identifies it within the run."""
        return f"{self.generation} {self.scope}"


class Contacts:
    """The contacts of one process, and through Redis of all.

    Args:
        scripts: runs this package's scripts.
    """

    def __init__(self, scripts: ScriptBatcher) -> None:
        self._scripts = scripts
        self._process = uuid4().hex[:12]
        self._serials = count(1)
        self._answered = set[Contact]()

    def answered(self, contact: Contact) -> None:
        """Notes that the endpoint has replied, whatever it replied."""
        if contact in self._answered:
            return
        if len(self._answered) >= MOST_CONTACTS:
            self._answered.clear()
        self._answered.add(contact)
        self._scripts.post("answered", contact.run, contact.name)

    async def judged(self, contact: Contact, error: UpstreamError) -> UpstreamError:
        """Returns the error of a call, with the reason that follows from the run's earlier calls.

        The call's permit is still held.

        Raises:
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        is_unreached = error.reason is FailureReason.UNREACHABLE or error.status == NOT_FOUND
        if not is_unreached or contact in self._answered:
            if not error.reason.is_silent:
                self.answered(contact)
            return error
        call, is_missing = f"{self._process}:{next(self._serials)}", int(error.status == NOT_FOUND)
        match await self._scripts.run(
            "unreached", contact.run, contact.name, contact.scope, call, is_missing
        ):
            case [b"answered"]:
                self._answered.add(contact)
                return error
            case [b"again"] if error.reason is FailureReason.UNREACHABLE:
                return error.because(FailureReason.UNREACHED)
            case _:  # a 404 is an answer too: the same request would get it again
                return error.because(FailureReason.ABSENT)

    async def are_absent(self, *contacts: Contact) -> bool:
        """Returns whether the run that they belong to has given up all of these endpoints.

        Raises:
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        names = [contact.name for contact in contacts]
        return list(await self._scripts.run("absent", contacts[0].run, *names)) == [b"absent"]
