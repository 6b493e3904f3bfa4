"""Loads conversation turns from JSON Lines: streamed, strict, cut into chunks by consecutive lines.

The raw bytes of a line are stored and sent to the worker; here they are only validated. A file is all or
nothing: the first bad line ends the reading. A batch is the turns of one thread in one chunk, stored in one
ledger field.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.json import Encoder

from producer.load.chunks import CHUNK_TURNS, Chunk, RunInput, name_of
from producer.load.fast_turns import NOT_ORDINARY, decode_ordinary
from producer.load.problems import MOST_PROBLEMS, Problem, describe, input_error, path_text
from producer.load.source import Source
from producer.load.strict_json import may_repeat_keys, repeated_key
from producer.options import SubmitOptions
from shared.codecs.turn_batches import pack_batch
from shared.contracts.live_turns import SNAPSHOT_KEY as LIVE_KEY
from shared.contracts.turn_vocabulary import SIGNALS_ONCE
from shared.errors import InputError, UsageError
from shared.ledger import ChunkPlan
from shared.ledger.bounds import FIRST_LAYOUT, OPTIONS_LAYOUT

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
LIVE_RESULTS: Final = ("model", "live", "api_base", "temperature")
"""Settings of live turns that affect results."""

_BOM = b"\xef\xbb\xbf"
_JSONL_HINT = "turns are JSON Lines: one {…} with threadId and message on each line"
_encode: Final = Encoder()


class TurnLine(NamedTuple):
    """One proved line."""

    index: int  # type: ignore[assignment] # hides tuple.index, which is not used on a line
    """Position among the turns, from 0."""
    line_no: int
    """Physical line in the file, from 1; blank lines count."""
    thread: str
    """The turn's threadId."""
    raw: bytes
    """The line without its line end: one JSON object."""


_turn_line: Final[Callable[[tuple[int, int, str, bytes]], TurnLine]] = partial(tuple.__new__, TurnLine)
"""`TurnLine` from a tuple, in half the time of its constructor."""


def load_turns(source: Source, options: SubmitOptions) -> RunInput:
    """Loads conversation turns, streamed: reading the chunks may raise an `InputError`."""
    live, once = options.live, options.signals_once
    policy = {"summary_policy": options.summary_policy} | ({SIGNALS_ONCE: True} if once else {})
    settings = [options.summary_policy, *([SIGNALS_ONCE] if once else [])]
    layout = OPTIONS_LAYOUT if once else FIRST_LAYOUT
    if live is None:
        groups = chunked(turn_groups(source), turns=options.chunk_turns)
        return RunInput(groups, {**policy, "live": None, "model": None}, settings, layout=layout)
    settings_of_live = live.as_snapshot()
    return RunInput(
        chunked(turn_groups(source), turns=min(options.chunk_turns, LIVE_CHUNK_TURNS)),
        {**policy, "live": live.live, "model": live.model, LIVE_KEY: settings_of_live},
        [*settings, *(f"{key}={settings_of_live[key]}" for key in LIVE_RESULTS)],
        layout=layout,
    )


def read_turns(source: Source) -> Iterator[TurnLine]:
    """Yields the turns of a source in order, each checked against the contract.

    Raises:
        InputError: the source cannot be read, is empty, or a line breaks the contract.
    """
    return chain.from_iterable(turn_groups(source))


def turn_groups(source: Source) -> Iterator[list[TurnLine]]:
    """Yields the turns of a source as `read_turns` does, some hundreds at a time, which is faster.

    Raises:
        InputError: the source cannot be read, is empty, or a line breaks the contract.
    """
    index = 0
    for line_no, lines in _lines(source):
        group = _validated(source.name, index, line_no, lines)
        if group:
            yield group
            index += len(group)
    if index == 0:
        raise InputError(f"{source.name}: no turns in it", hint=_JSONL_HINT)


