"""The evaluation harness prints retries from what is stored of parked queries, not from a sentence."""

from typing import TYPE_CHECKING, cast

import pytest

from producer.harness.query_progress import Lines
from shared.clock import now_ms
from shared.codecs.parked_items import History, ParkedState, WaitReason, encode_parked
from shared.ledger import Try

if TYPE_CHECKING:
    from shared.runs import RunInfo, RunStore


class _Info:
    """A run that goes on, without results."""

    total, is_final = 2, False


class _Reader:
    """Reads no results."""

    def pages(self, total: int, *, first: int) -> list[list[object]]:
        """Returns none of them."""
        assert first < total
        return []


class _Store:
    """Reads what is stored of parked queries."""

    def __init__(self) -> None:
        self.parked = dict[int, Try]()

    def tries(self, _run: str) -> dict[int, Try]:
        """Returns all of it."""
        return self.parked

    def item_reader(self, _run: str, *, with_open: bool) -> _Reader:
        """Reads results."""
        assert not with_open
        return _Reader()


LIMITED = History(code="api_rate_limited")


@pytest.mark.parametrize(
    "stored",
    [
        encode_parked(ParkedState(WaitReason.RETRY, LIMITED)),
        encode_parked(ParkedState(WaitReason.RATE_LIMIT, LIMITED)),
        "Rate limited (429)",
    ],
)
def test_each_retry_of_a_429_is_printed_once(stored: str) -> None:
    """Also while a limit holds it back, and of what an earlier version stored."""
    store, printed = _Store(), list[str]()
    lines = Lines(cast("RunStore", store), "r", ["Q-01", "Q-02"], 0, printed.append)
    for attempts in (1, 1, 2):
        store.parked[1] = Try("1", attempts, now_ms() + 60_000, stored)
        lines.catch_up(cast("RunInfo", _Info()))
    assert [line for line in printed if "Q-02" in line] == printed
    assert len(printed) == 2


@pytest.mark.parametrize(
    "stored",
    [
        encode_parked(ParkedState(WaitReason.RATE_LIMIT)),
        encode_parked(ParkedState(WaitReason.RETRY, History(code="api_timeout"))),
        "Timeout after 30s",
        "rate",
    ],
)
def test_other_waits_are_no_retries(stored: str) -> None:
    """A limit, a pace or another failure prints nothing."""
    store, printed = _Store(), list[str]()
    store.parked[0] = Try("0", 1, now_ms() + 60_000, stored)
    Lines(cast("RunStore", store), "r", ["Q-01"], 0, printed.append).catch_up(cast("RunInfo", _Info()))
    assert printed == []
