"""Puts together the calls of tools in an answer, whole or in pieces, in one form whatever the provider sends.

    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}

Arguments are text, as the model wrote them: whether they are JSON is for whoever checks the answer. A reply
that calls something without a name is refused, because a call that was left out would change the answer.
"""

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from shared.codecs.http_bodies import without_half_pairs
from shared.upstream.failure_reasons import FailureReason
from worker.upstream.failures import UpstreamError

MOST_TOOL_CALLS: Final = 128
"""A reply that calls more tools is broken: providers take so many tools at most."""
MOST_NAME_CHARS: Final = 512
"""Providers take names of 64 characters."""


class CallPiece(NamedTuple):
    """A call of a tool, or a piece of one."""

    name: str = ""
    """The tool, or a part of its name; some servers repeat it with each piece."""
    arguments: str = ""
    """Text that is added to those that came before."""
    call_id: str = ""
    """The provider's; empty for none."""
    at: int | None = None
    """Which call of the answer it belongs to; None: to the last, unless it has another id."""
    is_whole: bool = False
    """Whether it is a call by itself, whatever came before."""


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
    >>> calls.take([CallPiece("f", '{"a"', "c", 0), CallPiece(arguments=": 1}", at=0)])
    >>> calls.finish()
    [{'id': 'c', 'type': 'function', 'function': {'name': 'f', 'arguments': '{"a": 1}'}}]
    """

    def __init__(self) -> None:
        self._calls: list[_Partial] = []
        self._by_index: dict[int, _Partial] = {}

    def __bool__(self) -> bool:
        """Whether a piece of a call has come."""
        return bool(self._calls)

    def take(self, pieces: Iterable[CallPiece]) -> None:
        """Takes the calls in a piece of a reply.

        Raises:
            UpstreamError: they are too many, or called what no tool is.
        """
        for piece in pieces:
            call = self._call_of(piece)
            if piece.name != call.name:
                call.name += piece.name
                _check_name(call.name)
            if piece.arguments:
                call.arguments.append(piece.arguments)

    def finish(self) -> list[dict[str, Any]]:
        """Returns the calls in their order.

        Raises:
            UpstreamError: one of them has no name.
        """
        return [_written(call.call_id, call.name, "".join(call.arguments)) for call in self._calls]

    def _call_of(self, piece: CallPiece) -> _Partial:
        """Finds the call that a piece belongs to: that of its index, else the last; a new id begins one."""
        at = piece.at
        found = self._by_index.get(at) if at is not None else (self._calls[-1] if self._calls else None)
        if found is None or piece.is_whole or piece.call_id not in {"", found.call_id or piece.call_id}:
            if len(self._calls) >= MOST_TOOL_CALLS:
                raise unreadable(f"the reply calls more than {MOST_TOOL_CALLS} tools")
            found = _Partial()
            self._calls.append(found)
            if at is not None:
                self._by_index[at] = found
        found.call_id = found.call_id or piece.call_id
        return found


def arguments_text(given: Any) -> str:
    """Writes arguments as text; some protocols have them as an object.

    Raises:
        UpstreamError: they are nested too deep.

    >>> arguments_text({"a": 1}), arguments_text(None)
    ('{"a": 1}', '')
    """
    if given is None or isinstance(given, str):
        return given or ""
    try:
        return json.dumps(given)
    except RecursionError:
        raise unreadable("the reply calls a tool with arguments that are nested too deep") from None


def _written(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Writes one call."""
    if not name:
        raise unreadable("the reply calls a tool without a name")
    function = {"name": without_half_pairs(name), "arguments": without_half_pairs(arguments)}
    return {"id": without_half_pairs(call_id), "type": "function", "function": function}


def _check_name(name: str) -> None:
    """Refuses a name that no tool can have."""
    if len(name) > MOST_NAME_CHARS:
        raise unreadable(f"the reply calls a tool by a name of more than {MOST_NAME_CHARS} characters")


def unreadable(text: str) -> UpstreamError:
    """Reports that a reply is no answer."""
    return UpstreamError(FailureReason.INVALID_REPLY, text)


def call_pieces(value: Any) -> list[CallPiece]:
    """Reads calls of tools: `{name, arguments}`, or in OpenAI's form.

    >>> call_pieces([{"name": "weather", "arguments": {"city": "Paris"}}])[0].arguments
    '{"city": "Paris"}'
    """
    if not value:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise unreadable("the reply calls tools, but not in a list of calls")
    found = list[CallPiece]()
    for call in value:
        inside = call.get("function")
        function = inside if isinstance(inside, dict) else call
        name, arguments = function.get("name"), function.get("arguments")
        found.append(
            CallPiece(
                name if isinstance(name, str) else "",
                arguments_text({} if arguments is None else arguments),
                str(call.get("id") or ""),
                is_whole=True,
            )
        )
    return found
