"""Tables of a cases run by score, prompt, tag and check, for every format; empty where a run has none."""

from collections.abc import Mapping, Sequence
from typing import Final

from producer.cases.documents import CasesSummary, CheckFigures, GroupFigures, JudgingFigures, MeanScore
from producer.cases.report.judge_trust import brief
from producer.cases.report.wording import NO_VERDICTS, NONE, by_pass_rate, dollars, interval
from producer.documents import Rate
from producer.report.cells import ReportTable
from producer.text import percent

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


def group_tables(summary: CasesSummary) -> list[ReportTable]:
    """Returns the tables that have rows, in the order in which they are shown."""
    if summary.is_freeform:
        return []
    by_model = summary.prompts_by_model or () if len(summary.models) > 1 else ()
    tables = [
        ReportTable("Scores by model", 1, ("Model", *SCORES), _model_rows(summary)),
        prompt_table(summary),
        _outcomes(
            "Prompts by model", ("Model", "Prompt"), [((each.model, each.prompt), each) for each in by_model]
        ),
        _outcomes("Tags", ("Tag",), [((each.tag,), each) for each in summary.tags or ()]),
        _checks(summary.checks or ()),
    ]
    return [table for table in tables if table.rows]


def has_figure(table: ReportTable, heading: str) -> bool:
    """Returns whether a column of a table has a figure."""
    if heading not in table.columns:
        return False
    at = table.columns.index(heading)
    return any(row[at] not in {NONE, "0"} for row in table.rows)


def prompt_table(summary: CasesSummary) -> ReportTable:
    """Returns the table of prompts; without rows where the run has none."""
    return _outcomes(PROMPTS, ("Prompt",), [((each.prompt,), each) for each in summary.prompts or ()])


def without_empty_columns(table: ReportTable) -> ReportTable:
    """Leaves out the columns in which no row has a figure.

    >>> table = ReportTable("Tags", 1, ("Tag", "Cost", "Score"), [("a", "$0.01", "-"), ("b", "$0.02", "-")])
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


def _model_rows(summary: CasesSummary) -> list[list[str]]:
    """Writes the mean scores of models with checks."""
    return [
        [model.model, *_score_cells(model.score), f"{model.score.n:,}"]
        for model in by_pass_rate(summary)
        if model.score
    ]


def _outcomes(
    title: str, heads: Sequence[str], groups: Sequence[tuple[Sequence[str], GroupFigures]]
) -> ReportTable:
    """Makes a table of groups of items; scores only where some group has one."""
    has_scores = any(group.score for _, group in groups)
    columns = (*heads, *RATES, "Errors", *(("Mean score", "Score interval") if has_scores else ()), "Cost")
    rows = [
        [
            *names,
            *_rate_cells(group.pass_rate, answers=group.passed + group.failed),
            f"{group.passed:,}",
            f"{group.failed:,}",
            f"{group.errors:,}",
            *(_score_cells(group.score) if has_scores else ()),
            dollars(group.cost_usd),
        ]
        for names, group in groups
    ]
    return ReportTable(title, len(heads), columns, rows)


def _checks(checks: Sequence[CheckFigures]) -> ReportTable:
    """Makes the table of checks, with what is known of the judges of each rubric."""
    has_judges = any(check.judge for check in checks)
    columns = ("Check", *RATES, "Not asked", "Mean score", "Score interval", *(TRUST if has_judges else ()))
    rows = [
        [
            check.name,
            *_rate_cells(check.pass_rate, answers=check.passed + check.failed),
            f"{check.passed:,}",
            f"{check.failed:,}",
            f"{check.not_asked:,}",
            *_score_cells(check.score),
            *(_trust_cells(check.judge) if has_judges else ()),
        ]
        for check in checks
    ]
    return ReportTable("Checks", 1, columns, rows)


def _trust_cells(judge: JudgingFigures | None) -> list[str]:
    """Writes the cells of `TRUST`."""
    if judge is None:
        return [NONE] * len(TRUST)
    return [
        f"{judge.judged:,}",
        brief(judge.consistency.same if judge.consistency else None),
        brief(judge.agreement.unanimous if judge.agreement else None),
        brief(judge.calibration.accuracy if judge.calibration else None),
    ]


def _rate_cells(rate: Rate, *, answers: int) -> list[str]:
    """Writes a pass rate and its interval; errors are no verdicts.

    >>> rate = Rate(0.75, 0.3006, 0.9544, 4)
    >>> _rate_cells(rate, answers=4), _rate_cells(rate, answers=0)
    (['75.0%', '30.1-95.4%'], ['no verdicts', '-'])
    """
    if not answers:
        return [NO_VERDICTS if rate.n else NONE, NONE]
    return [percent(rate.value), interval(rate)]


def _score_cells(score: MeanScore | None) -> list[str]:
    """Writes a mean score and its interval.

    >>> _score_cells(MeanScore(0.75, 0.5, 1.0, 0.1, 4)), _score_cells(None)
    (['0.750', '0.500-1.000'], ['-', '-'])
    """
    if score is None:
        return [NONE, NONE]
    return [f"{score.value:.3f}", NONE if score.low is None else f"{score.low:.3f}-{score.high:.3f}"]
