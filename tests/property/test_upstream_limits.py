"""Drives the limiter's and breaker's scripts with any calls in any order, and compares them with the model.

The server is real; its clock and the ledger's are the test's, and go forward, back and stand still.
"""

import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from shared import keys
from shared.ledger.calls import ScriptCaller
from shared.upstream.limits import Limits, Scope
from tests.support.exploring import machine_settings
from tests.support.ledger_twin import TEST_CLOCK, TEST_CLOCK_KEY
from tests.support.redis_server import RedisServer
from tests.support.upstream_model import ScopeModel, UpstreamModel
from worker.upstream.limiter import acquire_arguments, scope_limits_of
from worker.upstream.stack import compose_all

START_MS = 4_000_000_000_000
TEST_LEDGER_KEY = "test:ledger"
SCRIPTS = compose_all(
    {
        "now": TEST_CLOCK,
        "clock": f"local function clock() return tonumber(redis.call('GET', '{TEST_LEDGER_KEY}')) end\n",
    }
)
FIELDS = [each.name for each in fields(ScopeModel) if each.name != "permits"]
BOUNDS = {
    "plain": (scope_limits_of(Scope("plain"), Limits()),),
    "paced": (scope_limits_of(Scope("paced"), Limits(pace_s=0.7)),),
    "narrow": (scope_limits_of(Scope("narrow"), Limits(concurrency=2)),),
    "model": (
        scope_limits_of(Scope("model"), Limits(rpm=240, tpm=6_000)),
        scope_limits_of(Scope("provider"), Limits(rpm=300, concurrency=4)),
    ),
    "other": (
        scope_limits_of(Scope("other"), Limits(tpm=30_000)),
        scope_limits_of(Scope("provider"), Limits(rpm=300, concurrency=4)),
        scope_limits_of(Scope("run:r1"), Limits(concurrency=3)),
    ),
}
endpoints = st.sampled_from(sorted(BOUNDS))


