"""Which report files to write: checked before any work is done, so that a typo costs no run."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import BinaryIO, Final, NamedTuple

from shared.errors import DISK_ERRORS, InfrastructureError, UsageError
from shared.kinds import Kind

REPORT_SUFFIXES: Final[Mapping[str, Sequence[str]]] = {
    "md": (".md", ".markdown"),
    "json": (".json",),
    "jsonl": (".jsonl", ".ndjson"),
    "csv": (".csv",),
    "html": (".html", ".htm"),
    "junit": (".xml",),
    "github": (),
}
"""Formats of report files with the suffixes that select them; the first one names a default file."""
NOT_PRINTED: Final = frozenset({"html", "github"})
"""Formats that `results --format` does not print, because they are not read in a terminal."""
FORMATS: Final = tuple(REPORT_SUFFIXES)
_OF_SUFFIX: Final = {suffix: name for name, suffixes in REPORT_SUFFIXES.items() for suffix in suffixes}


class ReportFile(NamedTuple):
    """One file to write."""

    format: str
    """One of `FORMATS`."""
    path: Path


class ReportStream(NamedTuple):
    """An open file to write to, which stays open."""

    format: str
    out: BinaryIO


ReportTarget = ReportFile | ReportStream
"""Where a report goes."""


def plan_files(paths: Sequence[Path], formats: Sequence[str] = ()) -> list[ReportFile]:
    """Decides formats and places of the files that were asked for.

    Args:
        paths: values of `-o`; the suffix determines the format unless one is given.
        formats: values of `--export`; without a path each means `report.FORMAT` in the current folder, of
            junit `report.xml`.

    Raises:
        UsageError: a suffix is unknown, a folder is missing, or a path cannot be written or is given twice;
            or there are paths and several formats.

    >>> [str(file.path) for file in plan_files([], ["csv", "junit"])]
    ['report.csv', 'report.xml']
    """
    if paths and len(formats) > 1:
        raise UsageError(
            f"-e: {', '.join(formats)} are several formats for the files of -o",
            hint="leave out -e; the suffix of each -o is its format: -o report.xml -o report.md",
        )
    files = [ReportFile(formats[0] if formats else _format_of(path), path) for path in paths]
    if not paths:
        files = [ReportFile(each, _default_path(each)) for each in formats]
    for file in files:
        _check_place(file.path)
        if sum(other.path.resolve() == file.path.resolve() for other in files) > 1:
            raise UsageError(
                f"{file.path}: is named twice", hint="give each report a file of its own; -o may be repeated"
            )
    return files


def _default_path(format_name: str) -> Path:
    """Returns where a report is written without `-o`; a job summary on GitHub is Markdown."""
    return Path(f"report{next(iter(REPORT_SUFFIXES[format_name]), '.md')}")


def check_formats(files: Sequence[ReportFile], kind: Kind) -> None:
    """Refuses files in a format that runs of a kind do not have, before such a run is paid for.

    Raises:
        UsageError: there is one.

    >>> from shared.kinds import TURNS
    >>> check_formats([ReportFile("md", Path("a.md"))], TURNS)
    """
    from producer.report.formats import format_of  # noqa: PLC0415 - start-up: only a run needs it

    for file in files:
        format_of(kind, file.format, where=str(file.path))


def _format_of(path: Path) -> str:
    """Returns the format of a suffix."""
    found = _OF_SUFFIX.get(path.suffix.lower())
    if found is None:
        raise UsageError(
            f"{path}: unknown report format",
            hint=f"the suffix must be one of {', '.join(_OF_SUFFIX)}, or add --export",
        )
    return found


def _check_place(path: Path) -> None:
    """Finds out whether a file can be written there."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{path}: is a folder", hint="name a file in it")
    if not folder.is_dir():
        raise UsageError(f"{path}: there is no folder {folder}", hint=f"mkdir -p {folder}")
    why = "" if os.access(path if path.exists() else folder, os.W_OK) else "no right to write it"
    if not path.exists() or path.is_file():  # a report is written beside its place, and then takes it
        why = why or _draft_problem(path.resolve())
    if why:
        raise UsageError(f"{path}: cannot be written: {why}", hint="choose another place")


def _draft_problem(path: Path) -> str:
    """Tries to write beside a path; returns why that is not possible."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.touch()
        draft.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def as_options(files: Sequence[ReportFile], format_option: str) -> list[str]:
    """Writes files as the words of a command line that asks for them.

    >>> as_options([ReportFile("md", Path("a.md")), ReportFile("csv", Path("b.csv"))], "--format")
    ['-o', 'a.md', '-o', 'b.csv']
    >>> as_options([ReportFile("junit", Path("a.txt"))], "--format")
    ['-o', 'a.txt', '--format', 'junit']
    """
    words = [word for file in files for word in ("-o", str(file.path))]
    odd = [file.format for file in files if _OF_SUFFIX.get(file.path.suffix.lower()) != file.format]
    return [*words, format_option, odd[0]] if odd else words


@contextmanager
def reports_of(run: str, files: Sequence[ReportFile], *, is_final: bool) -> Iterator[None]:
    """Adds to a failed write which report it was, and how to write it later: the run is kept.

    Args:
        run: its id.
        files: all reports that are being written.
        is_final: whether the run has ended.

    Raises:
        InfrastructureError: a disk takes no more.
        UsageError: a file cannot be written for another reason.
    """
    try:
        yield
    except OSError as error:
        is_full = error.errno in DISK_ERRORS
        command = ["report", run] if is_final else ["run", "--resume", run]
        words = ["proctor", *command, *as_options(files, "--format" if is_final else "--export")]
        place = error.filename or gettempdir()  # where pages wait until their place in a report is known
        kind = InfrastructureError if is_full else UsageError
        fix = "free some space" if is_full else "correct that"
        raise kind(
            f"{place} cannot be written: {error.strerror or error}",
            hint=f"{run} is kept: {fix}, then `{shlex.join(words)}`",
        ) from error
