"""Reads a streamed chat completion: server-sent events with pieces of text, and the usage at the end.

Source: the HTML standard, "Server-sent events"; OpenAI's API reference, "chat completion chunk".
"""

from typing import Any, Final

import msgspec

from worker.upstream.chat import error_text, usage_of
from worker.upstream.failures import Trouble, UpstreamError
from worker.upstream.model import ModelReply

DATA: Final = b"data:"
DONE: Final = b"[DONE]"


class StreamReader:
    r"""Puts an answer together from the bytes of its events.

    >>> reader = StreamReader()
    >>> reader.feed(b'data: {"choices":[{"delta":{"content":"Hel')
    False
    >>> reader.feed(b'lo"}}]}\n\ndata: [DONE]\n\n')
    True
    >>> reader.reply(latency_ms=5, first_token_ms=1).text
    'Hello'
    """

    def __init__(self) -> None:
        self._rest = b""
        self._texts = list[str]()
        self._usage: Any = None
        self._finish = ""
        self._is_over = False

    def feed(self, piece: bytes) -> bool:
        """Takes some bytes; tells whether there was text in them.

        Raises:
            UpstreamError: an event is no JSON, or says that the provider failed.
        """
        *lines, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        before = len(self._texts)
        for line in lines:
            if line.startswith(DATA):
                self._event(line[len(DATA) :].strip())
        return len(self._texts) > before

    def reply(self, *, latency_ms: int, first_token_ms: int | None) -> ModelReply:
        """Returns the answer.

        Raises:
            UpstreamError: it ended before it was complete, or has no text.
        """
        if not self._is_over and not self._finish:
            raise UpstreamError(Trouble.CONNECTION, "the stream ended before the answer was complete")
        if not self._texts:
            raise UpstreamError(Trouble.INVALID_REPLY, "the stream brought no text", status=200)
        usage = usage_of(self._usage)
        return ModelReply(
            "".join(self._texts),
            latency_ms,
            first_token_ms,
            prompt_tokens=usage.prompt,
            completion_tokens=usage.completion,
            finish_reason=self._finish,
        )

    def _event(self, data: bytes) -> None:
        """Takes one event."""
        if data == DONE:
            self._is_over = True
            return
        try:
            found = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise UpstreamError(
                Trouble.INVALID_REPLY, "an event of the stream is no JSON", status=200
            ) from None
        if not isinstance(found, dict):
            return
        if found.get("error"):
            raise UpstreamError(Trouble.SERVER_ERROR, error_text(200, data), status=200)
        self._usage = found.get("usage") or self._usage
        for choice in found.get("choices") or ():
            delta = choice.get("delta") if isinstance(choice, dict) else None
            text = delta.get("content") if isinstance(delta, dict) else None
            if isinstance(text, str) and text:
                self._texts.append(text)
            self._finish = str(
                (choice if isinstance(choice, dict) else {}).get("finish_reason") or self._finish
            )
