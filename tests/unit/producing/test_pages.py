"""Stored blocks become rows in input order, each turn once, whatever became of its batch."""

from collections.abc import Sequence

from shared.codecs.turn_batches import Block, pack_batch, pack_block
from shared.runs.pages import ChunkFields, PageReader, TurnRow


class Fields:
    """Hash fields in memory, with a count of the round trips."""

    def __init__(self, values: dict[str, bytes]) -> None:
        self.values = values
        self.calls = 0

    def __call__(self, fields: Sequence[str]) -> list[bytes | None]:
        """Reads some fields in one round trip."""
        self.calls += 1
        return [self.values.get(field) for field in fields]


def stored(
    indexes: Sequence[int], *, codes: str = "s6", offset: int = 0, generation: int = 0, mark: str = ""
) -> bytes:
    """A result as the ledger stores it; lines say which turn they are of."""
    lines = [f'{{"i":{index}}}{mark}'.encode() for index in indexes]
    block = Block(offset, 5, 7, indexes, [codes] * len(indexes), lines)
    return f"{generation}|".encode() + pack_block(block)


def read(
    results: dict[str, bytes],
    chunks: Sequence[ChunkFields],
    *,
    items: dict[str, bytes] | None = None,
    with_open: bool = False,
) -> list[list[TurnRow]]:
    """All pages."""
    return list(PageReader(Fields(results), Fields(items or {}), with_open=with_open).pages(chunks))


def indexes_of(pages: list[list[TurnRow]]) -> list[int]:
    """The positions of all rows in the order they came."""
    return [row.index for page in pages for row in page]


def chunk(number: int, *batches: str, generation: int = 0) -> ChunkFields:
    """Where a chunk's results are."""
    return ChunkFields(generation, number, batches)


def test_interleaved_threads_come_in_input_order() -> None:
    """Rows of one chunk are sorted by their place in the input, whichever thread they are of."""
    results = {"0.0": stored([0, 2, 5]), "0.1": stored([1, 3, 4]), "1.0": stored([6])}
    pages = read(results, [chunk(0, "0.0", "0.1"), chunk(1, "1.0")])
    assert indexes_of(pages) == list(range(7))
    assert pages[1] == [TurnRow(6, "s6", b'{"i":6}', 5, 7, 1)]


def test_chunks_of_any_size_come_in_order() -> None:
    """More batches than one round trip fetches do not change the order; there are few round trips."""
    results = {f"{number}.0": stored([number]) for number in range(1_000)}
    fetch = Fields(results)
    reader = PageReader(fetch, Fields({}), with_open=False)
    assert indexes_of(list(reader.pages([chunk(at, f"{at}.0") for at in range(1_000)]))) == list(range(1_000))
    assert fetch.calls <= 20


def test_parts_of_a_batch_are_put_together() -> None:
    """A batch that was committed turn by turn is read from its parts; the last one has the batch's name."""
    results = {"0.0:0": stored([0]), "0.0:1": stored([1, 2], offset=1), "0.0": stored([3], offset=3)}
    assert indexes_of(read(results, [chunk(0, "0.0")])) == [0, 1, 2, 3]


def test_open_turns_are_left_out_while_the_run_goes_on() -> None:
    """A batch without its last part yields what is there, and nothing of what is not."""
    results = {"0.0:0": stored([0]), "0.1": stored([2])}
    items = {"0.0": pack_batch([0, 1, 3], [b"a", b"b", b"c"])}
    assert indexes_of(read(results, [chunk(0, "0.0", "0.1")], items=items)) == [0, 2]


def test_open_turns_of_a_final_run_have_rows() -> None:
    """A run that ended early has a row without code for every turn it did not decide."""
    results = {"0.0:0": stored([0]), "0.1": stored([2])}
    items = {"0.0": pack_batch([0, 1, 3], [b"a", b"b", b"c"])}
    [page] = read(results, [chunk(0, "0.0", "0.1")], items=items, with_open=True)
    assert [(row.index, row.code) for row in page] == [(0, "s6"), (1, ""), (2, "s6"), (3, "")]
    assert page[1] == TurnRow(1, "", b"", 0, 0, 0)


