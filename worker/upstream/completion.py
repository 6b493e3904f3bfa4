"""Puts together the answer of a model, whatever protocol it comes in, whole or in pieces.

bytes  →  events (`StreamReader`)  →  pieces (`WireProtocol`)  →  `Completion` (`AnswerAssembler`)

A text, calls of tools, a refusal and reasoning are answers. What is no answer is refused here
(`INVALID_REPLY`), so that nothing behind it meets a missing or misshaped field. Figures that make no sense
are unknown: they do not spoil an answer.

Longer than 300 lines, because whole replies and pieces are read by the same rules.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from shared.codecs.http_bodies import json_of_body, text_of_body, with_finite_numbers, without_half_pairs
from shared.contracts.case_vocabulary import CONTENT_FILTER
from shared.upstream.failure_reasons import FailureReason, reason_of_status
from shared.upstream.usage import NO_USAGE, Usage, count
from worker.upstream.chat import ModelReply, ModelRequest, TextListener
from worker.upstream.failures import UpstreamError
from worker.upstream.tool_calls import CallPiece, ToolCallAssembler, unreadable

MAX_REPLY_BYTES: Final = 5_000_000
"""A larger reply is not read to its end."""
MAX_SHOWN_BYTES: Final = 4_000
"""Bytes of a reply that is no answer, which may become part of the error."""
_END: Final = b"[DONE]"
_STATUS: Final = re.compile(r"[0-9]{3}")
_THINK: Final = re.compile(r"[\s\ufeff]*<(think|thinking)>")


class Piece(NamedTuple):
    """What a whole reply says, or an event of one that is streamed."""

    text: str | None = None
    """A part of the text; None where there is none, which is not an empty one."""
    reasoning: str = ""
    refusal: str = ""
    calls: Sequence[CallPiece] = ()
    finish_reason: str = ""
    """Why the answer ended, in OpenAI's words where they have one."""
    usage: Usage = NO_USAGE
    """What is known of it so far."""
    is_answer: bool = True
    """Whether it belongs to the answer at all; without any such piece there is none."""
    ends_itself: bool = False
    """Whether the model has ended it, in a protocol whose word for that is the same for calls of tools."""
    is_end: bool = False
    """Whether nothing follows."""
    is_json: bool = False
    """Whether the text is what was written of an object or a list."""


NOTHING: Final = Piece(is_answer=False)
"""An event that says nothing of the answer."""


class HttpCall(NamedTuple):
    """A request of a protocol."""

    path: str
    """Below the `api_base`, perhaps with a query."""
    body: Any
    headers: Mapping[str, str] = {}
    """Those that bring the key, and the protocol's own."""
    url: str = ""
    """The whole address, where it is not below the `api_base`."""
    method: str = "POST"
    """Of HTTP; with GET the keys of the body are parameters of the address."""


class WireProtocol(NamedTuple):
    """How a protocol is spoken; pure functions."""

    request: Callable[[ModelRequest, str], HttpCall]
    """Makes the request with a key, which may be empty; raises `UpstreamError` for what it cannot say."""
    read_reply: Callable[[Any], Piece]
    """Reads the JSON of a whole reply."""
    read_event: Callable[[Any], Piece]
    """Reads the JSON of one event of a streamed reply."""
    has_lines: bool = False
    """Whether each line of a streamed reply is an event, and not a server-sent one."""


class Completion(NamedTuple):
    """The answer of a model, without figures of time."""

    text: str
    finish_reason: str
    usage: Usage = NO_USAGE
    """The tokens that it used."""
    reasoning: str = ""
    """What the model thought before it answered; no part of the text."""
    tool_calls: Sequence[dict[str, Any]] = ()
    """The tools that it calls."""
    refusal: str = ""
    """Why it does not answer."""
    is_json: bool = False
    """Whether the text is what was written of an object or a list."""

    def as_reply(
        self, latency_ms: int, *, first_token_ms: int | None = None, cost_usd: float | None = None
    ) -> ModelReply:
        """Adds the figures of the call.

        Args:
            latency_ms: from sending to the last byte.
            first_token_ms: from sending to the first piece of a streamed answer.
            cost_usd: what it cost, if the client says so.
        """
        return ModelReply(
            self.text,
            latency_ms,
            first_token_ms=first_token_ms,
            usage=self.usage,
            cost_usd=cost_usd,
            finish_reason=self.finish_reason,
            reasoning=self.reasoning,
            tool_calls=[*self.tool_calls],
            refusal=self.refusal,
            is_json=self.is_json,
        )


class UnreadableReplyError(UpstreamError):
    """A reply is not JSON, nor a stream of it."""


