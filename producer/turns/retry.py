"""Retries turns: those that ended in error, and those that a run which was cut short never decided.

Old results are kept until the new ones are committed. Retried turns are put into chunks of their own, in
input order, and are appended to their threads.
"""

from collections.abc import Collection, Iterator, Mapping
from secrets import token_hex
from typing import Final, NamedTuple, Protocol

from msgspec import Struct
from msgspec.json import Decoder

from producer.load.chunks import CHUNK_TURNS
from producer.options import Publishes
from producer.turns.load import LIVE_CHUNK_TURNS, TurnColumns, chunked
from shared.codecs.turn_batches import unpack_batch
from shared.contracts.live_turns import LiveRun
from shared.errors import RunStateError, UsageError
from shared.ledger import ChunkPlan
from shared.ledger.ledger import Ledger
from shared.runs import RunInfo, RunStore, TurnRow
from shared.runs.pages import ChunkFields

MOST_TURNS: Final = 100_000
"""Turns of one retry: they travel in one call of the ledger. What is left is for the next retry."""
MOST_BYTES: Final = 64 << 20
"""And so many bytes of them."""


class Retried(NamedTuple):
    """What was put back to work, and what was not."""

    items: int
    """Turns that will be decided again, or for the first time."""
    left: int
    """Turns that wait for another retry, because they were too many for one."""


class Retry(Protocol):
    """Puts items of a run back to work."""

    def __call__(
        self,
        ledger: Ledger,
        publisher: Publishes,
        store: RunStore,
        run: str,
        *,
        indexes: Collection[int] | None = None,
        errors: bool = True,
        is_anew: bool = False,
    ) -> Retried:
        """See `retry_turns` and `retry_items`."""


class _Thread(Struct):
    threadId: str  # noqa: N815 - the contract's own name


_thread = Decoder(_Thread)


def retry_turns(
    ledger: Ledger,
    publisher: Publishes,
    store: RunStore,
    run: str,
    *,
    indexes: Collection[int] | None = None,
    errors: bool = True,
    is_anew: bool = False,
) -> Retried:
    """Puts turns of a final run back to work.

    Args:
        ledger: where the run is.
        publisher: wakes workers.
        store: reads the run.
        run: its id.
        indexes: exactly these turns, whatever became of them.
        errors: without `indexes`: also those that ended in error, not only those that were never decided.
        is_anew: whether models are asked again, whatever answers are stored.

    Raises:
        UnknownRunError: there is no such run.
        RunStateError: the run is not final.
        UsageError: there is nothing to retry, or no such turn.
    """
    info = store.info(run)
    _check(info, indexes)
    selected, redone, size, left = TurnColumns([], [], []), dict[int, str](), 0, 0
    for chunk, rows in _wanted(store, run, indexes, errors=errors):
        if len(selected.raws) >= MOST_TURNS or size >= MOST_BYTES:
            left += len(rows)
            continue
        redone.update((row.index, row.code[0]) for row in rows if row.code)
        for index, thread, raw in _inputs(store, run, chunk, {row.index for row in rows}):
            selected.indexes.append(index)
            selected.threads.append(thread)
            selected.raws.append(raw)
            size += len(raw)
    if not selected.raws:
        raise UsageError(f"run {run} has nothing to retry", hint="every turn is decided")
    is_live = LiveRun.from_snapshot(info.snapshot) is not None
    chunks, items = _plan(selected, redone, turns=LIVE_CHUNK_TURNS if is_live else CHUNK_TURNS)
    wakes = ledger.retry(run, f"retry-{token_hex(8)}", chunks=chunks, items=items, is_anew=is_anew)
    publisher.publish(wakes)
    return Retried(len(selected.raws), left)


def _check(info: RunInfo, indexes: Collection[int] | None) -> None:
    """Refuses a retry that is not possible."""
    if not info.is_final:
        raise RunStateError(
            f"run {info.run} is {info.state} and cannot be retried now", hint="wait for its end, or cancel it"
        )
    unknown = sorted(index for index in indexes or () if not 0 <= index < info.total)
    if unknown:
        raise UsageError(
            f"run {info.run} has no turn-{unknown[0]}", hint=f"its turns are turn-0 to turn-{info.total - 1}"
        )


def _wanted(
    store: RunStore, run: str, indexes: Collection[int] | None, *, errors: bool
) -> Iterator[tuple[ChunkFields, list[TurnRow]]]:
    """Yields the chunks of the load that contain turns to retry, with their newest rows."""
    reader = store.reader(run, with_open=True)
    chunks = store.chunks(run)
    newer = dict[int, TurnRow]()
    for _, rows in reader.by_chunk(chunk for chunk in chunks if chunk.generation):
        newer.update((row.index, row) for row in rows if row.code)
    for chunk, rows in reader.by_chunk(chunk for chunk in chunks if not chunk.generation):
        latest = [newer.get(row.index, row) for row in rows] if newer else rows
        if indexes is None:
            found = [row for row in latest if not row.code or (errors and row.code[0] == "x")]
        else:
            found = [row for row in latest if row.index in indexes]
        if found:
            yield chunk, found


def _inputs(
    store: RunStore, run: str, chunk: ChunkFields, indexes: Collection[int]
) -> list[tuple[int, str, bytes]]:
    """Reads index, thread and input line of some turns of a chunk, in input order."""
    lines = list[tuple[int, str, bytes]]()
    for payload in store.inputs(run, chunk.batches):
        if payload is None:
            continue
        found, body = unpack_batch(payload)
        raws = body.split(b"\n")
        thread = _thread.decode(raws[0]).threadId
        pairs = zip(found, raws, strict=True)
        lines += [(index, thread, raw) for index, raw in pairs if index in indexes]
    return sorted(lines)


def _plan(
    selected: TurnColumns, redone: Mapping[int, str], *, turns: int
) -> tuple[list[ChunkPlan], dict[str, bytes]]:
    """Packs turns into chunks; marks the outcomes of old results, which goal and tally leave out."""
    chunks, items = list[ChunkPlan](), dict[str, bytes]()
    for chunk in chunked([selected], turns=turns):
        parts = list[tuple[str, str, int, str]]()
        for batch, thread, count in chunk.plan.parts:
            indexes, _ = unpack_batch(chunk.payloads[batch])
            marks = "".join(redone.get(index, "0") for index in indexes)
            parts.append((batch, thread, count, marks))
        chunks.append(ChunkPlan(chunk.plan.first, parts))
        items |= chunk.payloads
    return chunks, items
