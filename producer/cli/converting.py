"""Converts a file, writes the bench with what it needs, and says what is left."""

from collections.abc import Sequence
from pathlib import Path

from producer.atomic_file import atomic_file
from producer.cli.session import Session
from producer.convert.bench_text import bench_text
from producer.convert.foreign_formats import convert
from producer.convert.report import Conversion, ForeignFile
from producer.convert.verifying import usable
from producer.load.problems import Path as DocumentPath
from producer.text import plural
from shared.errors import UsageError

MOST_SHOWN = 20
"""Things that are left, of which the summary shows each."""


def convert_file(
    session: Session, file: Path, output: Path | None, *, is_forced: bool, is_strict: bool, name: str | None
) -> int:
    """Converts a file, and returns the exit code.

    Raises:
        UsageError: the file cannot be converted, or the bench is there already.
    """
    target = output or file.with_suffix(".bench.yaml")
    found = convert(ForeignFile(file, target.parent), name)
    files = {} if output is None else {output.parent / each: text for each, text in found.files.items()}
    for path in (*files, *([output] if output else ())):
        if path.exists() and not is_forced:
            raise UsageError(f"{path} exists already", hint="--force overwrites it, or name another file")
    for path, text in files.items():
        _write(session, path, text)
    if output is not None or not found.files:
        found = usable(found, target)
    text = bench_text(found.bench, _comments(found))
    if output is None:
        session.output.data(text.removesuffix("\n"))
        for each in found.files:
            session.output.message(f"-o FILE writes the bench and {each}, which it needs")
    else:
        _write(session, output, text)
    for left in found.left[:MOST_SHOWN]:
        session.output.message(f"left: {left.message}")
    if len(found.left) > MOST_SHOWN:
        session.output.message(f"left: {len(found.left) - MOST_SHOWN:,} more, as comments in the bench")
    session.output.note(_summary(found))
    if output is not None:
        session.output.note(f"next: proctor validate {output}")
    return int(is_strict and bool(found.left))


def _write(session: Session, path: Path, text: str) -> None:
    """Writes a file, and prints its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as out:
        out.write(text.encode())
    session.output.data(str(path))


def _comments(found: Conversion) -> dict[DocumentPath, Sequence[str]]:
    """The comments of a bench: those of the foreign file, and what is left."""
    comments: dict[DocumentPath, Sequence[str]] = dict(found.comments)
    for each in found.left:
        comments[each.at] = (*comments.get(each.at, ()), f"left: {each.message}")
    return comments


def _summary(found: Conversion) -> str:
    """What was converted, in one line."""
    bench = found.bench
    parts = [
        plural(len(bench.models), "model"),
        plural(len(bench.prompts or ()), "prompt"),
        plural(len(bench.test_cases), "case"),
    ]
    left = plural(len(found.left), "thing") if found.left else "nothing"
    return f"{', '.join(parts)}; {left} left"
