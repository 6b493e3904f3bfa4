"""The formats in which the results of a run are written, by kind and name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, Final

from shared.errors import UsageError
from shared.kinds import CASES, QUERIES, TURNS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from producer.report.protocol import Report
    from shared.runs import RunInfo

    Format = Callable[[BinaryIO, RunInfo], Report]


def _later(module: str, name: str) -> Format:
    """Returns a format that is loaded when something is written so: most runs write one, or none."""

    def write(out: BinaryIO, info: RunInfo) -> Report:
        """Begins a report."""
        report: Report = getattr(import_module(f"producer.report.{module}"), name)(out, info)
        return report

    return write


FORMATS: Final[Mapping[str, Format]] = {
    "jsonl": _later("turns.to_jsonl", "JsonlReport"),
    "json": _later("run_json", "JsonReport"),
    "csv": _later("turns.to_csv", "CsvReport"),
    "md": _later("turns.to_markdown", "MarkdownReport"),
    "html": _later("turns.to_html", "TurnsHtmlReport"),
    "junit": _later("to_junit", "TurnsJunitReport"),
    "github": _later("github", "GithubReport"),
    "traces": _later("turns.to_traces", "TracesReport"),
    "all traces": _later("turns.to_traces", "AllTracesReport"),
}
"""Of turns. Each is given where to write and the run, then page after page, then the document."""

QUERY_FORMATS: Final[Mapping[str, Format]] = {
    "jsonl": _later("items_jsonl", "ItemsJsonlReport"),
    "json": _later("queries.reports", "QueriesJsonReport"),
    "csv": _later("queries.reports", "QueriesCsvReport"),
    "md": _later("queries.reports", "QueriesMarkdownReport"),
    "html": _later("queries.to_html", "QueriesHtmlReport"),
    "junit": _later("to_junit", "QueriesJunitReport"),
    "github": _later("github", "GithubReport"),
}
"""Of queries: JSON, CSV and Markdown are those of the evaluation harness document."""

CASE_FORMATS: Final[Mapping[str, Format]] = {
    "jsonl": _later("items_jsonl", "ItemsJsonlReport"),
    "json": _later("run_json", "ItemsJsonReport"),
    "csv": _later("cases.to_csv", "CasesCsvReport"),
    "md": _later("cases.to_markdown", "CasesMarkdownReport"),
    "html": _later("cases.to_html", "CasesHtmlReport"),
    "junit": _later("to_junit", "CasesJunitReport"),
    "github": _later("github", "GithubReport"),
}
"""Of cases: CSV begins with the columns of the documented tool."""

OF_KIND: Final[Mapping[Kind, Mapping[str, Format]]] = {
    TURNS: FORMATS,
    CASES: CASE_FORMATS,
    QUERIES: QUERY_FORMATS,
}


def format_of(kind: Kind, name: str, *, where: str = "") -> Format:
    """Finds a format of a kind.

    Args:
        kind: of the run.
        name: of the format.
        where: the file that is to be written so, for the message.

    Raises:
        UsageError: runs of this kind are not written so.
    """
    known = OF_KIND.get(kind, {})
    if name not in known:
        told = ", ".join(name for name in known if not name.endswith("traces"))
        problem = f"{kind} cannot be written as {name}"
        raise UsageError(f"{where}: {problem}" if where else problem, hint=f"one of {told}")
    return known[name]
