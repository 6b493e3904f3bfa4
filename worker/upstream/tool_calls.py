"""Reads the calls of tools in a reply, whole or in pieces, in one form whatever the provider sends.

    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}

Arguments are text, as the model wrote them: whether they are JSON is for whoever checks the answer. A reply
that calls something without a name is refused, because a call that was left out would change the answer.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from shared.codecs.http_bodies import without_half_pairs
from shared.upstream.failure_reasons import FailureReason
from worker.upstream.failures import UpstreamError

MOST_TOOL_CALLS: Final = 128
"""A reply that calls more tools is broken: providers take so many tools at most."""
MOST_NAME_CHARS: Final = 512
"""Providers take names of 64 characters."""


class _Partial:
    """One call, as far as it has come."""

    __slots__ = ("arguments", "call_id", "name")

    def __init__(self) -> None:
        self.call_id = ""
        self.name = ""
        self.arguments: list[str] = []


class ToolCallAssembler:
    """Puts together the calls of tools that come in pieces.

    >>> calls = ToolCallAssembler()
    >>> calls.take({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a"'}}]})
    >>> calls.take({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]})
    >>> calls.finish()
    [{'id': 'c', 'type': 'function', 'function': {'name': 'f', 'arguments': '{"a": 1}'}}]
    """

    def __init__(self) -> None:
        self._calls: list[_Partial] = []
        self._by_index: dict[int, _Partial] = {}

    def __bool__(self) -> bool:
        """Whether a piece of a call has come."""
        return bool(self._calls)

    def take(self, delta: Any) -> None:
        """Takes the calls in a piece of a reply.

        Raises:
            UpstreamError: they are none, or too many.
        """
        for piece in _calls_in(delta):
            function = _function_of(piece)
            call = self._call_of(piece)
            name = function.get("name")
            if isinstance(name, str) and name != call.name:  # some servers repeat it with each piece
                call.name += name
                _check_name(call.name)
            arguments = _arguments(function.get("arguments"))
            if arguments:
                call.arguments.append(arguments)

    def finish(self) -> list[dict[str, Any]]:
        """Returns the calls in their order.

        Raises:
            UpstreamError: one of them has no name.
        """
        return [_written(call.call_id, call.name, "".join(call.arguments)) for call in self._calls]

    def _call_of(self, piece: Mapping[str, Any]) -> _Partial:
        """Finds the call that a piece belongs to: that of its index, else the last; a new id begins one."""
        given, index = piece.get("id"), piece.get("index")
        call_id = given if isinstance(given, str) else ""
        at = index if isinstance(index, int) else None
        found = self._by_index.get(at) if at is not None else (self._calls[-1] if self._calls else None)
        if found is None or (call_id and found.call_id and call_id != found.call_id):
            if len(self._calls) >= MOST_TOOL_CALLS:
                raise _too_many()
            found = _Partial()
            self._calls.append(found)
            if at is not None:
                self._by_index[at] = found
        found.call_id = found.call_id or call_id
        return found


def read_tool_calls(message: Any) -> list[dict[str, Any]]:
    """Reads the calls in a whole message.

    Raises:
        UpstreamError: they are none, or too many.

    >>> read_tool_calls({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]})
    [{'id': 'c', 'type': 'function', 'function': {'name': 'f', 'arguments': '{"a": 1}'}}]
    >>> read_tool_calls({"content": "Hi", "tool_calls": None})
    []
    """
    calls = _calls_in(message)
    if len(calls) > MOST_TOOL_CALLS:
        raise _too_many()
    read = []
    for call in calls:
        function, given = _function_of(call), call.get("id")
        name, call_id = function.get("name"), given if isinstance(given, str) else ""
        arguments = _arguments(function.get("arguments"))
        read.append(_written(call_id, name if isinstance(name, str) else "", arguments))
    return read


def _calls_in(message: Any) -> list[Any]:
    """The list of calls in a message, or in a piece of one."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not calls:
        return []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise _unreadable("the reply calls tools, but not in a list of calls")
    return calls


def _function_of(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The function that is called; a later piece of a call may have none."""
    function = call.get("function")
    if function is not None and not isinstance(function, dict):
        raise _unreadable("the reply calls a tool that is no function")
    return function or {}


def _arguments(given: Any) -> str:
    """Arguments as text; some servers send them as an object."""
    if given is None or isinstance(given, str):
        return given or ""
    try:
        return json.dumps(given)
    except RecursionError:
        raise _unreadable("the reply calls a tool with arguments that are nested too deep") from None


def _written(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Writes one call."""
    _check_name(name)
    if not name:
        raise _unreadable("the reply calls a tool without a name")
    function = {"name": without_half_pairs(name), "arguments": without_half_pairs(arguments)}
    return {"id": without_half_pairs(call_id), "type": "function", "function": function}


def _check_name(name: str) -> None:
    """Refuses a name that no tool can have."""
    if len(name) > MOST_NAME_CHARS:
        raise _unreadable(f"the reply calls a tool by a name of more than {MOST_NAME_CHARS} characters")


def _too_many() -> UpstreamError:
    return _unreadable(f"the reply calls more than {MOST_TOOL_CALLS} tools")


def _unreadable(text: str) -> UpstreamError:
    return UpstreamError(FailureReason.INVALID_REPLY, text)
