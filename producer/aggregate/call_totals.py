"""Adds up what the model calls of a turns run came to, from its rows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.json import Decoder
from msgspec.structs import replace

from producer.aggregate.queries import percentiles
from producer.turns.documents import LiveCalls
from shared.codecs.turn_batches import ASKED, AVOIDED, CACHED, DUPLICATE
from shared.runs import TurnRow

COST_DIGITS: Final = 9
"""Of a sum in dollars: what is beyond them is noise of adding."""
GIVEN_UP: Final = ("upstream_", "output_too_large", "price_unknown")
"""What the error codes of turns begin with whose model call brought no answer."""


class StoredCall(Struct):
    """What one answer cost, as `worker.breakpoint.trace` stores it."""

    attempts: int
    cached: bool
    latency_ms: int
    cost_usd: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    unread: bool = False
    invalid_shape: bool = False


class _Line(Struct):
    call: StoredCall


_decode: Final = Decoder(_Line).decode


def call_of(row: TurnRow) -> StoredCall:
    """Reads what the model call of a turn cost; only of rows with the flag `ASKED`."""
    return _decode(row.line).call


class CallTotals:
    """Counts calls; answers from the cache cost nothing here, and a repeated request makes no call."""

    def __init__(self) -> None:
        self._calls = LiveCalls()
        self._unread = self._invalid = 0
        self._times_ms = Counter[int]()

    def add(self, rows: Iterable[TurnRow]) -> None:
        """Counts rows, of which some have flags of live turns."""
        for row in rows:
            if DUPLICATE in row.code or row.code[:1] == "x":
                continue
            if AVOIDED in row.code:
                self._calls.avoided += 1
            elif CACHED in row.code:
                self._calls.from_cache += 1
                self._read(call_of(row))
            elif ASKED in row.code:
                self._paid(call_of(row))

    def summary(self, errors: Mapping[str, int]) -> LiveCalls | None:
        """Returns what is reported of the calls; None of a run that made and avoided none.

        Args:
            errors: turns in error by code.

        >>> CallTotals().summary({"upstream_timeout": 2, "etag_conflict": 1}).given_up
        2
        >>> CallTotals().summary({}) is None
        True
        """
        calls = self._calls
        given_up = sum(count for code, count in errors.items() if code.startswith(GIVEN_UP))
        if not (calls.made or calls.from_cache or calls.avoided or given_up):
            return None
        return replace(
            calls,
            given_up=given_up,
            unread=self._unread,
            invalid_shapes=self._invalid,
            cost_usd=None if calls.cost_usd is None else round(calls.cost_usd, COST_DIGITS),
            latency_ms=percentiles(self._times_ms),
            latency_n=self._times_ms.total(),
        )

    def _paid(self, call: StoredCall) -> None:
        """Counts a call that was made."""
        calls = self._calls
        calls.made += 1
        self._read(call)
        self._times_ms[call.latency_ms] += 1
        calls.prompt_tokens += call.prompt_tokens or 0
        calls.completion_tokens += call.completion_tokens or 0
        if call.cost_usd is None:
            calls.cost_unknown += 1
        else:
            calls.cost_usd = (calls.cost_usd or 0.0) + call.cost_usd

    def _read(self, call: StoredCall) -> None:
        """Counts what could not be read of an answer."""
        self._unread += call.unread
        self._invalid += call.invalid_shape
