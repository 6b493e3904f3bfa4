"""Reads chat completions: whole ones, and those that come in pieces as server-sent events.

What is no answer is refused here (`INVALID_REPLY`), so that nothing behind it meets a missing or misshaped
field. Figures that make no sense are unknown: they do not spoil an answer.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from worker.upstream.failures import Trouble, UpstreamError, trouble_of_status

MAX_REPLY_BYTES: Final = 5_000_000
"""A larger reply is not read to its end."""
MAX_SHOWN_BYTES: Final = 4_000
"""Of a reply that is no answer, what may become part of the error."""
MOST_TOKENS: Final = 1_000_000_000
_END: Final = b"[DONE]"


class Completion(NamedTuple):
    """What a model said, without figures of time."""

    text: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None


def decoded(body: bytes) -> Any:
    """Reads JSON.

    Raises:
        UpstreamError: it is none.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        shown = body[:MAX_SHOWN_BYTES].decode("utf-8", "replace")  # secrets are found in it before it is cut
        raise UpstreamError(Trouble.INVALID_REPLY, f"the reply is not JSON: {shown!r}") from None


def read_completion(reply: Any) -> Completion:
    """Reads a whole reply.

    Raises:
        UpstreamError: it holds no answer.

    >>> read_completion({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
    Completion(text='Hi', finish_reason='stop', prompt_tokens=None, completion_tokens=None)
    """
    raise_told(reply)
    choice = _first_choice(reply)
    if choice is None:
        raise UpstreamError(Trouble.INVALID_REPLY, "the reply has no choices")
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else None
    reason = _word(choice.get("finish_reason"))
    if not isinstance(text, str):
        raise no_text(reason)
    return Completion(text, reason, *read_usage(reply.get("usage")))


def no_text(finish_reason: str) -> UpstreamError:
    """Says that a reply came without a text."""
    why = f" (finish_reason {finish_reason})" if finish_reason else ""
    return UpstreamError(Trouble.INVALID_REPLY, f"the reply has no text{why}")


def too_large() -> UpstreamError:
    """Says that a reply is larger than we take."""
    return UpstreamError(Trouble.TOO_LARGE, f"the reply is larger than {MAX_REPLY_BYTES:,} bytes")


def read_usage(usage: Any) -> tuple[int | None, int | None]:
    """Reads how many tokens were used; nothing at all used is not believed.

    >>> read_usage({"prompt_tokens": 3, "completion_tokens": 0}), read_usage({"prompt_tokens": "3"})
    ((3, 0), (None, None))
    >>> read_usage({"prompt_tokens": 0, "completion_tokens": 0})
    (None, None)
    """
    if not isinstance(usage, dict):
        return None, None
    prompt, answer = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    return (prompt, answer) if prompt or answer else (None, None)


def raise_told(reply: Any) -> None:
    """Raises what a reply with status 200 says went wrong.

    Raises:
        UpstreamError: the reply is an error in the providers' common form.
    """
    if not isinstance(reply, dict) or not reply.get("error"):
        return
    told = reply["error"]
    code = told.get("code") if isinstance(told, dict) else None
    status = _count(int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code) or 0
    trouble = trouble_of_status(status) if 400 <= status < 600 else Trouble.SERVER_ERROR  # noqa: PLR2004 - the statuses of errors
    raise UpstreamError(trouble, words_of(reply) or "the reply is an error", status=status)


def words_of(reply: Any) -> str:
    """Finds what an error's body says for people.

    >>> words_of({"error": {"message": "slow down"}}), words_of({"error": "no"}), words_of([1])
    ('slow down', 'no', '')
    """
    told = (
        reply.get("error") or reply.get("message") or reply.get("detail") if isinstance(reply, dict) else ""
    )
    if isinstance(told, dict):
        told = told.get("message")
    return told if isinstance(told, str) else ""


class PieceReader:
    """Puts together an answer that comes in pieces."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._texts: list[str] = []
        self._reason = ""
        self._usage: tuple[int | None, int | None] = (None, None)
        self._had_choice = False
        self._is_ended = False

    @property
    def has_text(self) -> bool:
        """Whether a piece of text has come."""
        return bool(self._texts)

    def feed(self, data: bytes) -> None:
        """Takes bytes as they come.

        Raises:
            UpstreamError: they are no events of an answer.
        """
        for line in self._lines(data):
            if not line.startswith(b"data:"):
                continue  # comments that keep the connection open, names of events, ends of events
            event = line[5:].strip()
            if event == _END:
                self._is_ended = True
            elif event:
                self.take(decoded(event))

    def take(self, event: Any) -> None:
        """Takes one event.

        Raises:
            UpstreamError: it is none, or tells of an error.
        """
        raise_told(event)
        if not isinstance(event, dict):
            raise UpstreamError(Trouble.INVALID_REPLY, "an event of the reply is no object")
        if event.get("usage"):
            self._usage = read_usage(event["usage"])
        choice = _first_choice(event)
        if choice is None:
            return
        self._had_choice = True
        delta = choice.get("delta")
        text = delta.get("content") if isinstance(delta, dict) else None
        if isinstance(text, str) and text:
            self._texts.append(text)
        elif text is not None and not isinstance(text, str):
            raise UpstreamError(Trouble.INVALID_REPLY, "an event of the reply has no text where it should be")
        self._reason = _word(choice.get("finish_reason")) or self._reason

    def finish(self) -> Completion:
        """Returns the answer.

        Raises:
            UpstreamError: it is not complete, or none.
        """
        if not self._had_choice:
            raise UpstreamError(Trouble.INVALID_REPLY, "the reply has no choices")
        if not self._is_ended and not self._reason:
            raise UpstreamError(Trouble.CONNECTION, "the connection broke before the answer was complete")
        if not self._texts:
            raise no_text(self._reason)
        return Completion("".join(self._texts), self._reason, *self._usage)

    def _lines(self, data: bytes) -> Iterator[bytes]:
        """Cuts what has come into whole lines."""
        self._line += data
        if b"\n" not in data:
            return
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        yield from (line.strip() for line in lines)


def _first_choice(reply: Any) -> Mapping[str, Any] | None:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else None


def _word(value: Any) -> str:
    return value[:40] if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if is_count else None
