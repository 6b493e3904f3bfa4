"""Loads conversation turns from JSON Lines: streamed, strict, cut into chunks by consecutive lines.

The raw bytes of a line are stored and sent to the worker; here they are only validated. A file is all or
nothing: the first bad line ends the reading. A batch is the turns of one thread in one chunk, stored in one
ledger field.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, compress, pairwise
from operator import ne
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import to_builtins
from msgspec.json import Encoder

from producer.load.chunks import CHUNK_TURNS, Chunk, RunInput, name_of
from producer.load.problems import MOST_PROBLEMS, Place
from producer.load.source import Source
from producer.load.strict_json import may_repeat_keys, repeated_key
from producer.options import SubmitOptions
from producer.turns.fast_turns import NOT_ORDINARY, decode_ordinary
from shared.codecs.turn_batches import pack_batch
from shared.contracts.live_turns import SNAPSHOT_KEY as LIVE_KEY
from shared.contracts.live_turns import LiveRun
from shared.contracts.turn_vocabulary import SIGNALS_ONCE
from shared.errors import InputError, UsageError
from shared.ledger import ChunkPlan
from shared.ledger.bounds import FIRST_LAYOUT, OPTIONS_LAYOUT, TARGETS_LAYOUT
from shared.redaction import ID_DIGITS, Redactor

if TYPE_CHECKING:
    from pydantic import ValidationError

    from shared.contracts.turns import Turn

MAX_LINE_BYTES: Final = 1 << 20
"""Longest line: far above a turn of 20,000 characters with every optional key, far below what hurts."""

LIVE_CHUNK_TURNS: Final = 500
"""`CHUNK_TURNS` of turns that a model answers: two chunks, with fifty threads each, fill a process."""
CHUNK_GROWTH: Final = 2
"""Chunks of a long input grow to so many times the turns: a message costs as much as a hundred turns."""
CHUNK_SHARE: Final = 20
"""A chunk grows to no more than one in so many of the turns before it, so that all workers have some."""
CHUNK_SLACK: Final = 1.5
"""A chunk closes at so many times its turns even inside a thread, which then goes on in the next one."""
CHUNK_BATCHES_MOST: Final = 1_500
"""A chunk closes here, whatever else it holds: scripts read a batch each in one command."""
CHUNK_BYTES_MOST: Final = 2 << 20
"""A chunk closes here whatever it holds: a worker has several chunks in memory at once."""
CHECKED_LINES: Final = 64
"""Lines that are checked together: the objects of more of them would leave the processor's cache."""

_BOM = b"\xef\xbb\xbf"
_JSONL_HINT = "turns are JSON Lines: one {…} with threadId and message on each line"
_encode: Final = Encoder()
_SOMEWHERE: Final = Place("")
"""For lines that are checked together: a wrong one is checked again with its number."""


class TurnColumns(NamedTuple):
    """Consecutive turns of an input, column by column: an object for each would cost more than its check."""

    indexes: list[int]
    """Position of each among the turns of the input, from 0, ascending."""
    threads: list[str]
    """Its threadId."""
    raws: list[bytes]
    """Its line without the line end: one JSON object."""

    def from_to(self, start: int, end: int | None = None) -> "TurnColumns":
        """Returns some of the turns."""
        return TurnColumns(self.indexes[start:end], self.threads[start:end], self.raws[start:end])


def asked(live: LiveRun | None) -> dict[str, Any]:
    """Returns what the snapshot of a run says of the model that answers its turns."""
    if live is None:
        return {"live": None, "model": None}
    return {"live": live.live, "model": live.target.model, LIVE_KEY: to_builtins(live)}


def load_turns(source: Source, options: SubmitOptions) -> RunInput:
    """Loads conversation turns, streamed: reading the chunks may raise an `InputError`."""
    live, once = options.live, options.signals_once
    columns = turn_columns(source)
    if options.redactor is not None:
        columns = redacted_turns(columns, options.redactor)
    own: dict[str, Any] = {SIGNALS_ONCE: True} if once else {}
    policy = {"summary_policy": options.summary_policy, **own}
    settings = [options.summary_policy, *([SIGNALS_ONCE] if once else [])]
    layout = OPTIONS_LAYOUT if once else FIRST_LAYOUT
    if live is None:
        groups = chunked(columns, turns=options.chunk_turns)
        return RunInput(groups, policy | asked(None), settings, layout=layout)
    results = {**live.target.place, "temperature": live.temperature}
    return RunInput(
        chunked(columns, turns=min(options.chunk_turns, LIVE_CHUNK_TURNS)),
        policy | asked(live),
        [*settings, f"live={live.live}", *(f"{key}={each}" for key, each in results.items())],
        layout=TARGETS_LAYOUT,
    )


