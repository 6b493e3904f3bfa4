"""A listener of a streamed answer hears its text as it comes, anew when the model is asked again."""

import asyncio
import json
from typing import Any

from shared.codecs.live_pieces import LivePiece
from shared.redaction import Redactor
from shared.upstream.model_target import ModelTarget
from worker.executors.piece_sender import PieceSender
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.completion import StreamReader
from worker.upstream.protocols.openai_chat import OPENAI_CHAT
from worker.upstream.redacting import RedactingClient

REPLY = json.dumps({"response": "Gr\u00fc\u00dfe \U0001f600!", "shape": None})


def events(text: str) -> bytes:
    """A reply as a server sends it, a few characters at a time."""
    pieces = [{"choices": [{"delta": {"content": text[at : at + 3]}}]} for at in range(0, len(text), 3)]
    return b"".join(b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in pieces)


def test_pieces_make_the_response_and_begin_again_with_the_next_call() -> None:
    """Escapes and surrogate pairs that are cut through wait for their rest; a second call begins at 0."""
    heard: list[LivePiece] = []

    async def answered() -> None:
        sender = PieceSender("r", 3, "must", heard.append)
        StreamReader(OPENAI_CHAT, sender).feed(events(REPLY)[:-200])
        await asyncio.sleep(0.05)
        reader = StreamReader(OPENAI_CHAT, sender)
        for line in events(REPLY).splitlines(keepends=True):
            reader.feed(line)
            await asyncio.sleep(0.004)
        await asyncio.sleep(0.05)

    asyncio.run(answered())
    assert heard[0] == LivePiece("r", 3, "must")
    starts = [at for at, piece in enumerate(heard) if piece.text and piece.at == 0]
    assert len(starts) == 2
    again = heard[starts[1] :]
    assert "".join(piece.text for piece in again) == "Gr\u00fc\u00dfe \U0001f600!"
    assert [piece.at for piece in again][1:] == [piece.at + len(piece.text) for piece in again][:-1]


def test_nobody_hears_what_is_not_redacted_yet() -> None:
    """Personal data is recognised in whole texts: the client below has no listener."""
    asked: list[ModelRequest] = []

    class Client:
        async def complete(self, request: ModelRequest) -> ModelReply:
            asked.append(request)
            return ModelReply("ann@example.com", 1)

    listener: Any = object()
    below: Any = Client()
    request = ModelRequest(ModelTarget("m"), "", "Hi", is_streamed=True, listener=listener)
    reply = asyncio.run(RedactingClient(below, Redactor(["mail"])).complete(request))
    assert "ann" not in reply.text
    assert (asked[0].listener, asked[0].is_streamed) == (None, True)
