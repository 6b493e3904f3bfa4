"""The formats in which the results of a run are written, by kind and name."""

from collections.abc import Callable, Mapping
from typing import BinaryIO, Final

from producer.report.cases.to_csv import CasesCsvReport
from producer.report.cases.to_html import CasesHtmlReport
from producer.report.cases.to_markdown import CasesMarkdownReport
from producer.report.items_jsonl import ItemsJsonlReport
from producer.report.protocol import Report
from producer.report.queries.reports import QueriesCsvReport, QueriesJsonReport, QueriesMarkdownReport
from producer.report.to_csv import CsvReport
from producer.report.to_json import ItemsJsonReport, JsonReport
from producer.report.to_jsonl import JsonlReport
from producer.report.to_junit import CasesJunitReport, QueriesJunitReport, TurnsJunitReport
from producer.report.to_markdown import MarkdownReport
from producer.report.to_traces import AllTracesReport, TracesReport
from shared.errors import UsageError
from shared.names import Kind
from shared.runs import RunInfo

Format = Callable[[BinaryIO, RunInfo], Report]

FORMATS: Final[Mapping[str, Format]] = {
    "jsonl": JsonlReport,
    "json": JsonReport,
    "csv": CsvReport,
    "md": MarkdownReport,
    "junit": TurnsJunitReport,
    "traces": TracesReport,
    "all traces": AllTracesReport,
}
"""Of turns. Each is given where to write and the run, then page after page, then the document."""

QUERY_FORMATS: Final[Mapping[str, Format]] = {
    "jsonl": ItemsJsonlReport,
    "json": QueriesJsonReport,
    "csv": QueriesCsvReport,
    "md": QueriesMarkdownReport,
    "junit": QueriesJunitReport,
}
"""Of queries: JSON, CSV and Markdown are those of the evaluation harness document."""

CASE_FORMATS: Final[Mapping[str, Format]] = {
    "jsonl": ItemsJsonlReport,
    "json": ItemsJsonReport,
    "csv": CasesCsvReport,
    "md": CasesMarkdownReport,
    "junit": CasesJunitReport,
    "html": CasesHtmlReport,
}
"""Of cases: CSV begins with the columns of the documented tool."""

_OF_KIND: Final[Mapping[Kind, Mapping[str, Format]]] = {
    Kind.TURNS: FORMATS,
    Kind.CASES: CASE_FORMATS,
    Kind.QUERIES: QUERY_FORMATS,
}


def format_of(kind: Kind, name: str) -> Format:
    """Finds a format of a kind.

    Raises:
        UsageError: runs of this kind are not written so.
    """
    known = _OF_KIND.get(kind, {})
    if name not in known:
        raise UsageError(f"{kind} cannot be written as {name}", hint=f"one of {', '.join(known)}")
    return known[name]
