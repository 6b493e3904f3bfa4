"""What was said in a turn, for reports that show it: bounded, and empty for rows without their input."""

from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder, Encoder

from shared.runs import TurnRow

MESSAGE_CHARS: Final = 2_000
"""Longest message in a report; the input may hold ten times as much."""
CUT: Final = "…"


class _Said(Struct):
    message: str


class _Stored(Struct):
    message: Raw


_said: Final = Decoder(_Said).decode
_stored: Final = Decoder(_Stored).decode
_encode: Final = Encoder().encode


def message_of(row: TurnRow) -> str:
    """Returns what was said in a turn, cut; empty where the row has no input.

    >>> message_of(TurnRow(0, "", b"", 0, 0, 0, b'{"threadId":"t","message":"Rome?"}'))
    'Rome?'
    """
    return _cut(_said(row.payload).message) if row.payload else ""


def message_json(payload: bytes) -> bytes:
    r"""Returns the same as JSON, copied without decoding it where it is short enough.

    Args:
        payload: a line of the input.

    >>> message_json(b'{"threadId":"t","message":"Caf\\u00e9?"}')
    b'"Caf\\u00e9?"'
    """
    message = bytes(_stored(payload).message)
    return message if len(message) <= MESSAGE_CHARS else _encode(_cut(_said(payload).message))


def _cut(text: str) -> str:
    """Shortens a long message."""
    return text if len(text) <= MESSAGE_CHARS else text[: MESSAGE_CHARS - len(CUT)] + CUT
