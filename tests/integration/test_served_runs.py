"""Micro-runs of `proctor serve` on a real server: they are told of, folded once, and adopted."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from producer.serve import micro_runs
from producer.serve.micro_runs import MicroRuns
from producer.serve.turn_bodies import AcceptedTurn
from shared import keys
from shared.ledger import Keep
from shared.settings import Settings
from tests.support.inline_worker import InlineWorker

if TYPE_CHECKING:
    import redis

TURNS = [AcceptedTurn(name, b'{"threadId":"%s","message":"ok"}' % name.encode()) for name in "aab"]
USUAL = Keep()
SETTINGS = Settings.from_environment({})


def runs_on(
    worker: InlineWorker, client: "redis.Redis", keep: Keep = USUAL, settings: Settings = SETTINGS
) -> MicroRuns:
    """Micro-runs whose wake-ups go to a worker inside the test."""
    access: Any = SimpleNamespace(
        ledger=worker.ledger,
        client=client,
        publisher=worker,
        impatient_store=worker.store,
        settings=settings,
    )
    return MicroRuns(access, "live", "guardrail", keep)


def counted(client: "redis.Redis") -> dict[str, int]:
    """All counters of the namespace, by word, over hours and days."""
    found: dict[str, int] = {}
    server: Any = client
    for key in server.scan_iter("proctor:ns:live:served:2*"):
        for name, number in server.hgetall(key).items():
            word = name.decode().partition(" ")[2]
            found[word] = found.get(word, 0) + int(number)
    return found


def test_results_come_in_order_and_are_folded_once(
    inline_worker: InlineWorker, redis_client: "redis.Redis"
) -> None:
    """The ledger tells which run ended; after two folds it is gone and its turns are counted once."""
    inline_worker.register()
    runs = runs_on(inline_worker, redis_client)
    micro = runs.submit(TURNS)
    assert runs.ended_among([micro.run]) == []
    runs.fold(micro, ())
    assert counted(redis_client) == {}, "a run that goes on is not folded"
    inline_worker.work()
    assert runs.heard().ended == [micro.run]
    assert runs.ended_among([micro.run, "served-gone-1"]) == [micro.run, "served-gone-1"]
    found = runs.read(micro)
    assert [turn.code[:1] for turn in found] == ["k", "k", "k"]
    runs.keep_result(micro.run, found)
    for _ in range(2):
        runs.fold(micro, enumerate(found))
    words = counted(redis_client)
    assert words["turns k5"] == 3
    assert sum(number for word, number in words.items() if word.startswith("latency ")) == 3
    assert redis_client.xlen(keys.served_turns_key("live")) == 3
    assert runs.kept_result(f"{micro.run}.2") == found[2]
    left: Any = redis_client.keys("proctor:run:*")
    assert left == [], "nothing of a folded run is left"


def test_runs_of_a_dead_server_are_adopted(
    inline_worker: InlineWorker, redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server folds them once they have ended long ago, and leaves those that go on."""
    monkeypatch.setattr(micro_runs, "ADOPTED_MS", -10_000)
    inline_worker.register()
    dead, alive = runs_on(inline_worker, redis_client), runs_on(inline_worker, redis_client)
    dead.submit(TURNS)
    inline_worker.work()
    going_on = dead.submit(TURNS)
    alive.adopt()
    assert counted(redis_client)["turns k5"] == 3
    assert list(inline_worker.store.ids()) == [going_on.run]


def test_what_is_kept_is_bounded(inline_worker: InlineWorker, redis_client: "redis.Redis") -> None:
    """The stream of turns stays near its bound, and days and turns have an end."""
    inline_worker.register()
    runs = runs_on(inline_worker, redis_client, Keep(days=1, turns=100, turns_ms=60_000))
    for _ in range(8):
        micro = runs.submit([TURNS[2]] * 100)
        inline_worker.work()
        runs.fold(micro, enumerate(runs.read(micro)))
    stream = keys.served_turns_key("live")
    assert 100 <= redis_client.xlen(stream) <= 300
    assert 0 < redis_client.pttl(stream) <= 60_000
    [day] = redis_client.scan_iter("proctor:ns:live:served:2*")
    assert 0 < redis_client.ttl(day) <= 24 * 3600


def test_personal_data_is_taken_out_before_turns_are_stored(
    inline_worker: InlineWorker, redis_client: "redis.Redis"
) -> None:
    """A mail address in a turn is found in no key, neither while it is decided nor after it was folded."""
    inline_worker.register()
    settings = Settings.from_environment({"PROCTOR_REDACT": "mail"})
    runs = runs_on(inline_worker, redis_client, settings=settings)
    secret = b"ann@secret.example"
    line = b'{"threadId":"t","message":"write to %s","messageId":"m"}' % secret
    micro = runs.submit([AcceptedTurn("t", line)])
    for work in (lambda: None, inline_worker.work, lambda: runs.fold(micro, enumerate(runs.read(micro)))):
        work()
        dumps: list[Any] = [redis_client.dump(key) for key in redis_client.keys("*")]
        assert not any(secret in dump for dump in dumps)
    assert counted(redis_client)["turns s6"] == 1
