"""Puts the three files of an evaluation run where the harness document has them, each whole or not at all."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EACCES, EISDIR
from os import W_OK, access, strerror
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import convert

from producer.atomic_file import atomic_file
from producer.queries.documents import Metrics
from producer.queries.report.to_csv import results_csv
from producer.queries.report.to_json import results_json
from producer.queries.report.to_markdown import report_markdown
from producer.queries.results import AskedQuery
from shared.clock import now_ms
from shared.contracts.query_vocabulary import run_id_at
from shared.errors import DISK_ERRORS, ConfigError, InfrastructureError

RESULTS_JSON_PATH: Final = Path("data/evaluation_results.json")
RESULTS_CSV_PATH: Final = Path("data/evaluation_results.csv")
REPORT_MD_PATH: Final = Path("reports/evaluation_report.md")


class OutputPaths(NamedTuple):
    """Where the three files go; by default under the current directory."""

    json: Path = RESULTS_JSON_PATH
    """Everything, for programs."""
    csv: Path = RESULTS_CSV_PATH
    """A row per query, for spreadsheets."""
    report: Path = REPORT_MD_PATH
    """For people."""

    @classmethod
    def under(cls, folder: Path) -> "OutputPaths":
        """Moves all three into a folder.

        >>> OutputPaths.under(Path("out")).report.as_posix()
        'out/reports/evaluation_report.md'
        """
        return cls(folder / RESULTS_JSON_PATH, folder / RESULTS_CSV_PATH, folder / REPORT_MD_PATH)

    def check(self) -> None:
        """Makes the folders and checks that the files can be written, before any query is sent.

        Raises:
            ConfigError: one cannot be written.
        """
        for path in self:
            with _writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.is_dir():
                    raise IsADirectoryError(EISDIR, strerror(EISDIR))
                if not access(path.parent, W_OK):  # a file takes its place by a rename in its folder
                    raise PermissionError(EACCES, strerror(EACCES))


def write_results_json(
    results: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, Any],
    config: Mapping[str, Any],
    *,
    run_id: str | None = None,
    began_ms: int | None = None,
    path: Path = RESULTS_JSON_PATH,
) -> str:
    """Writes the results file.

    Args:
        results: results of queries.
        metrics: see `calculate_metrics`.
        config: delay, api_url, start_from and version.
        run_id: the run; by default named after the moment it began.
        began_ms: that moment, epoch milliseconds; by default now.
        path: the file.

    Returns:
        The run's id.

    Raises:
        ConfigError: the file cannot be written.
        InfrastructureError: the disk is full.
    """
    moment = now_ms() if began_ms is None else began_ms
    name = run_id or run_id_at(moment)
    _write(path, results_json(results, metrics, config, run_id=name, began_ms=moment))
    return name


def write_results_csv(results: Sequence[Mapping[str, Any]], *, path: Path = RESULTS_CSV_PATH) -> None:
    """Writes the table.

    Raises:
        ConfigError: the file cannot be written.
        InfrastructureError: the disk is full.
    """
    _write(path, results_csv(results))


def write_report_md(
    results: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, Any],
    run_id: str,
    *,
    notes: Sequence[str] = (),
    path: Path = REPORT_MD_PATH,
) -> None:
    """Writes the report.

    Raises:
        ConfigError: the file cannot be written.
        InfrastructureError: the disk is full.
    """
    asked = list(map(AskedQuery, results))
    _write(path, report_markdown(asked, convert(metrics, Metrics), run_id, notes=notes).encode())


def _write(path: Path, content: bytes) -> None:
    """Writes a file, and its folder if there is none.

    Raises:
        ConfigError: folder or file cannot be written.
        InfrastructureError: the disk is full.
    """
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(EISDIR, strerror(EISDIR))
        with atomic_file(path) as out:
            out.write(content)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Names the file whose writing fails.

    Raises:
        ConfigError: it did.
        InfrastructureError: it did, because the disk is full.
    """
    try:
        yield
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror or error}"
        if error.errno in DISK_ERRORS:
            raise InfrastructureError(message, hint="free some space, or name another folder") from None
        raise ConfigError(message, hint="name another folder") from None
