"""Holds docs/scaling.md to what was measured, and the simulation behind its tables to the measured rates."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.benchmarks.scaling import DOCUMENT, blocks, measured, simulated_rates
from tests.benchmarks.simulate_fleet import Fleet, Outcome, Work, simulate
from tests.support.document_blocks import with_blocks

TOLERANCE: Final = 0.15
"""How far a simulated rate may be from the measured one."""


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        pytest.param(row, outcome, id=f"{row['kind']} {row['processes']}x{row['in_flight']}")
        for row, outcome in simulated_rates()
    ],
)
def test_the_simulation_reproduces_measured_rates(row: Mapping[str, Any], outcome: Outcome) -> None:
    """From the costs of an item, the rate of each small fleet follows within 15 %."""
    assert outcome.per_second == pytest.approx(row["per_second"], rel=TOLERANCE)


def test_the_documents_tables_are_those_of_the_program() -> None:
    """Each table of docs/scaling.md is what `make scaling` writes."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert with_blocks(text, blocks()) == text


def test_what_was_measured_says_how() -> None:
    """The figures name the command that made them and the machine it ran on."""
    assert measured()["command"].startswith("python -m tests.benchmarks.bench_costs")
    assert measured()["machine"]


def test_a_fleet_that_only_waits_is_linear() -> None:
    """Where nothing is short, the rate is places by time, however many processes there are."""
    work = Work(worker_us=1, redis_us=1, latency_s=0.196)
    rates = [simulate(work, Fleet(processes, 50)).per_second for processes in (1, 2, 4)]
    assert rates == pytest.approx([250, 500, 1000], rel=0.01)


def test_redis_is_the_ceiling_of_many_workers() -> None:
    """Beyond what one Redis can do more workers bring nothing but longer waits."""
    work = Work(worker_us=100, redis_us=1000, latency_s=0.1)
    few, many = (simulate(work, Fleet(processes, 100), for_s=5) for processes in (1, 4))
    assert few.per_second == pytest.approx(950, rel=0.1)
    assert many.per_second == pytest.approx(1000, rel=0.01)
    assert many.redis_busy > 0.99
    assert many.turnaround_s > 3 * few.turnaround_s


def test_one_process_is_the_ceiling_of_its_items() -> None:
    """A process computes one thing at a time, whatever it has in flight."""
    outcome = simulate(Work(worker_us=1000, redis_us=1, latency_s=0.1), Fleet(1, 500))
    assert outcome.per_second == pytest.approx(1000, rel=0.01)
    assert outcome.worker_busy > 0.99


def test_cores_that_are_shared_bound_all_processes_together() -> None:
    """On a machine of two cores, four processes and Redis make no more than two cores' worth."""
    work = Work(worker_us=900, redis_us=100, latency_s=0.01)
    assert simulate(work, Fleet(4, 50, cores=2), for_s=4).per_second == pytest.approx(2000, rel=0.02)


def test_idle_processes_take_their_share_of_redis() -> None:
    """What each process costs Redis by being there leaves less for its items."""
    work = Work(worker_us=1, redis_us=1000, latency_s=0.01)
    outcome = simulate(work, Fleet(100, 1, idle_redis=0.005), for_s=10)
    assert outcome.per_second == pytest.approx(500, rel=0.02)
