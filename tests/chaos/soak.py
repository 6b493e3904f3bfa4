"""Faults of the table at random, for a given time, over one run of each kind after the other.

    make soak MINUTES=10 SEED=1

Prints a line a minute. Ends with 1, and with the seed that repeats the choice of faults, when an invariant
does not hold. Workers and server stay the same from one fault to the next, so that what a fault leaves
behind meets the next one.
"""

import argparse
import os
import random
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final

from tests.chaos.checks import Measurement, problems_at_end
from tests.chaos.cluster import Cluster
from tests.chaos.faults import FAULTS, SHARED
from tests.chaos.trials import run_trial
from tests.chaos.workloads import NAMES
from tests.support import processes
from tests.support.tree import ROOT

FITTING: Final = tuple(fault for fault in FAULTS if fault.needs == SHARED and not fault.loses_data)
"""Faults of a cluster that outlives them."""
SUMS: Final = ("items", "lost", "twice", "again", "begun")


@dataclass
class Diary:
    """What has happened so far."""

    lines: list[Measurement] = field(default_factory=list)
    faults: int = 0
    now: str = "nothing"
    """The fault that is being tried."""

    def __str__(self) -> str:
        """One line.

        >>> line = Measurement("cut", "cases", 9, 0, 0, 1, 4, 2.5, 0.1)
        >>> print(Diary([line], 1, "x"))
        1 faults, 9 items, 0 lost, 0 twice, 1 asked again of 4, longest standstill 2.5 s (cut, cases); now: x
        """
        total = {name: sum(line.as_dict()[name] for line in self.lines) for name in SUMS}
        longest = max(self.lines, key=lambda line: line.standstill_s, default=None)
        where = f"{longest.standstill_s:.1f} s ({longest.fault}, {longest.workload})" if longest else "none"
        return (
            f"{self.faults} faults, {total['items']:,} items, {total['lost']} lost, {total['twice']} twice, "
            f"{total['again']} asked again of {total['begun']}, longest standstill {where}; now: {self.now}"
        )

    def tell(self, until: threading.Event) -> None:
        """Prints a line a minute."""
        minute = 0
        while not until.wait(60):
            minute += 1
            say(f"minute {minute}: {self}")


def say(words: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def strike_until(end: float, cluster: Cluster, diary: Diary) -> None:
    """Strikes again and again until the time is over."""
    while monotonic() < end:
        fault = cluster.chance.choice(FITTING)
        diary.now = fault.name
        diary.lines += run_trial(fault, cluster, cluster.inputs(NAMES))
        diary.faults += 1
        cluster.retire_workers()


def soak(folder: Path, minutes: float, seed: int, lease_s: float) -> int:
    """Soaks, and returns the exit code."""
    env = {**os.environ, "PROCTOR_DATA_DIR": str(folder / "data"), "PROCTOR_LEASE_S": f"{lease_s:g}"}
    env |= {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    diary, is_over, end = Diary(), threading.Event(), monotonic() + 60 * minutes
    threading.Thread(target=diary.tell, args=(is_over,), daemon=True).start()
    with Cluster(folder / "cluster", env, SHARED, random.Random(seed)) as cluster:
        try:
            strike_until(end, cluster, diary)
            problems = problems_at_end(cluster)
        except AssertionError as error:
            problems = [str(error)]
    is_over.set()
    for problem in problems:
        say(problem)
    say(f"seed {seed}: {diary}")
    say(f"FAILED; repeat with SEED={seed}" if problems else "every invariant held")
    return 1 if problems else 0


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lease", type=float, default=5, help="Seconds that a claim lasts.")
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith(("PROCTOR_", "CELERY_"))]:
        del os.environ[name]
    processes.mark_this_session()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        return soak(Path(folder), options.minutes, options.seed, options.lease)


if __name__ == "__main__":
    sys.exit(main())
