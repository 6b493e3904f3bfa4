"""Requests to language models and their replies, and how many tokens they are likely to use."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import ANSWER_LIMITS, SERVICE_TIER
from shared.upstream.usage import NO_USAGE, Usage, estimate_text_tokens

MESSAGE_TOKENS: Final = 8
"""What a message costs beside its text."""
ANSWER_TOKENS: Final = 1_024
"""Assumed of an answer when the request sets no limit to it."""
IMAGE_TOKENS: Final = 1_024
"""What an image costs, about: its bytes say nothing of that."""


class TextListener(Protocol):
    """Hears a streamed answer while it is written; called on the event loop."""

    def begin(self) -> None:
        """The answer begins; what was heard before belongs to a call that failed."""

    def take(self, text: str, /) -> None:
        """Takes the next piece of the text."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question; equal requests may share one answer."""

    target: ModelTarget
    """The model."""
    system: str
    """The first message; none is sent when it is empty."""
    user: str
    """The second message, unchanged."""
    messages: Sequence[Mapping[str, Any]] = ()
    """The whole conversation in the protocol's form; where there is one, it replaces `system` and `user`."""
    temperature: float | None = None
    """None leaves it to the provider."""
    is_streamed: bool = False
    """Whether the answer is taken piece by piece, so that the time to its first token is known."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Other parameters of the request, such as `max_tokens` or `response_format`."""
    repeat: int = 0
    """Which repetition it is: repetitions are different questions."""
    form: Mapping[str, Any] | None = None
    """JSON Schema that the answer is to keep to where the provider can; no part of what is asked."""
    shared_chars: int = 0
    """So many characters of `user`, from its start, are those of other requests too; likewise."""

    vars: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the case, for an application whose requests are templates over them."""
    run: str = ""
    """The run that asks, for the session of an application; no part of what is asked."""
    listener: TextListener | None = None
    """Hears the answer, if it is streamed; likewise."""

    @property
    def model(self) -> str:
        """Name of the model, as the configuration has it."""
        return self.target.model


class ModelReply(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One answer with its figures; None is unknown, never zero."""

    text: str
    """The answer of the model."""
    latency_ms: int
    """Time from sending to the last byte."""
    first_token_ms: int | None = None
    """Time from sending to the first piece of text or reasoning, of a streamed answer."""
    usage: Usage = NO_USAGE
    """The tokens that it used."""
    cost_usd: float | None = None
    """Cost of the call."""
    finish_reason: str = ""
    """Why it ended, in the provider's word; empty when it does not say."""
    is_cached: bool = False
    """Whether it was answered before, to an equal request; figures are those of that answer."""
    reasoning: str = ""
    """What the model thought before it answered, as far as it shows it; never judged."""
    tool_calls: list[dict[str, Any]] = []
    """The tools that it calls, each `{id, type, function: {name, arguments}}` with the arguments as text."""
    refusal: str = ""
    """Why it does not answer, in the provider's field for that; the text is empty then, as a rule."""
    is_json: bool = False
    """Whether it answered with an object or a list, of which `text` is what was written."""

    @property
    def words(self) -> str:
        """What it says to whoever takes a refusal for an answer too, as judges and conversations do.

        >>> ModelReply("Hi", 5).words, ModelReply("", 5, refusal="I will not.").words
        ('Hi', 'I will not.')
        """
        return self.text or self.refusal


class TokenEstimate(NamedTuple):
    """Tokens of a call, as estimated."""

    prompt: int
    """Tokens of the question."""
    answer: int
    """Tokens of the answer, at most."""
    is_guess: bool
    """Whether the answer is not bounded by the request."""
    tier: str = ""
    """The service tier that is asked for; empty: the provider's choice."""

    @property
    def tokens(self) -> int:
        """Tokens of question and answer."""
        return self.prompt + self.answer


def estimate_tokens(request: ModelRequest) -> TokenEstimate:
    """Estimates the tokens of a call.

    >>> model = ModelTarget("m")
    >>> estimate_tokens(ModelRequest(model, "", "Hello you"))
    TokenEstimate(prompt=11, answer=1024, is_guess=True, tier='')
    >>> estimate_tokens(ModelRequest(model, "Be brief.", "Hello you", parameters={"max_tokens": 20}))
    TokenEstimate(prompt=22, answer=20, is_guess=False, tier='')
    """
    messages = messages_of(request)
    prompt = sum(_message_tokens(message) for message in messages)
    options = options_of(request)
    others = {name: value for name, value in options.items() if name not in ANSWER_LIMITS}
    if request.form is not None:
        others["form"] = request.form
    if others:  # a schema or tools are part of the question
        prompt += estimate_text_tokens(json.dumps(others)) + MESSAGE_TOKENS
    bounds = [options[name] for name in ANSWER_LIMITS if name in options]
    bounds = [bound for bound in bounds if isinstance(bound, int) and bound > 0]
    tier = options.get(SERVICE_TIER)
    return TokenEstimate(
        prompt,
        min(bounds, default=ANSWER_TOKENS),
        is_guess=not bounds,
        tier=tier if isinstance(tier, str) else "",
    )


def options_of(request: ModelRequest) -> dict[str, Any]:
    """Returns the options of a request as they are in its body: those of `extra_body` beside the others.

    >>> options = {"seed": 1, "extra_body": {"top_k": 5}}
    >>> options_of(ModelRequest(ModelTarget("m"), "", "Hi", parameters=options))
    {'seed': 1, 'top_k': 5}
    """
    plain = {name: value for name, value in request.parameters.items() if name != "extra_body"}
    return plain | dict(request.parameters.get("extra_body") or {})


def messages_of(request: ModelRequest) -> list[Mapping[str, Any]]:
    """Makes the messages of a request: those it has; else two, or one without a system prompt.

    >>> messages_of(ModelRequest(ModelTarget("m"), "", "Hi"))
    [{'role': 'user', 'content': 'Hi'}]
    """
    if request.messages:
        return [*request.messages]
    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, {"role": "user", "content": request.user}]


def echoed(request: ModelRequest) -> ModelReply:
    """Answers with the last user message: its text, or the texts of its parts.

    >>> echoed(ModelRequest(ModelTarget("echo"), "Be brief.", "Hello you")).text
    'Hello you'
    """
    users = [message["content"] for message in messages_of(request) if message["role"] == "user"]
    content = users[-1] if users else ""
    parts = content if isinstance(content, list) else [{"text": content}]
    text = "\n".join(part["text"] for part in parts if "text" in part)
    return ModelReply(text, 0, usage=Usage(0, 0), cost_usd=0.0)


def _message_tokens(message: Mapping[str, Any]) -> int:
    """Estimates the tokens of a message with its calls of tools."""
    content, calls = message.get("content"), message.get("tool_calls")
    parts: Iterable[Any] = content if isinstance(content, list) else [content or ""]
    return (
        MESSAGE_TOKENS
        + sum(IMAGE_TOKENS if _is_image(part) else estimate_text_tokens(part) for part in parts)
        + (estimate_text_tokens(calls) if calls else 0)
    )


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "image_url"
