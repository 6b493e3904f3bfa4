"""Writes a cases run for a terminal: models and prompts by pass rate; with `-v` all other groups; results."""

from collections.abc import Sequence
from typing import Final

from producer.cases.documents import CasesRun, CasesSummary, ModelFigures
from producer.cases.report.details import FailureDetails, FreeformDetails
from producer.cases.report.groups import MEANINGS, PROMPTS, group_tables, has_figure, prompt_table
from producer.cases.report.judge_trust import judge_lines, lines_of_judges
from producer.cases.report.opened_rows import opened
from producer.cases.report.wording import (
    FREEFORM,
    TIMED,
    by_latency,
    by_pass_rate,
    dollars,
    headline,
    interval,
    latency,
    model_and_prompt,
    outcome,
    p50,
    p95,
    percent,
    remarks,
    repeat_table,
)
from producer.report.cells import ReportTable, Size, plain
from producer.report.interfaces import Details, Paint, Screen, unpainted
from producer.report.run_title import head_of, last_lines
from producer.tables import fitted_table, hanging
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CaseRun
from shared.runs import RunInfo

COLUMNS: Final = ("case", "model", "outcome", "status", "latency", "cost", "message")
"""Of the table of results."""
MOST_ROWS: Final = 50
"""Rows of a table by prompt, tag or check."""
RATE: Final = "Pass rate"
OF_ALL: Final = "Of all"
OF_ANSWERED: Final = "Of answered"
"""The two take the place of `RATE` where items ended in error, which have no answer."""
STANDARD: Final = (
    *("Model", RATE, OF_ALL, OF_ANSWERED, "95% interval", "Passed", "Errors", "Skipped"),
    *("P50", "P95", TIMED, "Tokens/s", "Cost"),
)
SPEED: Final = ("Model", "P50", "P95", "Tokens/s", "Cost", TIMED)
SPARE: Final = (
    *(TIMED, "Scored", "Consistent", "Unanimous", "Agrees with labels", "Judged", "Score interval"),
    *("P50", "Not asked", "Skipped", "Tokens/s", "95% interval"),
)
"""Columns that a narrow terminal does without, in this order; reports have them."""


def summary_text(document: CasesRun, paint: Paint = unpainted) -> str:
    """Writes models, prompts, outcomes, cost and errors of a run."""
    summary = document.summary
    lines = [paint(head_of(document, summary.name), "bold"), ""]
    lines += _models(summary, paint) if summary.models else []
    lines += _drawn(repeat_table(summary), paint)
    lines += _groups(document, [prompt_table(summary)], paint)
    if lines[-1]:
        lines.append("")
    lines.append(hanging(" · ".join(remarks(document)), "  "))
    return "\n".join([*lines, *last_lines(document)])


def more_text(document: CasesRun, paint: Paint = unpainted) -> str:
    """Writes what `-v` adds: scores, prompts by model, tags, checks, what their columns mean, and judges."""
    tables = [table for table in group_tables(document.summary) if table.title != PROMPTS]
    lines = _groups(document, tables, paint)
    if judges := judge_lines(document.summary.judge) + lines_of_judges(document.summary.judge):
        lines += ["", *judges]
    notes = [
        f"{name}: {meaning}"
        for name, meaning in MEANINGS.items()
        if any(has_figure(each, name) for each in tables)
    ]
    lines += ["", *(paint(hanging(note, "  "), "dim") for note in notes)] if lines and notes else []
    return "\n".join(lines).strip("\n")


def table_rows(rows: Sequence[ItemRow]) -> list[list[str]]:
    """Returns results as cells of a table with `COLUMNS`, safe to print."""
    return [
        [
            plain(case.item.name, Size.CELL),
            plain(model_and_prompt(case.item), Size.CELL),
            case.row.outcome.value,
            case.answer.status or "",
            latency(case.row) if case.result else "",
            dollars(case.row.cost_usd) if case.result and not case.code else "",
            plain(f"{case.code}: {case.message}" if case.code else case.message, Size.LINE),
        ]
        for case in opened(rows)
    ]


