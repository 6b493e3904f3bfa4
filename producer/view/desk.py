"""What pages are made from, read from Redis: runs, the fleet, one run and its rows; each call reads anew."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from producer.access import Access
from producer.fleet_state import (
    Bounds,
    ChunksNow,
    Overview,
    RunChunks,
    is_of_run,
    read_bounds,
    read_chunks,
    read_overview,
    state_text,
)
from producer.following.follower import parked_text
from producer.run_standing import counted
from producer.streams import known_stream
from producer.text import count, duration, plural
from producer.view.cards import RunPace
from producer.view.run_lines import RunLine, lines_of
from producer.view.stream_lines import DAY_HOURS, StreamCard, stream_card
from shared.clock import now_ms
from shared.kinds import Kind, kind_named
from shared.ledger.bounds import HOUR_MS
from shared.runs import RunInfo
from shared.runs.served import StreamState
from shared.runs.waiting import describe_limits
from shared.upstream.model_target import is_function

MOST_RUNS: Final = 10_000
"""Runs that the table knows; the newest come first."""
WATCHED: Final = 100
"""Newest runs among which open ones are looked for."""


NO_CHUNKS: Final = ChunksNow({}, {})


class FleetLine(NamedTuple):
    """A line of the fleet: a name, how much of it is used, and what is to be said about it."""

    name: str
    text: str
    share: float = 0.0
    tone: str = ""
    about: str = ""


class FleetBox(NamedTuple):
    """The fleet, as a page shows it."""

    workers: Sequence[FleetLine]
    queues: Sequence[FleetLine]
    chunks: Sequence[FleetLine]
    """Of the runs that go on."""
    limits: Sequence[FleetLine]
    dead: str


class RunsLook(NamedTuple):
    """What the page of all runs shows, read together."""

    runs: Sequence[RunInfo]
    overview: Overview
    bounds: Sequence[Bounds]
    streams: Sequence[StreamState] = ()
    chunks: ChunksNow = NO_CHUNKS
    """Where the chunks of the runs are that go on."""

    @property
    def worked_on(self) -> frozenset[Kind]:
        """Kinds that a live worker works on."""
        return frozenset(kind_named(queue.kind) for queue in self.overview.queues if queue.workers)


def look(access: Access, most: int = MOST_RUNS) -> RunsLook:
    """Reads runs and fleet.

    Raises:
        RedisUnreachableError: Redis is away.
    """
    store = access.impatient_store
    runs = [counted(store, info) for info in store.list(limit=most)]
    overview = read_overview(access.client, access.queue_lengths(), runs[:WATCHED])
    bounds = read_bounds(access.ledger.caller, None)
    chunks = read_chunks(access.client, [info for info in runs[:WATCHED] if not info.is_final])
    return RunsLook(runs, overview, bounds, store.streams(), chunks)


class StreamLook(NamedTuple):
    """What the page of a stream shows beside its turns."""

    state: StreamState
    card: StreamCard


def stream_look(access: Access, namespace: str) -> StreamLook:
    """Reads the totals of a stream.

    Raises:
        UnknownRunError: there is no such stream.
        RedisUnreachableError: Redis is away.
    """
    store, now = access.impatient_store, now_ms()
    stream = store.stream(known_stream(store, namespace))
    state = stream.state(now)
    return StreamLook(state, stream_card(state, stream.hours(now - (DAY_HOURS - 1) * HOUR_MS, now)))


def pace_now(access: Access, info: RunInfo, workers: int, per_s: float | None = None) -> RunPace:
    """Reads what a run waits for.

    Args:
        access: access to Redis.
        info: the run.
        workers: live ones of its kind.
        per_s: how fast it is, if that is known.
    """
    if info.is_final:
        return RunPace(workers=workers)
    status = access.impatient_store.upstream_status(info)
    why = access.impatient_store.wait_reason_of(info, status)
    parked = parked_text(status) if status else ""
    return RunPace(per_s, why, limits=[parked] if parked else [], workers=workers)


def run_lines(found: RunsLook) -> list[RunLine]:
    """Makes the lines of the table."""
    return lines_of(found.runs, found.worked_on, now_ms())


def fleet_box(found: RunsLook) -> FleetBox:
    """Makes what a page shows of the fleet."""
    overview, in_hand = found.overview, found.chunks.by_worker
    workers = [
        FleetLine(
            each.name,
            f"{', '.join(each.kinds)}; {in_hand.get(each.name, 0)} of {plural(each.capacity, 'chunk')}",
            in_hand.get(each.name, 0) / max(1, each.capacity),
            about=f"last seen {duration(each.heard_s)} ago",
        )
        for each in overview.workers
    ]
    most = max((queue.open_items for queue in overview.queues), default=0)
    queues = [
        FleetLine(
            queue.kind,
            f"{count(queue.open_items)} open" if queue.open_items else "empty",
            queue.open_items / most if most else 0.0,
            about=f"{count(queue.queued)} chunks queued, {queue.handed_out} at work, {queue.delayed} delayed",
        )
        for queue in overview.queues
    ]
    limits = [_limit(bound) for bound in found.bounds if not is_of_run(bound) and not _is_gone(bound)]
    dead = plural(overview.dead, "dead item") if overview.dead else ""
    titles = {info.run: info.title for info in found.runs}
    chunks = [_chunks(titles[run], counts) for run, counts in found.chunks.by_run.items()]
    return FleetBox(workers, queues, chunks, limits, dead)


def _chunks(title: str, counts: RunChunks) -> FleetLine:
    """Makes the line of a run that goes on."""
    named = zip(counts, ("waiting", "published", "in hand", "parked"), strict=True)
    text = ", ".join(f"{count(number)} {word}" for number, word in named if number)
    about = "waiting: not published yet; published: a worker may take it; in hand: at work; parked: due later"
    return FleetLine(title, text or "none left", counts.in_hand / max(1, sum(counts)), about=about)


def _is_gone(bound: Bounds) -> bool:
    """Returns whether a line is of a function of Python that was served for a run, and is not called now."""
    state = bound.state
    return state is not None and is_function(state.place) and not state.in_flight


def _limit(bound: Bounds) -> FleetLine:
    """Makes the line of a model or an API."""
    state, limits = bound.state, bound.limits
    name = bound.key if state is None else state.label
    if state is None:
        return FleetLine(name, describe_limits(limits), about="not called in the last hour")
    if state.paused_ms:
        return FleetLine(
            name, f"paused, {duration(state.paused_ms / 1000)}", 1.0, "c", "it asked for a pause"
        )
    if state.open_ms:
        return FleetLine(name, f"circuit open, {duration(state.open_ms / 1000)}", 1.0, "e", state_text(state))
    free = bound.free
    share = 0.0 if free is None else state.in_flight / max(1, state.in_flight + free)
    flight = f"{count(state.in_flight)} in flight"
    text = ", ".join(filter(None, [flight, describe_limits(limits)]))
    return FleetLine(name, text, share, about=state_text(state))
