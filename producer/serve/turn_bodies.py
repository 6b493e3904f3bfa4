"""Reads the turns of a request: the objects of a turns file, checked by the same contract."""

from collections.abc import Sequence
from secrets import token_hex
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from producer.load.problems import Place
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


class _Head(Struct):
    turns: Raw = Raw()


_head: Final = msgspec.json.Decoder(_Head).decode
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
    try:
        is_list = bool(_head(body).turns)
        raws = _many(body).turns if is_list else [Raw(body)]
    except msgspec.ValidationError as error:
        hint = "send a turn, or an object with nothing but a list of `turns`"
        raise InputError(f"body: {error}", hint=hint) from None
    except msgspec.DecodeError as error:
        raise InputError(f"body: {error}", hint="send JSON in UTF-8") from None
    if not 1 <= len(raws) <= MOST_TURNS:
        raise InputError(f"body: {len(raws)} turns", hint=f"send from 1 to {MOST_TURNS} in a request")
    places = (Place(f"turns[{at}]" if is_list else "turn") for at in range(len(raws)))
    return TurnBody([_accepted(bytes(raw), place) for raw, place in zip(raws, places, strict=False)], is_list)


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
