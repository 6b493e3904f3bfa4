"""Loads conversation turns from JSON Lines: streamed, strict, with a one-line error for each problem.

The raw bytes of a line are stored and sent to the worker; here they are only validated. A file is all or
nothing: the first bad line ends the reading.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Final

from msgspec.json import Encoder
from pydantic import ValidationError

from producer.load.chunks import LIVE_CHUNK_TURNS, Load, TurnLine, chunked
from producer.load.fast_turns import REFUSED, decode_ordinary
from producer.load.problems import MOST_PROBLEMS, Problem, describe, input_error, path_text
from producer.load.source import Source
from producer.load.strict_json import may_repeat_keys, repeated_key
from producer.options import SubmitOptions
from shared.contracts.live_turns import SNAPSHOT_KEY as LIVE_KEY
from shared.contracts.turns import Turn
from shared.errors import InputError, UsageError

MAX_LINE_BYTES: Final = 1 << 20
"""Longest line: far above a turn of 20,000 characters with every optional key, far below what hurts."""

LIVE_RESULTS: Final = ("model", "live", "api_base", "temperature")
"""Settings of live turns that affect results."""

_BOM = b"\xef\xbb\xbf"
_JSONL_HINT = "turns are JSON Lines: one {…} with threadId and message on each line"
_validate: Final[Callable[[bytes], Turn]] = Turn.__pydantic_validator__.validate_json
_encode: Final = Encoder()


_turn_line: Final[Callable[[tuple[int, int, str, bytes]], TurnLine]] = partial(tuple.__new__, TurnLine)
"""`TurnLine` from a tuple, in half the time of its constructor."""


def load_turns(source: Source, options: SubmitOptions) -> Load:
    """Loads conversation turns, streamed: reading the chunks may raise an `InputError`."""
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


def read_turns(source: Source) -> Iterator[TurnLine]:
    """Yields the turns of a source in order, each checked against the contract.

    Raises:
        InputError: the source cannot be read, is empty, or a line breaks the contract.
    """
    return chain.from_iterable(turn_pages(source))


def turn_pages(source: Source) -> Iterator[list[TurnLine]]:
    """Yields the turns of a source as `read_turns` does, some hundreds at a time, which is faster.

    Raises:
        InputError: the source cannot be read, is empty, or a line breaks the contract.
    """
    index = 0
    for line_no, lines in _lines(source):
        page = _page(source.name, index, line_no, lines)
        if page:
            yield page
            index += len(page)
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
                good += len(_page_with_blanks(source.name, 0, line_no, [line]))
            except InputError as error:
                found += error.problems or [error]
                if len(found) >= most:
                    return good, found
    if good == 0 and not found:
        found.append(InputError(f"{source.name}: no turns in it", hint=_JSONL_HINT))
    return good, found


def _page(name: str, index: int, line_no: int, lines: list[bytes]) -> list[TurnLine]:
    """Validates lines, of which the first one has this index and this line number."""
    raws = [line.strip() for line in lines]
    threads = _ordinary_threads(raws)
    if threads is None:
        try:
            threads = list(map(_thread_of, raws))
        except (ValidationError, _RepeatedKeyError):
            return _page_with_blanks(name, index, line_no, lines)
    size = len(raws)
    numbers = range(index, index + size), range(line_no, line_no + size)
    return list(map(_turn_line, zip(*numbers, threads, raws, strict=True)))


class _RepeatedKeyError(ValueError):
    """A key occurs twice in one object of a line: parsers would disagree on its value."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.problem = Problem(path, "the key stands twice in one object", "keep one of the two")


def _ordinary_threads(raws: list[bytes]) -> list[str] | None:
    """Validates lines together; None if one is not ordinary, invalid, blank, or may repeat a key."""
    try:
        turns = list(map(decode_ordinary, raws))
    except REFUSED:
        return None
    if may_repeat_keys(b"\n".join(raws), _encode.encode_lines(turns)):
        return None
    return [turn.threadId for turn in turns]


def _thread_of(raw: bytes) -> str:
    """Validates one line and returns its thread."""
    try:
        turn = decode_ordinary(raw)
    except REFUSED:
        thread = _validate(raw).threadId
    else:
        thread = turn.threadId
        if not may_repeat_keys(raw, _encode.encode(turn)):
            return thread
    place = repeated_key(raw)
    if place is not None:
        raise _RepeatedKeyError(path_text(place))
    return thread


def _page_with_blanks(name: str, index: int, line_no: int, lines: list[bytes]) -> list[TurnLine]:
    """Validates lines one by one, skips blank ones, and raises for the first invalid one."""
    page = list[TurnLine]()
    for number, line in enumerate(lines, line_no):
        raw = line.strip()
        if not raw:
            continue
        try:
            thread = _thread_of(raw)
        except ValidationError as error:
            found = describe(error, Turn, raw)
            raise input_error(f"{name}:{number}", found, among=" in this line") from None
        except _RepeatedKeyError as error:
            raise input_error(f"{name}:{number}", [error.problem]) from None
        page.append(TurnLine(index + len(page), number, thread, raw))
    return page


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
            _page(source.name, 0, line_no, whole[:too_long])  # a bad line before it is named first
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
