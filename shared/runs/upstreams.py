"""What blocks the calls of a run: limits, pauses, breakers, its budget; only reads from Redis.

This concerns only runs that call models or an API: for all others `upstreams_of` returns None, and nothing is
read. Which upstreams a run calls is read by a function of its kind (`register`).
"""

from collections.abc import Callable, Mapping, Sequence
from math import floor
from typing import Any, Final, NamedTuple

from shared import keys
from shared.codecs.parked_items import ParkedState, decode_parked
from shared.contracts.case_run import SNAPSHOT_KEY as CASES_KEY
from shared.contracts.case_run import CaseRun
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import SNAPSHOT_KEY as QUERIES_KEY
from shared.contracts.query_run import QueryRun
from shared.kinds import CASES, QUERIES, TURNS, Kind
from shared.ledger.wire import try_from
from shared.upstream.costs import Cost, cost_from
from shared.upstream.limits import (
    Limits,
    Scope,
    ScopeState,
    limits_from,
    model_key,
    model_scope,
    scope_state,
    upstream_key,
)
from shared.upstream.model_target import ModelTarget

COST_FIELDS: Final = ("cap", "spent", "held", "over")
SECONDS_A_MINUTE: Final = 60.0
PARKED_READ: Final = 20
"""Parked items that are read for their reason."""


class Upstreams(NamedTuple):
    """The upstreams of a run, by its settings."""

    keys: frozenset[str]
    """Models with their endpoints, providers and APIs, as in `Scope.target`."""
    own: frozenset[str]
    """Endpoints that are called: they have pauses, breakers and adaptive limits."""
    max_cost: float | None = None
    """The cost cap from the submit."""
    pace_s: float | None = None
    """Seconds between two calls, set by the run itself."""
    has_breaker: bool = True
    """Whether a circuit breaker applies; not for queries, where a failure is a result like any other."""


class ScopeUsage(NamedTuple):
    """The state of one scope with its configured limits."""

    state: ScopeState
    limits: Limits
    sent: int
    """Counter of admitted calls; two readings give a rate."""
    is_own: bool
    """Whether the run calls it."""

    @property
    def adaptive(self) -> int | None:
        """The adaptive limit of concurrent calls; None while calls have not timed out."""
        return floor(max(1.0, self.state.adaptive)) if self.state.adaptive else None

    @property
    def adaptive_rpm(self) -> float | None:
        """The adaptive limit of requests a minute, where it is the lower one."""
        learned, limits = self.state.adaptive_rpm, self.limits
        told = [limits.rpm or None, SECONDS_A_MINUTE / limits.pace_s if limits.pace_s else None]
        return learned if learned and all(rpm is None or learned < rpm for rpm in told) else None

    @property
    def most(self) -> int | None:
        """The current limit of concurrent calls; None: no limit."""
        found = [bound for bound in (self.limits.concurrency, self.adaptive) if bound is not None]
        return min(found, default=None)


class UpstreamStatus(NamedTuple):
    """A snapshot of what may block a run's calls."""

    scopes: Sequence[ScopeUsage]
    """The recently called scopes of its upstreams."""
    run_in_flight: int | None
    """Its own calls in flight; None if they are not counted."""
    cost: Cost
    """Its cost, if it has a cap."""
    cap_usd: float | None
    """Its cost cap, if any."""
    parked: Sequence[ParkedState]
    """Why some of its parked items wait."""
    parked_items: int
    """How many wait."""
    has_breaker: bool = True
    """See `Upstreams.has_breaker`."""


def upstreams_of(kind: Kind, snapshot: Mapping[str, Any]) -> Upstreams | None:
    """Returns the upstreams of a run; None if it makes no calls, or its settings are of another version."""
    read = _readers.get(kind)
    return None if read is None else read(snapshot)


