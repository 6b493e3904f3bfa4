"""Writes turns files for tests, and streams that look like stdin."""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from producer.load.source import Source


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
