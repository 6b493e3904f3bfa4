"""Writes the evaluation harness document's three files of a queries run while its rows go by.

The JSON file has the metrics before the results, and Markdown shows a query in several places: so results
wait on disk for the one, and for the other only what the report shows of them is kept.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from shutil import copyfileobj
from tempfile import TemporaryFile
from textwrap import indent
from typing import Any, BinaryIO, Final

from msgspec import to_builtins

from producer.queries.documents import QueriesRun
from producer.queries.report.check_reasons import failures
from producer.queries.report.failed_queries import QueryFailures
from producer.queries.report.opened_rows import opened
from producer.queries.report.run_report import run_report
from producer.queries.report.sections import EXCERPT_CHARS
from producer.queries.report.sources import sources_of
from producer.queries.report.to_csv import COLUMNS, csv_row
from producer.queries.report.to_json import results_json, run_config
from producer.queries.report.to_markdown import Sections
from producer.queries.results import AskedQuery
from producer.report.cells import Size, csv_lines, markdown, markdown_table
from producer.report.to_markdown import markdown_report
from producer.text import sentence_of
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.runs import RunInfo

MOST_FAILURES: Final = 500
"""Failed queries that Markdown lists; `proctor results` lists all."""
_NO_RESULTS: Final = b'"results": []\n}\n'
"""How a results file without results ends."""


class QueriesCsvReport:
    """Writes the table of sixteen columns.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out = out
        out.write(csv_lines([COLUMNS]))
        del info  # the document's table names no run

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Writes some rows."""
        results = (query.result for query in opened(rows) if query.result is not None)
        self._out.write(csv_lines(map(csv_row, results)))

    def end(self, document: QueriesRun) -> None:
        """Has nothing to add."""


class QueriesJsonReport:
    """Writes the results file: run id, time, settings, metrics, results.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._info = out, info
        self._waiting = TemporaryFile()  # noqa: SIM115 - closed by `end`, and by itself when there is none
        self._between = b"\n"

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Keeps some results on disk, as they will stand in the file."""
        for query in opened(rows):
            if query.result is not None:
                text = indent(
                    json.dumps(query.result.keys, indent=2, ensure_ascii=False, allow_nan=False), "    "
                )
                self._waiting.write(self._between + text.encode(errors="backslashreplace"))
                self._between = b",\n"

    def end(self, document: QueriesRun) -> None:
        """Writes the file."""
        info = self._info
        head = results_json(
            [],
            to_builtins(document.summary.metrics),
            config_of(info),
            run_id=info.run,
            began_ms=info.created_ms,
        )
        with self._waiting as waiting:
            if not waiting.tell():
                self._out.write(head)
                return
            self._out.write(head.removesuffix(_NO_RESULTS) + b'"results": [')
            waiting.seek(0)
            copyfileobj(waiting, self._out)
        self._out.write(b"\n  ]\n}\n")


class QueriesMarkdownReport:
    """Writes the verdict, the queries that failed, and the sections of the document.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._info = out, info
        self._sections, self._reasons = Sections(), QueryFailures(QueryRun.from_snapshot(info.snapshot))
        self._failed = list[tuple[str, ...]]()
        self._left = 0

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Keeps what the report shows of some results."""
        for query in opened(rows):
            if query.result is None:
                continue
            self._reasons.add(query)
            self._sections.add(query.shown)
            if query.code or query.result.passed:
                continue
            if len(self._failed) < MOST_FAILURES:
                self._failed.append(_failed_row(query.result))
            else:
                self._left += 1

    def end(self, document: QueriesRun) -> None:
        """Writes the report."""
        notes = map(sentence_of, [*notes_of(self._info), *_unsent(document)])
        report = replace(run_report(document).noting(notes), failures=self._reasons.failures())
        self._out.write(markdown_report(report, self._items(document)))

    def _items(self, document: QueriesRun) -> Iterator[str]:
        """Yields the failed queries with their reasons, and the sections of the document."""
        if self._failed:
            yield "## What failed"
            yield markdown_table(("Query", "Why", "Answer", "Sources"), self._failed)
        if self._left:
            yield f"{self._left:,} more: `proctor results {self._info.run} --failed`"
        yield from self._sections.blocks(document.summary.metrics)


def config_of(info: RunInfo) -> dict[str, Any]:
    """Returns the settings of a run under the document's four keys."""
    run = QueryRun.from_snapshot(info.snapshot)
    delay_s = int(run.delay_s) if run.delay_s == int(run.delay_s) else run.delay_s
    return run_config(delay_s=delay_s, api_url=run.api_url, start_from=run.start_from, version=run.version)


def notes_of(info: RunInfo) -> list[str]:
    """Returns what a reader must know of the settings before trusting the numbers."""
    run, notes = QueryRun.from_snapshot(info.snapshot), list[str]()
    if run.offset:
        notes.append(f"partial: begins at {run.start_from}, {run.offset} earlier queries are not in it")
    if run.chosen:
        notes.append(f"partial: {run.chosen}")
    if run.repeat > 1:
        notes.append(f"each query was asked {run.repeat} times")
    return notes


def _unsent(document: QueriesRun) -> list[str]:
    """Returns a note about a run that is not complete."""
    counts = document.counts
    if counts.done == counts.total:
        return []
    return [f"partial: {counts.done} of {counts.total} queries were sent ({document.state})"]


def _failed_row(result: AskedQuery) -> tuple[str, ...]:
    """Makes the row of a query that failed."""
    sources = [source.short for source in sources_of(result.response) if source.is_cited]
    return (
        f"{markdown(result.id)}: {markdown(result.query, EXCERPT_CHARS)}",
        markdown("; ".join(failures(result)) or "no check is applicable", Size.REASON),
        markdown(result.answer, Size.REASON),
        markdown("; ".join(sources), EXCERPT_CHARS) or "none",
    )