def decoded(body: bytes, charset: str | None = "") -> Any:
    """Reads JSON, with null for numbers that are not finite: a wrong figure does not spoil an answer.

    Args:
        body: all of it.
        charset: as the reply declares it.

    Raises:
        NotJsonError: it is none.
    """
    try:
        return json_of_body(body, charset)
    except ValueError:
        repaired = with_finite_numbers(body)
        if repaired != body:
            return decoded(repaired, charset)
        shown = text_of_body(body[:MAX_SHOWN_BYTES], charset)  # secrets are found in it before it is cut
        what = f"the reply is not JSON: {shown!r}" if shown else "the reply is empty"
        raise UnreadableReplyError(FailureReason.INVALID_REPLY, what) from None


def split_reasoning(text: str) -> tuple[str, str]:
    """Parts what a model thought aloud from what it answered; without an end all of it was thought.

    >>> split_reasoning("<think>Paris?</think> Paris"), split_reasoning("a <think>")
    (('Paris?', ' Paris'), ('', 'a <think>'))
    >>> split_reasoning("<think>no end"), split_reasoning("\ufeff<think>a</think>b")
    (('no end', ''), ('a', 'b'))
    """
    begin = _THINK.match(text)
    if begin is None:
        return "", text
    end = text.find(f"</{begin[1]}>", begin.end())
    if end < 0:
        return text[begin.end() :], ""
    return text[begin.end() : end], text[end + len(begin[1]) + 3 :]


def _said(text: str, reasoning: str) -> tuple[str, str]:
    """Returns answer and reasoning; white space between the two belongs to neither."""
    inner, text = split_reasoning(text)
    reasoning = f"{reasoning}{inner}".strip()
    text = text.lstrip() if reasoning else text
    return without_half_pairs(text), without_half_pairs(reasoning)


def too_large() -> UpstreamError:
    """Reports that a reply is larger than we take."""
    return UpstreamError(FailureReason.TOO_LARGE, f"the reply is larger than {MAX_REPLY_BYTES:,} bytes")


def raise_reported_error(reply: Any) -> None:
    """Raises what a reply with status 200 says went wrong.

    Raises:
        UpstreamError: the reply is an error in the providers' common form.
    """
    if not isinstance(reply, dict) or not reply.get("error"):
        return
    error = reply["error"]
    code, kind = (error.get("code"), error.get("type")) if isinstance(error, dict) else (None, None)
    status = count(int(code) if isinstance(code, str) and _STATUS.fullmatch(code) else code) or 0
    if 400 <= status < 600:  # noqa: PLR2004 - the statuses of errors
        reason = reason_of_status(status)
    else:
        is_limit = any("rate_limit" in word(each) for each in (code, kind))
        reason = FailureReason.RATE_LIMITED if is_limit else FailureReason.SERVER_ERROR
    raise UpstreamError(reason, error_text(reply) or "the reply is an error", status=status)


def error_text(reply: Any) -> str:
    """Finds what an error's body says for people.

    >>> error_text({"error": {"message": "slow down"}}), error_text({"error": "no"}), error_text([1])
    ('slow down', 'no', '')
    """
    if isinstance(reply, list) and len(reply) == 1:  # Gemini's, of a streamed call
        return error_text(reply[0])
    error = (
        reply.get("error") or reply.get("message") or reply.get("detail") if isinstance(reply, dict) else ""
    )
    if isinstance(error, dict):
        error = error.get("message")
    return error if isinstance(error, str) else ""


def word(value: Any) -> str:
    """Returns a word of a reply; empty for what is none."""
    return value[:MAX_SHOWN_BYTES] if isinstance(value, str) else ""  # cut again when secrets are out of it


def read_whole(protocol: WireProtocol, reply: Any) -> Completion:
    """Reads a whole reply.

    Raises:
        UpstreamError: it holds no answer.
    """
    raise_reported_error(reply)
    answer = AnswerAssembler()
    answer.take(protocol.read_reply(reply))
    return answer.finish()


