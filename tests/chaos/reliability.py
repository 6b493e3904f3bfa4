"""Writes the table of docs/reliability.md from a measured matrix: `make reliability` measures and writes it.

    python -m tests.chaos.reliability FOLDER     of what test_matrix.py measured

The measurements are kept in measured_matrix.json, with the machine and the date; a test holds the document to
them, and their faults to the table of the code.
"""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from shared.settings import LEASE_S
from tests.chaos.faults import FAULTS
from tests.support.document_blocks import with_blocks
from tests.support.tree import ROOT

MEASURED: Final = ROOT / "tests" / "chaos" / "measured_matrix.json"
DOCUMENT: Final = ROOT / "docs" / "reliability.md"
HEAD: Final = (
    "| fault | runs | items | lost | twice | asked again of in flight | standstill, s | recovery, s |",
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
)


def row(lines: Sequence[Mapping[str, Any]]) -> str:
    """Words what a fault did to all its runs: sums, and the longest times.

    >>> row([{"fault": "cut", "items": 9, "lost": 0, "twice": 0, "again": 1, "begun": 4,
    ...       "standstill_s": 2.5, "recovery_s": 0.1}])
    '| cut | 1 | 9 | 0 | 0 | 1 of 4 | 2.5 | 0.1 |'
    """
    counts = ("items", "lost", "twice", "again", "begun")
    total = {name: sum(line[name] for line in lines) for name in counts}
    longest = {name: max(line[name] for line in lines) for name in ("standstill_s", "recovery_s")}
    cells = [lines[0]["fault"], len(lines), f"{total['items']:,}", f"{total['lost']:,}", total["twice"]]
    cells += [f"{total['again']} of {total['begun']}", *(f"{each:.1f}" for each in longest.values())]
    return f"| {' | '.join(map(str, cells))} |"


def table(measured: Mapping[str, Any]) -> str:
    """Writes what stands between the marks of the document."""
    by_fault: dict[str, list[Mapping[str, Any]]] = {}
    for line in measured["lines"]:
        by_fault.setdefault(line["fault"], []).append(line)
    where = (
        f"Measured on {measured['date']} ({measured['machine']}, load average {measured['load']:g}), "
        f"with leases of {measured['lease_s']:g} s."
    )
    return "\n".join([where, "", *HEAD, *(row(lines) for lines in by_fault.values())])


def collected(folder: Path) -> dict[str, Any]:
    """Reads a folder of measurements, in the order of the table of faults."""
    lines = [line for path in folder.glob("*.json") for line in json.loads(path.read_text(encoding="utf-8"))]
    place = {fault.name: at for at, fault in enumerate(FAULTS)}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load": round(os.getloadavg()[2], 1),
        "lease_s": LEASE_S,
        "lines": sorted(lines, key=lambda line: place[line["fault"]]),
    }


def written(text: str, measured: Mapping[str, Any]) -> str:
    """Puts the table into the document's text."""
    return with_blocks(text, {"matrix": table(measured)})


def main(folder: str) -> None:
    """Collects measurements and writes both files."""
    measured = collected(Path(folder))
    MEASURED.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8"), measured), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
