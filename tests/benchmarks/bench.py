"""Runs benchmarks, prints their figures and writes them as JSON: `make bench`.

python -m tests.benchmarks.bench                        # all of them, at most ten minutes
python -m tests.benchmarks.bench turns --scale 0.1      # one of them, with a tenth of the turns
python -m tests.benchmarks.bench growth                 # large runs, twenty minutes, only when named
python -m tests.benchmarks.bench served --scale 50      # memory over a million served turns, only when named
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.benchmarks import (
    bench_cases,
    bench_growth,
    bench_kill,
    bench_pages,
    bench_queries,
    bench_sandbox,
    bench_scrape,
    bench_serve,
    bench_served,
    bench_start,
    bench_turns,
    bench_view,
)
from tests.benchmarks.results import Bench, collect, made_by, write
from tests.support.tree import ROOT

BENCHES: Final[Mapping[str, Bench]] = {
    "start-up": bench_start.measured,
    "turns": bench_turns.measured,
    "cases": bench_cases.measured,
    "queries": bench_queries.measured,
    "kill": bench_kill.measured,
    "sandbox": bench_sandbox.measured,
    "scrape": bench_scrape.measured,
    "pages": bench_pages.measured,
}
LONG: Final[Mapping[str, Bench]] = {
    "growth": bench_growth.measured,
    "served": bench_served.measured,
    "view": bench_view.measured,
    "serve": bench_serve.measured,
}
"""Measured only when they are named."""
OUTPUT: Final = ROOT / "build" / "bench.json"


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    known = {**BENCHES, **LONG}
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(known)}")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full sizes, 1 by default")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT, help="the JSON file")
    asked = parser.parse_args()
    if unknown := set(asked.workloads) - set(known):
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(known)}")
    chosen = {name: bench for name, bench in known.items() if name in (asked.workloads or BENCHES)}
    write(collect(chosen, asked.scale, made_by("bench")), asked.output)


if __name__ == "__main__":
    main()
