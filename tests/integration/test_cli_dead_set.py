"""The dead set as the command line reads and clears it, on a real server."""

from typing import TYPE_CHECKING

import pytest

from producer.dead_set import ItemPlace, discard, read_dead
from shared.keys import DEAD_ITEMS_KEY, DEAD_KEY, run_dead_key

if TYPE_CHECKING:
    import redis

RESULT = b'{"error":{"code":"etag_conflict","message":"stale"},"result":{}}'


@pytest.fixture
def client(redis_client: "redis.Redis") -> "redis.Redis":
    """A server that holds dead items of two runs, written as the ledger writes them."""
    for at, (run, index) in enumerate([("r1", "10"), ("r2", "0"), ("r1", "9")]):
        payload = b'{"threadId":"t"}'
        head = f"turns|0|{1000 + at}|1||{len(payload)}\n".encode()
        redis_client.zadd(DEAD_KEY, {f"{run} {index}": 1000 + at})
        redis_client.hset(DEAD_ITEMS_KEY, f"{run} {index}", head + payload + RESULT)
        redis_client.sadd(run_dead_key(run), index)
    return redis_client


def test_newest_first_over_all_runs(client: "redis.Redis") -> None:
    """Without a run the newest entries come first, as many as were asked for."""
    assert [entry.id for entry in read_dead(client, first=2)] == ["turn-9", "turn-0"]
    assert [entry.place.run for entry in read_dead(client)] == ["r1", "r2", "r1"]


def test_in_order_within_a_run(client: "redis.Redis") -> None:
    """Of one run the entries come by their position in the input, 9 before 10."""
    assert [entry.id for entry in read_dead(client, run="r1")] == ["turn-9", "turn-10"]
    assert next(read_dead(client, run="r1")).error == ("etag_conflict", "stale")
    assert list(read_dead(client, run="nobody")) == []


def test_discard_leaves_the_others(client: "redis.Redis") -> None:
    """Discarding takes out exactly what was named, in all three places, and counts it once."""
    places = [ItemPlace("r1", "9"), ItemPlace("r2", "7")]
    assert discard(client, places).discarded == 1
    assert discard(client, places).discarded == 0
    assert [entry.id for entry in read_dead(client)] == ["turn-0", "turn-10"]
    assert client.hlen(DEAD_ITEMS_KEY) == 2
    assert client.smembers(run_dead_key("r1")) == {b"10"}


def test_poison_without_a_result_has_words(client: "redis.Redis") -> None:
    """An item that killed its workers has no result, and is explained all the same."""
    client.zadd(DEAD_KEY, {"r3 5": 5000})
    client.hset(DEAD_ITEMS_KEY, "r3 5", b"cases|0|5000|5|poison|2\n{}")
    first = next(read_dead(client))
    assert (first.id, first.error[0]) == ("case-5", "poison")
