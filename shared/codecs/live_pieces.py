"""Pieces of a live answer, from the worker whose model writes it to the server that streams it.

They stand in the list in which the server also finds the ids of runs that have ended, and are not counted on:
the whole answer is in the turn's result.
"""

from typing import Final

import msgspec


class LivePiece(msgspec.Struct, frozen=True, gc=False):
    """What a model has written of one answer since the piece before."""

    run: str
    """The run of the turn."""
    index: int
    """The turn's position in the run."""
    decision: str
    """The decision that made the turn worth an answer."""
    at: int = 0
    """Characters of the answer before this piece; 0 once more when the model is asked again."""
    text: str = ""
    """Empty before the first word."""


encode_piece: Final = msgspec.json.Encoder().encode
decode_piece: Final = msgspec.json.Decoder(LivePiece).decode
PIECE_START: Final = b"{"
"""First byte of a piece, which no id of a run has."""
