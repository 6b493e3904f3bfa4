"""How far the judges of a cases run can be trusted: agreement, consistency, and human labels."""

from typing import Final

from producer.cases.documents import Agreement, JudgingFigures, LabelFigures, ReviewFigures
from producer.cases.report.wording import NONE, dollars, interval
from producer.documents import Rate
from producer.report.cells import ReportTable, Size, plain
from producer.text import percent, plural

COLUMNS: Final = (
    "Judge",
    "PASS",
    "FAIL",
    "unclear",
    "unreachable",
    "agrees with panel",
    "consistent",
    "agrees with labels",
    "cost",
)
"""Of the table of judges."""
ALWAYS: Final = frozenset({"Judge", "PASS", "FAIL"})
"""Columns that are shown whatever is in them."""
EMPTY: Final = frozenset({"0", NONE, dollars(0.0)})
"""What a judge without a price has cost is not known."""


def judge_lines(judge: JudgingFigures) -> list[str]:
    """Writes what the judges decided, and what speaks for and against them, in lines of plain text."""
    figures = (judge.agreement, judge.consistency, judge.calibration)
    if all(figure is None for figure in figures) and not judge.labelled:
        return []  # nothing but the verdicts themselves is known
    lines = _decided(judge) + _agreed(judge.agreement)
    if judge.consistency:
        same = _of(judge.consistency.same)
        lines.append(f"repeatedly judged outputs with the same verdict each time: {same}")
    lines += _labelled(judge)
    if judge.review:
        lines += _reviewed(judge.review, judge.calibration)
    if judge.corrected_pass_rate:
        share = _share(judge.corrected_pass_rate)
        lines.append(f"estimated pass rate by human labels, of judged outputs: {share}")
    return lines


def lines_of_judges(judge: JudgingFigures) -> list[str]:
    """Writes the table in a line for each judge, since a terminal may be too narrow for it."""
    table, lines = judge_table(judge), []
    for name, *cells in table.rows:
        pairs = zip(table.columns[1:], cells, strict=True)
        shown = [f"{column} {cell}" for column, cell in pairs if column in ALWAYS or cell not in EMPTY]
        lines.append(f"  {name}: {' · '.join(shown)}")
    return lines


def judge_table(judge: JudgingFigures) -> ReportTable:
    """Makes a row for each judge of a panel; columns without a figure are left out, names not escaped yet."""
    if judge.agreement is None:
        return ReportTable("Judges", 1, (), [])
    rows = [
        [
            plain(each.model, Size.CELL),
            *(f"{number:,}" for number in (each.passed, each.failed, each.unclear, each.unreached)),
            brief(each.with_panel),
            brief(each.consistency.same if each.consistency else None),
            brief(each.calibration.accuracy if each.calibration else None),
            dollars(each.cost_usd),
        ]
        for each in judge.judges
    ]
    kept = [
        at for at, name in enumerate(COLUMNS) if name in ALWAYS or any(row[at] not in EMPTY for row in rows)
    ]
    columns = [COLUMNS[at] for at in kept]
    return ReportTable("Judges", 1, columns, [[row[at] for at in kept] for row in rows])


def _decided(judge: JudgingFigures) -> list[str]:
    """What the judges passed."""
    if not judge.pass_rate:
        return []
    names = [plain(each.model, Size.CELL) for each in judge.judges]
    who = f"a panel of {len(names)} judges" if len(names) > 1 else names[0]
    return [f"{who} accepted {_of(judge.pass_rate, 'non-identical outputs')}"]


def _agreed(found: Agreement | None) -> list[str]:
    """How far a panel agrees."""
    if found is None:
        return []
    alpha = found.krippendorff_alpha
    alpha_text = "undefined (all verdicts are the same)" if alpha is None else f"{alpha:.2f}"
    return [f"panel agreement: Krippendorff's alpha {alpha_text}; unanimous {_of(found.unanimous)}"]


def _labelled(judge: JudgingFigures) -> list[str]:
    """What people say."""
    found = judge.calibration
    if found is None:
        labels = plural(judge.labelled, "labelled answer")
        return [f"{labels}, none of them with a verdict of a judge"] if judge.labelled else []
    lines = [
        f"agrees with human labels: {_of(found.accuracy)}",
        f"PASS: precision {_of(found.precision)}, recall {_of(found.recall)}",
        "; ".join(
            f"{word} correct {correct:,}, wrong {wrong:,}"
            for word, correct, wrong in (
                ("PASS", found.true_passed, found.false_passed),
                ("not PASS", found.true_failed, found.false_failed),
            )
        ),
    ]
    if found.few and found.answers:
        few = plural(found.answers, "labelled answer")
        lines.append(f"only {few}: the figures against labels are imprecise")
    return lines


def _reviewed(review: ReviewFigures, now: LabelFigures | None) -> list[str]:
    """What a review changed."""
    changed = f"{plural(review.added, 'label')} added, {review.changed:,} changed"
    lines = [f"reviewed by {', '.join(review.reviewers)}: {changed}"]
    if review.kappa is not None:
        lines.append(f"agreement of reviewers: kappa {review.kappa:.2f} on {plural(review.shared, 'answer')}")
    before = review.calibration_before
    if before and now:
        lines.append(f"agreement with labels before the review: {_of(before.accuracy)}")
    return lines


def _share(rate: Rate) -> str:
    """Writes a share with its interval and of how many it is.

    >>> _share(Rate(0.75, 0.3006, 0.9544, 4))
    '75.0% of 4 (30.1-95.4%)'
    """
    return f"{brief(rate)} ({interval(rate)})"


def _of(rate: Rate | None, noun: str = "") -> str:
    """Writes a share as a count, with its value and interval; the noun is of what is counted.

    >>> _of(Rate(0.75, 0.3006, 0.9544, 4)), _of(None)
    ('3 of 4 (75.0%, 95% interval 30.1-95.4%)', 'unknown')
    """
    if rate is None:
        return "unknown"
    what = f"{round(rate.value * rate.n):,} of {rate.n:,} {noun}".rstrip()
    return f"{what} ({percent(rate.value)}, 95% interval {interval(rate)})"


def brief(rate: Rate | None) -> str:
    """Writes a share without its interval.

    >>> brief(Rate(0.75, 0.3006, 0.9544, 4)), brief(None)
    ('75.0% of 4', '-')
    """
    return NONE if rate is None else f"{percent(rate.value)} of {rate.n:,}"
