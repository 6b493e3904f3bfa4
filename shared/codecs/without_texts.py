r"""What is left of stored items and results when their texts are forgotten: names, verdicts, numbers.

Shapes stay, so that every reader of a run still reads it: a text becomes empty, a list of texts has no
entries, and what people or models name freely (variables, metadata, arguments) has no keys.

    {"model":"m","status":"failed_regex","raw_output":"Hello","vars":{"q":"Hi"},"score":0.5}
    {"model":"m","status":"failed_regex","raw_output":"","vars":{},"score":0.5}
"""

from typing import Any, Final

import msgspec

from shared.codecs.packing import Packing
from shared.codecs.turn_batches import Block, pack_block, unpack_block
from shared.runs.pages import POISONED

_OF_ITEMS: Final = (
    *("id", "case_id", "prompt_id", "model", "tags", "category", "label", "input_hash", "expectation_hash"),
    *("threadId", "messageId", "mementoId", "role", "ts", "kind", "confidence", "source", "version", "etag"),
    *("createdTs", "createdAt", "updatedAt", "clientRequestId", "endMessageId"),
)
_OF_RESULTS: Final = (
    *("status", "stage", "outcome", "decided_by", "name", "check", "verdict", "code", "finish_reason"),
    *("tier", "decision"),
)
NAMES: Final = frozenset((*_OF_ITEMS, *_OF_RESULTS))
"""Fields whose texts stay."""
FREE: Final = frozenset(("vars", "metadata", "meta", "context", "parsed_output", "differences", "tool_calls"))
"""Fields of which nothing stays but what they are: an empty object or list."""
_LEFT_OUT: Final = frozenset(
    ("expected", "reference", "regex_pattern", "validator", "checks", "system", "messages", "modelShape")
)
"""Fields of an item that go: they are texts, or say what a good answer looks like."""
_SHAPE_AT: Final = 6
"""From this column on a memento has contents, see `shared.codecs.turn_lines`."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def figures_of(value: Any, name: str = "") -> Any:
    """Returns a value without its texts.

    >>> figures_of({"id": "Q-1", "query": "Hi", "missing": ["a"], "response": {"answer": "no", "n": 3}})
    {'id': 'Q-1', 'query': '', 'missing': [], 'response': {'answer': '', 'n': 3}}
    """
    if name in NAMES:
        return value
    if isinstance(value, str):
        return ""
    if isinstance(value, dict):
        return {} if name in FREE else {key: figures_of(each, key) for key, each in value.items()}
    if isinstance(value, list):
        left = [] if name in FREE else [each for each in value if not isinstance(each, str)]
        return [figures_of(each, name) for each in left]
    return value


def item_figures(item: bytes) -> bytes:
    """Returns a stored item, or a line of turns, without its texts.

    >>> item_figures(b'{"case":0,"model":"m","input":"Hi","checks":[{"contains":"x"}]}')
    b'{"case":0,"model":"m","input":""}'
    """
    left = {name: each for name, each in _decode(item).items() if name not in _LEFT_OUT}
    return _encode(figures_of(left))


def batch_figures(batch: bytes) -> bytes:
    """Returns a batch of turns without their texts."""
    head, *lines = batch.split(b"\n")
    return b"\n".join([head, *map(item_figures, lines)])


def row_figures(value: bytes, before: Packing, after: Packing) -> bytes:
    r"""Returns the stored result of an item without its texts.

    >>> row_figures(b'0|p|5|7|1|2|-\n{"status":"passed","message":"Hi"}', Packing(b""), Packing(b""))
    b'0|p|5|7|1|2|-\n{"status":"passed","message":""}'
    """
    head, newline, line = value.partition(b"\n")
    if not newline:
        return value  # of a poisoned item there is no line
    return b"".join((head, newline, after.pack(_encode(figures_of(_decode(before.unpack(line)))))))


def block_figures(value: bytes) -> bytes:
    """Returns a stored block of results of turns without their texts."""
    generation, bar, stored = value.partition(b"|")
    block = unpack_block(stored)
    lines = [b""] if POISONED in block.codes else list(map(turn_figures, block.lines))
    left = Block(block.offset, block.started_ms, block.finished_ms, block.indexes, block.codes, lines)
    return b"".join((generation, bar, pack_block(left)))


def turn_figures(line: bytes) -> bytes:
    """Returns the line of a turn without texts; its reason and source are words of the rules."""
    found = _decode(line) if line else None
    if found is None:
        return b""
    if isinstance(found, dict):
        return _encode(figures_of(found))
    if len(found) > 2:  # noqa: PLR2004 - message id, reasoning, and what is new in the memento
        new = found[2]
        if isinstance(new, list):
            found[2] = [*new[:_SHAPE_AT], *(figures_of(each) for each in new[_SHAPE_AT:])]
        else:
            found[2] = {key: each if key in NAMES else figures_of(each) for key, each in new.items()}
    return _encode(found)
