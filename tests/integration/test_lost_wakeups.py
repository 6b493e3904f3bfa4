"""Wake-ups that get lost, connections that fall silent, messages of strangers: work goes on soon."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import pytest
from kombu import Connection, Consumer, Message
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as lists
from redis.exceptions import ResponseError

from shared import keys
from shared.broker import Publisher, make_app
from shared.errors import RedisDeniedError
from shared.ledger import Wake
from shared.ledger.ledger import Ledger
from shared.queues import UNACKED_INDEX_KEY, UNACKED_KEY, WakeQueues
from shared.server.client import RedisTarget
from shared.server.sockets import BROKER_REPLY_TIMEOUT_S, HEALTH_CHECK_S, REPLY_TIMEOUT_S
from tests.support.eventually import eventually
from tests.support.processes import Processes
from tests.support.proxy import Door
from tests.support.redis_server import RedisServer
from tests.support.workers import Desk, conversation, start_worker
from worker.transport import guard_transports

if TYPE_CHECKING:
    import redis

QUEUE = f"{keys.PREFIX}turns"
BRPOP_S = 1.0
"""How long the server waits for a message before it answers that there is none."""
HALF_OPEN_S = 10.0
"""Within this time work goes on after connections fell silent; it was 50 s."""


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str) -> Desk:
    """A producer on the session's server."""
    return Desk(redis_client, redis_url)


@pytest.fixture
def door(redis_server: RedisServer) -> Iterator[Door]:
    """A way to the session's server that can fall silent."""
    with Door(redis_server.socket) as opened:
        yield opened


def message(**changes: Any) -> dict[str, Any]:
    """A wake-up as the transport writes it, with some parts replaced; `task` and `kwargs` are inside."""
    kwargs = changes.pop("kwargs", {"run": "r0", "chunk": "0", "items": 1, "first": "a"})
    body = json.dumps([changes.pop("args", []), kwargs, {}]).encode()
    headers = {"lang": "py", "task": changes.pop("task", "proctor.turns.evaluate"), "id": "1"}
    return {
        "body": b64encode(body).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {**headers, **changes.pop("headers", {})},
        "properties": {
            "correlation_id": "1",
            "delivery_mode": 2,
            "delivery_tag": f"tag {changes}",
            "delivery_info": {"exchange": "", "routing_key": "turns"},
            "priority": 0,
            "body_encoding": "base64",
        },
        **changes,
    }


STRANGE: dict[str, Any] = {
    "no JSON": b"not json at all",
    "invalid UTF-8": b"\xff\xfe{\x80",
    "a number": b"7",
    "a list": [1, 2],
    "deep": b"[" * 100_000,
    "no properties": {"body": "", "headers": {}},
    "no tag": message(properties={"delivery_info": {}}),
    "a body that is no base64": message(body="a"),
    "no headers": message(headers={}) | {"headers": None},
    "another task": message(task="somebody.elses.task"),
    "a task of Celery": message(task="celery.chord_unlock"),
    "no arguments": message(kwargs={}),
    "arguments by place": message(args=["r0", "0"], kwargs={}),
    "more arguments": message(kwargs={"run": "r0", "chunk": "0", "password": "x"}),
    "a number for a run": message(kwargs={"run": 7, "chunk": "0"}),
    "an ETA": message(headers={"eta": "tomorrow"}),
    "a time limit": message(headers={"timelimit": ["x", 1]}),
    "compressed": message(headers={"compression": "application/x-gzip"}),
    "pickle": message(**{"content-type": "application/x-python-serialize"}),
    "huge": message(body=b64encode(b"x" * 5_000_000).decode()),
    "another kind": message(task="proctor.cases.validate"),
}


def test_messages_of_strangers_cost_one_line_each(desk: Desk, processes: Processes) -> None:
    """Whatever stands in the queue is rejected with one line of log, leaves nothing, and stops no work."""
    worker = start_worker(processes, "-Q", "turns")
    for value in STRANGE.values():
        desk.client.lpush(QUEUE, value if isinstance(value, bytes) else json.dumps(value))
    desk.client.publish(f"{keys.PREFIX}/0.celery.pidbox", b"{}")
    desk.submit("r1", conversation(4, 2))
    assert len(desk.finished("r1")) == 8
    event = '"event": "message rejected"'
    eventually(lambda: _assert(worker.errors.count(event) == len(STRANGE) + 1, worker.output_text()))
    assert worker.is_running()
    assert "Traceback" not in worker.errors
    eventually(lambda: _assert(not desk.client.hlen(UNACKED_KEY), desk.client.hkeys(UNACKED_KEY)))


