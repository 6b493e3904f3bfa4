"""Why a run makes no progress, in one sentence, and which workers are alive; only reads from Redis.

The state of the ledger comes first (no worker, a full Redis), then what blocks its calls (`UpstreamStatus`,
read by `upstreams`), then why its parked items wait (`ParkedState`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shared import keys
from shared.clock import iso_utc
from shared.codecs.parked_items import ParkedState, WaitReason
from shared.ledger.bounds import FIRST_LAYOUT
from shared.ledger.memory import full_text, is_full
from shared.ledger.times import TIMES, Times
from shared.names import RunState
from shared.upstream.failure_reasons import FailureReason

if TYPE_CHECKING:
    from shared.runs.upstreams import ScopeUsage, UpstreamStatus
    from shared.upstream.limits import Limits

SILENT_MS: Final = 10_000
"""Every worker ticks each second: without a tick for this long no worker is alive, whatever is registered."""
MISSED_RENEWALS: Final = 4
"""Leases are renewed once a period: a worker that has missed so many renewals has probably died."""
LEASES_READ: Final = 100
"""Leases that are searched for those of one run; the next to expire come first."""
PARKED_READ: Final = 1_000
"""Most delayed chunks that are searched for those of one run."""
LONG_MS: Final = 500
"""A shorter time to the next call is normal pacing and not shown as waiting."""
MAX_TEXT_CHARS: Final = 100
"""Characters of a text stored by an earlier version, which may come from an API."""
NO_LAYOUTS: Final[Mapping[bytes, bytes]] = {}
"""Layouts of workers of which only the capacity matters."""
_MINUTE_MS: Final = 60_000

_REASON_OF_STATE: Final[Mapping[str, str]] = {
    RunState.LOADING: "its items are still being written",
    RunState.PAUSED: "it is paused; `proctor resume {run}` continues it",
    RunState.CANCELLING: "it is being cancelled",
}
_REASONS: Final[Mapping[WaitReason, str]] = {
    WaitReason.RATE_LIMIT: "waiting for a rate limit",
    WaitReason.CONCURRENCY_LIMIT: "waiting for a limit of concurrent calls",
    WaitReason.UPSTREAM_PAUSE: "the upstream asked for a pause",
    WaitReason.BREAKER_OPEN: "the circuit breaker is open",
    WaitReason.IDENTICAL_CALL: "an identical call is in flight; its answer will be reused",
    WaitReason.BUDGET: "calls in flight have reserved the rest of its max cost",
    WaitReason.LEASE_MOVED: "another worker has taken over the chunk",
    WaitReason.PLUGIN: "waiting for a worker that has its plug-ins",
}
_FAILURES: Final[Mapping[FailureReason, str]] = {
    FailureReason.NO_CAPACITY: "no-capacity response of the service tier",
    FailureReason.RATE_LIMITED: "rate limit response (429)",
    FailureReason.TIMEOUT: "timeout",
    FailureReason.CONNECTION_LOST: "lost connection",
    FailureReason.UNREACHABLE: "failed connection",
    FailureReason.SERVER_ERROR: "server error",
}
"""Failures that are retried."""
_FAILURE_OF_CODE: Final = {
    code: failure for reason, failure in _FAILURES.items() for code in (reason.api_code, reason.model_code)
}
"""By the codes of queries and of model calls; the latter have one for both kinds of lost connections, and the
former one for both kinds of 429."""


class Worker(NamedTuple):
    """One live worker process."""

    name: str
    """Its node name."""
    capacity: int
    """Chunks it works on at a time."""
    heard_s: float = 0.0
    """Seconds since its last tick, on the ledger clock."""
    layout: int = FIRST_LAYOUT
    """Newest layout of runs that it supports."""


class WaitContext(NamedTuple):
    """The state of the ledger that decides whether a run makes progress."""

    state: str
    """Its state."""
    workers: int
    """Live workers of its kind."""
    chunks: int
    """Its chunks that are published or leased."""
    waiting: int
    """Its chunks that were not published yet."""
    due_ms: int
    """Time when its first delayed chunk is due, epoch milliseconds; 0 when none is delayed."""
    others: int
    """Other runs of its kind with waiting chunks."""
    unrenewed: int = 0
    """Those of its chunks whose worker has not renewed its lease for a while."""
    free_ms: int = 0
    """Until the first of these leases expires."""
    kind: str = ""
    """Its kind."""
    outdated: int = 0
    """Live workers that do not know its layout."""
    full: str = ""
    """A message if Redis is full; empty otherwise."""
    lacked: str = ""
    """What no live worker has or may do; empty if one has all that is needed."""


def live_workers(
    now_ms: int, clock: Sequence[Any], registered: Sequence[Any], caps: Any, layouts: Any = NO_LAYOUTS
) -> list[Worker]:
    """Returns the workers that claim chunks: registered on the ledger clock, and not draining (capacity 0).

    Args:
        now_ms: Redis' time.
        clock: `at`, `lc` and `lease` of the clock's hash.
        registered: pairs of name and expiry.
        caps: capacity by name.
        layouts: newest known layout by name, of those that have reported it.
    """
    if now_ms - int(clock[0] or 0) > SILENT_MS:
        return []
    ledger_now, times = _ledger_clock(now_ms, clock)
    return [
        Worker(
            name.decode(),
            int(caps.get(name, 0)),
            max(0.0, ledger_now + times.lease_ms - until) / 1000,
            int(layouts.get(name, FIRST_LAYOUT)),
        )
        for name, until in registered
        if until > ledger_now and int(caps.get(name, 0))
    ]


def wait_reason(run: str, context: WaitContext, *, blocked_calls: str = "", parked: str = "") -> str:
    """Returns one sentence on why a run makes no progress; empty if it does.

    Args:
        run: its id.
        context: the state of the ledger.
        blocked_calls: what blocks its calls, see `describe_blocked_calls`.
        parked: why its parked items wait, see `describe_parked`.

    >>> wait_reason("r", WaitContext("running", 0, 2, 5, 0, 0, kind="turns"))
    'no worker is alive; run `proctor worker -Q turns`'
    >>> wait_reason("r", WaitContext("running", 1, 2, 5, 0, 0), blocked_calls="max cost $1 reached")
    'max cost $1 reached'
    >>> wait_reason("r", WaitContext("running", 1, 2, 5, 0, 0, outdated=1))
    'the live worker is of an earlier version and cannot work on it; restart workers with this version'
    >>> wait_reason("r", WaitContext("running", 1, 1, 5, 0, 0, unrenewed=1, free_ms=6_400))
    '1 of its chunks is held by a worker that does not answer; others take over within 7 s'
    """
    if context.state != RunState.RUNNING:
        is_cut = context.state == RunState.INCOMPLETE
        return blocked_calls if is_cut else _REASON_OF_STATE.get(context.state, "").format(run=run)
    return _blocked(context) or blocked_calls or _not_begun(context, parked)


def _blocked(context: WaitContext) -> str:
    """Returns what blocks every chunk of a run, independently of its calls."""
    if context.full:
        return f"{context.full}; `proctor doctor` says what helps"
    if context.outdated and context.outdated == context.workers:
        return f"{outdated_text(context.outdated)} cannot work on it; restart workers with this version"
    if not context.workers:
        return f"no worker is alive; run `proctor worker -Q {context.kind}`"
    return f"no live worker {context.lacked}" if context.lacked else ""


def outdated_text(number: int) -> str:
    """Names live workers that do not know the layout of a run.

    >>> outdated_text(1), outdated_text(2)
    ('the live worker is of an earlier version and', 'the 2 live workers are of an earlier version and')
    """
    who = "the live worker is" if number == 1 else f"the {number} live workers are"
    return f"{who} of an earlier version and"


def _not_begun(context: WaitContext, parked: str) -> str:
    """Returns why none of a run's chunks is being worked on."""
    if context.unrenewed and context.unrenewed >= context.chunks:
        within_s = max(1, -(-context.free_ms // 1000))
        are_held = "is held" if context.unrenewed == 1 else "are held"
        worker = "by a worker that does not answer"
        return f"{context.unrenewed} of its chunks {are_held} {worker}; others take over within {within_s} s"
    if context.chunks:
        return ""
    if context.due_ms:
        return f"its next chunk is parked until {iso_utc(context.due_ms)}{parked and ': '}{parked}"
    if context.waiting and context.others:
        runs = "run" if context.others == 1 else "runs"
        return f"it waits for its turn behind {context.others} other {runs}"
    return ""


def describe_blocked_calls(upstream_status: "UpstreamStatus | None") -> str:
    """Returns what blocks calls now; empty if nothing does, or some of the run's calls are in flight."""
    if upstream_status is None:
        return ""
    if upstream_status.cost.is_over and upstream_status.cap_usd is not None:
        return f"max cost ${upstream_status.cap_usd:.6g} reached"
    for scope in upstream_status.scopes:
        if scope.is_own and (sentence := _paused(scope, has_breaker=upstream_status.has_breaker)):
            return sentence
    in_flight = upstream_status.run_in_flight
    if in_flight is None:
        in_flight = sum(scope.state.in_flight for scope in upstream_status.scopes if scope.is_own)
    if in_flight:
        return ""
    return next((sentence for scope in upstream_status.scopes if (sentence := _at_limit(scope))), "")


def describe_parked(states: Sequence[ParkedState]) -> str:
    """Returns why most of the parked items wait; empty if unknown.

    >>> from shared.codecs.parked_items import History
    >>> retried = ParkedState(WaitReason.RETRY, History(code="api_rate_limited"))
    >>> describe_parked([ParkedState(WaitReason.BUDGET), retried, retried])
    'waiting to retry after a rate limit response (429)'
    >>> describe_parked([ParkedState(WaitReason.RATE_LIMIT, judges=(History(),))])
    'judges deferred: waiting for a rate limit'
    """
    sentences = Counter(filter(None, map(_parked, states)))
    return next((sentence for sentence, _ in sentences.most_common(1)), "")


def _parked(state: ParkedState) -> str:
    """Returns why one item waits."""
    if state.reason is WaitReason.RETRY:
        codes = [judge.code for judge in state.judges if judge.code] or [state.history.code]
        failure = _FAILURE_OF_CODE.get(codes[0], "failed call")
        sentence = f"waiting to retry after a {failure}"
    else:
        sentence = _printable(state.text) or _REASONS.get(state.reason, "")
    who = "check" if state.check else "judges"
    return f"{who} deferred: {sentence}" if state.judges and sentence else sentence


def _printable(text: str) -> str:
    """Shortens a stored text, and replaces characters that are not printable."""
    return "".join(char if char.isprintable() else "?" for char in text[:MAX_TEXT_CHARS])


def describe_limits(limits: "Limits") -> str:
    """Formats limits.

    >>> from shared.upstream.limits import Limits
    >>> describe_limits(Limits(rpm=500, concurrency=8))
    '500 req/min, 8 at a time'
    """
    parts = [
        None if limits.rpm is None else f"{limits.rpm:,.10g} req/min",
        None if limits.tpm is None else f"{limits.tpm:,.10g} tokens/min",
        None if limits.concurrency is None else f"{limits.concurrency} at a time",
        None if limits.pace_s is None else f"one in {limits.pace_s:g} s",
    ]
    return ", ".join(word for word in parts if word)


def format_wait(wait_ms: int) -> str:
    """Formats a wait in whole seconds, at least one.

    >>> format_wait(300), format_wait(12_400), format_wait(75_000)
    ('1 s', '13 s', '1:15 min')
    """
    seconds = max(1, -(-wait_ms // 1000))
    return f"{seconds} s" if wait_ms < _MINUTE_MS else f"{seconds // 60}:{seconds % 60:02d} min"


def _paused(scope: "ScopeUsage", *, has_breaker: bool) -> str:
    """Returns a sentence if no calls are sent to an upstream, with the time left."""
    state = scope.state
    if has_breaker and state.open_ms and state.open_ms >= state.paused_ms:
        return f"calls to {state.label} failed: its circuit breaker is open for {format_wait(state.open_ms)}"
    if state.paused_ms:
        return f"{state.label} asked for a pause: all workers send nothing for {format_wait(state.paused_ms)}"
    return ""


def _at_limit(scope: "ScopeUsage") -> str:
    """Returns a sentence if a limit admits no call now."""
    state, most = scope.state, scope.most
    if state.next_ms >= LONG_MS:
        rpm = scope.adaptive_rpm
        learned = f"{rpm:,.0f} req/min, adapted to its refusals" if rpm else ""
        limits = learned or describe_limits(scope.limits) or "a minute"
        return f"limit of {state.label} ({limits}): the next call may go in {format_wait(state.next_ms)}"
    if most is not None and state.in_flight >= most:
        return f"limit of {state.label}: all {most} calls at a time are under way for other runs"
    return ""


def read_wait_context(client: Any, run: str, kind: str, state: str) -> WaitContext:
    """Reads the state of the ledger for `wait_reason`, in two round trips at most."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hmget(keys.CLOCK_KEY, ["at", "lc", "lease", "back"])
    pipeline.zrange(keys.workers_key(kind), 0, -1, withscores=True)
    pipeline.hgetall(keys.capacity_key(kind))
    pipeline.hgetall(keys.layouts_key(kind))
    pipeline.hget(keys.run_key(run), "v")
    pipeline.zcard(keys.wait_key(run))
    pipeline.scard(keys.admitted_key(run))
    pipeline.zcard(keys.ring_key(kind))
    pipeline.zrange(keys.parked_key(kind), 0, PARKED_READ - 1, withscores=True)
    pipeline.zrange(keys.live_key(kind), 0, LEASES_READ - 1, withscores=True)
    pipeline.info("memory")
    time, clock, registered, caps, layouts, layout, *rest = pipeline.execute()
    waiting, admitted, ring, parked, live, memory = rest
    now_ms = int(time[0]) * 1000 + int(time[1]) // 1000
    *clock, back_ms = clock
    ledger_ms, times = _ledger_clock(now_ms, clock)
    late = ledger_ms + times.lease_ms - MISSED_RENEWALS * times.period_ms
    ends = {
        member.decode().split(" ")[1]: int(until) - ledger_ms
        for member, until in live
        if until < late and member.split(b" ")[0] == run.encode()
    }
    unrenewed = _leased(client, run, list(ends)) if ends else []
    mine = [due - int(back_ms or 0) for member, due in parked if member.split(b" ")[0] == run.encode()]
    workers = live_workers(now_ms, clock, registered, caps, layouts)
    return WaitContext(
        state=state,
        workers=len(workers),
        chunks=max(0, int(admitted) - len(mine)),
        waiting=int(waiting),
        due_ms=int(min(mine, default=0)),
        others=max(0, int(ring) - 1),
        unrenewed=len(unrenewed),
        free_ms=max(0, min((ends[chunk] for chunk in unrenewed), default=0)),
        kind=kind,
        outdated=sum(worker.layout < int(layout or FIRST_LAYOUT) for worker in workers),
        full=full_text(memory) if is_full(memory) else "",
    )


def _leased(client: Any, run: str, chunks: Sequence[str]) -> list[str]:
    """Returns the chunks that are leased; the others are only published."""
    pipeline = client.pipeline(transaction=False)
    for chunk in chunks:
        pipeline.hget(keys.chunk_key(run, chunk), "st")
    return [chunk for chunk, state in zip(chunks, pipeline.execute(), strict=True) if state == b"L"]


def _ledger_clock(now_ms: int, clock: Sequence[Any]) -> tuple[int, Times]:
    """Reads the ledger clock, and the times of the workers that tick.

    Args:
        now_ms: Redis' time.
        clock: `at`, `lc` and `lease` of the clock's hash.
    """
    at, ledger_ms, lease_ms = (int(value or 0) for value in clock)
    times = Times.of(lease_ms / 1000) if lease_ms else TIMES
    return ledger_ms + min(max(0, now_ms - at), times.skew_ms), times


def read_workers(client: Any, kind: str) -> list[Worker]:
    """Reads the live workers of a kind."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hmget(keys.CLOCK_KEY, ["at", "lc", "lease"])
    pipeline.zrange(keys.workers_key(kind), 0, -1, withscores=True)
    pipeline.hgetall(keys.capacity_key(kind))
    pipeline.hgetall(keys.layouts_key(kind))
    time, *found = pipeline.execute()
    return live_workers(int(time[0]) * 1000 + int(time[1]) // 1000, *found)
