"""Which report files are wanted: checked before any work is done, so that a typo costs no run."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from shared.errors import UsageError
from shared.names import Kind

FORMATS: Final = ("md", "json", "jsonl", "csv", "html", "junit", "github")
_OF_SUFFIX: Final = {
    ".md": "md",
    ".markdown": "md",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".html": "html",
    ".htm": "html",
    ".xml": "junit",
}
_SUFFIX_OF: Final = {"junit": "xml", "github": "md"}
"""Of formats that are not named like their files."""


class ReportFile(NamedTuple):
    """One file to write."""

    format: str
    """One of `FORMATS`."""
    path: Path


def plan_files(paths: Sequence[Path], export: str | None) -> list[ReportFile]:
    """Decides formats and places of the files that were asked for.

    Args:
        paths: values of `-o`; the suffix tells the format unless `export` does.
        export: value of `--export`; without a path it means `report.FORMAT` in the current folder, of junit
            `report.xml`.

    Raises:
        UsageError: a suffix says nothing, a folder is not there, or a place cannot be written, or twice.

    >>> plan_files([], "csv")
    [ReportFile(format='csv', path=PosixPath('report.csv'))]
    >>> plan_files([], "junit")
    [ReportFile(format='junit', path=PosixPath('report.xml'))]
    """
    files = [ReportFile(export or _format_of(path), path) for path in paths]
    if export and not files:
        files = [ReportFile(export, Path(f"report.{_SUFFIX_OF.get(export, export)}"))]
    for file in files:
        _check_place(file.path)
        if sum(other.path.resolve() == file.path.resolve() for other in files) > 1:
            raise UsageError(f"{file.path}: is named twice", hint="give each report a file of its own")
    return files


def check_formats(files: Sequence[ReportFile], kind: Kind) -> None:
    """Refuses files in a format that runs of a kind do not have, before such a run is paid for.

    Raises:
        UsageError: there is one.

    >>> check_formats([ReportFile("md", Path("a.md"))], Kind.TURNS)
    """
    from producer.report.formats import format_of  # noqa: PLC0415 - start-up: only a run needs it

    for file in files:
        format_of(kind, file.format, where=str(file.path))


def _format_of(path: Path) -> str:
    """Tells the format from the suffix."""
    found = _OF_SUFFIX.get(path.suffix.lower())
    if found is None:
        raise UsageError(
            f"{path}: its suffix names no format", hint=f"end it in {', '.join(_OF_SUFFIX)}, or add --export"
        )
    return found


def _check_place(path: Path) -> None:
    """Finds out whether a file can be written there."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{path}: is a folder", hint="name a file in it")
    if not folder.is_dir():
        raise UsageError(f"{path}: there is no folder {folder}", hint=f"mkdir -p {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"{path}: cannot be written", hint="choose another place")