def problems_in(source: Source, *, most: int = MOST_PROBLEMS) -> tuple[int, list[UsageError]]:
    """Reads on after errors, for `validate`: the number of good turns, and the problems up to a bound.

    Raises:
        InputError: the source cannot be read at all.
    """
    good, found = 0, list[UsageError]()
    for first, lines in _lines(source):
        for line_no, line in enumerate(lines, first):
            try:
                good += len(_validated_one_by_one(source.name, 0, line_no, [line]))
            except InputError as error:
                found += error.problems or [error]
                if len(found) >= most:
                    return good, found
    if good == 0 and not found:
        found.append(InputError(f"{source.name}: no turns in it", hint=_JSONL_HINT))
    return good, found


def chunked(groups: Iterable[Sequence[TurnLine]], *, turns: int = CHUNK_TURNS) -> Iterator[Chunk]:
    r"""Groups lines into chunks as they come.

    Args:
        groups: lines in order, some at a time.
        turns: how many a chunk holds at least, but for the last one and those of very long lines.

    >>> lines = [TurnLine(0, 1, "a", b"A"), TurnLine(1, 2, "b", b"B"), TurnLine(2, 3, "a", b"C")]
    >>> [chunk] = chunked([lines])
    >>> chunk.payloads
    {'0.0': b'0,2\nA\nC', '0.1': b'1\nB'}
    """
    number, taken, size, before = 0, list[TurnLine](), 0, 0
    for group in groups:
        taken += group
        size += _size(group)
        while len(taken) >= CHUNK_SLACK * _aim(turns, before) or size >= CHUNK_BYTES_MOST:
            end = _cut(taken, _aim(turns, before))
            yield _chunk(number, taken[:end])
            taken = taken[end:]
            number, size, before = number + 1, _size(taken), before + end
    while taken:
        end = _cut(taken, _aim(turns, before))
        yield _chunk(number, taken[:end])
        number, taken, before = number + 1, taken[end:], before + end


