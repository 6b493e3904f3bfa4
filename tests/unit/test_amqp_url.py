"""AMQP URLs: what kombu and people get of them, and the mistakes that are reported without the password."""

import ssl

import pytest

from shared.errors import ConfigError
from shared.kinds import all_kinds
from shared.queues import RabbitQueues, RedisQueues, queues_on
from shared.server.amqp import AmqpTarget, parse_amqp_url
from shared.server.client import RedisTarget, parse_broker


def test_defaults_are_those_of_rabbitmq() -> None:
    """A host alone: RabbitMQ's port, user, password and virtual host."""
    url = parse_amqp_url("amqp://mq.example")
    assert url.for_kombu == "amqp://guest:guest@mq.example:5672/%2F"
    assert url.tls is None


def test_every_node_of_a_cluster_is_tried() -> None:
    """Kombu gets a URL for each host, with the same login and virtual host."""
    url = parse_amqp_url("amqp://a:p%40ss@mq-1,mq-2:5673,[::1]/eval%2F1")
    assert url.for_kombu == (
        "amqp://a:p%40ss@mq-1:5672/eval%2F1;amqp://a:p%40ss@mq-2:5673/eval%2F1;amqp://a:p%40ss@[::1]:5672/eval%2F1"
    )
    assert url.display == "amqp://a:***@mq-1:5672,mq-2:5673,[::1]:5672/eval%2F1"


def test_tls_checks_certificate_and_name_by_default() -> None:
    """`amqps` checks both; options name files, or switch checks off."""
    assert parse_amqp_url("amqps://mq").tls == {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": None}
    files = parse_amqp_url("amqps://mq?ssl_ca_certs=/ca.pem&ssl_certfile=/me.pem&ssl_keyfile=/me.key").tls
    assert files is not None
    assert (files["ca_certs"], files["certfile"], files["keyfile"]) == ("/ca.pem", "/me.pem", "/me.key")
    assert parse_amqp_url("amqps://mq?ssl_cert_reqs=none").tls == {"cert_reqs": ssl.CERT_NONE}


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("amqp://", "it names no host"),
        ("amqp://a:geheim@", "it names no host"),
        ("amqp://a:geheim@mq:99999", "there is no port 99999"),
        ("amqp://a:geheim@mq/x/y", "%2F"),
        ("amqp://a:ge#heim@mq", "%23"),
        ("amqp://a:geheim@mq?ssl_ca_certs=x", "unknown option 'ssl_ca_certs'"),
        ("amqps://a:geheim@mq?ssl_cert_reqs=maybe", "required, optional or none"),
    ],
)
def test_mistakes_are_reported_without_the_password(url: str, why: str) -> None:
    """What is wrong, and what a URL looks like; never the password."""
    with pytest.raises(ConfigError, match="names no RabbitMQ broker") as caught:
        AmqpTarget.parse(url)
    assert why in caught.value.message
    assert "heim" not in f"{caught.value} {caught.value.hint}"


def test_each_broker_has_its_queues() -> None:
    """The scheme of the URL decides, in one place."""
    assert isinstance(parse_broker("redis://db"), RedisTarget)
    assert isinstance(queues_on(parse_broker("redis://db")), RedisQueues)
    rabbit = queues_on(parse_broker("amqps://mq"))
    assert isinstance(rabbit, RabbitQueues)
    assert [rabbit.name(kind) for kind in all_kinds()] == [
        "proctor.turns",
        "proctor.cases",
        "proctor.queries",
    ]
