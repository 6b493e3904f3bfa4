"""Writes turns files for tests, makes streams that look like stdin, and reads turns as they are loaded."""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from producer.load.source import Source
from producer.turns.load import turn_columns


def turn_lines(threads: int, turns: int, *, interleaved: bool = False, **keys: Any) -> list[dict[str, Any]]:
    """Turns of several threads, one thread after the other, or interleaved."""
    pairs = [(thread, turn) for thread in range(threads) for turn in range(turns)]
    if interleaved:
        pairs.sort(key=lambda pair: pair[1])
    return [
        {"threadId": f"t{thread}", "messageId": f"t{thread}-{turn}", "message": f"turn {turn}", **keys}
        for thread, turn in pairs
    ]


def write_turns(path: Path, turns: Iterable[dict[str, Any]]) -> Path:
    """Writes a JSON Lines file."""
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="utf-8")
    return path


def stdin(turns: Iterable[dict[str, Any]]) -> Source:
    """A stream with these turns."""
    return Source("-", stdin=io.BytesIO(b"".join(json.dumps(turn).encode() + b"\n" for turn in turns)))


class ReadTurn(NamedTuple):
    """A turn of a source that keeps the contract."""

    position: int
    thread: str
    raw: bytes


def read_turns(source: Source) -> list[ReadTurn]:
    """Reads all turns of a source, as they are loaded."""
    return [ReadTurn(*turn) for group in turn_columns(source) for turn in zip(*group, strict=True)]
