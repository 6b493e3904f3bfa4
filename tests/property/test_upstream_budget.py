"""Drives the budget's scripts with any calls in any order, some sent twice, and compares them with the model.

The server is real, the ledger's clock is the test's.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from shared import keys
from shared.ledger.calls import ScriptCaller
from shared.upstream.costs import NANOS, CostBook
from tests.support.budget_model import BudgetModel
from tests.support.exploring import machine_settings
from tests.support.redis_server import RedisServer
from worker.upstream.stack import compose_all

CLOCK_KEY = "test:ledger"
CLOCK = f"local function clock() return tonumber(redis.call('GET', '{CLOCK_KEY}')) end\n"
SCRIPTS = compose_all({"clock": CLOCK})
RUN = "r1"
CAP = 100
models = st.sampled_from(["small", "large"])


class BudgetMachine(RuleBasedStateMachine):
    """Any call at any time."""

    server: Any = None

    @initialize()
    def begin_empty(self) -> None:
        """Empties the server."""
        self.client = self.server.client()
        self.client.flushall()
        self.caller = ScriptCaller(self.client, patience_s=5, scripts=SCRIPTS)
        self.model = BudgetModel()
        self.serial = 0
        self.running: list[str] = []
        self.dead: list[str] = []
        self.highest_cap = CAP
        self.pass_time(0)

    def teardown(self) -> None:
        """Gives the connection back."""
        if hasattr(self, "client"):
            self.client.close()

    def run(self, name: str, *arguments: Any, times: int = 1) -> tuple[Any, ...]:
        """Runs a script, again when its reply was lost; the last reply counts."""
        reply: list[Any] = []
        for _ in range(times):
            reply = self.caller.run(name, *arguments)
        return tuple(each.decode() for each in reply)

    @rule(passed=st.sampled_from([0, 1, 5_000, 14_999, 15_001]))
    def pass_time(self, passed: int) -> None:
        """Moves the ledger's clock."""
        self.model.ledger += passed
        self.client.set(CLOCK_KEY, self.model.ledger)

    @rule(
        amount=st.integers(0, 60),
        least=st.one_of(st.none(), st.integers(0, 10)),
        model=models,
        times=st.integers(1, 2),
    )
    def somebody_reserves(self, amount: int, least: int | None, model: str, times: int) -> None:
        """A call asks for room, once or with a lost reply."""
        self.serial += 1
        call = f"c{self.serial}"
        expected = self.model.reserve(call, amount, least, CAP, model)
        flat = (RUN, call, amount, "" if least is None else least, CAP, model)
        assert self.run("reserve", *flat, times=times) == expected
        if expected == ("ok",):
            self.running.append(call)
        self.compare()

    @rule(place=st.integers(0, 100), model=models)
    def a_reply_comes_late(self, place: int, model: str) -> None:
        """A call that has its room asks again, however long ago that was; it changes nothing."""
        if self.running:
            call = self.running[place % len(self.running)]
            assert self.model.reserve(call, 50, None, CAP, model) == ("ok",)
            assert self.run("reserve", RUN, call, 50, "", CAP, model) == ("ok",)
        self.compare()

    @rule(
        place=st.integers(0, 100),
        cost=st.one_of(st.none(), st.integers(0, 30), st.integers(0, 90)),
        model=st.one_of(st.just(""), models),
        times=st.integers(1, 3),
    )
    def a_call_ends(self, place: int, cost: int | None, model: str, times: int) -> None:
        """A call says what it cost; some only after their lease, some more than once."""
        if not self.running:
            return
        call = self.running.pop(place % len(self.running))
        expected = [self.model.settle(call, cost, model) for _ in range(times)]
        flat = (RUN, call, "" if cost is None else cost, model)
        assert [self.run("settle_cost", *flat) for _ in range(times)] == expected
        self.compare()

    @rule(amount=st.integers(0, 60))
    def one_is_cancelled_at_once(self, amount: int) -> None:
        """Reserved and given back in one batch, which is sent twice: nothing is left of it."""
        self.serial += 1
        call = f"c{self.serial}"
        self.model.reserve(call, amount, None, CAP, "small")
        self.model.settle(call, 0, "")
        batch = [("reserve", (RUN, call, amount, "", CAP, "small")), ("settle_cost", (RUN, call, 0, ""))]
        for _ in range(2):
            self.caller.run_many(batch)
        self.compare()

    @rule(place=st.integers(0, 100))
    def a_process_dies(self, place: int) -> None:
        """A call is not heard of any more; its reservation ends with its lease."""
        if self.running:
            self.dead.append(self.running.pop(place % len(self.running)))

    @rule()
    def holders_renew(self) -> None:
        """A process renews what it holds, also what has ended meanwhile."""
        if self.running:
            self.model.renew(self.running)
            self.run("renew_reservations", *[text for call in self.running for text in (RUN, call)])
        self.compare()

    @rule(cap=st.integers(0, 200))
    def somebody_sets_the_cap(self, cap: int) -> None:
        """A person gives the run another cap."""
        self.model.set_cap(cap)
        self.highest_cap = max(cap, self.highest_cap)
        CostBook(self.caller).set_cap(RUN, cap / NANOS)
        self.compare()

    def compare(self) -> None:
        """Asserts that the server holds what the model holds, and that the cap was kept."""
        stored = {
            name.decode(): int(value) for name, value in self.client.hgetall(keys.cost_key(RUN)).items()
        }
        assert {"spent": 0, "held": 0, **stored} == self.model.stored()
        until = self.client.zrange(keys.holds_key(RUN), 0, -1, withscores=True)
        assert {call.decode(): int(score) for call, score in until} == self.model.until
        assert self.model.spent + self.model.reserved <= self.highest_cap + self.model.overrun
        there = CostBook(self.caller).read(RUN)
        assert (round(there.spent_usd * NANOS), round(there.held_usd * NANOS)) == (
            self.model.spent,
            self.model.reserved,
        )


def test_budget_scripts_do_what_the_model_does(redis_server: RedisServer) -> None:
    """Whatever is reserved, settled, lost and sent twice: scripts and model say and keep the same."""
    BudgetMachine.server = redis_server
    run_state_machine_as_test(
        BudgetMachine,
        settings=machine_settings(40),
    )