def _models(summary: CasesSummary, paint: Paint) -> list[str]:
    """Draws one line for each model."""
    if summary.is_freeform:
        fast = [
            (
                plain(model.model, Size.CELL),
                p50(model.latency_ms),
                p95(model.latency_ms),
                _throughput(model),
                dollars(model.cost_usd),
                _count(model.latency_n),
            )
            for model in by_latency(summary)
        ]
        return table_lines(SPEED, fast, paint)
    has_errors = any(model.errors and model.answers for model in summary.models)
    rows = [_model_row(model, has_errors=has_errors) for model in by_pass_rate(summary)]
    return table_lines(STANDARD, rows, paint)


def _model_row(model: ModelFigures, *, has_errors: bool) -> list[str]:
    """Writes the cells of `STANDARD`; a figure that does not exist leaves its cell empty."""
    rates, is_answered = model.rates, model.pass_rate is not None
    of_answered = percent(rates.pass_rate_of_answered.value) if is_answered else ""
    return [
        plain(model.model, Size.CELL),
        "" if has_errors else percent(model.pass_rate),
        percent(model.pass_rate) if has_errors else "",
        of_answered if has_errors else "",
        interval(rates.pass_rate) if is_answered else "",
        f"{model.passed:,} of {rates.pass_rate.n:,}",
        _count(model.errors),
        _count(model.skipped),
        p50(model.latency_ms),
        p95(model.latency_ms),
        _count(model.latency_n),
        _throughput(model),
        dollars(model.cost_usd),
    ]


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], paint: Paint, *, names: int = 1
) -> list[str]:
    """Draws a table of figures with grey headings; colours are left to verdicts."""
    first, *rest = fitted_table(columns, rows, names=names, spare=SPARE)
    return [paint(first, "dim"), *rest]


def _count(number: int) -> str:
    """Writes a count that is worth its place; empty for nothing."""
    return f"{number:,}" if number else ""


def _groups(document: CasesRun, tables: Sequence[ReportTable], paint: Paint) -> list[str]:
    """Draws tables of groups; none where nothing was answered."""
    lines = list[str]()
    for table in tables if document.counts.answered else ():
        shown = _compact(table)
        lines += _drawn(shown._replace(rows=shown.rows[:MOST_ROWS]), paint)
        left = len(table.rows) - MOST_ROWS
        if left > 0:
            lines.append(f"{left:,} more: `proctor report {document.run_id} -o report.html`")
    return lines


def _drawn(table: ReportTable, paint: Paint) -> list[str]:
    """Draws a table below its title; nothing without rows."""
    if not table.rows:
        return []
    rows = table.safe_rows(lambda name: plain(name, Size.CELL))
    return ["", paint(table.title, "bold"), *table_lines(table.columns, rows, paint, names=table.names)]


def _compact(table: ReportTable) -> ReportTable:
    """Joins passed and failed to one column, as `3 of 4`; a count of 0 is left out."""
    columns = list(table.columns)
    rows = [
        ["" if cell == "0" and at >= table.names else cell for at, cell in enumerate(row)]
        for row in table.rows
    ]
    if "Failed" in columns:
        at = columns.index("Passed")
        counted = [columns.index(name) for name in ("Passed", "Failed", "Errors") if name in columns]
        for row, whole in zip(rows, table.rows, strict=True):
            total = sum(int(whole[each].replace(",", "")) for each in counted)
            row[at] = f"{whole[at]} of {total:,}" if total else ""
            del row[at + 1]
        del columns[at + 1]
    return table._replace(columns=columns, rows=rows)


def _throughput(model: ModelFigures) -> str:
    """Tokens a second."""
    rate = model.throughput_tokens_per_s
    return "-" if rate is None else f"{rate:,.1f}"


def _details(info: RunInfo, is_verbose: bool) -> Details:  # noqa: FBT001 - the form of every screen
    """Shows outputs where nothing is checked, else failures."""
    is_freeform = CaseRun.from_snapshot(info.snapshot).mode == FREEFORM
    return FreeformDetails() if is_freeform else FailureDetails(is_verbose=is_verbose)


SCREEN: Final = Screen(
    summary_text,
    headline,
    outcome,
    COLUMNS,
    table_rows,
    spare=("cost", "outcome", "latency"),
    names=("model", "case"),
    right=("latency", "cost"),
    details=_details,
    more=more_text,
)
"""What a terminal shows of a cases run."""
