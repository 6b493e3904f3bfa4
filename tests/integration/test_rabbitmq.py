"""RabbitMQ as the broker: runs from submit to result, a killed worker, a broker that goes and comes back."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kombu import Connection, Queue

from shared.broker import Publisher, make_app
from shared.errors import BrokerUnreachableError, BrokerUnsuitableError
from shared.kinds import TURNS, all_kinds
from shared.ledger import Wake
from shared.queues import queues_on
from shared.server.client import parse_broker, probe_broker
from tests.support.certificates import make_certificates
from tests.support.eventually import eventually
from tests.support.invariants import let_ledger_time_pass
from tests.support.ports import free_port
from tests.support.processes import Processes
from tests.support.query_desk import numbered
from tests.support.rabbit_server import RabbitServer
from tests.support.scripted_api import ScriptedApi, Step
from tests.support.smoke import Smoke

if TYPE_CHECKING:
    import redis

WAKE = Wake("turns", "run-1", "7", 1000, "thread-9")
LEASE_S = 16.0
pytestmark = pytest.mark.timeout(240)  # the node's start is the session's, and other tests may run beside it
EMPTY = dict.fromkeys(all_kinds(), 0)


@pytest.fixture(scope="session")
def node(_runtime_folder: None) -> Iterator[RabbitServer]:
    """The session's node: its start costs five seconds."""
    with RabbitServer() as server:
        yield server


@pytest.fixture
def rabbit(node: RabbitServer) -> RabbitServer:
    """The session's node, running and without queues."""
    node.ensure_running()
    node.delete_queues()
    return node


@pytest.fixture
def smoke(rabbit: RabbitServer, redis_url: str, processes: Processes) -> Smoke:
    """The ledger on the session's Redis, the queue on RabbitMQ."""
    return Smoke(processes, redis_url, rabbit.url)


def no_list_in_redis(client: "redis.Redis") -> None:
    """Asserts that no wake-up went to Redis."""
    assert [client.llen(f"proctor:{kind}") for kind in all_kinds()] == [0, 0, 0]


def test_every_kind_runs_over_rabbitmq(
    smoke: Smoke, rabbit: RabbitServer, redis_client: "redis.Redis"
) -> None:
    """Also submitted before there is a worker, each kind is finished, and nothing is in Redis' lists."""
    run = smoke.submit(smoke.turns_file("early"))
    with closing(queues_on(parse_broker(rabbit.url))) as queues:
        assert queues.lengths()[TURNS] > 0
        worker = smoke.worker()
        smoke.finished(run)
        smoke.check_all_kinds()
        no_list_in_redis(redis_client)

        def all_acknowledged() -> None:
            assert queues.lengths() == EMPTY

        eventually(all_acknowledged)
    assert worker.stop() == 0
    assert "Traceback" not in worker.errors


def test_a_killed_worker_loses_nothing(smoke: Smoke, redis_client: "redis.Redis") -> None:
    """`kill -9` in the middle of a run: RabbitMQ and the ledger hand out its chunks again, each turn once."""
    victim = smoke.worker("-Q", "turns", "--name", "victim@test")
    run = smoke.submit(smoke.turns_file("many", threads=1000, turns=60))

    def is_under_way() -> None:
        assert smoke.store.info(run).done > 0

    eventually(is_under_way, 20.0)
    victim.kill()
    assert not smoke.store.info(run).is_final
    smoke.worker("-Q", "turns", "--name", "heir@test")
    let_ledger_time_pass(redis_client, LEASE_S)
    assert smoke.finished(run).done == 1000 * 60
    assert [row.index for row in smoke.store.rows(run)] == list(range(1000 * 60))


