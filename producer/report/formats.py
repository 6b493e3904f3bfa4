"""The formats in which the results of a turns run are written, by name."""

from collections.abc import Callable, Mapping
from typing import BinaryIO, Final

from producer.document import Report
from producer.report.to_csv import CsvReport
from producer.report.to_json import JsonReport
from producer.report.to_jsonl import JsonlReport
from producer.report.to_markdown import MarkdownReport
from producer.report.to_traces import TracesReport
from shared.runs import RunInfo

FORMATS: Final[Mapping[str, Callable[[BinaryIO, RunInfo], Report]]] = {
    "jsonl": JsonlReport,
    "json": JsonReport,
    "csv": CsvReport,
    "md": MarkdownReport,
    "traces": TracesReport,
}
"""Each is given where to write and the run, then page after page, then the document."""
