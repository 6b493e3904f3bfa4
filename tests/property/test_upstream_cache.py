"""Drives the cache's scripts with any calls in any order, some sent twice, and compares them with a model.

The server is real, the ledger's clock is the test's.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from shared import keys
from shared.ledger.calls import ScriptCaller
from shared.ledger.times import TIMES
from shared.upstream.cached_answers import AnswerBook
from tests.support.exploring import machine_settings
from tests.support.redis_server import RedisServer
from worker.upstream.stack import compose_all

CLOCK_KEY = "test:ledger"
CLOCK = f"local function clock() return tonumber(redis.call('GET', '{CLOCK_KEY}')) end\n"
SCRIPTS = compose_all({"clock": CLOCK})
digests = st.sampled_from(["d1", "d2", "d3"])


@dataclass
class CacheModel:
    """The answers, and who asks for which."""

    ledger: int = 0
    answers: dict[str, bytes] = field(default_factory=dict)
    flights: dict[str, tuple[str, int]] = field(default_factory=dict)
    hits: int = 0
    misses: int = 0

    def look_up(self, digest: str, token: str) -> list[bytes]:
        """What `look_up.lua` says and does."""
        if digest in self.answers:
            self.hits += 1
            return [b"hit", self.answers[digest]]
        flight = self.flights.get(digest)
        if flight and flight[0] != token and flight[1] > self.ledger:
            return [b"follow"]
        self.misses += flight is None
        self.flights[digest] = (token, self.ledger + TIMES.lease_ms)
        return [b"lead"]

    def keep(self, digest: str, token: str, answer: bytes) -> list[bytes]:
        """What `keep_answer.lua` says and does."""
        if self.flights.get(digest, ("", 0))[0] == token:
            del self.flights[digest]
        if not answer or digest in self.answers:
            return [b"left"]
        self.answers[digest] = answer
        return [b"kept"]

    def renew(self, leads: list[tuple[str, str]]) -> None:
        """What `renew_flights.lua` does."""
        for digest, token in leads:
            if self.flights.get(digest, ("", 0))[0] == token:
                self.flights[digest] = (token, self.ledger + TIMES.lease_ms)


class CacheMachine(RuleBasedStateMachine):
    """Any call at any time."""

    server: Any = None

    @initialize()
    def begin_empty(self) -> None:
        """Empties the server."""
        self.client = self.server.client()
        self.client.flushall()
        self.caller = ScriptCaller(self.client, patience_s=5, scripts=SCRIPTS)
        self.model = CacheModel()
        self.serial = 0
        self.leads: list[tuple[str, str]] = []
        self.pass_time(0)

    def teardown(self) -> None:
        """Gives the connection back."""
        if hasattr(self, "client"):
            self.client.close()

    @rule(passed=st.sampled_from([0, 1, 5_000, 14_999, 15_001]))
    def pass_time(self, passed: int) -> None:
        """Moves the ledger's clock."""
        self.model.ledger += passed
        self.client.set(CLOCK_KEY, self.model.ledger)

    @rule(digest=digests, times=st.integers(1, 2))
    def somebody_asks(self, digest: str, times: int) -> None:
        """A request comes, once or with a lost reply."""
        self.serial += 1
        token = f"p:{self.serial}"
        expected = [self.model.look_up(digest, token) for _ in range(times)]
        assert [self.caller.run("look_up", digest, token) for _ in range(times)] == expected
        if expected[-1] == [b"lead"]:
            self.leads.append((digest, token))
        self.compare()

    @rule(place=st.integers(0, 100), has_answer=st.booleans(), times=st.integers(1, 2))
    def a_lead_ends(self, place: int, has_answer: bool, times: int) -> None:  # noqa: FBT001 - drawn
        """Somebody who leads, or led before its lease ran out, has an answer or has none."""
        if not self.leads:
            return
        digest, token = self.leads.pop(place % len(self.leads))
        answer = f"answer to {token}".encode() if has_answer else b""
        for _ in range(times):
            expected = self.model.keep(digest, token, answer)
            assert self.caller.run("keep_answer", digest, token, answer, 3600) == expected
        self.compare()

    @rule(place=st.integers(0, 100))
    def a_process_dies(self, place: int) -> None:
        """A lead is not heard of any more."""
        if self.leads:
            self.leads.pop(place % len(self.leads))

    @rule()
    def leaders_renew(self) -> None:
        """A process renews its leads, also those that another has taken over."""
        if self.leads:
            self.model.renew(self.leads)
            self.caller.run("renew_leads", *[text for lead in self.leads for text in lead])
        self.compare()

    @rule()
    def somebody_clears_the_cache(self) -> None:
        """A person forgets all answers; who leads goes on leading."""
        assert AnswerBook(self.caller).clear() == len(self.model.answers)
        self.model.answers.clear()
        self.model.hits = self.model.misses = 0
        self.compare()

    def compare(self) -> None:
        """Asserts that the server holds what the model holds; all of it ends by itself."""
        for digest in ("d1", "d2", "d3"):
            assert self.client.get(keys.answer_key(digest)) == self.model.answers.get(digest)
            flight = self.model.flights.get(digest)
            wanted = None if flight is None else f"{flight[0]} {flight[1]}".encode()
            assert self.client.get(keys.flight_key(digest)) == wanted
            assert self.client.pttl(keys.answer_key(digest)) != -1
            assert self.client.pttl(keys.flight_key(digest)) != -1
        info = AnswerBook(self.caller).info()
        assert (info.answers, info.hits, info.misses) == (
            len(self.model.answers),
            self.model.hits,
            self.model.misses,
        )
        assert info.bytes == sum(map(len, self.model.answers.values()))


def test_cache_scripts_do_what_the_model_does(redis_server: RedisServer) -> None:
    """Whatever is asked, answered, lost and sent twice: one leads at a time, and the first answer stays."""
    CacheMachine.server = redis_server
    run_state_machine_as_test(
        CacheMachine,
        settings=machine_settings(40),
    )
