"""Measures whether memory stays flat while `proctor serve` takes turns at a steady rate.

A client sends batches of turns of ever new threads, at a rate or as fast as they are taken. A tenth of the
turns is kept in full, with their requests, and threads that are silent for some seconds are forgotten: after
the first fifth as much leaves as comes. Ten times on the way the memory of Redis and of the service is read.
"""

import os
from collections.abc import Iterator
from threading import Event
from time import monotonic
from typing import Any, Final

import psutil

from proctor import Producer
from shared.server.embedded import ensure
from tests.benchmarks.results import Figure, sized
from tests.benchmarks.watching import proctor_data
from tests.support.callers import Server
from tests.support.processes import Processes
from tests.support.tree import ROOT

TURNS: Final = 20_000
RATE_S: Final = 2_500
"""Turns a second, if they are taken so fast."""
BATCH: Final = 250
SILENT_S: Final = 5
"""How long a thread is remembered after its last turn."""
POINTS: Final = 10
SETTLED: Final = 4
"""The point from which on memory is compared: what is kept has come, and what is silent has gone."""


def measured(scale: float) -> Iterator[Figure]:
    """Measures one life of a service."""
    turns = sized(TURNS, scale, least=POINTS * BATCH)
    with proctor_data() as (folder, settings):
        ttl = {"PROCTOR_NAMESPACE_TTL_S": str(SILENT_S)}
        processes = Processes(folder, {**os.environ, **settings, **ttl, "PYTHONPATH": str(ROOT)})
        try:
            with ensure(folder / "data", idle_s=1) as redis:
                yield from _figures(turns, _points(processes, redis.client, turns))
        finally:
            processes.close()


def _points(processes: Processes, client: Any, turns: int) -> Iterator[tuple[int, float, float]]:
    """Sends turns; yields their number, and the megabytes of Redis and of the service, again and again."""
    server = Server.started(processes, "--keep-turns", str(turns // POINTS))
    service, sent, began_s = psutil.Process(server.process.pid), 0, monotonic()
    with Producer(server.url, server.token) as producer:
        for point in range(1, POINTS + 1):
            while sent < point * turns // POINTS:
                producer.send_many(_turn(at) for at in range(sent, sent + BATCH))
                sent += BATCH
                Event().wait(max(0.0, began_s + sent / RATE_S - monotonic()))
            producer.flush()
            memory = client.info("memory")["used_memory_dataset"] / 1e6
            yield sent, memory, service.memory_info().rss / 1e6
    assert server.process.stop() == 0


def _turn(at: int) -> dict[str, str]:
    """One of ten turns of a thread, which a hundred threads have by turns."""
    thread = f"thread-{at // 1000}-{at % 100}"
    return {"threadId": thread, "message": f"Which of the two plans is the cheaper one? ({at})"}


def _figures(turns: int, points: Iterator[tuple[int, float, float]]) -> Iterator[Figure]:
    settled = (0.0, 0.0)
    began_s = monotonic()
    for number, (sent, redis, service) in enumerate(points, 1):
        if number == SETTLED:
            settled = (redis, service)
        for place, value, before in (("Redis", redis, settled[0]), ("the service", service, settled[1])):
            figure = Figure(
                workload="served",
                parameter=f"after {sent:,} of {turns:,} turns",
                measure=f"memory of {place}",
                value=value,
                unit="MB",
                bound="what is kept",
            ).at(place, sent)
            yield figure.beside("after two fifths", before) if number > SETTLED else figure
    rate = turns / (monotonic() - began_s)
    yield Figure(workload="served", parameter=f"{turns:,} turns", measure="rate", value=rate, unit="turns/s")
