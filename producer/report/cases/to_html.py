"""Writes a cases run as one HTML file that needs nothing else: no network, hostile text inert."""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from producer.report.cases.groups import group_tables
from producer.report.cases.html_lists import TEMPLATE, list_of
from producer.report.cases.html_matrix import Matrix
from producer.report.cases.html_summary import (
    charts_of,
    costs_of,
    facts_of,
    judge_of,
    models_of,
    opening,
    statuses_of,
)
from producer.report.cases.judge_trust import judge_lines, judge_table
from producer.report.cases.opened_rows import opened
from producer.report.cases.wording import FREEFORM
from producer.report.html.page import end, fill
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CaseRun
from shared.runs import RunInfo


class CasesHtmlReport:
    """Keeps what the page shows of the rows on disk, and writes it behind the summary.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        run = CaseRun.from_snapshot(info.snapshot)
        self._out, self._info = out, info
        self._is_freeform = run.mode == FREEFORM
        self._list = list_of(info.total, run, is_freeform=self._is_freeform)
        self._matrix = Matrix()

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for case in opened(rows):
            self._list.add(case)
            if not self._is_freeform:
                self._matrix.add(case)

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the page."""
        is_freeform = self._is_freeform
        models = models_of(document, is_freeform=is_freeform)
        names = [model["model"] for model in models]
        columns, told = judge_table(document)
        cases, more = self._matrix.rows(names)
        parts = (
            charts_of(models, is_freeform=is_freeform),
            (costs_of(models), judge_of(document)),
            [] if is_freeform else statuses_of(document),
            {"lines": judge_lines(document), "columns": columns, "rows": told},
            {"models": names, "rows": cases, "more": more},
            group_tables(document),
        )
        self._out.write(opening(document, is_freeform=is_freeform))
        self._out.write(fill(TEMPLATE, "summary", models, is_freeform, *parts))
        for piece in self._list.pieces(sorted(names), document["run_id"]):
            self._out.write(piece)
        self._out.write(end(facts_of(document, self._info)))