class AnswerAssembler:
    """Puts together an answer of pieces; a whole reply is one.

    >>> answer = AnswerAssembler()
    >>> answer.take(Piece("<think>Hm.</think> Par"))
    >>> answer.take(Piece("is", finish_reason="stop", usage=Usage(3, 1)))
    >>> answer.finish()[:2], answer.finish().reasoning
    (('Paris', 'stop'), 'Hm.')
    """

    def __init__(self) -> None:
        self._has_text = False
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._refusals: list[str] = []
        self._calls = ToolCallAssembler()
        self._usage = NO_USAGE
        self._finish_reason = ""
        self._is_json = False
        self.has_answer = False
        """Whether a piece of an answer has come, be it empty."""

    @property
    def is_over(self) -> bool:
        """Whether why the answer ended has come."""
        return bool(self._finish_reason)

    @property
    def has_begun(self) -> bool:
        """Whether the model has said, thought, refused or called something."""
        return bool(self._texts or self._thoughts or self._refusals or self._calls)

    def take(self, piece: Piece) -> None:
        """Takes a piece.

        Raises:
            UpstreamError: it calls what no tool is, or too many of them.
        """
        self._usage = piece.usage.over(self._usage)
        if not piece.is_answer:
            return
        self.has_answer = True
        self._has_text = self._has_text or piece.text is not None
        self._is_json = piece.is_json
        self._calls.take(piece.calls)
        for new, kept in (
            (piece.text, self._texts),
            (piece.reasoning, self._thoughts),
            (piece.refusal, self._refusals),
        ):
            if new:
                kept.append(new)
        itself = ("tool_calls" if self._calls else "stop") if piece.ends_itself else ""
        self._finish_reason = piece.finish_reason or itself or self._finish_reason

    def finish(self) -> Completion:
        """Returns the answer.

        Raises:
            UpstreamError: it says nothing, refuses nothing, calls no tool, and was not withheld by a filter.
        """
        if not self.has_answer:
            raise unreadable("the reply has no answer in it")
        calls = self._calls.finish()
        if not (self._has_text or self.has_begun or self._finish_reason == CONTENT_FILTER):
            raise no_text(self._finish_reason)
        text, reasoning = _said("".join(self._texts), "".join(self._thoughts))
        refusal = without_half_pairs("".join(self._refusals))
        usage = self._usage.believed()
        return Completion(text, self._finish_reason, usage, reasoning, calls, refusal, self._is_json)


def no_text(finish_reason: str) -> UpstreamError:
    """Reports that a reply came without a text."""
    why = f" (finish_reason {finish_reason})" if finish_reason else ""
    return unreadable(f"the reply has no text{why}")


class StreamReader:
    """Reads a reply that comes in pieces.

    Args:
        protocol: how it is spoken.
        listener: hears the text.
    """

    def __init__(self, protocol: WireProtocol, listener: TextListener | None = None) -> None:
        self._protocol, self._listener = protocol, listener
        if listener is not None:
            listener.begin()
        self._line = bytearray()
        self._unread = bytearray()
        self.answer = AnswerAssembler()
        """What has come of it."""
        self.has_events = False
        """Whether an event has come; without one, what has come may be a whole reply."""
        self.is_ended = False
        """Whether the end of the answer has come."""

    def feed(self, data: bytes) -> None:
        """Takes bytes as they come.

        Raises:
            UpstreamError: they are no events of an answer.
        """
        if not self.has_events:
            self._unread += data
        self._read(data)

    def end(self) -> None:
        """Takes what has come behind the last line end.

        Raises:
            UpstreamError: it is no event of an answer.
        """
        self._read(b"\n")

    def _read(self, data: bytes) -> None:
        """Takes the events that are complete now."""
        for line in self._lines(data):
            if self.is_ended:
                return  # what follows the end is no part of the answer
            if self._protocol.has_lines:
                event = line
            elif line.startswith(b"data:"):
                event = line[5:].strip()
                self.has_events = True
                self._unread.clear()
            else:
                continue  # comments that keep the connection open, names of events, ends of events
            if event == _END:
                self.is_ended = True
            elif event:
                self.take(decoded(event))

    def take(self, event: Any) -> None:
        """Takes one event.

        Raises:
            UpstreamError: it is none, or reports an error.
        """
        self.has_events = True
        raise_reported_error(event)
        if not isinstance(event, dict):
            raise unreadable("an event of the reply is no object")
        piece = self._protocol.read_event(event)
        self.answer.take(piece)
        if self._listener is not None and piece.is_answer and piece.text:
            self._listener.take(piece.text)
        self.is_ended = self.is_ended or piece.is_end

    def finish(self, charset: str | None = "") -> Completion:
        """Returns the answer.

        Args:
            charset: of a server that sends a whole reply instead of events, as the reply declares it.

        Raises:
            UpstreamError: it is not complete, or none.
        """
        if not self.has_events:
            return read_whole(self._protocol, decoded(bytes(self._unread), charset))
        if self.answer.has_answer and not self.is_ended and not self.answer.is_over:
            text = "the connection broke before the answer was complete"
            raise UpstreamError(FailureReason.CONNECTION_LOST, text)
        return self.answer.finish()

    def _lines(self, data: bytes) -> Iterator[bytes]:
        """Cuts what has come into whole lines."""
        self._line += data
        if b"\n" not in data:
            return
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        yield from (line.strip().removeprefix(BOM_UTF8) for line in lines)
