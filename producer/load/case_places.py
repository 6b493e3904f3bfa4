"""The file and line of each case, stored once with a run: annotations of a pull request stand there."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from producer.load.bench_cases import BenchCase
from producer.load.places import Place
from producer.load.yaml_events import lines_below

PLACES_FILE: Final = "places"
"""Name of the stored file; those of images are hashes."""
_CASES: Final = "test_cases"


class CasePlace(NamedTuple):
    """Where a case is written."""

    file: str
    line: int


def stored_places(root: Place, cases: Iterable[tuple[int, BenchCase]]) -> bytes:
    """Packs the places of cases by their positions; paths are absolute.

    Args:
        root: the configuration.
        cases: with their positions.
    """
    lines, found = lines_below(root.text, (_CASES,)), dict[int, tuple[str, int]]()
    for at, case in cases:
        file, line = case.place.where, 0
        if case.place.text:
            line = next((lines[at] for at in case.place.path[1:2] if isinstance(at, int) and at in lines), 0)
        else:  # of a data file, whose lines are known when it is read
            file, _, number = file.rpartition(":")
            line = int(number)
        if line:
            found[at] = (file, line)
    names = list(dict.fromkeys(file for file, _ in found.values()))
    rows = {at: (names.index(file), line) for at, (file, line) in found.items()}
    return msgspec.msgpack.encode(([str(Path(name).absolute()) for name in names], rows))


def read_places(stored: bytes | None, folder: Path) -> Mapping[int, CasePlace]:
    """Reads places back.

    Args:
        stored: as `stored_places` packed them; None: the run has none.
        folder: paths inside of it are written as counted from there.
    """
    if stored is None:
        return {}
    names, rows = msgspec.msgpack.decode(stored, type=tuple[Sequence[str], dict[int, tuple[int, int]]])
    shown = [_below(Path(name), folder.resolve()) for name in names]
    return {at: CasePlace(shown[number], line) for at, (number, line) in rows.items()}


def _below(path: Path, folder: Path) -> str:
    """Writes a path as counted from a folder, where it is inside."""
    resolved = path.resolve()
    return str(resolved.relative_to(folder)) if resolved.is_relative_to(folder) else str(path)
