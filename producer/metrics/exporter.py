"""Serves the fleet's metrics to Prometheus under `/metrics`; each scrape reads Redis anew."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, cast

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from producer.metrics.families import FAMILIES, Buckets, Family, Type
from producer.metrics.look import Look, take_look
from shared.errors import RedisUnreachableError
from shared.ledger.calls import ScriptCaller
from shared.ledger.ledger import Ledger
from shared.observability.counters import LATENCY_BOUNDS_S

if TYPE_CHECKING:
    import redis

PATH: Final = "/metrics"
PATIENCE_S: Final = 2.0
"""How long a scrape waits for an unavailable Redis; Prometheus' own time limit is 10 s by default."""
CLIENT_TIMEOUT_S: Final = 10.0
"""How long a client may take to send its request."""
BOUNDS: Final = (*map(floatToGoString, LATENCY_BOUNDS_S), "+Inf")
INDEX: Final = f"Proctor's metrics are at {PATH}\n"

logger = logging.getLogger(__name__)


class FleetCollector(Collector):
    """Reads the fleet at each scrape.

    Args:
        caller: a connection; `Ledger.caller` is one.
    """

    def __init__(self, caller: ScriptCaller) -> None:
        self._caller = caller

    def collect(self) -> Iterator[Metric]:
        """Yields every family; without samples while Redis is unavailable."""
        try:
            look = take_look(self._caller)
        except RedisUnreachableError as error:
            logger.warning("%s", error.message)
            look = None
        for family in FAMILIES:
            yield metric_of(family, look)


def metric_of(family: Family, look: Look | None) -> Metric:
    """Reads one family; without Redis only the availability metric has a sample."""
    samples = family.read(look) if look else ()
    metric: Any
    if family.type is Type.HISTOGRAM:
        metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for labels, value in samples:
            if isinstance(value, Buckets):
                buckets = list(zip(BOUNDS, map(float, value.cumulative), strict=True))
                metric.add_metric(labels, buckets=buckets, sum_value=value.sum_s)
        return cast("Metric", metric)
    make = CounterMetricFamily if family.type is Type.COUNTER else GaugeMetricFamily
    metric = make(family.name, family.help, labels=family.labels)
    for labels, value in samples:
        metric.add_metric(labels, value)
    if look is None and family is FAMILIES[0]:
        metric.add_metric((), 0)
    return cast("Metric", metric)


def registry_of(client: "redis.Redis") -> CollectorRegistry:
    """Makes the registry of one fleet; it reads nothing before the first scrape."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(FleetCollector(Ledger(client, patience_s=PATIENCE_S).caller))
    return registry


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: "_Server"
    timeout = CLIENT_TIMEOUT_S

    def do_GET(self) -> None:
        """Serves the metrics, and a line with their path on other paths."""
        path = self.path.partition("?")[0]
        if path == PATH:
            encoder, content_type = choose_encoder(self.headers.get("Accept", ""))
            self._send(HTTPStatus.OK, content_type, encoder(self.server.registry))
        elif path == "/":
            self._send(HTTPStatus.OK, "text/plain; charset=utf-8", INDEX.encode())
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", INDEX.encode())

    def _send(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Logs requests at the debug level."""
        logger.debug(format, *args)


class _Server(ThreadingHTTPServer):
    """The server of one registry."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], registry: CollectorRegistry) -> None:
        super().__init__(address, _Handler)
        self.registry = registry

    def server_bind(self) -> None:
        """Binds without asking the resolver for this machine's name."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()


@contextmanager
def serving(client: "redis.Redis", host: str, port: int) -> Iterator[int]:
    """Serves metrics from a thread for as long as the context lasts; gives the port.

    Args:
        client: of the ledger's server, answering bytes.
        host: address to listen on.
        port: 0 takes any that is free.

    Raises:
        OSError: the port cannot be listened on.
    """
    server = _Server((host, port), registry_of(client))
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
