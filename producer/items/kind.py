"""How runs of single items are handled: what a kind without parts of its own uses, method by method."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from producer.kind import ComparedKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from producer.aggregate.gate_metrics import GateMetric
    from producer.documents import AnyRun
    from producer.item_ids import ItemNames
    from producer.report.interfaces import Report, Screen, Totals
    from producer.report.junit import JunitTest
    from producer.report.run_report import RunReport
    from producer.report.shown_item import ShownItem
    from producer.row_filter import RowFacts
    from producer.turns.retry import Retry
    from shared.codecs.item_rows import ItemRow
    from shared.runs import RunInfo, RunStore

FORMATS: Final = ("jsonl", "json", "csv", "md", "html", "junit", "github")
"""Formats that any kind of single items has."""


def pages(store: RunStore, run: str) -> Iterator[Sequence[ItemRow]]:
    """Yields the rows of a run."""
    return store.item_pages(run)


def pages_with_input(store: RunStore, run: str) -> Iterator[Sequence[ItemRow]]:
    """Yields the rows of a run with their inputs, for a kind whose reports show them."""
    return store.item_pages(run, with_payload=True)


def totals() -> Totals:
    """Begins to count rows."""
    from producer.items.totals import ItemTotals

    return ItemTotals()


def report(name: str, out: BinaryIO, info: RunInfo, *, columns: Sequence[str] = ()) -> Report:
    """Begins a report.

    Args:
        name: of its format, one of `FORMATS`.
        out: where to.
        info: the run.
        columns: keys of a result that tables show.
    """
    match name:
        case "jsonl":
            from producer.items.report.to_jsonl import ItemsJsonlReport, line_writer

            return ItemsJsonlReport(out, line_writer(info))
        case "json":
            from producer.items.report.to_jsonl import json_report, line_writer

            return json_report(out, line_writer(info))
        case "csv":
            from producer.items.report.to_csv import ItemsCsvReport

            return ItemsCsvReport(out, info, columns)
        case "md":
            from producer.items.report.to_markdown import ItemsMarkdownReport

            return ItemsMarkdownReport(out, info, columns)
        case "html":
            from producer.items.report.to_html import ItemsHtmlReport

            return ItemsHtmlReport(out, info, columns)
        case "junit":
            from producer.items.report.to_junit import ItemsJunitReport

            return ItemsJunitReport(out, info)
        case "github":
            from producer.report.github import GithubReport

            return GithubReport(out, info, run_report, screen(), tests)
        case _:
            raise ValueError(name)


def run_report(document: AnyRun) -> RunReport:
    """Returns what is said of a run in every format."""
    from producer.items.report.run_report import run_report

    return run_report(document)


def screen() -> Screen:
    """Returns what a terminal shows of the items of a run."""
    from producer.items.report.terminal import SCREEN

    return SCREEN


def tests(rows: Iterable[ItemRow]) -> Iterator[JunitTest]:
    """Makes a test of each row."""
    from producer.items.report.to_junit import tests_of

    return tests_of(rows)


def shown(info: RunInfo) -> Callable[[ItemRow], ShownItem]:
    """Returns what makes of a row what a terminal shows of one item."""
    from producer.items.report.shown_items import shown_items

    return shown_items(info)


def facts() -> Callable[[ItemRow], RowFacts]:
    """Returns what reads from a row the facts that a filter looks at."""
    from producer.items.facts import facts_of_item

    return facts_of_item


def metrics() -> Mapping[str, GateMetric]:
    """Returns the numbers that a gate may use."""
    from producer.aggregate.gate_metrics import COMMON_METRICS

    return COMMON_METRICS


def compared() -> ComparedKind:
    """Returns how two runs are compared: item by item, by their place in the input."""
    from producer.aggregate.compared_items import COMPARED_ITEMS
    from producer.report.comparison.item_texts import texts_of_item

    return ComparedKind(COMPARED_ITEMS, texts_of_item, None, no_settings)


def no_settings(_info: RunInfo) -> dict[str, Any]:
    """Returns the settings of a run of a kind that has none."""
    return {}


def names() -> ItemNames:
    """Returns how items are named: by the `id` of their input."""
    from producer.item_ids import ItemNames, item_id_parts, item_inputs

    return ItemNames(item_id_parts, item_inputs)


def retry() -> Retry:
    """Returns what puts items of a run back to work."""
    from producer.item_ids import item_chunk_name
    from producer.items.retry import RetriedKind, is_item_unfinished, item_groups, retry_items

    return partial(retry_items, RetriedKind(pages, is_item_unfinished, item_chunk_name, item_groups))
