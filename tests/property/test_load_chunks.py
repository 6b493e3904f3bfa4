"""Chunks hold every line once, in order, with whole threads where the file allows it."""

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.load.chunks import LOAD_BYTES, LOAD_ITEMS, Chunk, grouped
from producer.turns.load import CHUNK_BATCHES_MOST, CHUNK_BYTES_MOST, TurnColumns, chunked
from shared.codecs.turn_batches import unpack_batch

TURNS = 10
MOST = 15


def lines_of(threads: list[str], size: int = 3) -> TurnColumns:
    """One line of `size` bytes for each thread named."""
    raws = [b"%0*d" % (size, at) for at in range(len(threads))]
    return TurnColumns(list(range(len(threads))), threads, raws)


def groups_of(lines: TurnColumns, size: int) -> list[TurnColumns]:
    """The lines as they come from a file, some at a time."""
    return [lines.from_to(at, at + size) for at in range(0, len(lines.raws), size)]


def opened(chunk: Chunk) -> dict[str, list[tuple[int, bytes]]]:
    """Index and line of each turn, by batch."""
    found = {}
    for batch, payload in chunk.payloads.items():
        indexes, body = unpack_batch(payload)
        found[batch] = list(zip(indexes, body.split(b"\n"), strict=True))
    return found


threads_in_any_order = st.lists(st.sampled_from("abcde"), min_size=1, max_size=80)
grouped_threads = st.lists(st.integers(1, 25), min_size=1, max_size=12).map(
    lambda sizes: [f"t{number}" for number, size in enumerate(sizes) for _ in range(size)]
)


@given(threads_in_any_order | grouped_threads, st.integers(1, 40))
def test_every_line_is_in_one_chunk_once(threads: list[str], group: int) -> None:
    """Chunks follow the input: consecutive lines, numbered from 0, nothing lost and nothing twice."""
    lines = lines_of(threads)
    at = 0
    for number, chunk in enumerate(chunked(groups_of(lines, group), turns=TURNS)):
        assert chunk.id == str(number)
        rows = sorted(row for batch in opened(chunk).values() for row in batch)
        assert rows == list(enumerate(lines.raws))[at : at + chunk.item_count]
        assert chunk.content == b"\n".join(raw for _, raw in rows)
        at += chunk.item_count
    assert at == len(threads)


@given(threads_in_any_order | grouped_threads, st.integers(1, 40))
def test_a_batch_is_one_thread_in_input_order(threads: list[str], group: int) -> None:
    """In a chunk each thread has one batch with its turns in input order, and the plan says so."""
    lines = lines_of(threads)
    for chunk in chunked(groups_of(lines, group), turns=TURNS):
        batches = opened(chunk)
        assert [part[0] for part in chunk.plan.parts] == [f"{chunk.id}.{at}" for at in range(len(batches))]
        for batch, thread, count in chunk.plan.parts:
            indexes = [index for index, _ in batches[batch]]
            assert indexes == sorted(indexes)
            assert len(indexes) == count
            assert {threads[index] for index in indexes} == {thread}
        assert len({part[1] for part in chunk.plan.parts}) == len(batches)


@given(threads_in_any_order | grouped_threads, st.integers(1, 40))
def test_chunks_have_the_usual_size(threads: list[str], group: int) -> None:
    """All chunks but the last hold the usual number of turns, and at most half as many more."""
    *whole, last = chunked(groups_of(lines_of(threads), group), turns=TURNS)
    assert all(TURNS <= chunk.item_count <= MOST for chunk in whole)
    assert 1 <= last.item_count <= MOST


@given(grouped_threads, st.integers(1, 40))
def test_short_threads_stay_whole(threads: list[str], group: int) -> None:
    """In a grouped file a thread of up to half a chunk is never cut."""
    sizes = {thread: len(list(found)) for thread, found in groupby(threads)}
    seen = list[str]()
    for chunk in chunked(groups_of(lines_of(threads), group), turns=TURNS):
        seen += [part[1] for part in chunk.plan.parts]
    assert all(seen.count(thread) == 1 for thread, size in sizes.items() if size <= MOST - TURNS)


@given(st.integers(1, 40))
def test_the_groups_of_the_file_do_not_matter(group: int) -> None:
    """The same lines make the same chunks, however they came in: a repeated load writes the same thing."""
    lines = lines_of([f"t{at // 7}" for at in range(90)])
    assert list(chunked(groups_of(lines, group), turns=TURNS)) == list(chunked([lines], turns=TURNS))


@pytest.mark.parametrize("length", [1, 14])
def test_chunks_of_a_long_input_grow(length: int) -> None:
    """A million turns are some hundred messages, and what scripts read at once stays bounded."""
    lines = lines_of([f"t{at // length}" for at in range(60_000)])
    chunks = list(chunked([lines]))
    sizes = [chunk.item_count for chunk in chunks[:-1]]
    assert sizes[0] < 1_500
    assert sizes == sorted(sizes) or length > 1
    assert max(sizes) == 1_500 if length == 1 else max(sizes) >= 2_000
    assert all(len(chunk.plan.parts) <= CHUNK_BATCHES_MOST for chunk in chunks)


def test_long_lines_close_a_chunk_early() -> None:
    """A chunk ends soon after two megabytes, so that a worker can hold several."""
    size = CHUNK_BYTES_MOST // 4 + 1
    chunks = list(chunked([lines_of(["a"] * 9, size)]))
    assert [chunk.item_count for chunk in chunks] == [4, 4, 1]


def test_calls_of_the_ledger_are_bounded() -> None:
    """Chunks travel together up to a thousand batches or a megabyte, and the content passes by."""
    lines = lines_of([f"t{at}" for at in range(3_000)], size=400)
    seen = list[bytes]()
    calls = list(grouped(chunked([lines], turns=300), seen.append))
    assert sum(turns for _, _, turns in calls) == len(lines.raws)
    assert all(len(items) <= LOAD_ITEMS and len(plan) <= 3 for items, plan, _ in calls)
    assert b"".join(seen) == b"".join(raw + b"\n" for raw in lines.raws)
    heavy = list(grouped(chunked([lines_of(["a"] * 900, size=4_000)], turns=100), seen.append))
    assert all(sum(map(len, items.values())) <= 2 * LOAD_BYTES for items, _, _ in heavy)
    assert len(heavy) > 1