def read_upstream_status(client: Any, run: str, upstreams: Upstreams) -> UpstreamStatus:
    """Reads the state of a run's upstreams and of its budget, in two round trips.

    Args:
        client: a Redis client that answers bytes.
        run: its id.
        upstreams: what it calls.
    """
    pipeline = client.pipeline(transaction=False)
    pipeline.zrange(keys.SCOPES_KEY, 0, -1)
    pipeline.hgetall(keys.LIMITS_KEY)
    pipeline.hmget(keys.cost_key(run), *COST_FIELDS)
    pipeline.exists(keys.scope_key(run_scope_name(run)))
    pipeline.zcard(keys.permits_key(run_scope_name(run)))
    # The first page is enough to find a reason; a small hash is returned as a whole.
    pipeline.hscan(keys.tries_key(run), count=PARKED_READ)
    pipeline.hlen(keys.tries_key(run))
    names, limits, cost, is_counted, in_flight, (_, tries), parked_items = pipeline.execute()
    mine = [name for member in names if Scope.parse(name := member.decode()).target in upstreams.keys]
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    for name in mine:
        pipeline.hgetall(keys.scope_key(name))
        pipeline.zcard(keys.permits_key(name))
    (seconds, micros), *rows = pipeline.execute()
    now_ms = int(seconds) * 1000 + int(micros) / 1000
    found = cost_from(dict(zip(COST_FIELDS, cost, strict=True)))
    return UpstreamStatus(
        scopes=[
            _gauge(scope_state(name, fields, count, now_ms), fields, limits, upstreams)
            for name, fields, count in zip(mine, rows[::2], rows[1::2], strict=True)
            if fields
        ],
        run_in_flight=int(in_flight) if is_counted else None,
        cost=found,
        cap_usd=found.cap_usd if found.cap_usd is not None else upstreams.max_cost,
        parked=[
            decode_parked(try_from("", value.decode()).parked_state)
            for value in list(tries.values())[:PARKED_READ]
        ],
        parked_items=int(parked_items),
        has_breaker=upstreams.has_breaker,
    )


def run_scope_name(run: str) -> str:
    """Returns the name of the scope of a run's own limits, as in the limiter."""
    return f"run:{run}"


def upstreams_of_turns(snapshot: Mapping[str, Any]) -> Upstreams | None:
    """Reads the model that answers turns; None where the settings name none."""
    run = LiveRun.from_snapshot(snapshot)
    return None if run is None else _models([run.target], run.max_cost)


def upstreams_of_cases(snapshot: Mapping[str, Any]) -> Upstreams | None:
    """Reads the models that are tested and those that judge; None where the settings are of no cases."""
    if CASES_KEY not in snapshot:
        return None
    run = CaseRun.from_snapshot(snapshot)
    tested = {} if run.recorded else run.models
    return _models([*tested.values(), *run.judges.values()], run.max_cost)


def upstreams_of_queries(snapshot: Mapping[str, Any]) -> Upstreams | None:
    """Reads the API that is queried; None where the settings are of no queries."""
    if QUERIES_KEY not in snapshot:
        return None
    run = QueryRun.from_snapshot(snapshot)
    url = frozenset([model_key(run.api_url)])
    return Upstreams(url, url, pace_s=run.delay_s or None, has_breaker=False)


ReadUpstreams = Callable[[Mapping[str, Any]], Upstreams | None]
"""Reads from a run's snapshot which upstreams it calls; None where it calls none."""
_readers: Final[dict[Kind, ReadUpstreams]] = {
    TURNS: upstreams_of_turns,
    CASES: upstreams_of_cases,
    QUERIES: upstreams_of_queries,
}


def register(kind: Kind, read: ReadUpstreams) -> None:
    """Adds which upstreams the runs of a further kind call, for their wait reasons."""
    _readers[kind] = read


def _models(targets: Sequence[ModelTarget], max_cost: float | None) -> Upstreams | None:
    """Returns the upstreams of models; None for no models."""
    if not targets:
        return None
    own = frozenset(model_scope(target).target for target in targets)
    return Upstreams(own | {upstream_key(target) for target in targets}, own, max_cost)


def _gauge(
    state: ScopeState, fields: Mapping[bytes, bytes], book: Mapping[bytes, bytes], upstreams: Upstreams
) -> ScopeUsage:
    """Combines the limits and the state of a scope."""
    stored = book.get(state.key.encode())
    is_own = Scope(state.key, place=state.place).target in upstreams.own
    limits = limits_from(stored) if stored else Limits()
    if is_own:
        limits = limits.over(Limits(pace_s=upstreams.pace_s))
    return ScopeUsage(state, limits, int(float(fields.get(b"n", b"0"))), is_own)