def test_a_poisoned_turn_carries_its_input() -> None:
    """No worker wrote its result, so the row holds the input line and the thread's state."""
    results = {
        "0.0:0": stored([0]),
        "0.0:1": stored([1], codes="x0p", offset=1),
        "0.0": stored([2], offset=2),
    }
    items = {"0.0": pack_batch([0, 1, 2], [b"a", b"b", b"c"])}
    [page] = read(results, [chunk(0, "0.0")], items=items)
    assert [row.line for row in page] == [b'{"i":0}', b'b\n{"i":1}', b'{"i":2}']


def test_a_poisoned_turn_in_an_open_batch_does_not_open_the_others() -> None:
    """While the run goes on, turns behind a poisoned one stay out."""
    results = {"0.0:0": stored([0], codes="x0p")}
    items = {"0.0": pack_batch([0, 1], [b"a", b"b"])}
    assert indexes_of(read(results, [chunk(0, "0.0")], items=items)) == [0]


def test_the_newest_result_of_a_retried_turn_wins() -> None:
    """Each turn is there once, in its place, with its newest result and the number of results it had."""
    results = {
        "0.0": stored([0, 1, 2], codes="x0"),
        "1.0": stored([3]),
        "1.0.0": stored([0, 2], generation=1, mark=" "),
        "2.0.0": stored([2], generation=2, mark="  "),
    }
    chunks = [
        chunk(0, "0.0"),
        chunk(1, "1.0"),
        chunk(0, "1.0.0", generation=1),
        chunk(0, "2.0.0", generation=2),
    ]
    [page] = read(results, chunks)
    assert [(row.index, row.code, row.attempts) for row in page] == [
        (0, "s6", 2),
        (1, "x0", 1),
        (2, "s6", 3),
        (3, "s6", 1),
    ]
    assert page[2].line.endswith(b"  ")


def test_a_retry_without_a_result_leaves_the_old_one() -> None:
    """Until the new result is in, and for good if the retry was cancelled, the old one stands."""
    results = {"0.0": stored([0], codes="x0")}
    items = {"1.0.0": pack_batch([0], [b"a"])}
    chunks = [chunk(0, "0.0"), chunk(0, "1.0.0", generation=1)]
    for with_open in (False, True):
        [[row]] = read(results, chunks, items=items, with_open=with_open)
        assert (row.code, row.attempts) == ("x0", 1)


def test_turns_that_were_never_decided_stay_open_through_a_retry() -> None:
    """A turn without any result, asked for twice, has one row without code in a final run."""
    items = {"0.0": pack_batch([0], [b"a"]), "1.0.0": pack_batch([0], [b"a"])}
    chunks = [chunk(0, "0.0"), chunk(0, "1.0.0", generation=1)]
    assert [(row.index, row.code) for row in read({}, chunks, items=items, with_open=True)[0]] == [(0, "")]


def test_rows_bring_their_input_where_it_is_asked_for() -> None:
    """Each row has its own line, whatever became of its batch: in parts, never decided, asked for again."""
    results = {
        "0.0:0": stored([0]),
        "0.0": stored([4], codes="x0", offset=1),
        "0.1": stored([1, 3]),
        "1.0.0": stored([4], generation=1),
    }
    items = {
        "0.0": pack_batch([0, 4], [b"a", b"b"]),
        "0.1": pack_batch([1, 3], [b"c", b"d"]),
        "0.2": pack_batch([2], [b"e"]),
        "1.0.0": pack_batch([4], [b"b again"]),
    }
    chunks = [chunk(0, "0.0", "0.1", "0.2"), chunk(0, "1.0.0", generation=1)]
    reader = PageReader(Fields(results), Fields(items), with_open=True, with_payload=True)
    found = {row.index: (row.code, row.payload) for page in reader.pages(chunks) for row in page}
    assert found == {
        0: ("s6", b"a"),
        1: ("s6", b"c"),
        2: ("", b"e"),
        3: ("s6", b"d"),
        4: ("s6", b"b again"),
    }


def test_a_run_without_results_has_no_pages() -> None:
    """Nothing decided, nothing to read."""
    assert read({}, [chunk(0, "0.0")]) == []
    assert read({}, []) == []
