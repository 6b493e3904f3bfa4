"""Writes conversations and answers as people read them, in one form for all reports: who speaks, and what."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from shared.contracts.case_run import CasePayload
from shared.contracts.sent_messages import messages_as_sent

TOOL_CALL: Final = "tool call"
"""Who speaks where a model calls a tool."""
RESULT_ROLES: Final = frozenset({"tool", "function"})
"""Roles of messages with the result of a call."""


class Spoken(NamedTuple):
    """One thing that was said in a conversation."""

    who: str
    """The role as it was sent, `tool call`, or `tool result` with the tool's name."""
    text: str


def as_read(messages: Iterable[Mapping[str, Any]]) -> Iterator[Spoken]:
    """Yields what the messages of OpenAI's protocol say; content that is null says nothing.

    >>> call = {"id": "1", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    >>> asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    >>> for who, text in as_read([asked, {"role": "tool", "tool_call_id": "1", "content": "21 degrees"}]):
    ...     print(f"{who}: {text}")
    tool call: weather({"city": "Rome"})
    tool result weather: 21 degrees
    """
    called = dict[str, str]()
    for message in messages:
        role, content, calls = (
            str(message.get("role") or ""),
            message.get("content"),
            message.get("tool_calls"),
        )
        if role in RESULT_ROLES:
            name = message.get("name") or called.get(str(message.get("tool_call_id")), "")
            role = f"tool result {name}".rstrip()
        if content is not None or not calls:
            yield Spoken(role, content_text(content))
        for call in calls if isinstance(calls, list) else ():
            called[str(call.get("id"))] = _name_of(call)
            yield Spoken(TOOL_CALL, call_text(call))


def asked_of(item: CasePayload, system: str = "") -> list[Spoken]:
    """Returns what a model was asked.

    Args:
        item: the case.
        system: the run's system message; empty where reports leave it out.
    """
    return list(as_read(messages_as_sent(item, system)))


def asked_line(item: CasePayload) -> str:
    """Returns the last thing that a model was asked; who said it only where that is not the user.

    >>> asked_line(CasePayload(0, "m", "Hi"))
    'Hi'
    >>> asked_line(CasePayload(0, "m", "21", messages=[{"role": "tool", "name": "weather", "content": "21"}]))
    'tool result weather: 21'
    """
    last = asked_of(item)[-1]
    return item.input if last.who == "user" else f"{last.who}: {last.text}"


def as_text(spoken: Iterable[Spoken]) -> str:
    """Writes a conversation as text, a line for each thing that was said."""
    return "\n".join(f"{who}: {text}" for who, text in spoken)


def answer_text(output: str | None, refusal: str | None, calls: Iterable[Mapping[str, Any]]) -> str:
    """Returns the calls of an answer and its text, or its refusal.

    >>> answer_text("", "", [{"function": {"name": "stop", "arguments": "{}"}}])
    'stop({})'
    """
    return "\n".join(filter(None, [*map(call_text, calls), output or refusal]))


def content_text(content: Any) -> str:
    """Returns the content of a message as text; of its parts, those without a text as JSON.

    >>> content_text([{"type": "text", "text": "Hi"}]), content_text(None)
    ('Hi', '')
    """
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(map(_part_text, content))
        case _:
            return json.dumps(content, ensure_ascii=False)


def _part_text(part: Any) -> str:
    """Returns a part of a message."""
    text = part.get("text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else json.dumps(part, ensure_ascii=False)


def call_text(call: Mapping[str, Any]) -> str:
    """Writes the call of a tool.

    >>> call_text({"type": "function", "function": {"name": "escalate", "arguments": '{"to": "a human"}'}})
    'escalate({"to": "a human"})'
    """
    function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return json.dumps(call, ensure_ascii=False)
    return f"{function.get('name')}({function['arguments']})"


def _name_of(call: Mapping[str, Any]) -> str:
    """Returns the name of the tool that is called."""
    function = call.get("function")
    return str(function.get("name") or "") if isinstance(function, Mapping) else ""
