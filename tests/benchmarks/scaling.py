"""Sizes fleets from measured costs: `make scaling` writes the tables and pictures of docs/scaling.md.

What is measured comes from measured_costs.json, which `bench_costs` writes; everything else is computed here
or simulated by `simulate_fleet`. The tables are kept between marks of the document, and a test holds them to
what this program writes.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from math import ceil
from typing import Any, Final

from tests.benchmarks.line_chart import Line, line_chart
from tests.benchmarks.results import TIMES
from tests.benchmarks.simulate_fleet import Fleet, Outcome, Work, simulate
from tests.support.document_blocks import save, table
from tests.support.tree import ROOT

MEASURED: Final = ROOT / "tests" / "benchmarks" / "measured_costs.json"
DOCUMENT: Final = ROOT / "docs" / "scaling.md"
BUSY: Final = 0.6
"""Share of a core that a plan gives a worker process or Redis: the rest is for bursts and lost hosts."""
PEAK: Final = 3
"""The busiest hour of a day against its mean."""
DAY_S: Final = 86_400
TURNS_A_DAY: Final = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
CALLS_A_SECOND: Final = (100, 1_000, 2_500, 5_000, 10_000)
CALL_S: Final = 2.0
"""What a model takes for an answer, in the table of calls."""
PLACES: Final = 500
"""Items in flight of one process (`-j`), in the table of calls."""
FILLED: Final = 0.85
"""Share of the places that a plan counts on: answers are late, and chunks end."""
CURVE_S: Final = 1.0
"""What a model takes for an answer, in the picture."""
CURVE_PLACES: Final = 100
CURVE: Final = (1, 10, 20, 30, 40, 50, 60, 80, 100)
"""Worker processes."""
CYCLES: Final = 6
"""So long is a large fleet simulated, in items a place."""
CALLS: Final = "cases, model"


@cache
def measured() -> Mapping[str, Any]:
    """Reads what was measured."""
    found: Mapping[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def work_of(kind: str, latency_s: float = 0.0, *, broker_apart: bool = False) -> Work:
    """What an item of a kind takes of its worker and of the ledger's server."""
    cost = measured()["items"][kind]
    redis_us = cost["ledger_us"] + (0 if broker_apart else cost["broker_us"])
    return Work(cost["worker_us"], redis_us, latency_s)


def fleet_of(processes: int, in_flight: int, *, broker_apart: bool = False, cores: int = 0) -> Fleet:
    """A fleet whose idle processes cost what was measured."""
    idle = measured()["idle_process"]
    idle_redis = idle["ledger"] + (0 if broker_apart else idle["broker"])
    return Fleet(processes, in_flight, cores, idle_redis)


def simulated_rates() -> list[tuple[Mapping[str, Any], Outcome]]:
    """Simulates the small fleets whose rates were measured, on the cores they had."""
    found = []
    for row in measured()["rates"]:
        work = work_of(row["kind"], row["latency_s"], broker_apart=True)
        fleet = fleet_of(row["processes"], row["in_flight"], broker_apart=True, cores=measured()["cores"])
        found.append((row, simulate(work, fleet)))
    return found


def costs_table() -> str:
    """What an item of each kind costs."""
    head = ("one item of", "worker", "producer", "ledger", "broker", "kept in Redis", "written to the AOF")
    rows = []
    for kind, cost in measured()["items"].items():
        producer_us = cost["submit_us"] + cost["read_us"]
        times = (cost["worker_us"], producer_us, cost["ledger_us"], max(0.1, cost["broker_us"]))
        held = (cost["redis_bytes"], cost["disk_bytes"])
        rows.append([kind, *(_micros(each) for each in times), *(f"{each:,} B" for each in held)])
    idle = measured()["idle_process"]
    note = (
        f"A worker process without work takes {idle['worker']:.2%} of a core, {idle['ledger']:.3%} of the "
        f"ledger's and {idle['broker']:.3%} of the broker's."
    )
    return f"{table(head, rows)}\n\n{note}"


def small_table() -> str:
    """Measured rates beside simulated ones."""
    head = ("kind", f"processes {TIMES} in flight", "upstream", "measured", "simulated", "difference")
    rows = [
        [
            row["kind"],
            f"{row['processes']} {TIMES} {row['in_flight']}",
            f"{1000 * row['latency_s']:.0f} ms",
            f"{row['per_second']:,.0f} /s",
            f"{outcome.per_second:,.0f} /s",
            f"{outcome.per_second / row['per_second'] - 1:+.1%}",
        ]
        for row, outcome in simulated_rates()
    ]
    return table(head, rows)