def _aim(turns: int, before: int) -> int:
    """How many turns the next chunk is to hold, when so many are in those before it.

    >>> [_aim(1_000, before) for before in (0, 30_000, 1_000_000)]
    [1000, 1500, 2000]
    """
    return min(max(turns, before // CHUNK_SHARE), CHUNK_GROWTH * turns)


def _size(lines: Sequence[TurnLine]) -> int:
    """Bytes of some lines."""
    return sum([len(line[3]) for line in lines])


def _cut(lines: Sequence[TurnLine], turns: int) -> int:
    """Finds where a chunk ends: where the thread changes, where it is full, or where it is too heavy."""
    some = lines[: int(CHUNK_SLACK * turns)]
    sizes = list(accumulate([len(line[3]) for line in some]))
    end = min(len(some), bisect_left(sizes, CHUNK_BYTES_MOST) + 1)
    changes = _changes(some[:end])
    if len(changes) >= CHUNK_BATCHES_MOST:
        end = changes[CHUNK_BATCHES_MOST - 1]
    at = bisect_left(changes, turns)
    return min(end, changes[at]) if at < len(changes) else end


def _changes(lines: Sequence[TurnLine]) -> list[int]:
    """Finds the lines whose thread is not that of the line before."""
    threads = [line[2] for line in lines]
    return [at for at, (before, thread) in enumerate(pairwise(threads), 1) if before != thread]


def _chunk(number: int, lines: list[TurnLine]) -> Chunk:
    """Packs lines into one batch a thread, in the order in which the threads appear."""
    numbers, raws = [line[0] for line in lines], [line[3] for line in lines]
    by_thread = dict[str, tuple[list[int], list[bytes]]]()
    for start, end in pairwise([0, *_changes(lines), len(lines)]):
        indexes, some = by_thread.setdefault(lines[start].thread, ([], []))
        indexes += numbers[start:end]
        some += raws[start:end]
    payloads, parts = dict[str, bytes](), list[tuple[str, str, int]]()
    for position, (thread, (indexes, some)) in enumerate(by_thread.items()):
        batch = f"{number}.{position}"
        payloads[batch] = pack_batch(indexes, some)
        parts.append((batch, thread, len(indexes)))
    plan = ChunkPlan(name_of(lines[0].thread), parts)
    return Chunk(str(number), plan, payloads, b"\n".join(raws), len(lines))


def _validated(name: str, index: int, line_no: int, lines: list[bytes]) -> list[TurnLine]:
    """Validates lines, of which the first one has this index and this line number."""
    raws = [line.strip() for line in lines]
    threads = _ordinary_threads(raws)
    if threads is None:
        try:
            threads = list(map(_thread_of, raws))
        except _BadLineError:
            return _validated_one_by_one(name, index, line_no, lines)
    size = len(raws)
    numbers = range(index, index + size), range(line_no, line_no + size)
    return list(map(_turn_line, zip(*numbers, threads, raws, strict=True)))


class _BadLineError(ValueError):
    """A line breaks the contract."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems


def _ordinary_threads(raws: list[bytes]) -> list[str] | None:
    """Validates lines together; None if one is not ordinary, invalid, blank, or may repeat a key."""
    try:
        turns = list(map(decode_ordinary, raws))
    except NOT_ORDINARY:
        return None
    if may_repeat_keys(b"\n".join(raws), _encode.encode_lines(turns)):
        return None
    return [turn.threadId for turn in turns]


def _thread_of(raw: bytes) -> str:
    """Validates one line and returns its thread."""
    try:
        turn = decode_ordinary(raw)
    except NOT_ORDINARY:
        thread = _thread_by_contract(raw)
    else:
        thread = turn.threadId
        if not may_repeat_keys(raw, _encode.encode(turn)):
            return thread
    place = repeated_key(raw)
    if place is not None:  # parsers would disagree on its value
        what = "the key stands twice in one object"
        raise _BadLineError([Problem(path_text(place), what, "keep one of the two")])
    return thread


@cache
def _contract() -> "tuple[type[Turn], type[ValidationError]]":
    """Imports the contract, and what it raises: ordinary lines do not need it, and pydantic loads slowly."""
    from pydantic import ValidationError  # noqa: PLC0415 - start-up, see above

    from shared.contracts.turns import Turn  # noqa: PLC0415 - same

    return Turn, ValidationError


def _thread_by_contract(raw: bytes) -> str:
    """Validates a line that is not ordinary with the contract, which also explains what is wrong with it."""
    contract, refused = _contract()
    try:
        turn: Turn = contract.__pydantic_validator__.validate_json(raw)
    except refused as error:
        raise _BadLineError(describe(error, contract, raw)) from None
    return turn.threadId


def _validated_one_by_one(name: str, index: int, line_no: int, lines: list[bytes]) -> list[TurnLine]:
    """Validates lines one by one, skips blank ones, and raises for the first invalid one."""
    group = list[TurnLine]()
    for number, line in enumerate(lines, line_no):
        raw = line.strip()
        if not raw:
            continue
        try:
            thread = _thread_of(raw)
        except _BadLineError as error:
            raise input_error(f"{name}:{number}", error.problems, among=" in this line") from None
        group.append(TurnLine(index + len(group), number, thread, raw))
    return group


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
            _validated(source.name, 0, line_no, whole[:too_long])  # a bad line before it is named first
            raise _too_long(source.name, line_no + too_long)
        yield line_no, whole
        line_no += len(whole)
        if len(rest) > MAX_LINE_BYTES:
            raise _too_long(source.name, line_no)
    yield line_no, [rest]


def _too_long(name: str, line_no: int) -> InputError:
    """The error for a line beyond every limit."""
    what = f"the line is longer than {MAX_LINE_BYTES:,} bytes"
    return input_error(f"{name}:{line_no}", [Problem("", what, _JSONL_HINT)])


def _check_text(name: str, block: bytes) -> None:
    """Recognises common files that are no text, for a better message than a JSON error."""
    if block.startswith(b"\x1f\x8b"):
        raise InputError(f"{name}: is a gzip file", hint=f"unpack it on the way: zcat {name} | proctor run -")
    if block.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name}: is UTF-16 text", hint=f"convert it: iconv -f UTF-16 -t UTF-8 {name}")
    if b"\0" in block and not block.removeprefix(_BOM).lstrip().startswith(b"{"):
        raise InputError(f"{name}: is a binary file (a NUL at byte {block.index(0) + 1})", hint=_JSONL_HINT)
