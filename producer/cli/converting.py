"""Converts a file, writes the bench with what it needs, and says what is left."""

from pathlib import Path

from producer.atomic_file import atomic_file
from producer.cli.session import Session
from producer.convert.bench_text import bench_text
from producer.convert.foreign_formats import convert
from producer.convert.report import Conversion, ForeignFile
from producer.convert.verifying import rebased, usable
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
    if file.is_dir():
        raise UsageError(f"{file} is a folder", hint="name the file in it, such as promptfooconfig.yaml")
    target = output or file.with_suffix(".bench.yaml")
    found = rebased(convert(ForeignFile(file, target.parent), name), file, target)
    if output is None:
        found = found if found.files else usable(found, target)
        session.output.data(_text(found).removesuffix("\n"))
        for each in found.files:
            session.output.message(f"-o FILE writes the bench and {each}, which it needs")
    else:
        found = _write_all(session, output, found, is_forced=is_forced)
    left = list(dict.fromkeys(each.message for each in found.left))  # of several cases, each once
    for message in left[:MOST_SHOWN]:
        session.output.message(f"left: {message}")
    if len(left) > MOST_SHOWN:
        session.output.message(f"left: {len(left) - MOST_SHOWN:,} more, as comments in the bench")
    session.output.note(_summary(found, len(left)))
    if output is not None:
        session.output.note(f"next: proctor validate {output}")
    return int(is_strict and bool(left))


def _write_all(session: Session, output: Path, found: Conversion, *, is_forced: bool) -> Conversion:
    """Writes a bench and the files that it needs, and returns the conversion as it was written.

    Raises:
        UsageError: one of them is there already.
    """
    files = {output.parent / name: text for name, text in found.files.items()}
    for path in (output, *files):
        if path.exists() and not is_forced:
            raise UsageError(f"{path} exists already", hint="--force overwrites it, or name another file")
    for path, text in files.items():
        _write(path, text)
    found = usable(found, output)
    _write(output, _text(found))
    for path in (*files, output):
        session.output.data(str(path))
    return found


def _text(found: Conversion) -> str:
    """The bench with comments: those of the foreign file, and what is left."""
    comments = {**found.comments}
    for each in found.left:
        comments[each.at] = (*comments.get(each.at, ()), f"left: {each.message}")
    return bench_text(found.bench, comments)


def _write(path: Path, text: str) -> None:
    """Writes a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as out:
        out.write(text.encode())


def _summary(found: Conversion, number: int) -> str:
    """What was converted, in one line."""
    bench = found.bench
    parts = [
        plural(len(bench.models), "model"),
        plural(len(bench.prompts or ()), "prompt"),
        plural(len(bench.test_cases), "case"),
    ]
    left = plural(number, "thing") if number else "nothing"
    return f"{', '.join(parts)}; {left} left"
