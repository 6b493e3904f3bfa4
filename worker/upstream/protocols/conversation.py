"""What is sent, in the form that other protocols than OpenAI's are written from: messages, options."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from shared.contracts.merged_options import merge
from shared.upstream.failure_reasons import FailureReason
from worker.upstream.chat import ModelRequest, messages_of
from worker.upstream.failures import UpstreamError

EXTRA_BODY: Final = "extra_body"
SYSTEM_ROLES: Final = frozenset({"system", "developer"})
_DATA: Final = "data:"
_BASE64: Final = ";base64"


class MessagePart(NamedTuple):
    """A text or an image of a message."""

    text: str = ""
    """The text; of an image it is empty."""
    url: str = ""
    """Of an image: where it is, or its data."""
    cache: Mapping[str, Any] | None = None
    """`cache_control` of the part: up to here the provider is to keep what it has read."""

    @property
    def data(self) -> tuple[str, str] | None:
        """Media type and base64 of an image that is sent along; None of one that the provider fetches.

        >>> MessagePart(url="data:image/png;base64,AAAA").data, MessagePart(url="https://h/a.png").data
        (('image/png', 'AAAA'), None)
        """
        head, comma, body = self.url.partition(",")
        if not (comma and head.startswith(_DATA) and head.endswith(_BASE64)):
            return None
        return head.removeprefix(_DATA).removesuffix(_BASE64), body


class Called(NamedTuple):
    """A call of a tool that the model has made earlier in the conversation."""

    name: str
    arguments: Any
    """As a value; what is no JSON is kept as a text."""
    call_id: str


class Said(NamedTuple):
    """A message."""

    role: str
    """`user`, `assistant` or `tool`."""
    parts: Sequence[MessagePart]
    calls: Sequence[Called] = ()
    answers: str = ""
    """Of a tool: the id of the call."""
    name: str = ""
    """Of a tool: its name, found by the call where the message lacks it."""

    @property
    def text(self) -> str:
        """Its texts as one."""
        return "\n".join(part.text for part in self.parts if not part.url)


class Conversation(NamedTuple):
    """All that is said before the answer."""

    system: Sequence[MessagePart]
    """What system messages say, wherever they stand."""
    turns: Sequence[Said]

    @property
    def system_text(self) -> str:
        """The system message as one text."""
        return "\n\n".join(part.text for part in self.system)


def conversation_of(request: ModelRequest) -> Conversation:
    """Takes the messages of a request apart.

    >>> from shared.upstream.model_target import ModelTarget
    >>> found = conversation_of(ModelRequest(ModelTarget("m"), "Be brief.", "Hi"))
    >>> found.system_text, [(turn.role, turn.text) for turn in found.turns]
    ('Be brief.', [('user', 'Hi')])
    """
    system, turns, names = list[MessagePart](), list[Said](), dict[str, str]()
    for message in messages_of(request):
        parts = _parts(message.get("content"))
        if message["role"] in SYSTEM_ROLES:
            system += parts
            continue
        calls = [_called(call) for call in message.get("tool_calls") or ()]
        names |= {call.call_id: call.name for call in calls}
        answers = str(message.get("tool_call_id") or "")
        name = str(message.get("name") or names.get(answers, ""))
        turns.append(Said(str(message["role"]), parts, calls, answers, name))
    return Conversation(system, turns)


def _parts(content: Any) -> list[MessagePart]:
    """The parts of a message's content; empty texts are left out, which providers refuse."""
    if isinstance(content, str):
        return [MessagePart(content)] if content else []
    found = list[MessagePart]()
    for part in content or ():
        cache, image = part.get("cache_control"), part.get("image_url")
        if image:
            url = image.get("url") if isinstance(image, dict) else image
            found.append(MessagePart(url=str(url), cache=cache))
        elif part.get("text"):
            found.append(MessagePart(str(part["text"]), cache=cache))
    return found


def _called(call: Mapping[str, Any]) -> Called:
    """A call of an earlier answer."""
    function = call.get("function") or {}
    written = function.get("arguments") or "{}"
    try:
        arguments = json.loads(written) if isinstance(written, str) else written
    except ValueError:
        arguments = written
    return Called(str(function.get("name") or ""), arguments, str(call.get("id") or ""))


class Tool(NamedTuple):
    """A function that the model may call."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """Of its arguments."""


def tools_of(value: Any) -> list[Tool]:
    """Reads the option `tools`.

    >>> tools_of([{"type": "function", "function": {"name": "weather"}}])
    [Tool(name='weather', description='', schema={'type': 'object', 'properties': {}})]
    """
    functions = [each.get("function") or {} for each in value]
    return [
        Tool(
            str(each.get("name") or ""),
            str(each.get("description") or ""),
            each.get("parameters") or {"type": "object", "properties": {}},
        )
        for each in functions
    ]


def chosen_tool(value: Any) -> str:
    """Returns the name of the tool that the option `tool_choice` demands; empty for words as `auto`."""
    return "" if isinstance(value, str) else str((value.get("function") or {}).get("name") or "")


def stops_of(value: Any) -> list[str]:
    """Reads the option `stop`: a text, or several."""
    return [value] if isinstance(value, str) else list(value)


def json_schema_of(value: Any) -> Mapping[str, Any] | None:
    """Returns the schema that the option `response_format` demands; None for any JSON object, or any text."""
    found: Mapping[str, Any] | None = (value.get("json_schema") or {}).get("schema")
    return found


Write = Callable[[Any], Mapping[str, Any]]
"""Writes an option as the keys of a body that it becomes."""


def written_options(request: ModelRequest, protocol: str, writers: Mapping[str, Write]) -> dict[str, Any]:
    """Writes the options of a request as a protocol has them, with `extra_body` over them.

    Args:
        request: the request; its temperature counts as an option.
        protocol: for the error.
        writers: by option.

    Raises:
        UpstreamError: it has another option; nothing is left out in silence.

    >>> from shared.upstream.model_target import ModelTarget
    >>> options = {"seed": 1, "extra_body": {"a": {"b": 2}}}
    >>> asked = ModelRequest(ModelTarget("m"), "", "Hi", parameters=options)
    >>> written_options(asked, "x", {"seed": lambda value: {"a": {"seed": value}}})
    {'a': {'seed': 1, 'b': 2}}
    """
    given = {name: value for name, value in request.parameters.items() if name != EXTRA_BODY}
    if request.temperature is not None:
        given["temperature"] = request.temperature
    if missing := sorted(given.keys() - writers.keys()):
        text = f"{request.model}: the protocol {protocol} has no {' and no '.join(missing)}: remove it"
        raise UpstreamError(FailureReason.REFUSED, text)
    extra = request.parameters.get(EXTRA_BODY) or {}
    return merge(*(writers[name](value) for name, value in given.items()), extra)


def refused_choice(model: str, what: str) -> UpstreamError:
    """Reports an option with a value that a protocol cannot say."""
    return UpstreamError(FailureReason.REFUSED, f"{model}: {what}")
