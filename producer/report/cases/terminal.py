"""Writes a cases run for a terminal: models by pass rate and what failed, or outputs prompt by prompt."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from producer.aggregate.turns import ranked
from producer.report.cases.details import FailureDetails, FreeformDetails
from producer.report.cases.groups import group_tables
from producer.report.cases.judge_trust import judge_lines, lines_of_judges
from producer.report.cases.opened_rows import opened
from producer.report.cases.wording import COLUMNS as SURE
from producer.report.cases.wording import (
    FREEFORM,
    REPEATS,
    by_latency,
    by_pass_rate,
    dollars,
    headline,
    model_and_prompt,
    percent,
    remarks,
    repeat_rows,
    seconds,
    sure_rows,
)
from producer.report.cells import plain
from producer.report.interfaces import Details, Screen
from producer.tables import boxed_table
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import SNAPSHOT_KEY
from shared.runs import RunInfo

COLUMNS: Final = ("item", "case", "model", "outcome", "status", "latency", "cost", "message")
"""Of the table of results."""
CELL_CHARS: Final = 60
"""Longest text in a cell."""
MOST_ROWS: Final = 50
"""Rows of a table by prompt, tag or check."""
STANDARD: Final = ("Model", "Pass rate", "Passed", "Failed", "Errors", "P95", "Tokens/s", "Cost")
SPEED: Final = ("Model", "P50", "P95", "Tokens/s", "Cost", "n")


def summary_text(document: Mapping[str, Any]) -> str:
    """Writes models, outcomes, cost and errors of a run.

    Args:
        document: as `producer.document` makes it.
    """
    summary = document["summary"]
    name = f"{plain(summary['name'], CELL_CHARS)}  {plain(summary['source'], CELL_CHARS)}"
    lines = [f"{document['run_id']}  {name}".rstrip(), headline(document), ""]
    lines += _models(document).split("\n") if summary["models"] else []
    lines += _certainty(document)
    lines += _groups(document)
    lines += ["", " · ".join(remarks(document))]
    lines += _judges(document)
    if summary["errors"]:
        told = (f"{plain(code, CELL_CHARS)} {number:,}" for code, number in ranked(summary["errors"]))
        lines.append("errors by code: " + ", ".join(told))
    lines += [f"{file['format']} written to {plain(file['path'])}" for file in document["files"]]
    return "\n".join(lines)


def table_rows(rows: Sequence[ItemRow]) -> list[list[str]]:
    """Returns results as cells of a table with `COLUMNS`, safe to print."""
    return [
        [
            f"case-{case.row.index}",
            plain(case.item.id or str(case.item.case + 1), CELL_CHARS),
            plain(model_and_prompt(case.item), CELL_CHARS),
            case.row.outcome.value,
            str((case.result or {}).get("status") or ""),
            seconds(case.row.latency_ms) if case.result else "",
            dollars(case.row.cost_usd) if case.result and not case.code else "",
            plain(f"{case.code}: {case.message}" if case.code else case.message, CELL_CHARS),
        ]
        for case in opened(rows)
    ]


def _models(document: Mapping[str, Any]) -> str:
    """Draws one line for each model."""
    if document["summary"]["mode"] == FREEFORM:
        fast = [
            (
                plain(model["model"], CELL_CHARS),
                seconds(model["latency_ms"].get("p50")),
                seconds(model["latency_ms"].get("p95")),
                _throughput(model),
                dollars(model["cost_usd"]),
                f"{model['latency_n']:,}",
            )
            for model in by_latency(document)
        ]
        return boxed_table(SPEED, fast, wraps="Model", right=SPEED[1:])
    rows = [
        (
            plain(model["model"], CELL_CHARS),
            percent(model["pass_rate"]),
            *(f"{model[word]:,}" for word in ("passed", "failed", "errors")),
            seconds(model["latency_ms"].get("p95")),
            _throughput(model),
            dollars(model["cost_usd"]),
        )
        for model in by_pass_rate(document)
    ]
    return boxed_table(STANDARD, rows, wraps="Model", right=STANDARD[1:])


def _judges(document: Mapping[str, Any]) -> list[str]:
    """Says how far the judges can be trusted, a panel's one by one."""
    lines = judge_lines(document) + lines_of_judges(document)
    return ["", *lines] if lines else []


def _certainty(document: Mapping[str, Any]) -> list[str]:
    """Says how sure the figures are, in tables of their own: a terminal of 80 columns has no room beside."""
    lines = list[str]()
    if document["summary"]["mode"] != FREEFORM:
        lines += _table(("Model", *SURE), sure_rows(document))
    return lines + _table(REPEATS, repeat_rows(document))


def _groups(document: Mapping[str, Any]) -> list[str]:
    """Draws the tables by score, prompt, tag and check."""
    lines = list[str]()
    for table in group_tables(document):
        rows = table.rows[:MOST_ROWS]
        lines += ["", table.title]
        safe = [
            [plain(cell, CELL_CHARS) if at < table.names else cell for at, cell in enumerate(row)]
            for row in rows
        ]
        lines += boxed_table(
            table.columns, safe, wraps=table.columns[0], right=table.columns[table.names :]
        ).split("\n")
        left = len(table.rows) - len(rows)
        lines += [f"{left:,} more: `proctor report {document['run_id']} -o report.html`"] * bool(left)
    return lines


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Draws a table whose first cells are names of models; nothing without rows."""
    safe = [(plain(name, CELL_CHARS), *cells) for name, *cells in rows]
    return boxed_table(columns, safe, wraps=columns[0], right=columns[1:]).split("\n") if safe else []


def _throughput(model: Mapping[str, Any]) -> str:
    """Tokens a second."""
    rate = model["throughput_tokens_per_s"]
    return "-" if rate is None else f"{rate:,.1f}"


def _details(info: RunInfo, is_verbose: bool) -> Details:  # noqa: FBT001 - the form of every screen
    """Shows outputs where nothing is checked, else failures."""
    is_freeform = info.snapshot[SNAPSHOT_KEY]["mode"] == FREEFORM
    return FreeformDetails() if is_freeform else FailureDetails(is_verbose=is_verbose)


SCREEN: Final = Screen(
    summary_text,
    COLUMNS,
    table_rows,
    wide_only=frozenset({"cost"}),
    right=("latency", "cost"),
    details=_details,
)
"""What a terminal shows of a cases run."""
