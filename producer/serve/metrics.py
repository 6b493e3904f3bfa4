"""What one `proctor serve` counts for Prometheus, in a registry of its own; several servers are summed there.

docs/operations.md has the same table, and a test keeps the two equal.
"""

from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from producer.serve.gatherer import Waiting

SECONDS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Bounds of the time to a decision."""
TURNS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500)
"""Bounds of the turns of a micro-run."""
OTHER: Final = "other"
"""The route of requests that no route has."""
RESULTS: Final = ("accepted", "answered", "refused", "failed", "late")


def route_of(request: web.Request) -> str:
    """Returns the path of a request as the description has it."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else OTHER


class ServeMetrics:
    """The counters of one service; belongs to one event loop.

    Args:
        in_flight: counts turns that have no decision yet.
        queued: counts those among them that are not submitted yet.
    """

    def __init__(self, in_flight: Callable[[], int], queued: Callable[[], int]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types there
        own = self.registry = CollectorRegistry(auto_describe=True)
        self._requests = Counter(
            "proctor_serve_requests", "Requests answered.", ("route", "status"), registry=own
        )
        turns = Counter(
            "proctor_serve_turns",
            "Turns accepted; of them answered, refused (not decidable), failed (no result) and late (their "
            "caller was told so at the deadline).",
            ("result",),
            registry=own,
        )
        self._turns = {result: turns.labels(result) for result in RESULTS}
        self._decision = Histogram(
            "proctor_serve_decision_seconds",
            "Time from the acceptance of turns to their result, a model's answer included.",
            buckets=SECONDS,
            registry=own,
        )
        self.micro_run: Final = Histogram(
            "proctor_serve_micro_run_turns", "Turns of a micro-run.", buckets=TURNS, registry=own
        )
        for name, text, count in (
            ("proctor_serve_in_flight", "Turns accepted that have no result yet.", in_flight),
            ("proctor_serve_queue", "Turns accepted that are in no micro-run yet.", queued),
        ):
            Gauge(name, text, registry=own).set_function(count)

    def requested(self, request: web.Request, status: int) -> None:
        """Counts a request that was answered."""
        route = route_of(request)
        self._requests.labels(OTHER if route == OTHER else f"{request.method} {route}", status).inc()

    def accepted(self, waiting: Waiting) -> None:
        """Counts turns that were accepted, and later their results."""
        began_s = monotonic()
        self._turns["accepted"].inc(len(waiting.turns))

        def ended(results: Any) -> None:
            self._decision.observe(monotonic() - began_s)
            if results.cancelled() or results.exception():
                self._turns["failed"].inc(len(waiting.turns))
                return
            refused = sum(turn.problem is not None for turn in results.result())
            self._turns["refused"].inc(refused)
            self._turns["answered"].inc(len(waiting.turns) - refused)

        waiting.results.add_done_callback(ended)

    def late(self, waiting: Waiting) -> None:
        """Counts turns whose caller was told at the deadline that there is no decision yet."""
        self._turns["late"].inc(len(waiting.turns))

    def page(self, accept: str) -> web.Response:
        """Writes everything in the format that a scraper asks for."""
        encode, content_type = choose_encoder(accept)
        return web.Response(body=encode(self.registry), headers={"Content-Type": content_type})
