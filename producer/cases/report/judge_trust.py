"""How far the judges of a cases run can be trusted: agreement, consistency, and human labels."""

from collections.abc import Sequence
from typing import Final

from producer.cases.documents import Agreement, JudgeFigures, JudgingFigures, LabelFigures, ReviewFigures
from producer.documents import Rate
from producer.report.figures import Column, Figure, Table, Unit, interval_of
from producer.text import percent, plural

COLUMNS: Final[Sequence[Column[JudgeFigures]]] = (
    Column("Judge", lambda judge: judge.model),
    Column("PASS", lambda judge: Figure(judge.passed), is_kept=True),
    Column("FAIL", lambda judge: Figure(judge.failed), is_kept=True),
    Column("unclear", lambda judge: Figure(judge.unclear)),
    Column("unreachable", lambda judge: Figure(judge.unreached)),
    Column("agrees with panel", lambda judge: share_of(judge.with_panel)),
    Column("consistent", lambda judge: share_of(judge.consistency.same if judge.consistency else None)),
    Column(
        "agrees with labels",
        lambda judge: share_of(judge.calibration.accuracy if judge.calibration else None),
    ),
    Column("cost", lambda judge: Figure(judge.cost_usd or None, Unit.USD)),
)
"""Of a judge; what one without a price has cost is not known."""


def judge_table(judge: JudgingFigures) -> Table:
    """Returns what the judges decided and what speaks for and against them; of a panel, a row for each."""
    table = Table(title="Judges", columns=COLUMNS, lines=judge_lines(judge))
    return table if judge.agreement is None else table.filled(judge.judges)


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


def _decided(judge: JudgingFigures) -> list[str]:
    """What the judges passed."""
    if not judge.pass_rate:
        return []
    names = [each.model for each in judge.judges]
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
    return f"{share_of(rate)} ({interval_of(rate)})"


def _of(rate: Rate | None, noun: str = "") -> str:
    """Writes a share as a count, with its value and interval; the noun is of what is counted.

    >>> _of(Rate(0.75, 0.3006, 0.9544, 4)), _of(None)
    ('3 of 4 (75.0%, 95% interval 30.1-95.4%)', 'unknown')
    """
    if rate is None:
        return "unknown"
    what = f"{round(rate.value * rate.n):,} of {rate.n:,} {noun}".rstrip()
    return f"{what} ({percent(rate.value)}, 95% interval {interval_of(rate)})"


def share_of(rate: Rate | None) -> Figure:
    """Returns a share with the number that it is of.

    >>> str(share_of(Rate(0.75, 0.3006, 0.9544, 4))), str(share_of(None))
    ('75.0% of 4', '-')
    """
    return Figure(rate.value, Unit.SHARE, of=rate.n) if rate else Figure()
