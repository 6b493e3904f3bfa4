"""Reads the turns of a request: the objects of a turns file, checked by the same contract."""

from collections.abc import Sequence
from secrets import token_hex
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from producer.load.problems import Place
from producer.load.strict_json import repeated_key
from producer.turns.load import MAX_LINE_BYTES, thread_of
from shared.errors import InputError

MOST_TURNS: Final = 500
"""Turns of one request: as many as a micro-run."""


class AcceptedTurn(NamedTuple):
    """A turn that fits the contract."""

    thread: str
    """Its conversation."""
    line: bytes
    """One line of JSON, as a turns file has it."""


class TurnBody(NamedTuple):
    """The turns of one request."""

    turns: Sequence[AcceptedTurn]
    is_list: bool
    """Whether the request has a list, so that the reply has one."""


class _Many(Struct, forbid_unknown_fields=True):
    turns: list[Raw]


class _Identity(Struct, rename="camel"):
    message_id: str | None = None
    client_request_id: str | None = None


class BodyHead(Struct):
    """What tells one turn from several."""

    turns: Raw = Raw()


_head: Final = msgspec.json.Decoder(BodyHead).decode
_encode: Final = msgspec.json.Encoder().encode
_identity: Final = msgspec.json.Decoder(_Identity).decode
_many: Final = msgspec.json.Decoder(_Many).decode


def read_turns(body: bytes) -> TurnBody:
    r"""Reads one turn, or `{"turns": […]}`.

    Raises:
        InputError: a turn breaks the contract; the message names its place.

    >>> [turn] = read_turns(b'{"threadId": "t",\n "message": "hi", "messageId": "m"}').turns
    >>> turn.line
    b'{"threadId":"t","message":"hi","messageId":"m"}'
    """
    hint = "send a turn, or an object with nothing but a list of `turns`"
    is_list = bool(head_of(body, hint).turns)
    if is_list and body.count(b'"turns"') > 1 and repeated_key(body) == ("turns",):
        raise InputError("body: turns: the key stands twice in one object", hint="keep one of the two")
    try:
        raws = _many(body).turns if is_list else [Raw(body)]
    except msgspec.ValidationError as error:
        raise InputError(f"body: {error}", hint=hint) from None
    if not 1 <= len(raws) <= MOST_TURNS:
        raise InputError(f"body: {len(raws)} turns", hint=f"send from 1 to {MOST_TURNS} in a request")
    places = (Place(f"turns[{at}]" if is_list else "turn") for at in range(len(raws)))
    return TurnBody([_accepted(bytes(raw), place) for raw, place in zip(raws, places, strict=False)], is_list)


def head_of(body: bytes, hint: str) -> BodyHead:
    """Makes sure that a body is one JSON object in UTF-8.

    Raises:
        InputError: it is not.
    """
    if not body.strip():
        raise InputError("body: is empty", hint=hint)
    try:
        if not body.isascii():
            body.decode()
        return _head(body)
    except RecursionError:
        raise InputError("body: is nested too deeply", hint=hint) from None
    except UnicodeDecodeError as error:
        raise InputError(f"body: byte {error.start} is not UTF-8", hint="send JSON in UTF-8") from None
    except msgspec.ValidationError as error:
        raise InputError(f"body: {error}", hint=hint) from None
    except msgspec.DecodeError as error:
        raise InputError(f"body: {error}", hint="send JSON in UTF-8") from None


def _accepted(raw: bytes, place: Place) -> AcceptedTurn:
    """Checks one turn; its line breaks go, and nothing else of it changes."""
    line = msgspec.json.format(raw, indent=-1)
    if len(line) > MAX_LINE_BYTES:
        raise place.error(f"has {len(line):,} bytes", f"at most {MAX_LINE_BYTES:,} are taken")
    return AcceptedTurn(thread_of(line, place), named(line))


def named(line: bytes) -> bytes:
    """Gives a turn without a messageId one of its own: its place in a micro-run would be no name.

    It is that of the request, so that a request that is sent again is the same.

    >>> named(b'{"threadId":"t","message":"m","messageId":"m1"}')
    b'{"threadId":"t","message":"m","messageId":"m1"}'
    >>> len(named(b'{"threadId":"t","message":"m"}')) - len(b'{"threadId":"t","message":"m"}')
    31
    """
    own = _identity(line)
    if own.message_id is not None:
        return line
    return line[:-1] + b',"messageId":' + _encode(own.client_request_id or token_hex(8)) + b"}"
