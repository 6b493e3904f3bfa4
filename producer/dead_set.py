"""Reads the ledger's dead set and discards entries of it."""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import UNSET

from producer.documents import ItemError
from producer.item_ids import item_id
from producer.item_names import ItemName, name_of, resolve
from producer.service_documents import DeadDiscarded, DeadDocument, DeadEntry, DeadItemDocument
from shared.clock import iso_utc
from shared.codecs.item_rows import unpack_item
from shared.codecs.packing import DICTIONARY, Packing
from shared.errors import UnknownItemError
from shared.keys import DEAD_ITEMS_KEY, DEAD_KEY, batches_key, run_dead_key
from shared.kinds import Storage, kind_named
from shared.ledger import DeadItem
from shared.ledger.wire import unpack_dead

PAGE: Final = 500
"""Entries fetched in one round trip."""


@dataclass(frozen=True, slots=True)
class ItemPlace:
    """Which item it is."""

    run: str
    index: str
    """Its position in the input, as the ledger spells it."""

    @property
    def member(self) -> str:
        """The name of the entry in the dead set."""
        return f"{self.run} {self.index}"


class Dead(NamedTuple):
    """One item that was given up."""

    place: ItemPlace
    item: DeadItem

    @property
    def id(self) -> str:
        """The item's id as in the results."""
        return item_id(kind_named(self.item.kind), int(self.place.index))

    @property
    def name(self) -> ItemName:
        """Its name for users."""
        return name_of(kind_named(self.item.kind), int(self.place.index), self.item.payload)

    @property
    def line(self) -> bytes:
        """The stored JSON of its result; empty when no worker survived it."""
        result = self.item.result
        is_bare = kind_named(self.item.kind).storage is Storage.MAILBOXES or not result
        return result if is_bare else unpack_item(int(self.place.index), result).line

    @property
    def status(self) -> int:
        """HTTP status of the reply that was no answer; 0 when none is known."""
        found = parsed(self.line)
        error = found.get("error") if isinstance(found, dict) else None
        return int(error.get("status") or 0) if isinstance(error, dict) else 0

    @property
    def error(self) -> tuple[str, str]:
        """Error code and message."""
        found = parsed(self.line)
        error = found.get("error") if isinstance(found, dict) else None
        if isinstance(error, dict):
            return str(error.get("code", "")), str(error.get("message", ""))
        if self.item.code:
            return self.item.code, "no worker survived it"
        return "error", ""

    @property
    def item_error(self) -> ItemError:
        """The same for `--json`, with the HTTP status where there is one."""
        return ItemError(*self.error, self.status or UNSET)


def dead_document(entries: Iterable[Dead]) -> DeadDocument:
    """Returns a list of entries as programs get it."""
    rows = (
        DeadEntry(
            run_id=entry.place.run,
            item_id=entry.id,
            name=entry.name.label,
            kind=entry.item.kind,
            attempts=entry.item.attempts,
            at=iso_utc(entry.item.at_ms),
            error=entry.item_error,
        )
        for entry in entries
    )
    return DeadDocument(dead=tuple(rows))


def item_document(entry: Dead) -> DeadItemDocument:
    """Returns an entry as programs get it, with its input and its result."""
    return DeadItemDocument(
        run_id=entry.place.run,
        item_id=entry.id,
        name=entry.name.label,
        kind=entry.item.kind,
        at=iso_utc(entry.item.at_ms),
        attempts=entry.item.attempts,
        error=entry.item_error,
        payload=parsed(entry.item.payload),
        result=parsed(entry.line) if entry.line else None,
    )


def parsed(value: bytes) -> Any:
    """Reads stored JSON; what is none comes back as text."""
    try:
        return json.loads(value)
    except ValueError:
        return value.decode(errors="replace")


def find_dead(entries: Sequence[Dead], texts: Sequence[str], run: str) -> list[Dead]:
    """Finds entries of one run by the names of their items.

    Raises:
        UnknownItemError: no dead item of the run has a name, or several have it.
    """
    if not entries:
        hint = f"`proctor results {run} --errors` lists what ended in error"
        raise UnknownItemError(f"nothing of {run} is dead", hint=hint)
    by_position = {entry.name.position: entry for entry in entries}
    kind = kind_named(entries[0].item.kind)
    found = resolve(texts, (entry.name for entry in entries), kind=kind, where=f"the dead set of {run}")
    return [by_position[position] for position in found]


# redis-py's own annotations mix sync and async answers, hence Any.
def read_dead(client: Any, *, run: str = "", first: int | None = None) -> Iterator[Dead]:
    """Yields the entries of the dead set: of one run by position, else the newest first."""

    @lru_cache
    def packing_of(run: str) -> Packing:
        return Packing(client.hget(batches_key(run), DICTIONARY) or b"")

    for places in _pages(client, run, first):
        values = client.hmget(DEAD_ITEMS_KEY, [place.member for place in places])
        for place, value in zip(places, values, strict=True):
            if value is not None:  # retried or removed at this moment
                with suppress(zlib.error):  # its run has expired, and a worker's next tick removes the entry
                    yield Dead(place, _unpacked(unpack_dead(value), packing_of(place.run)))


def _unpacked(item: DeadItem, packing: Packing) -> DeadItem:
    """Returns an entry with its texts as they were before they were stored."""
    header, newline, line = item.result.partition(b"\n")
    result = b"".join((header, newline, packing.unpack(line)))
    return item._replace(payload=packing.unpack(item.payload), result=result)


def _pages(client: Any, run: str, first: int | None) -> Iterator[Sequence[ItemPlace]]:
    """Yields the places of entries, a page at a time."""
    if run:
        indexes = sorted((index.decode() for index in client.smembers(run_dead_key(run))), key=_in_order)
        for start in range(0, len(indexes[:first]), PAGE):
            yield [ItemPlace(run, index) for index in indexes[:first][start : start + PAGE]]
        return
    start = 0
    while first is None or start < first:
        end = start + PAGE if first is None else min(start + PAGE, first)
        members = client.zrevrange(DEAD_KEY, start, end - 1)
        if not members:
            return
        yield [ItemPlace(*member.decode().split(" ", 1)) for member in members]
        start = end


def _in_order(index: str) -> tuple[int, str]:
    """Sorts positions by number, others after them by name."""
    return (int(index), "") if index.isdecimal() else (1 << 62, index)


def discard(client: Any, places: Sequence[ItemPlace]) -> DeadDiscarded:
    """Takes entries out of the dead set and counts those that were there; results stay what they are."""
    gone = 0
    for start in range(0, len(places), PAGE):
        page = places[start : start + PAGE]
        members = [place.member for place in page]
        pipeline = client.pipeline(transaction=True)
        pipeline.zrem(DEAD_KEY, *members)
        pipeline.hdel(DEAD_ITEMS_KEY, *members)
        for place in page:
            pipeline.srem(run_dead_key(place.run), place.index)
        gone += int(pipeline.execute()[0])
    return DeadDiscarded(discarded=gone)
