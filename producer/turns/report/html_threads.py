"""Puts the turns of a run into conversations, the ones to read first at the top, in decision order."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import msgspec
from markupsafe import Markup

from producer.report.cells import Size
from producer.report.html.spool import Spool
from producer.text import duration, plural
from producer.turns.report.html_affect import MOST_POINTS, STRIP_TURNS, Course, chart, strip
from producer.turns.report.turn_records import (
    ERROR,
    FIELDS,
    SEED,
    SKIPPED,
    Shape,
    TurnRecord,
    short,
)
from shared.clock import parse_iso_ms

UNKNOWN: Final = "turns that were not decided"
"""Stands for the thread of turns whose input was not read."""
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(TurnRecord).decode


class ThreadOfPage:
    """Counts the turns of one thread: decisions, freezes, failures, and the course of its affect."""

    def __init__(self, name: str) -> None:
        self.name = short(name, Size.NAME) or UNKNOWN
        self.course = Course()
        self.decisions = Counter[str]()
        self.freezes = self.discarded = self.updated = 0
        self.first_at = self.last_at = ""

    @property
    def turns(self) -> int:
        """How many it has in this run."""
        return self.decisions.total()

    @property
    def errors(self) -> int:
        """Turns that failed."""
        return self.decisions[ERROR]

    def add(self, record: TurnRecord) -> None:
        """Counts a turn."""
        self.course.add(record.order, record.mood, record.decision, is_frozen=record.is_frozen)
        self.decisions[record.decision] += 1
        self.freezes += record.is_frozen
        self.discarded += record.is_discarded
        self.updated += record.is_updated
        if record.ts:
            self.first_at = min(self.first_at or record.ts, record.ts)
            self.last_at = max(self.last_at, record.ts)

    def span(self) -> str:
        """Returns how long the conversation took, where its turns have times."""
        if not self.first_at or self.first_at == self.last_at:
            return ""
        return duration((parse_iso_ms(self.last_at) - parse_iso_ms(self.first_at)) / 1000)

    def drawn(self) -> Markup:
        """Returns the chart of the whole conversation."""
        parts = [plural(self.turns, "turn"), *(f"{self.decisions[word]} {word}" for word in self.decisions)]
        if self.freezes:
            parts.append(f"{plural(self.freezes, 'turn')} frozen")
        return chart(
            self.course.points(MOST_POINTS), f"Affect and decisions of the thread: {', '.join(parts)}"
        )

    def small(self) -> Markup:
        """Returns the strip of its decisions, for the list of threads."""
        return strip(self.course.points(STRIP_TURNS))


class Step(NamedTuple):
    """A turn between its neighbours."""

    record: TurnRecord
    number: int
    """In its thread, from 1."""
    before: TurnRecord | None
    after: TurnRecord | None
    start: Shape | None
    """The summary before the turn; None where turns of other runs stand between."""
    kept_by: str
    """The turn whose summary still stands; empty where this one changed it."""


class Threads:
    """Keeps turns on disk until all are known, and numbers of their threads in memory."""

    def __init__(self) -> None:
        self._spool = Spool()
        self._numbers = dict[str, int]()
        self.threads = list[ThreadOfPage]()

    def __len__(self) -> int:
        return len(self._spool)

    def add(self, record: TurnRecord) -> None:
        """Takes a turn."""
        number = self._numbers.setdefault(record.thread, len(self.threads))
        if number == len(self.threads):
            self.threads.append(ThreadOfPage(record.thread))
        self.threads[number].add(record)
        self._spool.add(number << 32 | record.order, _encode(record))

    def ranked(self) -> list[int]:
        """Returns the threads, those with failed turns first, then those with the most freezes."""
        threads = self.threads
        return sorted(range(len(threads)), key=lambda at: (not threads[at].errors, -threads[at].freezes, at))

    def steps(self) -> Iterator[tuple[int, Step]]:
        """Yields each turn with its thread; called once."""
        records = ((key >> 32, _decode(piece)) for key, piece in self._spool.pieces())
        for number, turns in groupby(records, key=lambda found: found[0]):
            for step in steps_of(record for _, record in turns):
                yield number, step
        self._spool.close()


def steps_of(records: Iterable[TurnRecord]) -> Iterator[Step]:
    """Puts the turns of one thread beside their neighbours, and finds what each began with."""
    last: TurnRecord | None = None
    decided: TurnRecord | None = None
    kept_by = ""
    held: Step | None = None
    for number, record in enumerate(records, 1):
        if held is not None:
            yield held._replace(after=record)
        start = _start(record, decided)
        is_kept = start is not None and start == record.memento and bool(kept_by)
        held = Step(record, number, last, None, start, kept_by if is_kept else "")
        if record.decision != SKIPPED:
            kept_by = kept_by if is_kept else item_of(record)
            decided = record
        last = record
    if held is not None:
        yield held


def item_of(record: TurnRecord) -> str:
    """Names a turn in the run."""
    return f"turn-{record.index}"


def _start(record: TurnRecord, decided: TurnRecord | None) -> Shape | None:
    """Returns the summary that a turn began with."""
    if record.base is not None:
        return record.base
    if record.decision in (ERROR, SKIPPED) or record.is_repeated:
        return record.memento
    if decided is not None and decided.etag == record.etag - 1:
        return decided.memento
    return SEED if record.etag == 1 else None


class Change(NamedTuple):
    """An entry of a summary, and what became of it."""

    kind: str
    """`same`, `del`, `ins`, or `cold` for a proposal that was not taken."""
    text: str


def changes(step: Step, name: str) -> list[Change]:
    """Returns the entries of a field before and after a turn, in one."""
    record = step.record
    now = record.memento.entries(name)
    old = now if step.start is None else step.start.entries(name)
    is_seed = step.start is SEED
    lost = [Change("del", text) for text in old if text not in now and not is_seed]
    kept = [Change("same" if text in old else "ins", text) for text in now]
    proposed = record.proposed.entries(name) if record.proposed else []
    return [*lost, *kept, *(Change("cold", text) for text in proposed if text not in now)]


def deltas(step: Step, most: int = 2) -> tuple[list[tuple[str, Change]], int]:
    """Returns the first changes of a summary with their fields, and how many more there are."""
    if step.start is None or step.start == step.record.memento:
        return [], 0
    found = [(name, change) for name in FIELDS for change in changes(step, name)]
    ordered = [(name, change) for name, change in found if change.kind == "ins"]
    ordered += [(name, change) for name, change in found if change.kind == "del"]
    return ordered[:most], max(0, len(ordered) - most)


def first_to_read(threads: Sequence[ThreadOfPage], ranked: Sequence[int]) -> str:
    """Names the thread to read first; empty where all went well.

    >>> first_to_read([], [])
    ''
    """
    if not ranked:
        return ""
    thread = threads[ranked[0]]
    problems = [plural(thread.errors, "failed turn")] if thread.errors else []
    if thread.freezes:
        problems.append(plural(thread.freezes, "freeze"))
    if thread.discarded:
        problems.append(plural(thread.discarded, "discarded proposal"))
    if not problems:
        return ""
    return f"Look first at {thread.name}: {', '.join(problems)} in {plural(thread.turns, 'turn')}."
