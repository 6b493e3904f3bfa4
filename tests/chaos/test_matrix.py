"""Every fault of the table amid a run of each kind: nothing is lost, twice, or asked without need.

    make test-chaos                                       the whole matrix, with the leases that users have
    pytest tests/chaos/test_matrix.py -k "guard" -rP      one row; its lines are printed

Some cheap rows, which the seed of the session chooses, run in `make test`, with leases of 5 s.
"""

import json
import os
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from shared.settings import LEASE_S
from tests.chaos.checks import Measurement, problems_at_end
from tests.chaos.cluster import Cluster
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.trials import run_trial

pytestmark = pytest.mark.chaos

RESULTS: Final = "MATRIX_RESULTS"
"""Environment variable with a folder for the measurements; `make reliability` sets it."""
CHEAP: Final = tuple(fault for fault in FAULTS if fault.is_cheap)
CHOSEN: Final = 2
"""Cheap faults that `make test` tries, another choice each time."""


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The session's seed, the same in every process of it; `--randomly-seed` repeats it."""
    return int(request.config.getoption("randomly_seed", 1))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_costs_time_and_nothing_else(
    fault: Fault, tmp_path: Path, bare_env: dict[str, str], seed: int
) -> None:
    """Whatever strikes, each item has one outcome, and only calls under way at a kill are made again."""
    keep(try_fault(fault, tmp_path, {**bare_env, "PROCTOR_LEASE_S": f"{LEASE_S:g}"}, seed))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(CHOSEN))
def test_some_faults_with_short_leases(
    number: int, tmp_path: Path, bare_env: dict[str, str], seed: int
) -> None:
    """The same for some cheap faults, which the seed chooses."""
    try_fault(random.Random(seed).sample(CHEAP, CHOSEN)[number], tmp_path, bare_env, seed)


def try_fault(fault: Fault, folder: Path, env: dict[str, str], seed: int) -> Sequence[Measurement]:
    """Strikes once on a cluster of its own, prints a line for each run, and holds every invariant."""
    print(f"seed {seed}")  # noqa: T201 - what repeats it stands beside the lines
    with Cluster(folder / "cluster", env, fault.needs, random.Random(seed)) as cluster:
        lines = run_trial(fault, cluster, cluster.inputs(fault.workloads))
        print(*lines, sep="\n")  # noqa: T201 - the lines of the matrix
        problems = problems_at_end(cluster)
    assert not problems, "\n".join(problems)
    return lines


def keep(lines: Sequence[Measurement]) -> None:
    """Writes measurements where they are collected, if they are."""
    if folder := os.environ.get(RESULTS):
        name = re.sub(r"\W+", "-", lines[0].fault)
        path = Path(folder) / f"{name}.json"
        path.write_text(json.dumps([line.as_dict() for line in lines], indent=1), encoding="utf-8")
