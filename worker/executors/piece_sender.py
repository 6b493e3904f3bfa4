"""Sends the answer to a live turn to the server that streams it, while the model writes it."""

import asyncio
from collections.abc import Callable
from typing import Final

from shared.codecs.live_pieces import LivePiece
from worker.breakpoint.model_reply import response_so_far
from worker.upstream.completion import split_reasoning

PIECE_S: Final = 0.02
"""What a model writes within this time is one piece."""


class PieceSender:
    """The answer to one turn, as far as it is written; belongs to one event loop.

    Args:
        run: of the turn.
        index: its position in the run.
        decision: what was decided of it.
        send: takes the pieces.
    """

    def __init__(self, run: str, index: int, decision: str, send: Callable[[LivePiece], None]) -> None:
        self._run, self._index, self._decision, self._send = run, index, decision, send
        self._text, self._sent = "", ""
        self._timer: asyncio.TimerHandle | None = None
        self._send(LivePiece(run, index, decision))

    def begin(self) -> None:
        """The model begins to answer, perhaps once more."""
        self._text, self._sent = "", ""

    def take(self, text: str, /) -> None:
        """Takes what the model has written."""
        self._text += text
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PIECE_S, self._flush)

    def _flush(self) -> None:
        """Sends what has come since the last time."""
        self._timer = None
        response = response_so_far(split_reasoning(self._text)[1])
        if response.startswith(self._sent) and len(response) > len(self._sent):
            at, self._sent = len(self._sent), response
            self._send(LivePiece(self._run, self._index, self._decision, at, response[at:]))
