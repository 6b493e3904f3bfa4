"""Reads chat completions: whole ones, and those that come in pieces as server-sent events.

A text, calls of tools, a refusal and reasoning are answers. What is no answer is refused here
(`INVALID_REPLY`), so that nothing behind it meets a missing or misshaped field. Figures that make no sense
are unknown: they do not spoil an answer.

Longer than 300 lines, because whole replies and pieces are read by the same rules.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from shared.codecs.http_bodies import json_of_body, text_of_body, with_finite_numbers, without_half_pairs
from shared.contracts.case_vocabulary import CONTENT_FILTER
from shared.upstream.failure_reasons import FailureReason, reason_of_status
from shared.upstream.usage import NO_USAGE, Usage, count
from worker.upstream.chat import ModelReply
from worker.upstream.failures import UpstreamError
from worker.upstream.tool_calls import ToolCallAssembler, read_tool_calls

MAX_REPLY_BYTES: Final = 5_000_000
"""A larger reply is not read to its end."""
MAX_SHOWN_BYTES: Final = 4_000
"""Bytes of a reply that is no answer, which may become part of the error."""
_END: Final = b"[DONE]"
_STATUS: Final = re.compile(r"[0-9]{3}")
_THINK: Final = re.compile(r"[\s\ufeff]*<(think|thinking)>")


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
        )


class UnreadableReplyError(UpstreamError):
    """A reply is not JSON, nor a stream of it."""


class CompletionMessage(NamedTuple):
    """The texts of a message, or of a piece of one."""

    text: str | None
    """None where there is none."""
    reasoning: str = ""
    refusal: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing at all."""
        return self.text is None and not self.reasoning and not self.refusal


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


def read_message(message: Any) -> CompletionMessage:
    """Finds the texts of a message, or of a piece of one.

    >>> read_message({"content": [{"type": "text", "text": "Hi"}]}).text
    'Hi'
    >>> read_message({"content": None, "refusal": "No."})
    CompletionMessage(text=None, reasoning='', refusal='No.')
    """
    if not isinstance(message, dict):
        return CompletionMessage(None)
    refused = message.get("refusal")
    refusal = refused if isinstance(refused, str) else ""
    thought = message.get("reasoning_content") or message.get("reasoning")
    reasoning = thought if isinstance(thought, str) else ""
    content = message.get("content")
    if isinstance(content, list):
        reasoning += "".join(_part(part, "thinking") for part in content)
        refusal = refusal or "".join(_part(part, "refusal") for part in content)
        texts = [_part(part, "text") for part in content if _is_text(part)]
        return CompletionMessage("".join(texts) if texts else None, reasoning, refusal)
    return CompletionMessage(content if isinstance(content, str) else None, reasoning, refusal)


def _is_text(part: Any) -> bool:
    """Whether a part of a message is a text, be it empty."""
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str | list)


def _part(part: Any, kind: str) -> str:
    """The text of a part of a message, if it is of a kind."""
    if not isinstance(part, dict) or part.get("type") != kind:
        return ""
    found = part.get(kind)
    if isinstance(found, list):
        return "".join(_part(inner, "text") for inner in found)
    return found if isinstance(found, str) else ""


def read_completion(reply: Any) -> Completion:
    """Reads a whole reply.

    Raises:
        UpstreamError: it holds no answer.

    >>> found = read_completion({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
    >>> found.text, found.finish_reason, found.usage.input_tokens
    ('Hi', 'stop', None)
    """
    raise_reported_error(reply)
    choice = _first_choice(reply)
    if choice is None:
        raise UpstreamError(FailureReason.INVALID_REPLY, "the reply has no choices")
    message = read_message(choice.get("message"))
    calls = read_tool_calls(choice.get("message"))
    usage = read_usage(reply.get("usage"), reply.get("service_tier"))
    return _completion(message, calls, _word(choice.get("finish_reason")), usage)


def _completion(
    message: CompletionMessage,
    calls: Sequence[dict[str, Any]],
    finish_reason: str,
    usage: Usage,
) -> Completion:
    """Puts an answer together.

    Raises:
        UpstreamError: it says nothing, refuses nothing, calls no tool, and was not withheld by a filter.
    """
    if message.is_empty and not calls and finish_reason != CONTENT_FILTER:
        raise no_text(finish_reason)
    text, reasoning = _said(message.text or "", message.reasoning)
    return Completion(text, finish_reason, usage, reasoning, calls, without_half_pairs(message.refusal))


def no_text(finish_reason: str) -> UpstreamError:
    """Reports that a reply came without a text."""
    why = f" (finish_reason {finish_reason})" if finish_reason else ""
    return UpstreamError(FailureReason.INVALID_REPLY, f"the reply has no text{why}")


def too_large() -> UpstreamError:
    """Reports that a reply is larger than we take."""
    return UpstreamError(FailureReason.TOO_LARGE, f"the reply is larger than {MAX_REPLY_BYTES:,} bytes")