def turn_columns(source: Source) -> Iterator[TurnColumns]:
    """Yields the turns of a source in order, some at a time, each checked against the contract.

    Raises:
        InputError: the source cannot be read, is empty, or a line breaks the contract.
    """
    index = 0
    for line_no, lines in _lines(source):
        for at in range(0, len(lines), CHECKED_LINES):
            threads, raws = _validated(source.name, line_no + at, lines[at : at + CHECKED_LINES])
            yield TurnColumns(list(range(index, index + len(raws))), threads, raws)
            index += len(raws)
    if index == 0:
        raise InputError(f"{source.name}: no turns in it", hint=_JSONL_HINT)


def redacted_turns(groups: Iterable[TurnColumns], redactor: Redactor) -> Iterator[TurnColumns]:
    """Yields turns without what the rules of an installation find."""
    for group in groups:
        threads = [redactor.text(thread, ID_DIGITS) for thread in group.threads]
        yield TurnColumns(group.indexes, threads, list(map(redactor.json, group.raws)))


def problems_in(source: Source, *, most: int = MOST_PROBLEMS) -> tuple[int, list[UsageError]]:
    """Reads on after errors, for `validate`: the number of good turns, and the problems up to a bound.

    Raises:
        InputError: the source cannot be read at all.
    """
    good, found = 0, list[UsageError]()
    for first, lines in _lines(source):
        for line_no, line in enumerate(lines, first):
            try:
                good += len(_validated_one_by_one(source.name, line_no, [line])[0])
            except InputError as error:
                found += error.problems or [error]
                if len(found) >= most:
                    return good, found
    if good == 0 and not found:
        found.append(InputError(f"{source.name}: no turns in it", hint=_JSONL_HINT))
    return good, found


def chunked(groups: Iterable[TurnColumns], *, turns: int = CHUNK_TURNS) -> Iterator[Chunk]:
    r"""Groups turns into chunks as they come.

    Args:
        groups: turns in order, some at a time.
        turns: how many a chunk holds at least, but for the last one and those of very long lines.

    >>> [chunk] = chunked([TurnColumns([0, 1, 2], ["a", "b", "a"], [b"A", b"B", b"C"])])
    >>> chunk.payloads
    {'0.0': b'0,2\nA\nC', '0.1': b'1\nB'}
    """
    number, taken, size, before = 0, TurnColumns([], [], []), 0, 0
    for group in groups:
        taken.indexes.extend(group.indexes)
        taken.threads.extend(group.threads)
        taken.raws.extend(group.raws)
        size += sum(map(len, group.raws))
        while len(taken.raws) >= CHUNK_SLACK * _aim(turns, before) or size >= CHUNK_BYTES_MOST:
            bounds = _bounds(taken, _aim(turns, before))
            yield _chunk(number, taken, bounds)
            taken = taken.from_to(bounds[-1])
            number, size, before = number + 1, sum(map(len, taken.raws)), before + bounds[-1]
    while taken.raws:
        bounds = _bounds(taken, _aim(turns, before))
        yield _chunk(number, taken, bounds)
        number, taken, before = number + 1, taken.from_to(bounds[-1]), before + bounds[-1]


def one_chunk(turns: TurnColumns) -> Chunk:
    """Packs turns into one chunk, whatever they weigh."""
    return _chunk(0, turns, [0, *_changes(turns), len(turns.raws)])


