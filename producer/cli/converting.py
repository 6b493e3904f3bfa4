"""Converts a file, writes the bench with what it needs, and says what is left."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

from producer.atomic_file import atomic_file
from producer.cases.bench_config import read_bench
from producer.cli.session import Session
from producer.convert.bench_text import bench_text
from producer.convert.formats import convert
from producer.convert.report import Conversion, ForeignFile
from producer.load.problems import Path as DocumentPath
from producer.load.source import Source
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
    if output is not None and output.exists() and not is_forced:
        raise UsageError(f"{output} exists already", hint="--force overwrites it, or name another file")
    target = output or file.with_suffix(".bench.yaml")
    found = convert(ForeignFile(file, target.parent), name)
    text = bench_text(found.bench, _comments(found))
    left = [*found.left]
    if output is None:
        session.output.data(text.removesuffix("\n"))
    else:
        _write(session, output, text, found.files)
    problems = _problems(target, text)
    for each in left[:MOST_SHOWN]:
        session.output.message(f"left: {each.message}")
    if len(left) > MOST_SHOWN:
        session.output.message(f"left: {len(left) - MOST_SHOWN:,} more, as comments in the bench")
    for problem in problems:
        session.output.message(f"left: {problem}")
    session.output.note(_summary(found, len(left) + len(problems)))
    if output is not None:
        session.output.note(f"next: proctor validate {output}")
    return int(is_strict and bool(left or problems))


def _write(session: Session, output: Path, text: str, files: Mapping[str, str]) -> None:
    """Writes a bench and the files that it names."""
    output.parent.mkdir(parents=True, exist_ok=True)
    for path, content in {
        output: text,
        **{output.parent / name: each for name, each in files.items()},
    }.items():
        with atomic_file(path) as out:
            out.write(content.encode())
        session.output.data(str(path))


def _comments(found: Conversion) -> dict[DocumentPath, Sequence[str]]:
    """The comments of a bench: those of the foreign file, and what is left."""
    comments: dict[DocumentPath, Sequence[str]] = dict(found.comments)
    for each in found.left:
        comments[each.at] = (*comments.get(each.at, ()), f"left: {each.message}")
    return comments


def _problems(target: Path, text: str) -> list[str]:
    """What is wrong with a bench as it is written."""
    try:
        read_bench(Source(target, stdin=BytesIO(text.encode())))
    except UsageError as error:
        return [each.message for each in error.problems or [error]]
    return []


def _summary(found: Conversion, left: int) -> str:
    """What was converted, in one line."""
    bench = found.bench
    parts = [
        plural(len(bench.models), "model"),
        plural(len(bench.prompts or ()), "prompt"),
        plural(len(bench.test_cases), "case"),
    ]
    return f"{', '.join(parts)}; {plural(left, 'thing') if left else 'nothing'} left"