def read_usage(usage: Any, service_tier: Any = None) -> Usage:
    """Reads how many tokens were used; nothing at all used is not believed.

    Args:
        usage: in OpenAI's form, or in that of litellm and of servers which put their own counts beside it.
        service_tier: which the reply has beside it.

    >>> read_usage({"prompt_tokens": 3, "completion_tokens": 0}), read_usage({"prompt_tokens": "3"})
    (Usage(input_tokens=3, output_tokens=0, ...), Usage(input_tokens=None, output_tokens=None, ...))
    >>> read_usage({"prompt_tokens": 0, "completion_tokens": 0}) == Usage()
    True
    >>> read_usage({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}).cached_input_tokens
    8
    """
    if not isinstance(usage, dict):
        return NO_USAGE
    prompt, answer = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    if not prompt and not answer:
        return NO_USAGE
    asked, said = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    return Usage(
        prompt,
        answer,
        _first_count(
            asked.get("cached_tokens"),
            usage.get("cache_read_input_tokens"),
            usage.get("prompt_cache_hit_tokens"),  # DeepSeek
        ),
        _first_count(asked.get("cache_write_tokens"), usage.get("cache_creation_input_tokens")),
        count(said.get("reasoning_tokens")),
        _word(service_tier),
    )


def _details(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = usage.get(name)
    return found if isinstance(found, dict) else {}


def _first_count(*values: Any) -> int | None:
    """The first that is a number of tokens."""
    return next((known for value in values if (known := count(value)) is not None), None)


def raise_reported_error(reply: Any) -> None:
    """Raises what a reply with status 200 says went wrong.

    Raises:
        UpstreamError: the reply is an error in the providers' common form.
    """
    if not isinstance(reply, dict) or not reply.get("error"):
        return
    error = reply["error"]
    code = error.get("code") if isinstance(error, dict) else None
    status = count(int(code) if isinstance(code, str) and _STATUS.fullmatch(code) else code) or 0
    reason = reason_of_status(status) if 400 <= status < 600 else FailureReason.SERVER_ERROR  # noqa: PLR2004 - the statuses of errors
    raise UpstreamError(reason, error_text(reply) or "the reply is an error", status=status)


def error_text(reply: Any) -> str:
    """Finds what an error's body says for people.

    >>> error_text({"error": {"message": "slow down"}}), error_text({"error": "no"}), error_text([1])
    ('slow down', 'no', '')
    """
    error = (
        reply.get("error") or reply.get("message") or reply.get("detail") if isinstance(reply, dict) else ""
    )
    if isinstance(error, dict):
        error = error.get("message")
    return error if isinstance(error, str) else ""


class StreamAssembler:
    """Puts together an answer that comes in pieces."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._unread = bytearray()
        self._has_text = False
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._refusals: list[str] = []
        self._calls = ToolCallAssembler()
        self._reason = ""
        self._usage = NO_USAGE
        self._tier: Any = None
        self.has_events = False
        """Whether an event has come; without one, what has come may be a whole reply."""
        self.has_choice = False
        """Whether an event had a piece of an answer, in OpenAI's form."""
        self.is_ended = False
        """Whether the end of the answer has come."""

    @property
    def has_answer(self) -> bool:
        """Whether a piece of a text, a refusal or a call of a tool has come."""
        return bool(self._texts or self._refusals or self._calls)

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
            if not line.startswith(b"data:"):
                continue  # comments that keep the connection open, names of events, ends of events
            self.has_events = True
            self._unread.clear()
            event = line[5:].strip()
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
            raise UpstreamError(FailureReason.INVALID_REPLY, "an event of the reply is no object")
        self._tier = event.get("service_tier") or self._tier
        if event.get("usage"):
            self._usage = read_usage(event["usage"], self._tier)
        choice = _first_choice(event)
        if choice is None:
            return
        self.has_choice = True
        delta = choice.get("delta")
        piece = read_message(delta)
        self._has_text = self._has_text or piece.text is not None
        content = delta.get("content") if isinstance(delta, dict) else None
        self._calls.take(delta)
        for new, kept in (
            (piece.text, self._texts),
            (piece.reasoning, self._thoughts),
            (piece.refusal, self._refusals),
        ):
            if new:
                kept.append(new)
        if content is not None and not isinstance(content, str | list):
            raise UpstreamError(
                FailureReason.INVALID_REPLY, "an event of the reply has no text where it should be"
            )
        self._reason = _word(choice.get("finish_reason")) or self._reason

    def finish(self, charset: str | None = "") -> Completion:
        """Returns the answer.

        Args:
            charset: of a server that sends a whole reply instead of events, as the reply declares it.

        Raises:
            UpstreamError: it is not complete, or none.
        """
        if not self.has_events:
            return read_completion(decoded(bytes(self._unread), charset))
        if not self.has_choice:
            raise UpstreamError(FailureReason.INVALID_REPLY, "the reply has no choices")
        if not self.is_ended and not self._reason:
            raise UpstreamError(
                FailureReason.CONNECTION_LOST, "the connection broke before the answer was complete"
            )
        text = "".join(self._texts) if self._has_text else None
        message = CompletionMessage(text, "".join(self._thoughts), "".join(self._refusals))
        calls = self._calls.finish()
        return _completion(message, calls, self._reason, self._usage)

    def _lines(self, data: bytes) -> Iterator[bytes]:
        """Cuts what has come into whole lines."""
        self._line += data
        if b"\n" not in data:
            return
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        yield from (line.strip().removeprefix(BOM_UTF8) for line in lines)


def _first_choice(reply: Any) -> Mapping[str, Any] | None:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else None


def _word(value: Any) -> str:
    return value[:MAX_SHOWN_BYTES] if isinstance(value, str) else ""  # cut again when secrets are out of it