def _aim(turns: int, before: int) -> int:
    """How many turns the next chunk is to hold, when so many are in those before it.

    >>> [_aim(1_000, before) for before in (0, 30_000, 1_000_000)]
    [1000, 1500, 2000]
    """
    return min(max(turns, before // CHUNK_SHARE), CHUNK_GROWTH * turns)


def _bounds(taken: TurnColumns, turns: int) -> list[int]:
    """Finds where in the next chunk the thread changes, from 0 on, and where the chunk ends.

    It ends where the thread changes, where it is full, or where it is too heavy.
    """
    some = taken.from_to(0, int(CHUNK_SLACK * turns))
    sizes = list(accumulate(map(len, some.raws)))
    end = min(len(sizes), bisect_left(sizes, CHUNK_BYTES_MOST) + 1)
    changes = _changes(some.from_to(0, end))
    if len(changes) >= CHUNK_BATCHES_MOST:
        end = changes[CHUNK_BATCHES_MOST - 1]
    at = bisect_left(changes, turns)
    if at < len(changes):
        end = min(end, changes[at])
    return [0, *changes[: bisect_left(changes, end)], end]


def _changes(turns: TurnColumns) -> list[int]:
    """Finds where the thread changes."""
    names = turns.threads
    return list(compress(range(1, len(names)), map(ne, names, names[1:])))


def _chunk(number: int, turns: TurnColumns, bounds: Sequence[int]) -> Chunk:
    """Packs turns up to the last bound into one batch a thread, in the order in which the threads appear."""
    by_thread = dict[str, tuple[list[int], list[bytes]]]()
    for start, end in pairwise(bounds):
        indexes, some = by_thread.setdefault(turns.threads[start], ([], []))
        indexes += turns.indexes[start:end]
        some += turns.raws[start:end]
    payloads, parts = dict[str, bytes](), list[tuple[str, str, int]]()
    for position, (thread, (indexes, some)) in enumerate(by_thread.items()):
        batch = f"{number}.{position}"
        payloads[batch] = pack_batch(indexes, some)
        parts.append((batch, thread, len(indexes)))
    plan, end = ChunkPlan(name_of(turns.threads[0]), parts), bounds[-1]
    return Chunk(str(number), plan, payloads, b"\n".join(turns.raws[:end]), end)


def _validated(name: str, line_no: int, lines: list[bytes]) -> tuple[list[str], list[bytes]]:
    """Validates lines, of which the first one has this number; returns the thread and the text of each."""
    raws = list(map(bytes.strip, lines))
    threads = _ordinary_threads(raws)
    if threads is None:
        try:
            threads = list(map(thread_of, raws))
        except InputError:
            return _validated_one_by_one(name, line_no, lines)
    return threads, raws


def _ordinary_threads(raws: list[bytes]) -> list[str] | None:
    """Validates lines together; None if one is not ordinary, invalid, blank, or may repeat a key."""
    try:
        turns = list(map(decode_ordinary, raws))
    except NOT_ORDINARY:
        return None
    if may_repeat_keys(b"\n".join(raws), _encode.encode_lines(turns)):
        return None
    return [turn.threadId for turn in turns]


def thread_of(raw: bytes, place: Place = _SOMEWHERE) -> str:
    """Validates one line and returns its thread."""
    try:
        turn = decode_ordinary(raw)
    except NOT_ORDINARY:
        thread = _thread_by_contract(raw, place)
    else:
        thread = turn.threadId
        if not may_repeat_keys(raw, _encode.encode(turn)):
            return thread
    twice = repeated_key(raw)
    if twice is not None:  # parsers would disagree on its value
        raise place.at(*twice).error("the key stands twice in one object", "keep one of the two")
    return thread


@cache
def _contract() -> "tuple[type[Turn], type[ValidationError]]":
    """Imports the contract, and what it raises: ordinary lines do not need it, and pydantic loads slowly."""
    from pydantic import ValidationError  # noqa: PLC0415 - start-up, see above

    from shared.contracts.turns import Turn  # noqa: PLC0415 - same

    return Turn, ValidationError


def _thread_by_contract(raw: bytes, place: Place) -> str:
    """Validates a line that is not ordinary with the contract, which also explains what is wrong with it."""
    contract, refused = _contract()
    try:
        turn: Turn = contract.__pydantic_validator__.validate_json(raw)
    except refused as error:
        from producer.load.contracts import described  # noqa: PLC0415 - start-up: only wrong lines need it

        raise described(error, contract, raw, place, " in this line") from None
    return turn.threadId


def _validated_one_by_one(name: str, line_no: int, lines: list[bytes]) -> tuple[list[str], list[bytes]]:
    """Validates lines one by one, skips blank ones, and raises for the first invalid one."""
    threads, raws = list[str](), list[bytes]()
    for number, raw in enumerate(map(bytes.strip, lines), line_no):
        if not raw:
            continue
        threads.append(thread_of(raw, Place(name, line=number)))
        raws.append(raw)
    return threads, raws


def _lines(source: Source) -> Iterator[tuple[int, list[bytes]]]:
    """Cuts blocks into lines, with the number of the first; holds no more than a block and a longest line."""
    line_no, rest, is_first = 1, b"", True
    for block in source.blocks():
        if is_first:
            _check_text(source.name, block)
            rest, is_first = block.removeprefix(_BOM), False
        else:
            rest += block
        *whole, rest = rest.split(b"\n")
        longest = max(map(len, whole), default=0)
        if longest > MAX_LINE_BYTES:
            too_long = next(at for at, line in enumerate(whole) if len(line) > MAX_LINE_BYTES)
            _validated(source.name, line_no, whole[:too_long])  # a bad line before it is named first
            raise _too_long(source.name, line_no + too_long)
        yield line_no, whole
        line_no += len(whole)
        if len(rest) > MAX_LINE_BYTES:
            raise _too_long(source.name, line_no)
    yield line_no, [rest]


def _too_long(name: str, line_no: int) -> InputError:
    """The error for a line beyond every limit."""
    what = f"the line is longer than {MAX_LINE_BYTES:,} bytes"
    return Place(name, line=line_no).error(what, _JSONL_HINT)


def _check_text(name: str, block: bytes) -> None:
    """Recognises common files that are no text, for a better message than a JSON error."""
    if block.startswith(b"\x1f\x8b"):
        raise InputError(f"{name}: is a gzip file", hint=f"unpack it on the way: zcat {name} | proctor run -")
    if block.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name}: is UTF-16 text", hint=f"convert it: iconv -f UTF-16 -t UTF-8 {name}")
    if b"\0" in block and not block.removeprefix(_BOM).lstrip().startswith(b"{"):
        raise InputError(f"{name}: is a binary file (a NUL at byte {block.index(0) + 1})", hint=_JSONL_HINT)
