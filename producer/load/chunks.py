"""What every loader returns: a `RunInput`, the input cut into chunks; also the number of items in a chunk.

A chunk contains the items of one Celery message. Pure: no files, no Redis.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from producer.run_ids import new_run_id
from shared.codecs.packing import DICTIONARY, DICTIONARY_BYTES
from shared.ledger import ChunkPlan
from shared.ledger.bounds import FIRST_LAYOUT

CHUNK_TURNS: Final = 1_000
"""A chunk closes at this many turns, when the thread changes: about 10 ms of work."""
LOAD_ITEMS: Final = 1_000
"""Payloads in one call of the ledger, at most."""
LOAD_BYTES: Final = 1 << 20
"""A call of the ledger is sent when it holds this much."""
MOST_CHUNKS: Final = 200
"""Chunks that a run of cases or queries is cut into, as long as they stay below `CHUNK_ITEMS_MOST`."""
CHUNK_ITEMS_MOST: Final = 100
"""Cases or queries of one chunk."""
SENT_CHUNKS: Final = 50
"""Chunks that a run whose items wait for an upstream is cut into, as long as the bounds below allow it."""
SENT_ITEMS_MOST: Final = 50
"""Items of one such chunk."""
CHUNKS_IN_FLIGHT: Final = 5
"""Such chunks that share the concurrency of their run: more when some items take longer than others."""
FIRST_CHARS: Final = 80
"""Longest name of a thread, case or query shown in a task's arguments."""


class Chunk(NamedTuple):
    """Turns, cases or queries that one message is about, ready for the ledger."""

    id: str
    """Position among the chunks, from 0, as text."""
    plan: ChunkPlan
    """What the ledger schedules: the batches of threads, or the indexes of cases or queries."""
    payloads: dict[str, bytes]
    """What is stored, by the id of a batch or the index of an item."""
    content: bytes
    """The input in its order, for the digest."""
    item_count: int
    """How many turns, cases or queries it contains."""


class RunInput(NamedTuple):
    """One input, cut into chunks, with the settings of its run."""

    chunks: Iterator[Chunk]
    """In order; reading them may find that the input breaks its contract."""
    snapshot: Mapping[str, Any]
    """Settings of this kind for the run's snapshot."""
    settings: Sequence[str] = ()
    """Settings that affect results: another value is another content for an idempotency key."""
    files: Mapping[str, bytes] = MappingProxyType({})
    """Texts that items share, by name, stored once with the run."""
    max_open_chunks: int = 0
    """Maximum concurrent chunks, across all workers; 0 for no limit."""
    layout: int = FIRST_LAYOUT
    """Workers that do not know this layout leave the run alone."""
    run_id: Callable[[int, int], str] = lambda now_ms, _copy: new_run_id(now_ms)
    """Makes the run's id from the time and, counted from 1, how often ids of this time were taken."""


def name_of(first: str) -> str:
    r"""Names a chunk after its first thread, case or query, for Flower.

    >>> name_of("1_00042"), name_of("a\nb")
    ('1_00042', "'a\\nb'")
    """
    return (first if first.isprintable() else ascii(first))[:FIRST_CHARS]


