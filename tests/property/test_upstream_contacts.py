"""Drives the scripts of contacts with any calls in any order, some sent twice; compares them with a model.

The server is real, the ledger's clock is the test's.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from shared import keys
from shared.ledger.calls import ScriptCaller
from tests.support.exploring import machine_settings
from tests.support.redis_server import RedisServer
from worker.upstream.constants import REFUSALS
from worker.upstream.stack import compose_all

CLOCK_KEY = "test:ledger"
SCRIPTS = compose_all(
    {"clock": f"local function clock() return tonumber(redis.call('GET', '{CLOCK_KEY}')) end\n"}
)
LEASE_MS = 15_000
endpoints = st.sampled_from(["0 near", "0 far", "1 near"])


def scope_of(endpoint: str) -> str:
    """The scope of an endpoint, whatever the generation."""
    return endpoint.split(" ")[1]


@dataclass
class Contact:
    """What is known of one endpoint: the oracle."""

    has_answered: bool = False
    is_absent: bool = False
    refused: int = 0


@dataclass
class Contacts:
    """The contacts of a run, and the calls under way by their scope and the end of their permits."""

    clock: int = 0
    known: dict[str, Contact] = field(default_factory=dict)
    permits: dict[str, dict[str, int]] = field(default_factory=dict)

    def of(self, endpoint: str) -> Contact:
        """The contact with an endpoint."""
        return self.known.setdefault(endpoint, Contact())

    def under_way(self, scope: str) -> int:
        """Calls whose permits hold."""
        return sum(until > self.clock for until in self.permits.get(scope, {}).values())

    def unreached(self, endpoint: str, *, is_missing: bool) -> str:
        """What `unreached.lua` says to a call that holds its permit still."""
        contact = self.of(endpoint)
        if contact.has_answered:
            return "answered"
        if contact.is_absent:
            return "absent"
        contact.refused += 1
        return self.repeated(endpoint, is_missing=is_missing)

    def repeated(self, endpoint: str, *, is_missing: bool) -> str:
        """What it says when the same call is reported again."""
        contact = self.of(endpoint)
        is_alone = is_missing or self.under_way(scope_of(endpoint)) <= 1
        is_decided = contact.refused >= REFUSALS and is_alone
        contact.is_absent = contact.is_absent or is_decided
        return "absent" if contact.is_absent else "again"


class ContactsMachine(RuleBasedStateMachine):
    """Any report at any time."""

    server: Any = None

    @initialize()
    def begin_empty(self) -> None:
        """Empties the server."""
        self.client = self.server.client()
        self.client.flushall()
        self.caller = ScriptCaller(self.client, patience_s=5, scripts=SCRIPTS)
        self.model, self.serial = Contacts(), 0
        self.pass_time(0)

    def teardown(self) -> None:
        """Gives the connection back."""
        if hasattr(self, "client"):
            self.client.close()

    def run(self, name: str, *arguments: Any) -> str:
        """Runs a script."""
        [answer] = self.caller.run(name, "r1", *arguments)
        return str(answer.decode())

    @rule(passed=st.sampled_from([1, 5_000, LEASE_MS]))
    def pass_time(self, passed: int) -> None:
        """Moves the ledger's clock."""
        self.model.clock += passed
        self.client.set(CLOCK_KEY, self.model.clock)

    @rule(endpoint=endpoints)
    def a_call_begins(self, endpoint: str) -> None:
        """A call gets a permit, whoever makes it, and may never be heard of again."""
        self.serial += 1
        until = self.model.clock + LEASE_MS
        self.model.permits.setdefault(scope_of(endpoint), {})[f"p{self.serial}"] = until
        self.client.zadd(keys.permits_key(scope_of(endpoint)), {f"p{self.serial}": until})

    @rule(endpoint=endpoints, place=st.integers(0, 9))
    def a_call_ends(self, endpoint: str, place: int) -> None:
        """A call gives its permit back."""
        held = self.model.permits.get(scope_of(endpoint), {})
        if held:
            permit = sorted(held)[place % len(held)]
            del held[permit]
            self.client.zrem(keys.permits_key(scope_of(endpoint)), permit)

    @rule(endpoint=endpoints, times=st.integers(1, 3), is_missing=st.booleans())
    def a_call_cannot_connect(self, endpoint: str, times: int, *, is_missing: bool) -> None:
        """A call reports that it could not reach the endpoint, again when the reply was lost."""
        self.serial += 1
        expected = self.model.unreached(endpoint, is_missing=is_missing)
        flat = (endpoint, scope_of(endpoint), f"c{self.serial}", int(is_missing))
        for nth in range(times):
            if nth and expected == "again":
                expected = self.model.repeated(endpoint, is_missing=is_missing)
            assert self.run("unreached", *flat) == expected
        self.compare()

    @rule(endpoint=endpoints, times=st.integers(1, 2))
    def the_endpoint_answers(self, endpoint: str, times: int) -> None:
        """An answer is reported, which takes back that the endpoint was given up."""
        self.model.known[endpoint] = Contact(has_answered=True)
        for _ in range(times):
            assert self.run("answered", endpoint) == "ok"
        self.compare()

    @rule(chosen=st.lists(endpoints, min_size=1, max_size=3))
    def somebody_asks(self, chosen: list[str]) -> None:
        """All of some endpoints are given up, or not."""
        is_over = all(self.model.of(endpoint).is_absent for endpoint in chosen)
        assert self.run("absent", *chosen) == ("absent" if is_over else "some")

    def compare(self) -> None:
        """Asserts that the server holds what the model holds, and not for ever."""
        stored = {name.decode() for name in self.client.hkeys(keys.contacts_key("r1"))}
        assert {name for name in stored if name.startswith(("ok:", "gone:"))} == {
            f"{mark}:{endpoint}"
            for endpoint, contact in self.model.known.items()
            for mark, is_there in (("ok", contact.has_answered), ("gone", contact.is_absent))
            if is_there
        }
        assert not stored or self.client.pttl(keys.contacts_key("r1")) > 0


def test_scripts_of_contacts_do_what_the_model_does(redis_server: RedisServer) -> None:
    """Whatever answers, is refused, lost and sent twice: scripts and model say and keep the same."""
    ContactsMachine.server = redis_server
    run_state_machine_as_test(ContactsMachine, settings=machine_settings(40))
