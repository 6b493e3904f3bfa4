"""What a terminal shows of the items of a cases run: results, and outputs or failures after a run."""

from collections.abc import Sequence
from typing import Final

from producer.cases.report.details import CaseFailures, FreeformDetails, VerboseDetails
from producer.cases.report.opened_rows import opened
from producer.cases.report.wording import FREEFORM, dollars, latency, model_and_prompt
from producer.report.cells import Size, plain
from producer.report.interfaces import Details, Screen
from producer.report.to_terminal import FailureText
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CaseRun
from shared.runs import RunInfo

COLUMNS: Final = ("case", "model", "outcome", "status", "latency", "cost", "message")
"""Of the table of results."""


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


def _details(info: RunInfo, is_verbose: bool) -> Details:  # noqa: FBT001 - the form of every screen
    """Shows outputs where nothing is checked, else failures."""
    if CaseRun.from_snapshot(info.snapshot).mode == FREEFORM:
        return FreeformDetails()
    return VerboseDetails() if is_verbose else FailureText(CaseFailures())


SCREEN: Final = Screen(
    COLUMNS,
    table_rows,
    spare=("cost", "outcome", "latency"),
    names=("model", "case"),
    right=("latency", "cost"),
    failures=lambda _: CaseFailures(),
    details=_details,
)
"""What a terminal shows of the items of a cases run."""
