"""The limiter and the breaker as a plain Python model: the oracle of the scripts' property tests.

Times are milliseconds. `ScopeModel` holds what the hash of a scope holds, and in `permits` its sorted set.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Final, NamedTuple

from shared.ledger.times import TIMES
from worker.upstream import constants as n
from worker.upstream.limiter import BURST_MS, ScopeLimits

MOMENTS: Final = (
    "rt", "rl", "tt", "tl", "late", "far", "poll", "pause", "wat", "since", "open", "shut", "bw", "pt",
)  # fmt: skip
Answer = tuple[object, ...]


@dataclass
class ScopeModel:
    """What the limits of a scope have come to; see `worker/upstream/lua/lib/scope.lua`."""

    at: float = 0
    rt: float = 0
    rl: float = 0
    tt: float = 0
    tl: float = 0
    late: float = 0
    far: float = 0
    poll: float = 0
    n: float = 0
    pause: float = 0
    rtt: float = 0
    cwnd: float = 0
    peak: float = 0
    wat: float = 0
    wok: float = 0
    wbad: float = 0
    pace: float = 0
    good: float = 0
    hold: float = 0
    held: float = 0
    cut: float = 0
    since: float = 0
    n0: float = 0
    served: float = 0
    refused: float = 0
    row: float = 0
    rowbad: float = 0
    open: float = 0
    era: float = 0
    span: float = 0
    shut: float = 0
    bw: float = 0
    g0: float = 0
    b0: float = 0
    g1: float = 0
    b1: float = 0
    pn: float = 0
    pt: float = 0
    permits: dict[str, float] = field(default_factory=dict)

    def read(self, now: float) -> None:
        """Rounds as the server's texts do; keeps distances when the server's clock is set back."""
        for each in fields(self):
            if each.name != "permits":
                setattr(self, each.name, round(getattr(self, each.name), 3))
        back = self.at - now
        if back > 0:
            for name in MOMENTS:
                if getattr(self, name) > 0:
                    setattr(self, name, max(1, getattr(self, name) - back))


class Asked(NamedTuple):
    """One asking for leave."""

    states: Sequence[ScopeModel]
    bounds: Sequence[ScopeLimits]
    costs: Sequence[float]
    """What its tokens take of each limit."""
    ticket: float
    may_wait: bool
    has_breaker: bool

    def ready(self, now: float, requests: str, tokens: str) -> tuple[float, ScopeModel, float]:
        """When the slowest limit lets the next call through, which one it is, what a call takes of it."""
        ready, slowest = now, 0
        for place, (state, bound) in enumerate(zip(self.states, self.bounds, strict=True)):
            by_requests = getattr(state, requests) - bound.burst_ms if bound.request_ms > 0 else 0
            by_tokens = getattr(state, tokens) - BURST_MS if self.costs[place] > 0 else 0
            if max(by_requests, by_tokens) > ready:
                ready, slowest = max(by_requests, by_tokens), place
        return ready, self.states[slowest], max(self.bounds[slowest].request_ms, self.costs[slowest])

    def move(self, now: float, requests: str, tokens: str) -> None:
        """Counts the call."""
        for state, bound, cost in zip(self.states, self.bounds, self.costs, strict=True):
            if bound.request_ms > 0:
                setattr(state, requests, max(getattr(state, requests), now) + bound.request_ms)
            if cost > 0:
                setattr(state, tokens, max(getattr(state, tokens), now) + cost)


class UpstreamModel:
    """All scopes, on a clock that the test moves."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.ledger = 0.0
        """The ledger clock."""
        self.scopes: dict[str, ScopeModel] = {}

    def scope(self, name: str) -> ScopeModel:
        """The state of a scope, as it is read now."""
        state = self.scopes.setdefault(name, ScopeModel())
        state.read(self.now)
        return state

    def begin(
        self,
        permit: str,
        ticket: float,
        bounds: Sequence[ScopeLimits],
        *,
        may_wait: bool = True,
        has_breaker: bool = True,
        tokens: int = 0,
    ) -> Answer:
        """What `begin.lua` says and does."""
        held = self.scopes.get(bounds[0].name)
        if held is not None and permit in held.permits:  # a lost reply: nothing is read or written
            return ("go", round(held.era), round(held.n))
        states = [self.scope(bound.name) for bound in bounds]
        own = states[0]
        for state in states:
            state.at = self.now
        if own.pace > bounds[0].request_ms:
            burst_ms = min(bounds[0].burst_ms, n.PACE_BURST_MS) if bounds[0].request_ms else n.PACE_BURST_MS
            bounds = [bounds[0]._replace(request_ms=own.pace, burst_ms=burst_ms), *bounds[1:]]
        costs = [tokens * bound.token_ms for bound in bounds]
        asked = Asked(states, bounds, costs, ticket, may_wait, has_breaker)
        has_turn, answer = False, self._held(asked)
        if answer is None:
            has_turn, answer = self._turn(asked)
        answer = answer or self._full(asked)
        if answer is not None:
            return answer
        asked.move(self.now, "rt", "tt")
        if has_turn:
            for state in states:
                state.rl, state.tl = max(state.rl, state.rt), max(state.tl, state.tt)
        else:
            asked.move(self.now, "rl", "tl")
        if has_breaker and 0 < own.open <= self.now:
            own.pn, own.pt = (0 if own.pn >= n.PROBES else own.pn) + 1, self.now
        own.peak = max(own.peak, len(own.permits) + 1)
        for state in states:
            state.permits[permit] = self.ledger + TIMES.lease_ms
            state.n += 1
        return ("go", round(own.era), round(own.n))

    def _held(self, asked: Asked) -> Answer | None:
        """The breaker and the pause."""
        own = asked.states[0]
        held, why = own.pause, "paused"
        if asked.has_breaker and own.open > max(held, self.now):
            held, why = own.open, "breaker"
        is_half_open = asked.has_breaker and 0 < own.open <= self.now
        if is_half_open and own.pn >= n.PROBES and self.now - own.pt < n.PROBE_LOST_MS:
            held, why = max(held, self.now + n.PROBE_PAUSE_MS), "breaker"
        if held <= self.now:
            return None
        if asked.may_wait and held <= self.now + n.WAIT_MS:
            return ("wait", math.ceil(held - self.now), asked.ticket, why)
        spacing = max(n.HELD_MS, *(bound.request_ms for bound in asked.bounds), *asked.costs)
        return self._later(own, held, spacing, why)

    def _turn(self, asked: Asked) -> tuple[bool, Answer | None]:
        """Requests and tokens: whether the caller has a ticket that counts, and what keeps it."""
        now, ticket = self.now, asked.ticket
        if 0 < ticket <= now + n.SLACK_MS:
            ready, state, cost = asked.ready(now, "rt", "tt")
            if ready <= now + n.SLACK_MS:
                return True, None
            turn = max(state.late, ready)
            if turn <= now + n.WAIT_MS:
                state.late = turn + cost
                return False, ("wait", math.ceil(turn - now), turn, "rate")
        if ticket > now:
            return False, ("wait", math.ceil(ticket - now), ticket, "rate")
        ready, state, cost = asked.ready(now, "rl", "tl")
        if ready <= now:
            return False, None
        if not asked.may_wait or ready > now + n.WAIT_MS:
            return False, self._later(state, ready, cost, "rate")
        asked.move(now, "rl", "tl")
        return False, ("wait", math.ceil(ready - now), ready, "rate")

    def _full(self, asked: Asked) -> Answer | None:
        """Calls at a time."""
        own = asked.states[0]
        for state, bound in zip(asked.states, asked.bounds, strict=True):
            state.permits = {name: until for name, until in state.permits.items() if until > self.ledger}
            most: float = bound.most
            if state is own and own.cwnd > 0 and (most == 0 or own.cwnd < most):
                most = max(1, math.floor(own.cwnd))
            if most > 0 and len(state.permits) >= most:
                pace = max(n.HELD_MS, own.rtt / most)
                if asked.may_wait:
                    return ("full", math.ceil(min(250, pace)))
                return self._later(state, self.now + n.WAIT_MS, pace, "full")
        return None

    def end(
        self,
        permit: str,
        health: str,
        latency: float,
        era: int,
        bounds: Sequence[ScopeLimits],
        *,
        number: float,
        pause: float = 0,
        more: int = 0,
    ) -> Answer:
        """What `release.lua` says and does."""
        is_held, paused = False, 0.0
        for place, bound in enumerate(bounds):
            kept = self.scopes.setdefault(bound.name, ScopeModel())
            was = kept.permits.pop(permit, None) is not None
            is_held = was if place == 0 else is_held
            extra = more * bound.token_ms
            if not is_held or (place > 0 and extra == 0):
                continue
            state = self.scope(bound.name)
            if extra:
                state.tt, state.tl = max(0, state.tt + extra), max(0, state.tl + extra)
            if place == 0:
                self._adapt(state, health, latency)
                paused = self._learn(state, health, number, pause)
                if health not in {"busy", "unknown"} and (health != "unreached" or state.open > 0):
                    self._judge(state, era, is_good=health == "ok")
            state.at = self.now
        if paused:
            return ("paused", math.ceil(paused))
        return ("ok",) if is_held else ("gone",)

    def renew(self, pairs: Sequence[tuple[str, str]]) -> None:
        """What `renew_calls.lua` does."""
        for name, permit in pairs:
            self.scopes.setdefault(name, ScopeModel()).permits[permit] = self.ledger + TIMES.lease_ms

    def _later(self, state: ScopeModel, ready: float, spacing: float, why: str) -> Answer:
        crowd = max(n.CROWD_MS, n.CROWD * spacing)
        turn = max(state.far, ready)
        if turn <= ready + crowd:
            state.far = turn + spacing
        else:
            turn = max(state.poll, ready + crowd / 2)
            state.poll = turn + n.LATER_MS
        return ("later", math.ceil(max(n.LEAD_MS, turn - n.LEAD_MS - self.now)), why)

    def _adapt(self, state: ScopeModel, health: str, latency: float) -> None:
        if health not in {"ok", "slow"}:
            return
        in_use, passed, count = len(state.permits), self.now - state.wat, state.wok + state.wbad
        is_round = passed >= max(n.ROUND_MS, state.rtt)
        if state.wat > 0 and is_round and (count >= n.FEW or passed >= n.SPARSE_MS):
            self._end_round(state, in_use + 1)
        state.wat = state.wat or self.now
        if health == "ok":
            state.rtt = state.rtt + n.SMOOTHING * (latency - state.rtt) if state.rtt > 0 else latency
            state.wok += 1
            if state.cwnd > 0 and 2 * state.peak >= state.cwnd:
                state.cwnd += 1 / state.cwnd
            if state.cwnd > n.ADAPTIVE_CAP:
                state.cwnd = 0
        else:
            state.wbad += 1
        if state.wok + state.wbad >= max(n.FEW, state.peak):
            self._end_round(state, in_use)

    def _end_round(self, state: ScopeModel, in_use: int) -> None:
        if state.wbad > n.OVERLOAD * (state.wok + state.wbad):
            used = max(1, state.peak)
            state.cwnd = max(1, n.BACK_OFF * (min(state.cwnd, used) if state.cwnd > 0 else used))
        state.wat, state.wok, state.wbad, state.peak = 0, 0, 0, in_use

    def _learn(self, state: ScopeModel, health: str, number: float, pause: float) -> float:
        """What refusals teach, and how long they pause; see `worker/upstream/lua/lib/pace.lua`."""
        in_use, paused = len(state.permits), 0.0
        if health not in {"ok", "busy"} or (health == "ok" and not state.since) or number <= state.cut:
            return paused
        if not state.since:
            state.since, state.n0 = self.now, state.n - in_use - 1
        if health == "ok":
            state.served += 1
            state.row = 0 if number > state.row else state.row
        else:
            state.refused += 1
            if not state.row:
                state.row, state.rowbad = number, 0
            state.rowbad += 1
        is_most = health == "busy" and 2 * state.rowbad > state.n + 1 - state.row
        is_general = is_most and state.rowbad >= n.FEW
        is_alone = is_most and not state.pace and not in_use and state.rowbad >= n.ALONE
        if pause > 0 and (is_general or is_alone):
            state.pause = max(state.pause, self.now + min(pause, n.PAUSE_CAP_MS))
            paused = state.pause - self.now
            state.since, state.row = state.since + paused, 0
        passed = max(1.0, self.now - state.since)
        calls = max(state.served + state.refused, state.n - state.n0)
        is_clean = not state.refused and (calls >= n.FEW or not state.hold)
        is_long = passed >= max(n.PACE_ROUND_MS, state.rtt)
        is_round = is_long and (calls >= n.PACE_CALLS or is_clean)
        if is_general or is_round:
            is_measured = is_round and calls > state.refused
            self._pace(state, passed, calls, is_general=is_general, is_measured=is_measured)
            state.since = max(self.now, state.pause) if state.pace else 0
            state.served = state.refused = state.row = 0
            state.n0 = state.n
        return paused

    def _pace(
        self, state: ScopeModel, passed: float, calls: float, *, is_general: bool, is_measured: bool
    ) -> None:
        """The pace after a round."""
        share, was = state.refused / calls, state.pace or max(passed, n.PACE_ROUND_MS) / calls
        back = state.good if state.good > was else 0
        served = max(was, passed / (calls - state.refused)) if is_measured else math.inf
        if is_general or share > n.OVERLOAD or (share > n.PACE_FEW and back):
            is_known = bool(back) or served <= 2 * was
            half = max(was, min(2 * was, n.PACE_FLOOR_MS))
            state.pace = min(served, back) if back else served if is_known else half
            state.good = state.good if back else 0
            state.hold = min(n.PACE_HOLD_CAP, max(n.PACE_HOLD, 2 * state.hold)) if is_known else 0
            state.held, state.cut = 0, state.n
        elif share > n.PACE_FEW and state.good:
            state.pace, state.good, state.cut = served, 0, state.n
        elif state.pace and calls * state.pace >= n.PACE_USED * passed:
            state.held += 1
            state.good = state.pace if share <= n.PACE_FEW else state.good
            if state.held > state.hold:
                state.pace /= n.PACE_GAIN if state.hold else 2
                if state.pace < n.PACE_LEAST_MS:
                    state.pace = state.good = state.hold = state.held = 0

    def _judge(self, state: ScopeModel, era: int, *, is_good: bool) -> None:
        if era < 0:
            if state.open == 0:
                self._count(state, is_good=is_good)
            return
        if era != state.era:
            return
        if state.open > 0:
            if is_good:
                state.shut = self.now
                self._change(state, 0)
            else:
                state.span = min(2 * state.span, n.OPEN_CAP_MS)
                self._change(state, self.now + state.span)
            return
        self._count(state, is_good=is_good)
        bad, count = state.b0 + state.b1, state.g0 + state.g1 + state.b0 + state.b1
        if not is_good and count >= n.LEAST_CALLS and 2 * bad > count:
            is_again = state.span > 0 and self.now - state.shut < max(n.CALM_MS, 2 * state.span)
            state.span = min(2 * state.span, n.OPEN_CAP_MS) if is_again else n.OPEN_MS
            self._change(state, self.now + state.span)

    def _count(self, state: ScopeModel, *, is_good: bool) -> None:
        if self.now - state.bw >= n.BUCKET_MS:
            is_next = self.now - state.bw < 2 * n.BUCKET_MS
            state.g1, state.b1 = (state.g0, state.b0) if is_next else (0, 0)
            state.g0, state.b0, state.bw = 0, 0, self.now
        state.g0, state.b0 = state.g0 + is_good, state.b0 + (not is_good)

    def _change(self, state: ScopeModel, until: float) -> None:
        state.open, state.era, state.pn, state.pt = until, state.era + 1, 0, 0
        state.bw = state.g0 = state.b0 = state.g1 = state.b1 = 0
