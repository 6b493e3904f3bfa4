"""Writes a cases run as one HTML file that needs nothing else: no network, hostile text inert."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, Final

from producer.cases.documents import CasesRun
from producer.cases.report.html_images import PageImages
from producer.cases.report.html_rows import TEMPLATE, Column, Matrix
from producer.cases.report.html_settings import popover_of_model, popover_of_prompt, popovers_of
from producer.cases.report.html_summary import (
    charts_of,
    gate_of,
    has_prompts,
    leader,
    metrics_of,
    ordered,
    settings_facts,
)
from producer.cases.report.opened_rows import opened
from producer.cases.report.reasons import NOT_ASKED
from producer.cases.report.run_report import run_report
from producer.cases.report.wording import FREEFORM
from producer.report.cells import Size
from producer.report.figures import ShownIn
from producer.report.html.head import charts, facts_of, page_of, tables
from producer.report.html.rendering import fill
from producer.report.html.viewer import Chip, ColumnSpan, Head, Rows, begin, end, popover, tools
from producer.report.interfaces import ReadFile
from producer.tables import cut_middle
from producer.text import plural
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CaseRun
from shared.runs import RunInfo

SLOWEST_FIRST: Final = "slowest first"
MOST_CHIPS: Final = 6
"""Tags that stand as chips; more are chosen from a list."""
FOLDER: Final = "cases/report"


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

    def end(self, document: CasesRun) -> None:
        """Writes the page."""
        self._out.writelines(self._pieces(document))

    def _pieces(self, document: CasesRun) -> Iterator[bytes]:
        """Yields the page from its verdict to its foot."""
        summary, is_freeform, info = document.summary, self._is_freeform, self._info
        report = run_report(document)
        order = ordered(summary, self._matrix.columns)
        is_all_passed = not is_freeform and document.counts.passed == document.counts.total
        rows, pairs = self._matrix.rows(order, is_slowest_first=is_all_passed)
        page = page_of(report.noting(leader(summary, pairs, order)), info, FOLDER)
        yield begin(replace(page, has_images=bool(self._images)))
        if is_freeform:
            yield fill(TEMPLATE, "heading", "Model Outputs by Prompt", self._note(rows))
        yield self._tools(rows, order, is_all_passed=is_all_passed)
        yield from rows.pieces(self._head(document, order, is_all_passed=is_all_passed))
        for each in popovers_of(self._run, self._matrix.limit):
            yield popover(*each)
        if not is_freeform:
            yield fill(TEMPLATE, "note", self._note(rows))
        yield tables(report.tables_in(ShownIn.PAGE))
        yield charts(charts_of(summary))
        yield from self._images.pieces()
        yield end(facts_of(report, info, settings_facts(document, info, self._matrix.limit)), folder=FOLDER)

    def _tools(self, rows: Rows, order: Sequence[Column], *, is_all_passed: bool) -> bytes:
        """Writes search, chips and reasons."""
        tags = list(rows.having("tag"))
        chips = [Chip("show", "failed", "Cases that failed"), Chip("show", "errors", "Cases with errors")]
        word = "Models" if len({model for model, _ in order}) > 1 else "Prompts"
        if len(order) > 1:
            chips.append(Chip("show", "differ", f"{word} differ"))
        chips += [Chip("tag", tag, tag) for tag in tags] if len(tags) <= MOST_CHIPS else []
        reasons, errors = rows.answers("reason"), self._matrix.error_kinds
        tones = {kind: "n" if kind == NOT_ASKED else "e" if kind in errors else "f" for kind in reasons}
        ranked = sorted(reasons, key=lambda kind: ("fen".index(tones[kind]), -reasons[kind]))
        failed, broken, left = (
            sum(number for kind, number in reasons.items() if tones[kind] == tone) for tone in "fen"
        )
        lead = (
            plural(failed, "failed answer") if failed else "",
            plural(broken, "error") if broken else "",
            f"{left:,} skipped" if left else "",
        )
        words = self._matrix.wordings
        choices = [("tag", "Tag")] if len(tags) > MOST_CHIPS else []
        orders = [] if is_all_passed else [("-latency", SLOWEST_FIRST)]
        orders.append(("-cost", "most expensive first"))
        if not self._is_freeform:
            choices.append(("status", "Status"))
            orders.append(("case", "case number"))
        return tools(
            rows,
            search="Search prompts, outputs and reasons",
            chips=chips,
            choices=choices,
            orders=orders,
            first=self._first(is_all_passed=is_all_passed),
            reasons=[Chip("reason", kind, words.of(kind), tones[kind]) for kind in ranked],
            lead=f"{', '.join(filter(None, lead))}:",
        )

    def _first(self, *, is_all_passed: bool) -> str:
        """Names the order that rows are in."""
        return "case number" if self._is_freeform else SLOWEST_FIRST if is_all_passed else "failures first"

    def _head(self, document: CasesRun, order: Sequence[Column], *, is_all_passed: bool) -> Head:
        """Makes the head of the columns: with several prompts models stand above, and prompts below them."""
        metrics = metrics_of(document, order)
        run, has_spans = self._run, has_prompts(order)
        opened_by = [
            popover_of_prompt(run, prompt) if has_spans else popover_of_model(run, model)
            for model, prompt in order
        ]
        metrics = [metric._replace(popover=each) for metric, each in zip(metrics, opened_by, strict=True)]
        columns = Counter(model for model, _ in order) if has_spans else {}
        spans = [
            ColumnSpan(cut_middle(model, Size.NAME), number, popover_of_model(run, model))
            for model, number in columns.items()
        ]
        notes = [] if self._is_freeform else [self._first(is_all_passed=is_all_passed)]
        if any(metric.target is not None for metric in metrics):
            notes.append(gate_of(document))
        title = "Prompt" if self._is_freeform else "Case"
        return Head(len(order), metrics, title, notes, "Cases", spans)

    def _note(self, rows: Rows) -> tuple[str, str]:
        """Returns what the page leaves out, and the command that has all of it; empty if it has all."""
        omissions = list[str]()
        if self._matrix.has_cut:
            omissions.append(f"texts longer than {self._matrix.limit:,} characters are cut")
        if rows.left:
            omissions.append(f"{plural(rows.left, 'case')} {'is' if rows.left == 1 else 'are'} not shown")
        if not omissions:
            return "", ""
        text = " and ".join(omissions)
        command = f"proctor results {self._info.run} --format jsonl"
        return f"{text[0].upper()}{text[1:]}. Full results:", command