def chunk_size(items: int) -> int:
    """Returns how many cases or queries a chunk contains: one in small runs, so that each is a row in Flower.

    >>> [chunk_size(items) for items in (1, 200, 999, 5_000, 1_000_000)]
    [1, 1, 4, 25, 100]
    """
    return min(max(items // MOST_CHUNKS, 1), CHUNK_ITEMS_MOST)


def shape_of(items: int, concurrency: int) -> tuple[int, int]:
    """Returns the items per chunk, and the number of open chunks, for so many concurrent items.

    The largest chunk size is chosen that uses most of the slots with whole chunks. Half as many more chunks
    may be open; their items wait at the gate for a slot, which would otherwise be empty between two chunks.
    Of chunks with several items twice as many are open, because one stays so until its slowest item is done.

    >>> [shape_of(1_500, together) for together in (1, 7, 10, 97, 100, 500)]
    [(30, 1), (1, 10), (2, 10), (16, 12), (20, 10), (25, 40)]
    """
    most = min(max(items // SENT_CHUNKS, 1), SENT_ITEMS_MOST)
    if concurrency == 1:
        return most, 1
    most = min(most, max(concurrency // CHUNKS_IN_FLIGHT, 1))
    size = max(range(most, most // 2, -1), key=lambda size: (concurrency // size * size, size))
    filled = concurrency // size
    return size, filled + (filled if size > 1 else filled // 2)


def item_chunks(items: Iterable[tuple[str, bytes]], size: int) -> Iterator[Chunk]:
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


def grouped(
    chunks: Iterator[Chunk], update: Callable[[bytes], None]
) -> Iterator[tuple[dict[str, bytes], dict[str, ChunkPlan], int]]:
    """Groups chunks for one call of the ledger.

    Args:
        chunks: in order.
        update: receives the lines of the input, each with its line end, for the digest.

    Yields:
        Payloads, plan and number of items.
    """
    payloads, plan, items, size = dict[str, bytes](), dict[str, ChunkPlan](), 0, 0
    for chunk in chunks:
        update(chunk.content)
        update(b"\n")
        is_full = len(payloads) + len(chunk.payloads) > LOAD_ITEMS or size + len(chunk.content) > LOAD_BYTES
        if plan and is_full:
            yield payloads, plan, items
            payloads, plan, items, size = {}, {}, 0, 0
        payloads |= chunk.payloads
        plan[chunk.id] = chunk.plan
        items += chunk.item_count
        size += len(chunk.content)
    if plan:
        yield payloads, plan, items


FEWEST_ITEMS: Final = 1_000
"""Items of a run that is packed; smaller ones can be read with `redis-cli`, and by earlier workers."""
SAMPLES: Final = 2
"""Items that are part of the dictionary; they have in common what all have."""
SAMPLE_BYTES: Final = 1_024
"""Most bytes of each; longer ones would displace the typical results."""
TYPICAL_CASE: Final = (
    b'{"name":"","check":"","score":0.0,"passed":false,"reason":"","cost_usd":null,"detail":{},'
    b'"at_least":null}],"judge":{"model":"","token_usage":null,"cost_usd":null,"latency_ms":0,'
    b'"cached":false},"reply":"","outcome":"fail","reason":"differs: ","status":"failed",'
    b'"passed":false,"detail":{"match":"","span":[0,0]}},{"error":{"code":"","message":""},"result":'
    b'{"model":"","case_index":0,"case_id":null,"repeat_index":0,"prompt_id":null,"vars":{},"tags":[],'
    b'"metadata":{},"status":"passed","passed":true,"stages":[{"stage":"regex","outcome":"skipped",'
    b'"reason":"no regex_pattern","detail":{}},{"stage":"custom","outcome":"skipped",'
    b'"reason":"no validator","detail":{}},{"stage":"json_parse","outcome":"skipped",'
    b'"reason":"neither expected nor a schema","detail":{}},{"stage":"json_parse","outcome":"pass",'
    b'"reason":"found in the whole text","detail":{"source":"whole text","blocks":1}},'
    b'{"stage":"schema","outcome":"pass","reason":"keeps to the schema","detail":{}},'
    b'{"stage":"schema","outcome":"skipped","reason":"no schema","detail":{}},'
    b'{"stage":"equality","outcome":"skipped","reason":"no expected","detail":{}},'
    b'{"stage":"equality","outcome":"pass","reason":"equal to the expected object","detail":{}},'
    b'{"stage":"fuzzy","outcome":"skipped","reason":"no expected","detail":{}}],"decided_by":"checks",'
    b'"reason":"equality passed","detail":{}}],"decided_by":"equality","message":"","differences":null,'
    b'"raw_output":"","parsed_output":null,"metrics":{"rouge_l":0.0,"rouge_l_tokenizer":"rouge-score"},'
    b'"metrics":{},"used_fuzzy_match":false,"freeform":false,"score":null,"checks":[],"score":1.0,'
    b'"checks":[{"name":"","check":"","score":1.0,"passed":true,"reason":"","cost_usd":null,"detail":{},'
    b'"at_least":null}],"token_usage":null,"reasoning":"","tool_calls":[],"refusal":"","finish_reason":""}'
    b'"token_usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0},"reasoning":"",'
    b'"tool_calls":[],"refusal":"","finish_reason":"stop"}'
)
"""Stored results of cases, in pieces as long as they have in common."""
TYPICAL_QUERY: Final = (
    b'{"error":{"code":"","message":""},"result":{"id":"","category":"","query":"","is_oos":false,'
    b'"response":{"answer":"","sources":[{"title":"","url":"https://"}],"relatedDocs":[],"citations":[],'
    b'"confidence":{"level":"High"},"metadata":{"chunksRetrieved":1,"latencyMs":0}},"checks":'
    b'{"must_contain":{"pass":false,"total":1,"matched":0,"missing":[""]},"must_not_contain":{"pass":false,'
    b'"found":[""]},"checks":{"must_contain":{"pass":true,"total":1,"matched":1,"missing":[]},'
    b'"must_not_contain":{"pass":true,"found":[]},"expected_docs":{"pass":true,"expected":[],"found":[]},'
    b'"citation_present":{"pass":true,"applicable":true,"source_count":1,"citation_count":0},'
    b'"oos_handling":{"pass":true,"applicable":false,"signals_found":[]},'
    b'"latency":{"pass":true,"latency_ms":0,"threshold_ms":5000}},"overall_pass":false,'
    b'"client_latency_ms":0,"error":null}"overall_pass":true,"client_latency_ms":0,"error":null}'
)
"""The same of queries."""


def dictionary_of(payloads: Iterable[bytes], total: int, typical: bytes) -> dict[str, bytes]:
    """Returns the dictionary of a run as a file of it; empty for a run that is not packed.

    Args:
        payloads: of its first items.
        total: how many items it has.
        typical: results of its kind.

    >>> dictionary_of([b'{"id":"Q-1"}'], 2, b"")
    {}
    >>> dictionary_of([b'{"id":"Q-1"}'], 10_000, b'{"error":null}')
    {'dictionary': b'{"error":null}{"id":"Q-1"}'}
    """
    if total < FEWEST_ITEMS:
        return {}
    samples = [payload[:SAMPLE_BYTES] for payload in islice(payloads, SAMPLES)]
    return {DICTIONARY: b"".join([typical, *samples])[-DICTIONARY_BYTES:]}
