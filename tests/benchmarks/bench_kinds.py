"""Runs of every kind for benchmarks: how the input of so many items is written and submitted."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.benchmarks.bench_cases import bench, recorded
from tests.benchmarks.make_turns import write_turns
from tests.support.live_desk import talks
from tests.support.query_desk import numbered
from tests.support.turn_files import write_turns as write_talks

IN_FLIGHT: Final = 100
"""Items in flight of a run, in the whole fleet."""


class Kind(NamedTuple):
    """How runs of one kind are made."""

    name: str
    sizes: tuple[int, int]
    """Items of the two runs that are compared."""
    loads: int
    """Items of the larger of two submits that are compared."""
    command: Callable[[Path, int], Sequence[str | Path]]
    """Writes the input of so many items into a folder; returns the arguments of `proctor submit`."""


def kinds(api_url: str, api_base: str, in_flight: int = IN_FLIGHT) -> dict[str, Kind]:
    """Lists what is measured.

    Args:
        api_url: of the API that queries are put to.
        api_base: of the model that cases and live turns are put to.
        in_flight: items in flight of a run, in the whole fleet.
    """

    def turns(folder: Path, count: int) -> Sequence[str | Path]:
        write_turns(folder / "turns.jsonl", count)
        return [folder / "turns.jsonl"]

    def live(folder: Path, count: int) -> Sequence[str | Path]:
        file = write_talks(folder / "turns.jsonl", talks(count // 10, 10))
        return [file, "--model", "m", "--api-base", api_base, "--no-cache"]

    def cases(folder: Path, count: int) -> Sequence[str | Path]:
        config = {"judge_model": None, "concurrency": in_flight, "cache": False}
        asked = [{"input": f"case {number}", "expected": {"ok": True}} for number in range(count)]
        more = {"model_configs": {"m": {"api_base": api_base}}, "config": config}
        return [bench(folder, asked, **more)]

    def queries(folder: Path, count: int) -> Sequence[str | Path]:
        (folder / "queries.json").write_text(json.dumps(numbered(count)), encoding="utf-8")
        return [folder / "queries.json", "--api-url", api_url, "--concurrency", str(in_flight)]

    listed = [
        Kind("turns", (20_000, 120_000), 120_000, turns),
        Kind("live turns", (500, 6_500), 10_000, live),
        Kind("cases, recorded", (2_000, 10_000), 9_500, recorded),
        Kind("cases, model", (500, 9_500), 9_500, cases),
        Kind("queries", (1_000, 8_000), 10_000, queries),
    ]
    return {kind.name: kind for kind in listed}