def _assert(is_true: bool, message: object) -> None:  # noqa: FBT001 - a statement for a lambda
    assert is_true, message


def test_lost_wake_ups_are_found_by_an_idle_worker(desk: Desk, processes: Processes) -> None:
    """A fifth of the lease after a worker ran out of work it looks itself; before, this took two leases."""
    start_worker(processes, "-Q", "turns")
    assert desk.load("r1", conversation(40, 2), chunk_threads=4)  # and nobody publishes them
    began_s = monotonic()
    desk.finished("r1", 9)
    assert monotonic() - began_s < 6


@pytest.mark.slow
def test_wake_ups_deleted_from_a_running_run_are_found_soon(desk: Desk, processes: Processes) -> None:
    """With the leases that users have, a queue that is emptied costs less than ten seconds, not thirty."""
    start_worker(processes, "-Q", "turns", env={**processes.env, "PROCTOR_LEASE_S": "15"})
    wakes = desk.load("r1", conversation(400, 2), chunk_threads=4)
    desk.publisher.publish(wakes)
    eventually(lambda: _assert(desk.info("r1").done > 0, "not begun"))
    desk.client.delete(QUEUE)
    desk.client.delete(QUEUE)
    began_s = monotonic()
    desk.finished("r1", 30)
    assert monotonic() - began_s < 10


@pytest.mark.usefixtures("redis_client")
def test_one_silent_connection_is_enough(door: Door) -> None:
    """When a reply does not come, idle connections are closed with that one: each would cost as long."""
    client = RedisTarget.parse(door.url).client(socket_timeout_s=0.4)
    pool = client.connection_pool
    opened = [pool.get_connection() for _ in range(8)]
    for connection in opened:
        pool.release(connection)
    ledger = Ledger(client, patience_s=5.0)
    ledger.tick("w1", ["turns"], 1)
    door.fall_silent()
    began_s = monotonic()
    ledger.tick("w1", ["turns"], 1)
    assert monotonic() - began_s < 2 * 0.4 + 0.5
    client.close()


@pytest.mark.slow
def test_half_open_connections_of_a_worker_cost_seconds(desk: Desk, door: Door, processes: Processes) -> None:
    """All connections of a worker fall silent, to the ledger and to the broker: it goes on within 10 s."""
    env = {**processes.env, "PROCTOR_REDIS_URL": door.url, "PROCTOR_LEASE_S": "15"}
    worker = start_worker(processes, "-Q", "turns", env=env)
    desk.submit("r1", conversation(40, 2))
    desk.finished("r1")
    door.fall_silent()
    began_s = monotonic()
    desk.submit("r2", conversation(400, 2))
    desk.finished("r2", 60)
    assert monotonic() - began_s < HALF_OPEN_S
    assert worker.is_running()
    assert "Traceback" not in worker.errors


@pytest.mark.slow
def test_half_open_connections_in_the_middle_of_a_run_cost_seconds(
    desk: Desk, door: Door, processes: Processes
) -> None:
    """The same while chunks are at work: no lease ends, and each turn is decided once."""
    env = {**processes.env, "PROCTOR_REDIS_URL": door.url, "PROCTOR_LEASE_S": "15"}
    worker = start_worker(processes, "-Q", "turns", env=env)
    desk.submit("r1", conversation(1000, 60))
    eventually(lambda: _assert(desk.info("r1").done > 0, "not begun"))
    assert desk.info("r1").done < 60_000
    door.fall_silent()
    before, began_s = desk.info("r1").done, monotonic()
    wanted = min(60_000, before + 20_000)
    eventually(lambda: _assert(desk.info("r1").done >= wanted, desk.info("r1")), 60)
    assert monotonic() - began_s < HALF_OPEN_S, worker.output_text()
    assert len(desk.finished("r1", 60)) == 60_000
    assert "lease lost" not in worker.errors


@pytest.mark.slow
def test_half_open_connections_of_a_producer_cost_seconds(desk: Desk, door: Door) -> None:
    """A producer whose connections fell silent publishes and reads again within its reply time."""
    other = Desk(RedisTarget.parse(door.url).client(), door.url)
    other.submit("r1", conversation(2, 1))
    door.fall_silent()
    began_s = monotonic()
    other.submit("r2", conversation(2, 1))
    assert other.info("r2").total == 2
    assert monotonic() - began_s < HALF_OPEN_S
    assert desk.client.llen(QUEUE) >= 2
    other.close()


