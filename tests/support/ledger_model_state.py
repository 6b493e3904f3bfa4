"""Holds the state of the ledger's model: plain Python values for all that the scripts keep in Redis."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shared.kinds import all_kinds
from shared.ledger import DeadItem
from shared.ledger.bounds import ASIDE_FACTOR, FIRST_LAYOUT, PERCENT, WINDOW_FLOOR


class Part(NamedTuple):
    """Turns of one thread in one chunk."""

    batch: str
    thread: str
    turns: int
    again: str
    """One character per turn: the outcome of its result, `0` where it has none; empty when none has one."""


class Plan(NamedTuple):
    """What an open chunk is made of."""

    generation: int
    first: str
    size: int
    parts: list[Any]
    """Indexes; of turns `Part`s."""


class Lease(NamedTuple):
    """A worker's right to a chunk."""

    run: str
    chunk: str
    token: str


class Ref(NamedTuple):
    """A batch that stands in an inbox."""

    run: str
    batch: str
    turns: int


class Attempts(NamedTuple):
    """An item that will be tried again."""

    attempts: int
    due_ms: int
    parked_state: str


@dataclass
class Record:
    """A chunk that was handed out: P published, L leased, W waiting, D delayed."""

    state: str = "W"
    token: str | None = None
    worker: str | None = None
    claimed_ms: int | None = None
    strikes: int | None = None
    repeated: int | None = None
    rest: int | None = None
    """Share of its items that it had when it was put aside, in percent; of runs of limited width."""
    awaits: bool = False
    """Whether the release of a thread ends its delay."""
    since_ms: int | None = None
    """When its last wake-up was sent, on the ledger clock."""

    def suspect(self, limit: int) -> bool:
        """Tells whether so many leases ran out that its items are watched one by one."""
        return (self.strikes or 0) >= limit


@dataclass
class Run:
    """A run with everything that belongs to it."""

    run: str
    kind: str
    namespace: str
    key: str
    token: str
    snapshot: bytes
    ttl_s: int
    namespace_ttl_s: int
    until_ms: int
    created_ms: int
    wide: int = 0
    layout: int = FIRST_LAYOUT
    tells: str = ""
    state: str = "loading"
    to: str | None = None
    digest: str | None = None
    generation: int = 0
    operation: str | None = None
    tried: bool = False
    done: int = 0
    goal: int = 0
    total: int = 0
    sealed_ms: int | None = None
    finished_ms: int | None = None
    again_ms: int | None = None
    idle_ms: int | None = None
    """Time that it was final before it was retried."""
    anew: tuple[int, ...] = ()
    """Generations that ask models anew."""
    expires_ms: int | None = None
    tally: Counter[str] = field(default_factory=Counter)
    items: dict[str, bytes] = field(default_factory=dict)
    plan: dict[str, Plan] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    chunks: dict[str, Record] = field(default_factory=dict)
    results: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    redo: dict[str, int] = field(default_factory=dict)
    tries: dict[str, Attempts] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    threads: set[str] = field(default_factory=set)

    def outcome_letter(self, index: str) -> str:
        """The letter with which an item's result begins; poison is an error."""
        value = self.results[index][1]
        return "x" if value == b"poison" else chr(value[0]) if value else ""

    def next_chunk(self) -> str | None:
        """The chunk that is published next; none when none waits, or as many as may be are under way."""
        chunk = min(self.waiting, key=lambda name: (order(name), name), default=None)
        return None if self._is_full() and chunk not in self.chunks else chunk

    def _is_full(self) -> bool:
        if not self.wide or len(self.chunks) < self.wide:
            return False
        if self.wide == 1 or len(self.chunks) >= ASIDE_FACTOR * self.wide:
            return True
        under_way = [record.rest for record in self.chunks.values() if record.state != "D"]
        return sum(PERCENT if rest is None else rest for rest in under_way) >= PERCENT * self.wide


@dataclass
class Thread:
    """A thread of a namespace: its inbox, its state and its lock."""

    pos: int = 0
    offset: int = 0
    memento: bytes | None = None
    owner: Lease | None = None
    inbox: list[Ref] = field(default_factory=list)
    moved: bool = False
    """Whether its position was ever written."""


@dataclass
class Namespace:
    """Threads and answered requests that runs may share."""

    threads: dict[str, Thread] = field(default_factory=dict)
    requests: dict[str, bytes] = field(default_factory=dict)
    users: set[str] = field(default_factory=set)
    expires_ms: int | None = None
    requests_expire_ms: int | None = None

    def thread(self, name: str) -> Thread:
        """Finds a thread, or begins one."""
        return self.threads.setdefault(name, Thread())


class Entry(NamedTuple):
    """A batch in the stream of a namespace."""

    at_ms: int
    number: int
    """Of its last turn, from 1."""
    fields: dict[str, bytes]


@dataclass
class Served:
    """The stream of a namespace: what is left of runs that were folded."""

    hours: dict[int, Counter[str]] = field(default_factory=dict)
    hours_expire_ms: dict[int, int] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    entries_expire_ms: int = 0
    last_ms: int | None = None
    """When a turn was added; None where it is in no list of streams."""
    seen: dict[str, int] = field(default_factory=dict)
    """Threads by the time when they talked."""
    seen_expire_ms: int = 0


@dataclass
class Told:
    """Runs that have ended and whose listener has not been told yet."""

    runs: list[str] = field(default_factory=list)
    expires_ms: int = 0


@dataclass
class KindState:
    """Dispatch of one kind."""

    live: dict[tuple[str, str], int] = field(default_factory=dict)
    parked: dict[tuple[str, str], int] = field(default_factory=dict)
    ring: dict[str, int] = field(default_factory=dict)
    workers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Capacity and end of registration."""
    window: int | None = None
    usual_ms: int | None = None

    @property
    def room(self) -> int:
        """How many more chunks may be published."""
        return (self.window if self.window is not None else WINDOW_FLOOR) - len(self.live)


@dataclass
class State:
    """All there is: what Redis holds, and its clock."""

    now_ms: int = 0
    """Redis' TIME."""
    tick_ms: int = 0
    ledger_ms: int = 0
    back_ms: int = 0
    """How far Redis' clock was set back, in all."""
    serial: int = 0
    runs: dict[str, Run] = field(default_factory=dict)
    idem: dict[str, str] = field(default_factory=dict)
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    kinds: dict[str, KindState] = field(
        default_factory=lambda: {kind.name: KindState() for kind in all_kinds()}
    )
    told: dict[str, Told] = field(default_factory=dict)
    served: dict[str, Served] = field(default_factory=dict)
    suspects: dict[str, Lease] = field(default_factory=dict)
    dead: dict[tuple[str, str], DeadItem] = field(default_factory=dict)
    counters: Counter[str] = field(default_factory=Counter)


OUTCOMES = {"p": "passed", "f": "failed", "x": "error", "m": "must", "s": "should", "k": "skip"}
"""Words of a tally by the letter with which a stored result, or a mark, begins."""


def outcomes_of(letters: Iterable[str]) -> Counter[str]:
    """Counts results by the word of a tally; what is no outcome counts for none.

    >>> outcomes_of("pp01x")
    Counter({'passed': 2, 'error': 1})
    """
    return Counter(OUTCOMES[letter] for letter in letters if letter in OUTCOMES)


def order(chunk: str) -> int:
    """Where a chunk stands in its run.

    >>> [order("17"), order("2.5"), order("17/3")]
    [17, 2000000005, 17]
    """
    generation, _, number = chunk.split("/", maxsplit=1)[0].rpartition(".")
    return int(generation or 0) * 10**9 + int(number)