class LimiterMachine(RuleBasedStateMachine):
    """Any call at any time."""

    server: Any = None

    @initialize()
    def begin_empty(self) -> None:
        """Empties the server."""
        self.client = self.server.client()
        self.client.flushall()
        self.caller = ScriptCaller(self.client, patience_s=5, scripts=SCRIPTS)
        self.model = UpstreamModel(START_MS)
        self.serial = 0
        self.waiting: list[tuple[str, str, float, int]] = []
        self.running: list[tuple[str, str, int, int]] = []
        self.set_clocks()

    def teardown(self) -> None:
        """Gives the connection back."""
        if hasattr(self, "client"):
            self.client.close()

    def set_clocks(self) -> None:
        """Shows the scripts what time it is."""
        self.client.mset({TEST_CLOCK_KEY: int(self.model.now), TEST_LEDGER_KEY: int(self.model.ledger)})

    @rule(
        passed=st.one_of(st.integers(0, 60), st.integers(0, 3_000), st.sampled_from([10_001, 65_000, -4_000]))
    )
    def time_passes(self, passed: int) -> None:
        """Moves Redis' clock, sometimes back; the ledger's follows, never back."""
        self.model.now += passed
        self.model.ledger += min(2_000, max(0, passed))
        self.set_clocks()

    @rule(passed=st.integers(5_000, 20_000))
    def leases_run_out(self, passed: int) -> None:
        """Lets permits that nobody renews end."""
        self.model.ledger += passed
        self.set_clocks()

    @rule(
        endpoint=endpoints,
        tokens=st.sampled_from([0, 1, 40, 500]),
        may_wait=st.booleans(),
        calls=st.integers(1, 30),
    )
    def somebody_new_asks(self, endpoint: str, tokens: int, may_wait: bool, calls: int) -> None:  # noqa: FBT001 - drawn
        """New callers ask, one after the other."""
        for _ in range(calls):
            self.serial += 1
            self.ask(f"p{self.serial}", endpoint, 0.0, tokens, may_wait=may_wait)

    @rule(place=st.integers(0, 200), may_wait=st.booleans(), again=st.booleans())
    def one_asks_again(self, place: int, may_wait: bool, again: bool) -> None:  # noqa: FBT001 - drawn
        """One that waits asks again, with its ticket, early or late; or one whose reply was lost."""
        if again and self.running:
            permit, endpoint, *_ = self.running[place % len(self.running)]
            self.ask(permit, endpoint, 0.0, 0, may_wait=may_wait)
        elif self.waiting:
            permit, endpoint, ticket, tokens = self.waiting.pop(place % len(self.waiting))
            self.ask(permit, endpoint, ticket, tokens, may_wait=may_wait)

    def ask(self, permit: str, endpoint: str, ticket: float, tokens: int, *, may_wait: bool) -> None:
        """Asks model and script for leave; both have to say the same."""
        bounds, has_breaker = BOUNDS[endpoint], endpoint != "paced"
        expected = self.model.begin(
            permit, ticket, bounds, may_wait=may_wait, has_breaker=has_breaker, tokens=tokens
        )
        text = f"{ticket:.3f}" if ticket else "0"
        reply = self.caller.run(
            "acquire", permit, text, int(may_wait), int(has_breaker), *acquire_arguments(bounds, tokens)
        )
        answer = tuple(each.decode() if isinstance(each, bytes) else each for each in reply)
        if answer[0] == "wait":
            answer = (*answer[:2], float(answer[2]), answer[3])
            expected = (*expected[:2], pytest.approx(expected[2], abs=0.01), expected[3])
            self.waiting.append((permit, endpoint, float(answer[2]), tokens))
        elif answer[0] == "go":
            answer = ("go", int(answer[1]), int(answer[2]))
            self.running = [one for one in self.running if one[0] != permit]
            self.running.append((permit, endpoint, answer[1] if has_breaker else -1, answer[2]))
        assert answer == expected
        self.compare()

    @rule(
        place=st.integers(0, 200),
        health=st.sampled_from(
            ["ok", "ok", "busy", "slow", "unhealthy", "unhealthy", "unreached", "unknown"]
        ),
        latency=st.sampled_from([0.25, 40.0, 900.0]),
        pause=st.sampled_from([0, 0, 0, 800, 5_000, 10_000_000]),
        calls=st.integers(1, 30),
    )
    def calls_end(self, place: int, health: str, latency: float, pause: int, calls: int) -> None:
        """Calls end, well or not; some say it twice, because the first reply was lost."""
        for turn in range(min(calls, len(self.running))):
            ended, more = self.running.pop(place % len(self.running)), 40 * (place % 9) - 50
            for _ in range(1 + (place + turn) % 2):
                self.end(ended, health, latency, pause=pause, more=more)
        self.compare()

    def end(
        self, ended: tuple[str, str, int, int], health: str, latency: float, *, pause: int, more: int = 0
    ) -> None:
        """Ends a call in model and script; both have to say the same."""
        permit, endpoint, era, number = ended
        bounds = BOUNDS[endpoint]
        flat: list[str | float] = [len(bounds)]
        for bound in bounds:
            flat += (bound.name, more * bound.token_ms)
        expected = self.model.end(permit, health, latency, era, bounds, number=number, pause=pause, more=more)
        reply = self.caller.run("release", permit, health, latency, era, number, pause, *flat)
        assert (reply[0].decode(), *reply[1:]) == expected

    @rule(
        shares=st.lists(st.sampled_from([0, 0, 0, 3, 10, 40, 100]), min_size=1, max_size=14),
        pause=st.sampled_from([0, 1_000]),
        endpoint=st.sampled_from(["plain", "paced"]),
    )
    def rounds_of_calls_are_refused_in_part(self, shares: list[int], pause: int, endpoint: str) -> None:
        """Calls come at the pace that is learned, and of each fifty another share is refused."""
        for share in shares:
            for place in range(0, 100, 2):
                state = self.model.scopes.setdefault(endpoint, ScopeModel())
                self.model.now += max(25, math.ceil(state.pace))
                self.set_clocks()
                self.serial += 1
                self.ask(f"p{self.serial}", endpoint, 0.0, 0, may_wait=False)
                if self.running and self.running[-1][0] == f"p{self.serial}":
                    health = "busy" if 37 * place % 100 < share else "ok"
                    self.end(self.running.pop(), health, 40.0, pause=pause if health == "busy" else 0)
        self.compare()

    @rule()
    def holders_renew(self) -> None:
        """A process renews what it holds."""
        pairs = [(bound.name, permit) for permit, endpoint, *_ in self.running for bound in BOUNDS[endpoint]]
        if pairs:
            self.model.renew(pairs)
            self.caller.run("renew_permits", *[text for pair in pairs for text in pair])
        self.compare()

    def compare(self) -> None:
        """Asserts that the server holds what the model holds."""
        pipeline = self.client.pipeline(transaction=False)
        for name in self.model.scopes:
            pipeline.hgetall(keys.scope_key(name))
            pipeline.zrange(keys.permits_key(name), 0, -1, withscores=True)
        replies = iter(pipeline.execute())
        for (name, wanted), stored, permits in zip(self.model.scopes.items(), replies, replies, strict=True):
            there = {each: float(stored.get(each.encode(), 0)) for each in FIELDS}
            model = {each: float(getattr(wanted, each)) for each in FIELDS}
            assert all(math.isclose(there[each], model[each], rel_tol=0, abs_tol=0.01) for each in FIELDS), (
                f"{name}: {there}, but in the model {model}"
            )
            assert {permit.decode(): until for permit, until in permits} == wanted.permits, name


def test_limiter_and_breaker_scripts_do_what_the_model_does(redis_server: RedisServer) -> None:
    """Whatever is asked, in whatever order and at whatever time: scripts and model say and keep the same."""
    LimiterMachine.server = redis_server
    run_state_machine_as_test(
        LimiterMachine,
        settings=machine_settings(40),
    )
