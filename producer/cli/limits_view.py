"""Combines configured limits with their current state, for `proctor limits show`."""

from collections.abc import Iterable
from typing import Final

from msgspec import UNSET
from msgspec.structs import asdict

from producer.fleet_state import Bounds, state_text
from producer.service_documents import (
    LimitsDocument,
    LimitsOfKey,
    LimitsReset,
    LimitsSet,
    LimitState,
    LimitsUnset,
)
from producer.text import duration
from shared.errors import UsageError
from shared.ledger.calls import ScriptCaller
from shared.upstream.limits import LimitBook, Limits, ScopeState, limit_key

COLUMNS: Final = (
    "KEY",
    "ENDPOINT",
    "ACCOUNT",
    "RPM",
    "TPM",
    "AT ONCE",
    "PACE",
    "IN FLIGHT",
    "FREE",
    "NEXT",
    "LATENCY",
    "STATE",
)
RIGHT: Final = ("RPM", "TPM", "AT ONCE", "PACE", "IN FLIGHT", "FREE", "NEXT", "LATENCY")
SPARE: Final = ("ACCOUNT", "PACE", "TPM", "LATENCY", "FREE", "AT ONCE")
"""Columns that a narrow terminal omits, in this order; `--json` has all."""
CUT: Final = ("KEY", "ENDPOINT")
LEAST_KEY: Final = 30
"""Characters of a key or an address that are left before columns are omitted."""
LEGEND: Final = (
    "ENDPOINT: where a model of that name is called, if not at its provider; limits of KEY hold at each · "
    "RPM, TPM: requests and tokens per minute · AT ONCE: most requests in flight · FREE: how many more may "
    "be sent now · NEXT: when the next one may be sent · blank: no limit"
)
"""What the headings mean, for people at a terminal."""


def set_values(limits: LimitsOfKey) -> dict[str, float]:
    """Returns the limits that are set, by name.

    >>> set_values(LimitsOfKey(rpm=60))
    {'rpm': 60}
    """
    return {name: value for name, value in asdict(limits).items() if value is not UNSET}


def _of_key(limits: Limits) -> LimitsOfKey:
    given = (limits.rpm, limits.tpm, limits.concurrency, limits.pace_s)
    return LimitsOfKey(*(UNSET if value is None else value for value in given))


def limits_document(bounds: Iterable[Bounds]) -> LimitsDocument:
    """Returns the list as programs get it."""
    return LimitsDocument(limits=tuple(map(_state_of, bounds)))


def set_limits(caller: ScriptCaller, key: str, limits: Limits) -> LimitsSet:
    """Sets limits of a key; those that are not named are unchanged."""
    book, name = LimitBook(caller), limit_key(key)
    limits = limits.over(book.settings().get(name, Limits()))
    book.set(name, limits)
    return LimitsSet(key=name, set=_of_key(limits))


def unset_limits(caller: ScriptCaller, keys: Iterable[str]) -> LimitsUnset:
    """Removes the limits of keys.

    Raises:
        UsageError: one has none.
    """
    book, names = LimitBook(caller), tuple(map(limit_key, keys))
    missing = [name for name in names if name not in book.settings()]
    if missing:
        raise UsageError(f"no limit is set for {missing[0]!r}", hint="`proctor limits show` lists them")
    for name in names:
        book.unset(name)
    return LimitsUnset(unset=names)


def reset_limits(caller: ScriptCaller, keys: Iterable[str]) -> LimitsReset:
    """Resets what was learned of keys."""
    book = LimitBook(caller)
    return LimitsReset(reset=sum(map(book.reset, keys)))


def _state_of(bound: Bounds) -> LimitState:
    """Returns a line as programs get it."""
    state = bound.state or ScopeState(bound.key, "", 0, None, 0, "closed", 0, 0, None)
    return LimitState(
        key=state.key,
        account=state.account,
        in_flight=state.in_flight,
        adaptive=state.adaptive,
        paused_ms=state.paused_ms,
        breaker=state.breaker,
        open_ms=state.open_ms,
        next_ms=bound.next_ms,
        latency_ms=state.latency_ms,
        place=state.place,
        adaptive_rpm=state.adaptive_rpm,
        free=bound.free,
        set=_of_key(bound.limits),
    )


def cells(bound: Bounds) -> tuple[str, ...]:
    """Writes a line for people.

    >>> cells(Bounds("openai", Limits(rpm=60, concurrency=4), None))
    ('openai', '', '', '60', '', '4', '', '0', '4', 'now', '', 'not called')
    """
    limits, state, free = bound.limits, bound.state, bound.free
    latency = state.latency_ms if state else None
    return (
        bound.key,
        state.place if state else "",
        state.account if state else "",
        number(limits.rpm),
        number(limits.tpm),
        number(limits.concurrency),
        "" if limits.pace_s is None else f"{limits.pace_s:g} s",
        str(state.in_flight if state else 0),
        "" if free is None else str(free),
        f"in {duration(bound.next_ms / 1000)}" if bound.next_ms else "now",
        "" if latency is None else duration(latency / 1000),
        state_text(state),
    )


def number(value: float | None) -> str:
    """Writes a limit; nothing for none.

    >>> number(90_000), number(0.5), number(None)
    ('90,000', '0.5', '')
    """
    return "" if value is None else f"{value:,.10g}"
