"""Writes a cases run as one HTML file that needs nothing else: no network, hostile text inert."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, Final

from producer.report.cases.groups import group_tables
from producer.report.cases.html_images import PageImages
from producer.report.cases.html_rows import TEMPLATE, Column, Matrix
from producer.report.cases.html_summary import (
    charts_of,
    costs_of,
    facts_of,
    judge_of,
    metrics_of,
    models_of,
    ordered,
    page_of,
    statuses_of,
)
from producer.report.cases.judge_trust import judge_lines, judge_table
from producer.report.cases.opened_rows import opened
from producer.report.cases.wording import FREEFORM
from producer.report.html.rendering import fill
from producer.report.html.viewer import Chip, Head, Rows, begin, end, tools
from producer.report.interfaces import ReadFile
from producer.text import plural
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CaseRun
from shared.runs import RunInfo

MOST_CHIPS: Final = 6
"""Tags that stand as chips; more are chosen from a list."""
MOST_SUMMED: Final = 4
"""Columns whose heads sum up a model; with more, a table above the rows does."""
MOST_HEADS: Final = 6
"""Columns that have a head; with more, cells have names."""


class CasesHtmlReport:
    """Keeps what the page shows of the rows on disk, and writes it behind the verdict.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._run = CaseRun.from_snapshot(info.snapshot)
        self._out, self._info = out, info
        self._is_freeform = self._run.mode == FREEFORM
        self._images = PageImages()
        self._matrix = Matrix(self._run, info.run, info.total, self._images, is_freeform=self._is_freeform)

    def read_files(self, read: ReadFile) -> None:
        """Takes what reads the images of the run."""
        self._images.read = read

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for case in opened(rows):
            self._matrix.add(case)

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the page."""
        self._out.writelines(self._pieces(document))

    def _pieces(self, document: Mapping[str, Any]) -> Iterator[bytes]:
        """Yields the page from its verdict to its foot."""
        is_freeform = self._is_freeform
        order = ordered(document, self._matrix.columns, is_freeform=is_freeform)
        rows, pairs = self._matrix.rows(order)
        models = models_of(document, is_freeform=is_freeform)
        table = fill(TEMPLATE, "models", models, is_freeform)
        is_wide = len(order) > MOST_SUMMED
        page = page_of(document, self._run, self._info, pairs, order)
        yield begin(replace(page, has_images=bool(self._images)))
        yield table if is_wide else b""
        if is_freeform:
            yield fill(TEMPLATE, "heading", "Model Outputs by Prompt", self._note(rows))
        yield self._tools(rows, order)
        yield from rows.pieces(self._head(document, order))
        if not is_freeform:
            yield fill(TEMPLATE, "note", self._note(rows))
        yield b"" if is_wide else table
        columns, judges = judge_table(document)
        yield fill(
            TEMPLATE,
            "below",
            models,
            charts_of(models, is_freeform=is_freeform),
            (costs_of(models), judge_of(document)),
            [] if is_freeform else statuses_of(document),
            {"lines": judge_lines(document), "columns": columns, "rows": judges},
            group_tables(document),
        )
        yield from self._images.pieces()
        yield end(facts_of(document, self._info), folder="cases")

    def _tools(self, rows: Rows, order: Sequence[Column]) -> bytes:
        """Writes search, chips and reasons."""
        tags = list(rows.having("tag"))
        chips = [Chip("show", "failed", "Cases that failed"), Chip("show", "errors", "Cases with errors")]
        word = "Models" if len({model for model, _ in order}) > 1 else "Prompts"
        chips += [Chip("show", "differ", f"{word} differ")] * (len(order) > 1)
        chips += [Chip("tag", tag, tag) for tag in tags] if len(tags) <= MOST_CHIPS else []
        reasons, errors = rows.answers("reason"), self._matrix.error_kinds
        ranked = sorted(reasons, key=lambda kind: (kind in errors, -reasons[kind]))
        failed = sum(number for kind, number in reasons.items() if kind not in errors)
        lead = [plural(failed, "failed answer")] * bool(failed)
        lead += [plural(reasons.total() - failed, "answer") + " with an error"] * (reasons.total() > failed)
        choices = [("tag", "Tag")] * (len(tags) > MOST_CHIPS) + [("status", "Status")] * (
            not self._is_freeform
        )
        return tools(
            rows,
            search="Search prompts, outputs and reasons",
            chips=chips,
            choices=choices,
            orders=[
                ("-latency", "slowest first"),
                ("-cost", "most expensive first"),
                ("case", "case number"),
            ],
            first="case number" if self._is_freeform else "failures first",
            reasons=[Chip("reason", kind, kind, "e" if kind in errors else "f") for kind in ranked],
            lead=f"{', '.join(lead)}:",
        )

    def _head(self, document: Mapping[str, Any], order: Sequence[Column]) -> Head:
        """Makes the head of the columns."""
        metrics = metrics_of(document, order, is_freeform=self._is_freeform)
        if len(order) > MOST_HEADS:
            return Head(len(order), label="Cases")
        if len(order) > MOST_SUMMED:
            metrics = [metric._replace(captions=("", ""), facts=()) for metric in metrics]
        notes = [] if self._is_freeform else ["failures first"]
        notes += ["┊ gate"] * any(metric.target is not None for metric in metrics)
        title = "Prompt" if self._is_freeform else "Case"
        return Head(len(order), metrics, title, notes, "Cases")

    def _note(self, rows: Rows) -> tuple[str, str]:
        """Returns what the page leaves out, and the command that has all of it; empty if it has all."""
        omissions = [f"texts longer than {self._matrix.limit:,} characters are cut"] * self._matrix.has_cut
        omissions += [f"{plural(rows.left, 'case')} {'is' if rows.left == 1 else 'are'} not shown"] * bool(
            rows.left
        )
        if not omissions:
            return "", ""
        text = " and ".join(omissions)
        command = f"proctor results {self._info.run} --format jsonl"
        return f"{text[0].upper()}{text[1:]}. Full results:", command
