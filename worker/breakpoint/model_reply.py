"""Parses a model's reply, which may be an object with response, affect_signal and shape, or plain text.

    reply                          response        affect_signal, shape
    a JSON object                  its response    as far as they are valid, each by itself; of the object,
                                                   else of its `meta`
    the same in a fence or prose   its response    the same
    an object without a response   all of it       the same
    anything else                  all of it       none

An invalid shape counts as none: a summary is taken exactly as given, or not at all.
"""

import json
import re
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from worker.breakpoint.affect import signal_of_reply
from worker.breakpoint.turn_wire import WireAffectSignal, WireShape
from worker.validation.extraction import ExtractionError, extract_json_object


class ReadReply(NamedTuple):
    """A parsed reply."""

    response: str
    """The answer to the user."""
    affect_signal: WireAffectSignal | None
    """The emotion that the model recognised."""
    shape: WireShape | None
    """The summary that it proposes."""
    has_bad_shape: bool = False
    """Whether it proposed one that cannot be used."""
    is_unread: bool = False
    """Whether there is no object in it, so that all of it is taken for the response."""


_FENCE: Final = re.compile(r"```[^\n]*\n\s*")
_RESPONSE: Final = re.compile(r'"response"\s*:\s*"((?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)')
"""The response of an object that is still being written, up to its last whole character."""
_OPENINGS: Final = ("```", "<think>", "<thinking>")
"""What a reply may begin with that is not its response."""
_Line = Annotated[str, Meta(min_length=1, max_length=160)]
_Lines = Annotated[list[_Line], Meta(max_length=6)]


class _Shape(msgspec.Struct, forbid_unknown_fields=True):
    """The contract of recorded shapes (`shared.contracts.mementos.SummaryShape`), for live ones."""

    arc: Annotated[str, Meta(min_length=1, max_length=200)]
    active: _Lines
    parked: _Lines
    decisions: _Lines
    next: _Lines


def read_reply(text: str) -> ReadReply:
    r"""Reads a reply.

    >>> read_reply('{"response": "Hi", "affect_signal": null, "shape": {"arc": ""}}')
    ReadReply(response='Hi', affect_signal=None, shape=None, has_bad_shape=True, is_unread=False)
    >>> read_reply("Just text").response
    'Just text'
    """
    # A lone surrogate is valid in a Python text but cannot be encoded as UTF-8.
    text = text.encode("utf-8", "replace").decode()
    found = _object_in(text)
    if found is None:
        return ReadReply(text, None, None, is_unread=True)
    response, meta = found.get("response"), found.get("meta")
    found = {**meta, **found} if isinstance(meta, dict) else found
    proposed = found.get("shape")
    shape = None if proposed is None else _shape_of(proposed)
    return ReadReply(
        response if isinstance(response, str) else text,
        signal_of_reply(found.get("affect_signal")),
        shape,
        has_bad_shape=proposed is not None and shape is None,
    )


def response_so_far(text: str) -> str:
    r"""Returns the response in the beginning of a reply, which may turn out to be another when all is read.

    >>> response_so_far('{"resp'), response_so_far('{"response": "a\\')
    ('', 'a')
    >>> response_so_far('```json\n{"response": "a\\nb", "shape": {')
    'a\nb'
    >>> response_so_far("Just te"), response_so_far("<thi"), response_so_far('{"response": "\\ud83d')
    ('Just te', '', '')
    """
    body = text.lstrip()
    if any(opening.startswith(body) for opening in _OPENINGS):
        return ""
    if body.startswith("```"):
        fence = _FENCE.match(body)
        body = body[fence.end() :] if fence else ""
    if not body.startswith("{"):
        return body
    found = _RESPONSE.search(body)
    response: str = json.loads(f'"{found[1]}"', strict=False) if found else ""
    return response.rstrip(_HALVES)


_HALVES: Final = "".join(map(chr, range(0xD800, 0xDC00)))
"""First halves of surrogate pairs, whose second half comes later."""


def _object_in(text: str) -> dict[str, Any] | None:
    """Returns the JSON object in a text, found as in the outputs of cases; None where there is none."""
    try:
        return extract_json_object(text, lenient=True)
    except ExtractionError:
        return None


def _shape_of(value: object) -> WireShape | None:
    """Reads a shape; None when it breaks the contract."""
    try:
        given = msgspec.convert(value, _Shape)
    except (msgspec.ValidationError, RecursionError):
        return None
    return WireShape(given.arc, given.active, given.parked, given.decisions, given.next)
