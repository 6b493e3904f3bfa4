"""Wake-up calls on a real Redis: what a message holds, batches, and a broker that is away."""

import json
from base64 import b64decode
from collections.abc import Callable
from contextlib import closing
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from celery.app.defaults import NAMESPACES, flatten

from shared.broker import Publisher, make_app, settings
from shared.kinds import CASES, QUERIES, TURNS
from shared.ledger import Wake
from shared.queues import WakeQueues
from shared.server.client import RedisTarget
from tests.support.redis_server import RedisServer
from worker import talk
from worker.talk import Talks

if TYPE_CHECKING:
    import redis

WAKE = Wake("turns", "run-1", "7", 1000, "thread-9")


def published(client: "redis.Redis", kind: str) -> list[dict[str, Any]]:
    """The messages of a queue, oldest first."""
    return [json.loads(raw) for raw in reversed(client.lrange(f"proctor:{kind}", 0, -1))]


def test_every_setting_is_one_that_celery_knows() -> None:
    """A setting with a typing mistake would be taken silently and change nothing."""
    options: Any = flatten(NAMESPACES)
    known = {name for name, _ in options}
    assert not set(settings(RedisTarget.parse("redis://db.example"))) - known


def test_a_message_holds_ids_only(redis_client: "redis.Redis", redis_url: str) -> None:
    """Task name, run, chunk, number of items and the first one's name, as JSON; nothing of the input."""
    Publisher(make_app(RedisTarget.parse(redis_url))).publish([WAKE])
    [message] = published(redis_client, "turns")
    assert message["content-type"] == "application/json"
    assert message["headers"]["task"] == "proctor.turns.evaluate"
    body: list[Any] = json.loads(b64decode(message["body"]))
    assert body[0] == []
    assert body[1] == {"run": "run-1", "chunk": "7", "items": 1000, "first": "thread-9"}


def test_messages_of_served_turns_are_those_of_celery(redis_client: "redis.Redis", redis_url: str) -> None:
    """They have what Celery writes, but for what is empty there, and what says who has sent them."""
    Publisher(make_app(RedisTarget.parse(redis_url))).publish([WAKE, WAKE._replace(run="served-1")])
    own, celery = published(redis_client, "turns")
    [args, kwargs, embedded] = json.loads(b64decode(celery["body"]))
    assert json.loads(b64decode(own["body"])) == [args, {**kwargs, "run": "served-1"}, {}]
    assert not any(embedded.values())
    assert celery["headers"].pop("origin")
    for part in ("headers", "properties"):
        given = {key: each for key, each in celery[part].items() if each and each != [None, None]}
        ids = {"id", "root_id", "correlation_id", "delivery_tag"}
        assert own[part].keys() | {"priority"} == given.keys() | {"priority"}
        assert all(own[part][key] == given[key] for key in given.keys() - ids - {"kwargsrepr"})
    assert own["headers"]["kwargsrepr"] == celery["headers"]["kwargsrepr"].replace("run-1", "served-1")
    assert {own[key] == celery[key] for key in ("content-type", "content-encoding")} == {True}


def test_each_kind_has_one_queue(redis_client: "redis.Redis", redis_url: str) -> None:
    """A queue's length is the length of one list, which scaling by queue length can read."""
    publisher = Publisher(make_app(RedisTarget.parse(redis_url)))
    publisher.publish([WAKE, WAKE._replace(kind="cases"), WAKE._replace(kind="queries"), WAKE])
    with closing(WakeQueues(RedisTarget.parse(redis_url))) as queues:
        assert queues.lengths() == {TURNS: 2, CASES: 1, QUERIES: 1}
    assert [redis_client.llen(f"proctor:{kind}") for kind in ("turns", "cases", "queries")] == [2, 1, 1]


def test_many_messages_are_few_round_trips(redis_client: "redis.Redis", redis_url: str) -> None:
    """Five hundred wake-up calls do not wait for five hundred answers."""
    publisher = Publisher(make_app(RedisTarget.parse(redis_url)))
    publisher.publish([WAKE])
    before = redis_client.info("stats")["total_reads_processed"]
    publisher.publish([WAKE._replace(chunk=str(number)) for number in range(500)])
    reads = redis_client.info("stats")["total_reads_processed"] - before
    assert redis_client.llen("proctor:turns") == 501
    assert reads < 250


def test_a_broker_that_is_away_fails_nobody(new_redis_server: Callable[..., RedisServer]) -> None:
    """Wake-up calls wait in order while the broker is away, and go out with the first call after it."""
    server = new_redis_server()
    publisher = Publisher(make_app(RedisTarget.parse(server.url)))
    publisher.publish([WAKE])
    server.terminate()
    publisher.publish([WAKE._replace(chunk="8")])
    publisher.publish([WAKE._replace(chunk="9")])
    assert not publisher.flush()
    server.start()
    assert publisher.flush()
    with server.client() as client:
        chunks = [
            json.loads(b64decode(message["body"]))[1]["chunk"] for message in published(client, "turns")
        ]
    assert chunks == ["7", "8", "9"]


@pytest.mark.timeout(20)
def test_a_producer_waits_no_longer_than_its_patience(tmp_path: object) -> None:
    """With nobody behind the URL, publishing gives up after its patience, and raises nothing."""
    publisher = Publisher(make_app(RedisTarget.parse(f"unix://{tmp_path}/nobody")), patience_s=0.5)
    publisher.publish([WAKE])
    assert not publisher.flush()


def test_people_who_talk_need_no_celery_and_others_keep_theirs(
    redis_client: "redis.Redis", redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A talk takes served turns in their order; what else comes is the next for Celery, and ends the talk."""
    monkeypatch.setattr(talk, "SILENCE_S", 0.3)
    target = RedisTarget.parse(redis_url)
    publisher = Publisher(make_app(target))
    served = [WAKE._replace(run=f"served-a-{number}") for number in range(4)]
    is_over = Event()
    with closing(WakeQueues(target)) as queues:
        talks = Talks(queues, 1, is_over.is_set)
        for wakes in (served[:2], [WAKE], served[2:3]):
            publisher.publish(wakes)
        following = talks.following()
        assert next(following) == served[0]
        assert list(talks.following()) == [], "one thread at a time"
        assert list(following) == served[1:2]
        assert [each["headers"]["kwargsrepr"] for each in published(redis_client, "turns")] == [
            f"{{'run': '{run}', 'first': 'thread-9', 'chunk': '7', 'items': 1000}}"
            for run in ("run-1", "served-a-2")
        ]
        redis_client.rpop("proctor:turns")
        assert list(talks.following()) == [served[2]], "a silence ends it as well"
        publisher.publish([served[3]])
        is_over.set()
        assert list(talks.following()) == [], "a process that drains begins nothing"
    assert redis_client.llen("proctor:turns") == 1
