"""Converts files of other tools, and reads the benches that become of them."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

from producer.cases.bench_config import read_bench
from producer.convert.bench_text import bench_text
from producer.convert.foreign_formats import convert
from producer.convert.report import Conversion, ForeignFile
from producer.load.source import Source


def converted(path: Path, content: Any, name: str | None = None) -> Conversion:
    """Writes a file and converts it; its bench can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read(path, name)


def read(path: Path, name: str | None = None) -> Conversion:
    """Converts a file; its bench can be read."""
    found = convert(ForeignFile(path, path.parent), name)
    for file, text in found.files.items():
        (path.parent / file).write_text(text)
    text = bench_text(found.bench, found.comments)
    read_bench(Source(path.parent / "bench.yaml", stdin=BytesIO(text.encode())))
    return found


def checks_of(found: Conversion) -> list[list[Any]]:
    """The checks of each case."""
    return [case.checks or [] for case in found.bench.test_cases]


def left_of(found: Conversion) -> list[str]:
    """What is left, without files."""
    return [f"{each.what}: {each.reason}" for each in found.left]