def test_the_times_of_silence_fit_a_lease() -> None:
    """The waits of a chunk's end, and of a consumer for its check, each fit into ten seconds."""
    assert REPLY_TIMEOUT_S + 2 * BROKER_REPLY_TIMEOUT_S + 1 < HALF_OPEN_S
    assert 1 + 2 * HEALTH_CHECK_S < HALF_OPEN_S


def test_what_dead_workers_had_fetched_is_forgotten(desk: Desk, redis_url: str, processes: Processes) -> None:
    """Deliveries that nobody acknowledged for four leases are removed; younger ones stay."""
    client = desk.client
    old = [f"old {number}" for number in range(700)]
    client.hset(UNACKED_KEY, mapping=dict.fromkeys([*old, "new"], b"[]"))
    client.zadd(UNACKED_INDEX_KEY, {**dict.fromkeys(old, time() - 300), "new": time()})
    queues = WakeQueues(RedisTarget.parse(redis_url))
    with closing(queues):
        assert [queues.forget_deliveries(60) for _ in range(3)] == [500, 200, 0]
    assert client.hkeys(UNACKED_KEY) == client.zrange(UNACKED_INDEX_KEY, 0, -1) == [b"new"]
    client.zadd(UNACKED_INDEX_KEY, {"new": time() - 300})
    start_worker(processes, "-Q", "turns")
    eventually(lambda: _assert(not client.exists(UNACKED_KEY, UNACKED_INDEX_KEY), "left"))


def test_a_publisher_without_its_right_says_so(new_redis_server: Callable[..., RedisServer]) -> None:
    """A broker that denies publishing is not waited for, and what was to be sent is kept."""
    server = new_redis_server()
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "p", "on", ">x", "~*", "&*", "+@all", "-lpush")
    app = make_app(RedisTarget.parse(f"unix://p:x@{server.socket}"))
    with pytest.raises(RedisDeniedError, match="lpush"):
        Publisher(app, patience_s=30.0).publish([Wake("turns", "r1", "0", 1, "a")])
    app.close()


@pytest.mark.slow
def test_a_run_whose_workers_were_killed_goes_on_at_once(desk: Desk, processes: Processes) -> None:
    """Also 44 minutes later: the leases of dead processes of this host do not have to run out first."""
    env = {**processes.env, "PROCTOR_LEASE_S": "15"}
    worker = start_worker(processes, "-Q", "turns", env=env)
    desk.submit("r1", conversation(1000, 60))
    eventually(lambda: _assert(desk.info("r1").done > 0, "not begun"))
    worker.freeze()
    worker.kill()
    desk.client.hincrby(keys.CLOCK_KEY, "at", -44 * 60 * 1000)
    before = desk.info("r1").done
    assert before < 60_000
    start_worker(processes, "-Q", "turns", env=env)
    began_s = monotonic()
    assert len(desk.finished("r1", 60)) == 60_000
    assert monotonic() - began_s < 10


def test_a_refused_acknowledgement_holds_no_place(
    new_redis_server: Callable[..., RedisServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A channel that may hold one message takes the next one, though the first cannot be acknowledged."""
    for scheme, transport in TRANSPORT_ALIASES.items():
        monkeypatch.setitem(TRANSPORT_ALIASES, scheme, transport)  # they are as before after the test
    monkeypatch.setattr("kombu.transport._transport_cache", {"redis": lists.Transport})  # it has connected
    guard_transports()
    server, taken = new_redis_server(), list[str]()
    broker = Connection(f"redis+socket://{server.socket}")
    with closing(server.client()) as client, broker, closing(broker.SimpleQueue("words")) as words:

        def take(body: str, message: Message) -> None:
            taken.append(body)
            if body == "two":
                message.ack()
                return
            client.config_set("min-replicas-to-write", 1)
            with pytest.raises(ResponseError, match="NOREPLICAS"):
                message.ack()
            client.config_set("min-replicas-to-write", 0)

        words.put("one")
        words.put("two")
        with Consumer(broker.channel(), [words.queue], callbacks=[take], prefetch_count=1):
            while len(taken) < 2:
                broker.drain_events(timeout=5)
    assert taken == ["one", "two"]


def test_a_waiting_channel_closes_at_once(redis_server: RedisServer) -> None:
    """Closing does not wait for the second that the server may take to answer an empty queue."""
    guard_transports()
    with Connection(f"redis+socket://{redis_server.socket}") as broker:
        channel: Any = broker.channel()  # the stubs have another class
        with closing(broker.SimpleQueue("idle")) as idle, Consumer(channel, [idle.queue]):
            with pytest.raises(TimeoutError):
                broker.drain_events(timeout=0.05)
            began_s = monotonic()
            channel.close()
            assert monotonic() - began_s < BRPOP_S / 2
