"""The stream of a namespace: turns of `proctor serve`, by the time they ended, and their hourly totals.

Entries are written by `shared/ledger/lua/lib/served.lua`, and counters by `fold.lua`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.json import Decoder

from shared import keys
from shared.clock import iso_utc, parse_iso_ms
from shared.ledger.bounds import HOUR_MS, LATENCY_GROWTH
from shared.ledger.types import DAY_MS
from shared.runs.pages import ChunkFields, PageReader, TurnRow
from shared.runs.patience import patiently

STREAM: Final = "served"
"""What a stream is called, as a run is by its id; `served:shop` is that of the namespace shop."""
PREFIX: Final = STREAM + ":"
AT_ONCE: Final = 200
"""Entries that are read in one round trip."""
RATE_S: Final = 60
"""The rate is that of this many seconds."""
FIRST: Final = "-"
LAST: Final = "+"


class Window(NamedTuple):
    """Turns of a stream that ended from one time until, and without, another; epoch milliseconds."""

    namespace: str
    since_ms: int
    until_ms: int

    @property
    def name(self) -> str:
        """What it is called, as a run is by its id.

        >>> Window("live", 0, 60_000).name
        'served:live@1970-01-01T00:00:00.000Z..1970-01-01T00:01:00.000Z'
        """
        return f"{PREFIX}{self.namespace}@{iso_utc(self.since_ms)}..{iso_utc(self.until_ms)}"

    @property
    def before(self) -> "Window":
        """As long a time just before it."""
        return self._replace(since_ms=max(0, 2 * self.since_ms - self.until_ms), until_ms=self.since_ms)


def window_named(name: str) -> Window | None:
    """Returns the window that `Window.name` names; None of any other text.

    >>> window_named(Window("live", 1, 60_000).name), window_named("run-7")
    (Window(namespace='live', since_ms=1, until_ms=60000), None)
    """
    namespace, at, times = name.removeprefix(PREFIX).partition("@")
    since, dots, until = times.partition("..")
    if not (name.startswith(PREFIX) and at and dots):
        return None
    try:
        return Window(namespace, parse_iso_ms(since), parse_iso_ms(until))
    except ValueError:
        return None


class _Names(Struct, rename="camel"):
    thread_id: str
    message_id: str = ""


_names: Final = Decoder(_Names).decode
_kept: Final = Decoder(tuple[str, _Names, Any]).decode


class ServedRow(NamedTuple):
    """A turn of a stream."""

    row: TurnRow
    """Its index is its number in the stream, from 0."""
    accepted_ms: int
    """When it was accepted, epoch milliseconds."""

    @property
    def thread(self) -> str:
        """Its thread, if it was read with its input."""
        return _names(self.row.payload).thread_id

    @property
    def latency_ms(self) -> int:
        """From acceptance to the decision."""
        return max(0, self.row.finished_ms - self.accepted_ms)


class ServedPage(NamedTuple):
    """Some turns, newest first."""

    rows: Sequence[ServedRow]
    older: str
    """Name of the next page; empty after the last one."""


class HourTotals(NamedTuple):
    """What was counted in an hour, or in several."""

    at_ms: int
    """When it began."""
    turns: Counter[str]
    """By decision and rule: the first two letters of their code."""
    latency: Counter[int]
    """By bucket."""

    @property
    def total(self) -> int:
        """All turns."""
        return self.turns.total()

    def percentile_ms(self, share: float) -> float:
        """Returns the latency that this share of the turns does not exceed, right to 5 %; 0 without turns.

        >>> round(HourTotals(0, Counter(), Counter({0: 98, 25: 2})).percentile_ms(0.99), 1)
        10.3
        """
        left = self.latency.total() - ceil(share * self.latency.total())
        for bucket in sorted(self.latency, reverse=True):
            left -= self.latency[bucket]
            if left < 0:
                return 2 * LATENCY_GROWTH**bucket / (1 + LATENCY_GROWTH)
        return 0.0


class StreamState(NamedTuple):
    """A stream as lists of runs show it."""

    namespace: str
    today: HourTotals
    """Since midnight, UTC."""
    per_s: float
    """Turns a second in the last minute, or in the time of those that are kept if that is less."""
    first_ms: int | None
    """When the oldest turn that is kept ended; None: none is kept."""
    last_ms: int
    """When the latest turn ended; 0: none is kept."""
    kept: int
    """Turns that are kept in full."""
    last: int
    """The number of the latest turn, from 0."""

    @property
    def name(self) -> str:
        """What it is called, as a run is by its id."""
        return PREFIX + self.namespace


class _Entry(NamedTuple):
    """A batch of the stream."""

    id: bytes
    at_ms: int
    last: int
    """The number of its last turn, from 0."""
    fields: Mapping[bytes, bytes]

    @classmethod
    def of(cls, found: tuple[bytes, Mapping[bytes, bytes]]) -> "_Entry":
        """Reads what Redis answers."""
        at, _, number = found[0].partition(b"-")
        return cls(found[0], int(at), int(number) - 1, found[1])

    @property
    def accepted_ms(self) -> list[int]:
        """When each turn was accepted."""
        return [int(each) for each in self.fields[b"a"].split()]

    @property
    def first(self) -> int:
        """The number of its first turn."""
        return self.last - self.fields[b"a"].count(b" ")


class ServedStream:
    """Reads the stream of a namespace.

    Args:
        client: connected to the ledger's server, answering bytes.
        namespace: its name.
        patience_s: how long a read is retried while Redis is unavailable.

    All methods raise `RedisUnreachableError` if it stays away.
    """

    def __init__(self, client: Any, namespace: str, patience_s: float = 0.0) -> None:
        self._client, self.namespace, self._patience_s = client, namespace, patience_s
        self._key = keys.served_turns_key(namespace)

    def rows(self, window: Window, *, with_payload: bool = False) -> Iterator[Sequence[ServedRow]]:
        """Yields the turns of a window in their order, some at a time."""
        for entries in self._entries(window):
            yield _rows(entries, with_payload=with_payload)

    def extent(self, window: Window) -> tuple[int, int]:
        """Counts the turns and the threads of a window."""
        turns, threads = 0, set[str]()
        for entries in self._entries(window):
            for entry in entries:
                turns += entry.last - entry.first + 1
                threads.add(_names(entry.fields[b"i"].split(b"\n", 2)[1]).thread_id)
        return turns, len(threads)

    def page(self, before: str = LAST, most: int = 50) -> ServedPage:
        """Reads some of the newest turns with their input, newest first.

        Args:
            before: name of a page.
            most: how many entries are read.
        """
        last = LAST if before == LAST else f"({before}"
        entries = self._range(last, FIRST, most, newest_first=True)
        older = entries[-1].id.decode() if len(entries) == most else ""
        return ServedPage([*reversed(_rows(entries[::-1], with_payload=True))], older)

    def row(self, number: int) -> ServedRow | None:
        """Finds a turn by its number, with its input; None if it is not kept."""
        if not (newest := self._newest()):
            return None
        low, high = 0, newest.at_ms
        while low < high:  # the first time after which no entry begins at this number or before it
            middle = (low + high + 1) // 2
            found = self._range(str(middle), LAST, 1)
            low, high = (middle, high) if found and found[0].first <= number else (low, middle - 1)
        rows = _rows(self._range(str(low), str(low)), with_payload=True)
        return next((each for each in rows if each.row.index == number), None)

    def label_of(self, turn_id: str) -> str | None:
        """Returns thread and message of a turn by the id that its caller got; None once that is forgotten."""
        key = keys.served_result_key(self.namespace, turn_id)
        found = patiently(lambda: self._client.get(key), self._patience_s, client=self._client)
        return found and "{0.thread_id}/{0.message_id}".format(_kept(found)[1])

    def hours(self, first_ms: int, last_ms: int) -> list[HourTotals]:
        """Reads the totals of the hours from one time to another, both included, oldest first."""
        hours = range(first_ms // HOUR_MS, last_ms // HOUR_MS + 1)

        def read() -> list[Mapping[bytes, bytes]]:
            with self._client.pipeline(transaction=False) as pipeline:
                for hour in hours:
                    pipeline.hgetall(keys.served_key(self.namespace, str(hour)))
                return list(pipeline.execute())

        found = patiently(read, self._patience_s, client=self._client)
        return [_totals(hour * HOUR_MS, counters) for hour, counters in zip(hours, found, strict=True)]

    def state(self, now_ms: int) -> StreamState:
        """Reads what lists of runs show."""
        today = merged(self.hours(now_ms - now_ms % DAY_MS, now_ms))
        oldest, newest = self._range(FIRST, LAST, 1), self._newest()
        if not newest:
            return StreamState(self.namespace, today, 0.0, None, 0, 0, -1)
        [first] = oldest
        earlier = self._range(str(now_ms - 1000 * RATE_S), FIRST, 1, newest_first=True)
        since, seconds = earlier[0].last if earlier else first.first - 1, float(RATE_S)
        if not earlier and first.first:  # more a minute than are kept
            seconds = max(1, now_ms - first.at_ms) / 1000
        per_s, kept = round((newest.last - since) / seconds, 2), newest.last - first.first + 1
        return StreamState(self.namespace, today, per_s, first.at_ms, newest.at_ms, kept, newest.last)

    def _newest(self) -> _Entry | None:
        return next(iter(self._range(LAST, FIRST, 1, newest_first=True)), None)

    def _range(
        self, first: str, last: str, most: int | None = None, *, newest_first: bool = False
    ) -> list[_Entry]:
        """Reads the entries between two ids."""
        read = self._client.xrevrange if newest_first else self._client.xrange
        found = patiently(
            lambda: read(self._key, first, last, count=most), self._patience_s, client=self._client
        )
        return [_Entry.of(each) for each in found]

    def _entries(self, window: Window) -> Iterator[list[_Entry]]:
        first = str(window.since_ms)
        while entries := self._range(first, str(window.until_ms - 1), AT_ONCE):
            yield entries
            first = f"({entries[-1].id.decode()}"


def merged(hours: Sequence[HourTotals]) -> HourTotals:
    """Adds up hours, of which there is at least one."""
    total = HourTotals(hours[0].at_ms, Counter(), Counter())
    for hour in hours:
        total.turns.update(hour.turns)
        total.latency.update(hour.latency)
    return total


def _totals(at_ms: int, counters: Mapping[bytes, bytes]) -> HourTotals:
    """Reads the counters of an hour: `turns CODE` and `latency BUCKET`."""
    found = HourTotals(at_ms, Counter(), Counter())
    for name, number in counters.items():
        kind, _, word = name.decode().partition(" ")
        if kind == "turns":
            found.turns[word] = int(number)
        else:
            found.latency[int(word)] = int(number)
    return found


def _rows(entries: Sequence[_Entry], *, with_payload: bool) -> list[ServedRow]:
    """Opens batches as those of a run are: each is a chunk of its own."""
    names = [entry.id.decode() for entry in entries]
    inputs = dict(zip(names, (entry.fields[b"i"] for entry in entries), strict=True))
    results = {
        name + field[1:].decode(): value
        for name, entry in zip(names, entries, strict=True)
        for field, value in entry.fields.items()
        if field[:1] == b"r"
    }
    reader = PageReader(
        lambda wanted: [results.get(name) for name in wanted],
        lambda wanted: [inputs.get(name) for name in wanted],
        with_open=True,
        with_payload=with_payload,
    )
    chunks = [ChunkFields(0, at, [name]) for at, name in enumerate(names)]
    return [
        ServedRow(row._replace(index=entry.first + at), accepted_ms)
        for entry, (_, rows) in zip(entries, reader.by_chunk(chunks), strict=True)
        for at, (row, accepted_ms) in enumerate(zip(rows, entry.accepted_ms, strict=True))
    ]
