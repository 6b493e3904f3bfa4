"""What a submit needs of an input of any kind: chunks as they are read, and what the run must remember."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from producer.load.baselines import choose, encode_baseline, read_baselines, start_at
from producer.load.chunks import LIVE_CHUNK_TURNS, Chunk, chunked, name_of
from producer.load.source import Source
from producer.load.turns import turn_pages
from producer.options import QueryChoice, SubmitOptions
from producer.run_ids import new_run_id
from shared.contracts.live_turns import SNAPSHOT_KEY as LIVE_KEY
from shared.contracts.query_run import SNAPSHOT_KEY
from shared.contracts.query_vocabulary import run_id_at
from shared.ledger import ChunkPlan

MOST_CHUNKS: Final = 200
"""Chunks that a run of cases or queries is cut into, as long as they stay below `CHUNK_ITEMS_MOST`."""
LIVE_RESULTS: Final = ("model", "live", "api_base", "temperature")
"""Settings of live turns that decide what comes out."""
SPARE_SHARE: Final = 2
"""One chunk in so many more is open than there are places for."""
CHUNK_ITEMS_MOST: Final = 100
"""Cases or queries of one chunk."""


class Load(NamedTuple):
    """One input on its way into the ledger."""

    chunks: Iterator[Chunk]
    """In order; reading them may find that the input breaks its contract."""
    snapshot: Mapping[str, Any]
    """What the run must remember beside what every run does."""
    settings: Sequence[str] = ()
    """Settings that decide what comes out: another value is another run for an idempotency key."""
    files: Mapping[str, bytes] = MappingProxyType({})
    """What items share, by name: it is stored once with the run."""
    wide: int = 0
    """Most chunks under way at a time in the whole fleet; 0 for no limit."""
    run_id: Callable[[int, int], str] = lambda now_ms, _copy: new_run_id(now_ms)
    """Makes the run's id from the time and, counted from 1, how often ids of this time were taken."""


def load_turns(source: Source, options: SubmitOptions) -> Load:
    """Begins to load conversation turns."""
    live = options.live
    if live is None:
        return Load(
            chunked(turn_pages(source), turns=options.chunk_turns),
            {"summary_policy": options.summary_policy, "live": None, "model": None},
            [options.summary_policy],
        )
    settings_of_live = live.as_snapshot()
    return Load(
        chunked(turn_pages(source), turns=min(options.chunk_turns, LIVE_CHUNK_TURNS)),
        {
            "summary_policy": options.summary_policy,
            "live": live.live,
            "model": live.model,
            LIVE_KEY: settings_of_live,
        },
        [options.summary_policy, *(f"{key}={settings_of_live[key]}" for key in LIVE_RESULTS)],
    )


def load_queries(source: Source, options: SubmitOptions) -> Load:
    """Begins to load the baselines of an evaluation; all of them are read at once, to be sorted.

    Raises:
        InputError: the source breaks its contract, or no query has the id to start from.
    """
    baselines, query_run = read_baselines(source), options.queries
    for warning in baselines.warnings:
        options.on_warning(warning)
    following = start_at(baselines.queries, query_run.start_from or None)
    queries = choose(following, options.query_choice)
    items = [
        (f"{query['id']} #{again + 1}" if again else query["id"], encode_baseline(query))
        for query in queries
        for again in range(query_run.repeat)
    ]
    size, wide = shape_of(len(items), query_run.concurrency)
    run = replace(
        query_run,
        version=baselines.version,
        start_from=queries[0]["id"],
        chosen=_describe_choice(options.query_choice, len(queries), len(baselines.queries)),
        offset=len(baselines.queries) - len(following),
        together=min(query_run.concurrency, size),
    )
    settings = {key: str(value) for key, value in run.as_snapshot().items() if key != "version"}
    return Load(
        item_chunks(items, size),
        {SNAPSHOT_KEY: run.as_snapshot()},
        [f"{key}={value}" for key, value in settings.items()],
        wide=wide,
        run_id=lambda now_ms, copy: run_id_at(now_ms, copy=copy),
    )


def _describe_choice(choice: QueryChoice, chosen: int, of: int) -> str:
    """Says what a run leaves out of its file.

    >>> _describe_choice(QueryChoice(first=3), 3, 50), _describe_choice(QueryChoice(), 50, 50)
    ('3 of 50 queries, chosen with --first 3', '')
    """
    return f"{chosen} of {of} queries, chosen with {choice}" if str(choice) else ""


def chunk_size(items: int) -> int:
    """Says how many cases or queries a chunk holds: one in small runs, so that each is a row in Flower.

    >>> [chunk_size(items) for items in (1, 200, 999, 5_000, 1_000_000)]
    [1, 1, 4, 25, 100]
    """
    return min(max(items // MOST_CHUNKS, 1), CHUNK_ITEMS_MOST)


def shape_of(items: int, concurrency: int) -> tuple[int, int]:
    """Says how many items a chunk holds, and how many chunks may be open, to keep so many items under way.

    Chunks that are begun whole leave no place empty: the largest size that fills the most places is taken.
    Half as many more may be open; their items wait at the gate for a place, which would otherwise stand empty
    between two chunks.

    >>> [shape_of(1_500, together) for together in (1, 10, 97, 100)]
    [(7, 1), (5, 3), (6, 24), (5, 30)]
    """
    most = chunk_size(items)
    if concurrency < most:
        return most, 1
    size = max(range(most, most // 2, -1), key=lambda size: (concurrency // size * size, size))
    wide = concurrency // size
    return size, wide + wide // SPARE_SHARE


def item_chunks(items: Sequence[tuple[str, bytes]], size: int) -> Iterator[Chunk]:
    """Cuts cases or queries into chunks.

    Args:
        items: name and payload, in order.
        size: items of one chunk.

    >>> [chunk.plan for chunk in item_chunks([("Q-1", b"{}"), ("Q-2", b"{}"), ("Q-3", b"{}")], 2)]
    [ChunkPlan(first='Q-1', parts=['0', '1']), ChunkPlan(first='Q-3', parts=['2'])]
    """
    numbered = enumerate(items)
    number = 0
    while some := list(islice(numbered, size)):
        payloads = {str(index): payload for index, (_, payload) in some}
        plan = ChunkPlan(name_of(some[0][1][0]), list(payloads))
        yield Chunk(str(number), plan, payloads, b"\n".join(payloads.values()), len(some))
        number += 1
