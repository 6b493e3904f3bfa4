"""Why a parked item waits, as it is stored beside its attempts and its due time: one JSON text.

    {"reason":"rate","history":[0,0,350,"upstream_timeout"]}    held by a rate limit, one timeout before
    {"reason":"retry","judges":[[2,0,350,"upstream_timeout"],[0,0,0,""]]}    first of two judges is retried
    {"reason":"rate","judges":[[0,0,0,""]],"check":"5d41402a"}    a check that calls a model waits

A history is attempts, throttled, milliseconds waited, code of the last failure. Earlier versions stored plain
text, such as `upstream_timeout 0 350 rate` or `Rate limited (429)`: it is read too, and what cannot be read
is kept as text.
"""

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

MOST_DIGITS: Final = 15
"""Digits that are read of a number in an earlier version's text: Python reads no number of 5,000 digits."""
_JUDGE: Final = "judge "
"""Prefix of texts about judges; then attempts and history of each, separated by `|`."""
_RATE_LIMITED: Final = ("Rate limited (429)", "api_rate_limited")
"""Stored text of a query that the API had rejected, and its error code."""


class WaitReason(StrEnum):
    """What an item waits for; the first four are the words of the limiter's script."""

    RATE_LIMIT = "rate"
    """A limit of requests or tokens a minute, or a pace."""
    CONCURRENCY_LIMIT = "full"
    """A limit of concurrent calls."""
    UPSTREAM_PAUSE = "paused"
    """The upstream asked for a pause (`Retry-After`)."""
    BREAKER_OPEN = "breaker"
    """The circuit breaker of the endpoint is open."""
    IDENTICAL_CALL = "cache"
    """An identical call is in flight, whose answer will be reused."""
    BUDGET = "budget"
    """Calls in flight have reserved what is left of the cost cap."""
    RETRY = "retry"
    """The back-off after a failed call; the history has its code."""
    LEASE_MOVED = "taken"
    """Another worker holds the chunk by now."""
    PLUGIN = "plugin"
    """The worker that had it lacks a plug-in; the text says which."""
    UNKNOWN = ""
    """Unknown: stored by a newer version, or by one before reasons were stored."""

    @classmethod
    def _missing_(cls, _value: object) -> "WaitReason":
        return cls.UNKNOWN


class History(NamedTuple):
    """The calls that were made for an item so far, or for one of its judges."""

    attempts: int = 0
    """Attempts that were made; stored of judges only, because the ledger counts those of the item itself."""
    throttled: int = 0
    """Rejections for too many requests since the last attempt."""
    waited_ms: int = 0
    """Milliseconds of waits so far."""
    code: str = ""
    """Error code of the last failure."""


class ParkedState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an item waits."""

    reason: WaitReason
    """The reason; always stored, so that JSON sent by an API is not mistaken for a state."""
    history: History = History()
    """History of the calls to the model under test, or to the API."""
    judges: tuple[History, ...] = ()
    """Histories of judges (stage 4 or a check), in the order of the panel; empty unless it waits for them."""
    check: str = ""
    """Which paid check the judges are of, as a short digest; empty: those of stage 4."""
    text: str = ""
    """What it waits for, where the reason does not say it; of an earlier version also text from an API."""


NEVER_PARKED: Final = ParkedState(WaitReason.UNKNOWN)
"""State of an item that has not waited yet."""
_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(ParkedState)


def encode_parked(state: ParkedState) -> str:
    """Writes the text that is stored.

    >>> encode_parked(ParkedState(WaitReason.RETRY, History(2, 1, 350, "upstream_timeout")))
    '{"reason":"retry","history":[2,1,350,"upstream_timeout"]}'
    """
    return _encoder.encode(state).decode()


def decode_parked(text: str) -> ParkedState:
    """Reads a stored text, also one of an earlier version.

    >>> decode_parked('{"reason":"retry","history":[2,1,350,"upstream_timeout"]}').history.waited_ms
    350
    >>> decode_parked("upstream_timeout 1 350 rate").reason.name
    'RATE_LIMIT'
    >>> decode_parked("Rate limited (429)").history.code, decode_parked("try later").text
    ('api_rate_limited', 'try later')
    """
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _decode_plain(text)


def _decode_plain(text: str) -> ParkedState:
    """Reads a text of an earlier version."""
    if text.startswith(_JUDGE):
        judges = tuple(_judge(each) for each in text.removeprefix(_JUDGE).split("|"))
        has_failed = any(judge.code for judge in judges)
        return ParkedState(WaitReason.RETRY if has_failed else WaitReason.UNKNOWN, judges=judges)
    if text == _RATE_LIMITED[0]:
        return ParkedState(WaitReason.RETRY, History(code=_RATE_LIMITED[1]))
    history = _history(text)
    if history is None:
        reason = WaitReason(text)
        return ParkedState(reason, text="" if reason else text)
    code, _, _, *last = text.split(" ")
    reason = WaitReason(last[0]) if last else WaitReason.UNKNOWN
    return ParkedState(reason or (WaitReason.RETRY if code else reason), history)


def _judge(text: str) -> History:
    """Reads attempts and history of one judge."""
    attempts, _, rest = text.partition(" ")
    history = _history(rest) if _is_count(attempts) else None
    return History() if history is None else history._replace(attempts=int(attempts))


def _history(text: str) -> History | None:
    """Reads code, throttled and milliseconds waited; None where the text is something else."""
    match text.split(" "):
        case [code, throttled, waited, *_] if _is_count(throttled) and _is_count(waited):
            return History(0, int(throttled), int(waited), code)
        case _:
            return None


def _is_count(text: str) -> bool:
    return len(text) <= MOST_DIGITS and text.isdecimal()
