"""The limits that people set, in a real Redis."""

from typing import TYPE_CHECKING

import pytest

from shared import keys
from shared.errors import UsageError
from shared.ledger.ledger import Ledger
from shared.upstream.limits import LimitBook, Limits

if TYPE_CHECKING:
    import redis


@pytest.fixture
def book(redis_client: "redis.Redis") -> LimitBook:
    """An empty book."""
    return LimitBook(Ledger(redis_client).caller)


def test_limits_are_kept_until_they_are_unset(book: LimitBook) -> None:
    """What is set is read back under the URL's one name; unset limits are gone."""
    book.set("http://LocalHost:80/", Limits(rpm=60, concurrency=2))
    book.set("openai", Limits(tpm=1_000))
    assert book.settings() == {
        "http://localhost": Limits(rpm=60, concurrency=2),
        "openai": Limits(tpm=1_000),
    }
    assert book.unset("http://localhost/")
    assert not book.unset("http://localhost/")
    assert list(book.settings()) == ["openai"]


@pytest.mark.parametrize("limits", [Limits(rpm=0), Limits(tpm=-1), Limits(pace_s=float("nan"))])
def test_a_limit_is_a_positive_number(book: LimitBook, limits: Limits) -> None:
    """A limit that would let nothing through, or is no number, is refused with its name."""
    with pytest.raises(UsageError, match=r"of openai is"):
        book.set("openai", limits)


def test_states_of_scopes_that_are_gone_are_not_shown(book: LimitBook, redis_client: "redis.Redis") -> None:
    """A scope that nobody used for an hour is forgotten, also in the list."""
    redis_client.zadd(keys.SCOPES_KEY, {"openai abc": 1, "gone": 1})
    redis_client.hset(keys.scope_key("openai abc"), mapping={"pause": "9e15", "cwnd": "2.500", "rtt": "12"})
    (state,) = book.states()
    assert (state.key, state.account, state.adaptive, state.latency_ms) == ("openai", "abc", 2.5, 12.0)
    assert state.paused_ms > 1e12
    assert redis_client.zcard(keys.SCOPES_KEY) == 1
    assert book.reset("openai") == 1
    assert book.states() == []
    assert book.reset("openai") == 0