@pytest.mark.slow
def test_a_broker_that_goes_and_comes_back(smoke: Smoke, rabbit: RabbitServer) -> None:
    """Stopped and started again under a worker: commands say so, looking still works, and work goes on."""
    worker = smoke.worker("-Q", "turns")
    before = smoke.submit(smoke.turns_file("before"))
    smoke.finished(before)
    rabbit.stop()
    worker.wait_for("the connection to the broker is lost")
    refused, status = smoke.start("submit", smoke.turns_file("refused")), smoke.start("status")
    for command in (refused, smoke.start("health", "broker"), smoke.start("doctor")):
        assert command.wait() == 3, command.output_text()
        assert f"the broker at amqp://guest:***@127.0.0.1:{rabbit.port} does not answer" in " ".join(
            command.output_text().split()
        )
    assert status.wait() == 0, status.output_text()
    assert "does not answer" in status.errors
    assert "?" in status.output
    rabbit.start()
    smoke.finished(smoke.submit(smoke.turns_file("after")))
    assert worker.is_running()
    assert "Traceback" not in worker.errors


def test_wake_ups_wait_for_the_broker(rabbit: RabbitServer) -> None:
    """A publisher whose connection was cut keeps what it could not send, and sends it over a new one."""
    target = parse_broker(rabbit.url)
    app = make_app(target)
    publisher = Publisher(app)
    publisher.publish([WAKE])
    with app.producer_pool.acquire() as producer:
        connection: Any = producer.connection
        connection.connection.sock.shutdown(socket.SHUT_RDWR)
    publisher.publish([WAKE._replace(chunk="8")])
    assert publisher.flush()
    with closing(queues_on(target)) as queues:
        assert queues.lengths() == {**EMPTY, TURNS: 2}


def test_queues_of_another_type_are_reported(rabbit: RabbitServer) -> None:
    """A classic queue of our name is an error that names it, and not a worker that restarts for ever."""
    with Connection(rabbit.url) as connection:
        Queue("proctor.cases", durable=True)(connection.default_channel).declare()
    with pytest.raises(BrokerUnsuitableError, match=r"queue proctor\.cases of amqp://guest:\*\*\*@"):
        probe_broker(parse_broker(rabbit.url), 5.0)


@pytest.mark.parametrize("change", [("guest:guest", "guest:wrong"), ("/", "/nowhere")])
def test_a_refusal_is_no_outage(rabbit: RabbitServer, change: tuple[str, str]) -> None:
    """A wrong password and an unknown virtual host are reported at once, as what they are."""
    url = f"amqp://guest:guest@127.0.0.1:{rabbit.port}/"
    wrong = url.replace(*change) if change[0] != "/" else f"{url}nowhere"
    with pytest.raises(BrokerUnreachableError, match="refuses us") as caught:
        probe_broker(parse_broker(wrong), 5.0)
    assert "virtual host" in caught.value.hint
    assert "wrong" not in str(caught.value)


@pytest.mark.slow
def test_tls_and_a_consumer_timeout(processes: Processes, redis_url: str, tmp_path: Path) -> None:
    """Over TLS with a client certificate: a chunk that takes longer than RabbitMQ waits is done once."""
    made = make_certificates(tmp_path)
    port = free_port()
    options = "ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\n" + "".join(
        f"ssl_options.{name} = {path}\n"
        for name, path in (
            ("cacertfile", made.authority),
            ("certfile", made.certificate),
            ("keyfile", made.key),
        )
    )
    strict = "[{rabbit, [{consumer_timeout, 1000}, {channel_tick_interval, 1000}]}]."
    with RabbitServer(f"listeners.ssl.1 = 127.0.0.1:{port}\n{options}", strict):
        smoke = Smoke(processes, redis_url, f"amqps://guest:guest@localhost:{port}?{made.query}")
        worker = smoke.worker()
        with ScriptedApi(lambda _query, _nth: Step(after_s=4.0)) as api:
            file = tmp_path / "baselines.json"
            file.write_text(json.dumps({"version": "1.0", "queries": numbered(1)}))
            smoke.finished(smoke.submit(file, "--api-url", api.url))
            worker.wait_for("PRECONDITION_FAILED")
            smoke.check_all_kinds()
            assert len(api.requests) == 1
        assert worker.is_running()
        assert "Traceback" not in worker.errors
