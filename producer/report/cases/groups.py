"""Tables of a cases run by score, prompt, tag and check, for every format; empty where a run has none."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from producer.documents import AnyRun
from producer.report.cases.judge_trust import brief
from producer.report.cases.wording import FREEFORM, NO_VERDICTS, NONE, by_pass_rate, dollars
from producer.text import bounds

RATES: Final = ("Pass rate", "95% interval", "Passed", "Failed")
SCORES: Final = ("Mean score", "95% interval", "Scored")
TRUST: Final = ("Judged", "Consistent", "Unanimous", "Agrees with labels")
"""How far the judges of a rubric can be trusted, beside the rate that they made."""
PROMPTS: Final = "Prompts"
MEANINGS: Final[Mapping[str, str]] = {
    "Scored": "answers with a score",
    "Score interval": "95% interval of the mean score; answers to the same case count as related",
    "Not asked": "checks that call a model are not asked once another check has failed the case",
    "Judged": "answers that the judges of the check scored",
    "Consistent": "cases answered more than once whose answers the judges decided alike",
    "Unanimous": "answers on which all judges of the panel agreed",
    "Agrees with labels": "answers with a label on which the judges decided as people did",
}
"""What the headings of tables mean that do not explain themselves."""


class GroupTable(NamedTuple):
    """A table; the first cells of its rows are names, which are not made safe yet."""

    title: str
    names: int
    """Columns with names."""
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def group_tables(document: AnyRun) -> list[GroupTable]:
    """Returns the tables that have rows, in the order in which they are shown.

    Args:
        document: as `producer.document` makes it.
    """
    summary = document.summary
    if summary.mode == FREEFORM:
        return []
    many_models = len(summary.models) > 1
    tables = [
        GroupTable("Scores by model", 1, ("Model", *SCORES), _model_rows(document)),
        prompt_table(document),
        _outcomes(
            "Prompts by model",
            ("Model", "Prompt"),
            ("model", "prompt"),
            summary.prompts_by_model or () if many_models else (),
        ),
        _outcomes("Tags", ("Tag",), ("tag",), summary.tags or ()),
        _checks(summary.checks or ()),
    ]
    return [table for table in tables if table.rows]


def has_figure(table: GroupTable, heading: str) -> bool:
    """Returns whether a column of a table has a figure."""
    if heading not in table.columns:
        return False
    at = table.columns.index(heading)
    return any(row[at] not in {NONE, "0"} for row in table.rows)


def prompt_table(document: AnyRun) -> GroupTable:
    """Returns the table of prompts; without rows where the run has none."""
    return _outcomes(PROMPTS, ("Prompt",), ("prompt",), document.summary.prompts or ())


def without_empty_columns(table: GroupTable) -> GroupTable:
    """Leaves out the columns in which no row has a figure.

    >>> table = GroupTable("Tags", 1, ("Tag", "Cost", "Score"), [("a", "$0.01", "-"), ("b", "$0.02", "-")])
    >>> without_empty_columns(table).columns
    ('Tag', 'Cost')
    """
    kept = [
        at
        for at in range(len(table.columns))
        if at < table.names or any(row[at] != NONE for row in table.rows)
    ]
    rows = [tuple(row[at] for at in kept) for row in table.rows]
    return table._replace(columns=tuple(table.columns[at] for at in kept), rows=rows)


def _model_rows(document: AnyRun) -> list[list[str]]:
    """Writes the mean scores of models with checks."""
    return [
        [model["model"], *_score_cells(model["score"]), f"{model['score']['n']:,}"]
        for model in by_pass_rate(document)
        if model.get("score")
    ]


def _outcomes(
    title: str, heads: Sequence[str], names: Sequence[str], groups: Sequence[Mapping[str, Any]]
) -> GroupTable:
    """Makes a table of groups of items; scores only where some group has one."""
    has_scores = any(group["score"] for group in groups)
    columns = (*heads, *RATES, "Errors", *(("Mean score", "Score interval") if has_scores else ()), "Cost")
    rows = [
        [
            *(group[name] for name in names),
            *_rate_cells(group["pass_rate"], answers=group["passed"] + group["failed"]),
            *(f"{group[word]:,}" for word in ("passed", "failed", "errors")),
            *(_score_cells(group["score"]) if has_scores else ()),
            dollars(group["cost_usd"]),
        ]
        for group in groups
    ]
    return GroupTable(title, len(names), columns, rows)


def _checks(checks: Sequence[Mapping[str, Any]]) -> GroupTable:
    """Makes the table of checks, with what is known of the judges of each rubric."""
    has_judges = any(check["judge"] for check in checks)
    columns = ("Check", *RATES, "Not asked", "Mean score", "Score interval", *(TRUST if has_judges else ()))
    rows = [
        [
            check["name"],
            *_rate_cells(check["pass_rate"], answers=check["passed"] + check["failed"]),
            *(f"{check[word]:,}" for word in ("passed", "failed", "not_asked")),
            *_score_cells(check["score"]),
            *(_trust_cells(check["judge"]) if has_judges else ()),
        ]
        for check in checks
    ]
    return GroupTable("Checks", 1, columns, rows)


def _trust_cells(judge: Mapping[str, Any] | None) -> list[str]:
    """Writes the cells of `TRUST`."""
    if judge is None:
        return [NONE] * len(TRUST)
    return [
        f"{judge['judged']:,}",
        brief((judge["consistency"] or {}).get("same")),
        brief((judge["agreement"] or {}).get("unanimous")),
        brief((judge["calibration"] or {}).get("accuracy")),
    ]


def _rate_cells(rate: Mapping[str, Any], *, answers: int) -> list[str]:
    """Writes a pass rate and its interval; errors are no verdicts.

    >>> rate = {"value": 0.75, "low": 0.3006, "high": 0.9544, "n": 4}
    >>> _rate_cells(rate, answers=4), _rate_cells(rate, answers=0)
    (['75.0%', '30.1-95.4%'], ['no verdicts', '-'])
    """
    if not answers:
        return [NO_VERDICTS if rate["n"] else NONE, NONE]
    return [f"{100 * rate['value']:.1f}%", f"{'-'.join(bounds(rate))}%"]


def _score_cells(score: Mapping[str, Any] | None) -> list[str]:
    """Writes a mean score and its interval.

    >>> _score_cells({"value": 0.75, "low": 0.5, "high": 1.0, "n": 4}), _score_cells(None)
    (['0.750', '0.500-1.000'], ['-', '-'])
    """
    if score is None:
        return [NONE, NONE]
    has_bounds = score["low"] is not None
    return [f"{score['value']:.3f}", f"{score['low']:.3f}-{score['high']:.3f}" if has_bounds else NONE]