def turns_table() -> str:
    """What recorded turns need, by turns a day."""
    cost = measured()["items"]["turns"]
    redis_us = cost["ledger_us"] + cost["broker_us"]
    head = (
        "turns a day",
        f"peak (mean {TIMES} {PEAK})",
        "worker processes",
        "Redis CPU at peak",
        "memory: the busiest hour's results",
        "a day's",
        "AOF written a day",
    )
    rows = []
    for turns in TURNS_A_DAY:
        peak = PEAK * turns / DAY_S
        rows.append(
            [
                f"{turns:,}",
                f"{peak:,.0f} /s",
                f"{max(1, ceil(peak * cost['worker_us'] / 1e6 / BUSY))}",
                f"{peak * redis_us / 1e6:.1%}",
                _bytes(PEAK * turns / 24 * cost["redis_bytes"]),
                _bytes(turns * cost["redis_bytes"]),
                _bytes(turns * cost["disk_bytes"]),
            ]
        )
    return table(head, rows)


def calls_table() -> str:
    """What model calls need, by calls a second."""
    cost = measured()["items"][CALLS]
    head = (
        "calls a second",
        "in flight",
        f"worker processes (`-j {PLACES}`)",
        "Redis CPU, all in all",
        "ledger servers",
        "with brokers apart",
        "simulated capacity",
    )
    rows = []
    for rate in CALLS_A_SECOND:
        redis = rate * (cost["ledger_us"] + cost["broker_us"]) / 1e6
        servers = ceil(redis / BUSY)
        processes = calls_processes(rate, servers)
        outcome = simulate(
            work_of(CALLS, CALL_S), fleet_of(processes // servers, PLACES), for_s=CYCLES * CALL_S
        )
        rows.append(
            [
                f"{rate:,}",
                f"{rate * CALL_S:,.0f}",
                f"{processes}",
                f"{redis:.0%} of a core",
                f"{servers}",
                f"{ceil(rate * cost['ledger_us'] / 1e6 / BUSY)}",
                f"{servers * outcome.per_second:,.0f} /s",
            ]
        )
    return table(head, rows)


def calls_processes(rate: float, servers: int) -> int:
    """How many worker processes so many calls need: for their CPU and their places, the same a server."""
    by_cpu: float = rate * measured()["items"][CALLS]["worker_us"] / 1e6 / BUSY
    by_places = rate * CALL_S / PLACES / FILLED
    return servers * ceil(max(by_cpu, by_places) / servers)


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "costs": costs_table,
    "small": small_table,
    "turns": turns_table,
    "calls": calls_table,
}


def blocks() -> dict[str, str]:
    """The tables of the document by the name of their mark."""
    return {name: make() for name, make in TABLES.items()}


def scale_picture() -> str:
    """Draws the rate against the number of worker processes, for calls of a model."""

    def rate(processes: int, servers: int, *, broker_apart: bool) -> float:
        fleet = fleet_of(max(1, processes // servers), CURVE_PLACES, broker_apart=broker_apart)
        work = work_of(CALLS, CURVE_S, broker_apart=broker_apart)
        return servers * simulate(work, fleet, for_s=CYCLES * CURVE_S).per_second

    whole = [number for number in CURVE if number > 1]
    lines = [
        Line(
            "ideal: places ÷ latency",
            [(n, n * CURVE_PLACES / CURVE_S) for n in (0, CURVE[-1])],
            is_dashed=True,
        ),
        Line("one server", [(n, rate(n, 1, broker_apart=False)) for n in CURVE]),
        Line("one server, broker apart", [(n, rate(n, 1, broker_apart=True)) for n in CURVE]),
        Line("two servers", [(n, rate(n, 2, broker_apart=False)) for n in whole]),
    ]
    return line_chart(
        f"Model calls of {CURVE_S:g} s, simulated ({CURVE_PLACES} in flight a process)",
        "worker processes",
        "calls a second",
        lines,
    )


def small_picture() -> str:
    """Draws measured rates of small fleets beside the simulated ones."""
    rows = [(row, outcome) for row, outcome in simulated_rates() if row["kind"] == "queries"]
    places = [(row["processes"] * row["in_flight"], row, outcome) for row, outcome in rows]
    drawn = sorted((together, outcome.per_second) for together, _, outcome in places)
    return line_chart(
        "Queries of 200 ms: measured and simulated",
        "in flight, in all processes",
        "queries a second",
        [
            Line("simulated", [(0, 0), *drawn]),
            Line(
                "measured", [(together, row["per_second"]) for together, row, _ in places], is_measured=True
            ),
        ],
    )


def _micros(number: float) -> str:
    """Writes microseconds, as exactly as they are known.

    >>> _micros(11.42), _micros(430.4), _micros(0.1)
    ('11 µs', '430 µs', '0.1 µs')
    """
    return f"{number:.1f} µs" if number < 10 else f"{number:,.0f} µs"


def _bytes(number: float) -> str:
    """Writes a large number of bytes.

    >>> _bytes(20_200_000_000), _bytes(485_000), _bytes(1.5e12)
    ('20 GB', '0.5 MB', '1.5 TB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9)):
        if number >= size:
            return f"{number / size:.2g} {unit}" if number < 10 * size else f"{number / size:,.0f} {unit}"
    return f"{number / 1e6:,.0f} MB" if number >= 10e6 else f"{number / 1e6:.1f} MB"


if __name__ == "__main__":
    save(DOCUMENT, blocks(), {"calls": scale_picture(), "small": small_picture()})
