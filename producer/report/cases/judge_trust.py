"""How far the judges of a cases run can be trusted: agreement, consistency, and human labels."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from producer.documents import AnyRun
from producer.report.cases.wording import NONE, dollars
from producer.report.cells import plain
from producer.text import plural

NAME_CHARS: Final = 60
SHARE: Final = 100.0
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


class Table(NamedTuple):
    """Some columns of the table of judges, with cells."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def judge_lines(document: AnyRun) -> list[str]:
    """Writes what the judges decided, and what speaks for and against them, in lines of plain text.

    Args:
        document: as `producer.document` makes it.
    """
    judge = document.summary.judge
    if not _is_known(judge):
        return []
    lines = _decided(judge) + _agreed(judge) + _repeated(judge) + _labelled(judge)
    corrected = judge["corrected_pass_rate"]
    if corrected:
        lines.append(f"estimated pass rate by human labels, of judged outputs: {_share(corrected)}")
    return lines


def lines_of_judges(document: AnyRun) -> list[str]:
    """Writes the table in a line for each judge, since a terminal may be too narrow for it."""
    columns, rows = judge_table(document)
    lines = []
    for name, *cells in rows:
        pairs = zip(columns[1:], cells, strict=True)
        shown = [f"{column} {cell}" for column, cell in pairs if column in ALWAYS or cell not in EMPTY]
        lines.append(f"  {name}: {' · '.join(shown)}")
    return lines


def judge_table(document: AnyRun) -> Table:
    """Makes a row for each judge of a panel; columns without a figure are left out, names not escaped yet."""
    judge = document.summary.judge
    if judge["agreement"] is None:
        return Table((), [])
    rows = [
        [
            plain(each["model"], NAME_CHARS),
            *(f"{each[word]:,}" for word in ("passed", "failed", "unclear", "unreached")),
            brief(each["with_panel"]),
            brief((each["consistency"] or {}).get("same")),
            brief((each["calibration"] or {}).get("accuracy")),
            dollars(each["cost_usd"]),
        ]
        for each in judge["judges"]
    ]
    kept = [
        at for at, name in enumerate(COLUMNS) if name in ALWAYS or any(row[at] not in EMPTY for row in rows)
    ]
    return Table([COLUMNS[at] for at in kept], [[row[at] for at in kept] for row in rows])


def _is_known(judge: Mapping[str, Any]) -> bool:
    """Returns whether anything but the verdicts themselves is known."""
    figures = (judge["agreement"], judge["consistency"], judge["calibration"])
    return any(figure is not None for figure in figures) or bool(judge["labelled"])


def _decided(judge: Mapping[str, Any]) -> list[str]:
    """What the judges passed."""
    if not judge["pass_rate"]:
        return []
    names: Sequence[str] = [plain(each["model"], NAME_CHARS) for each in judge["judges"]]
    who = f"a panel of {len(names)} judges" if len(names) > 1 else names[0]
    return [f"{who} accepted {_of(judge['pass_rate'], 'non-identical outputs')}"]


def _agreed(judge: Mapping[str, Any]) -> list[str]:
    """How far a panel agrees."""
    found = judge["agreement"]
    if found is None:
        return []
    alpha = found["krippendorff_alpha"]
    alpha_text = "undefined (all verdicts are the same)" if alpha is None else f"{alpha:.2f}"
    return [f"panel agreement: Krippendorff's alpha {alpha_text}; unanimous {_of(found['unanimous'])}"]


def _repeated(judge: Mapping[str, Any]) -> list[str]:
    """Whether the same is judged the same way."""
    found = judge["consistency"]
    if found is None:
        return []
    return [f"repeatedly judged outputs with the same verdict each time: {_of(found['same'])}"]


def _labelled(judge: Mapping[str, Any]) -> list[str]:
    """What people say."""
    found = judge["calibration"]
    if found is None:
        labels = plural(judge["labelled"], "labelled answer")
        return [f"{labels}, none of them with a verdict of a judge"] * bool(judge["labelled"])
    lines = [
        f"agrees with human labels: {_of(found['accuracy'])}",
        f"PASS: precision {_of(found['precision'])}, recall {_of(found['recall'])}",
        "; ".join(
            f"{word} correct {found[f'true_{key}']:,}, wrong {found[f'false_{key}']:,}"
            for word, key in (("PASS", "passed"), ("not PASS", "failed"))
        ),
    ]
    if found["few"]:
        lines.append(
            f"only {plural(found['answers'], 'labelled answer')}: the figures against labels are imprecise"
        )
    return lines


def _share(rate: Mapping[str, Any] | None) -> str:
    """Writes a share with its interval and of how many it is.

    >>> _share({"value": 0.75, "low": 0.3006, "high": 0.9544, "n": 4}), _share(None)
    ('75.0% of 4 (30.1-95.4%)', 'unknown')
    """
    if rate is None:
        return "unknown"
    value, low, high = (SHARE * rate[word] for word in ("value", "low", "high"))
    return f"{value:.1f}% of {rate['n']:,} ({low:.1f}-{high:.1f}%)"


def _of(rate: Mapping[str, Any] | None, noun: str = "") -> str:
    """Writes a share as a count, with its value and interval; the noun is of what is counted.

    >>> _of({"value": 0.75, "low": 0.3006, "high": 0.9544, "n": 4}), _of(None)
    ('3 of 4 (75.0%, 95% interval 30.1-95.4%)', 'unknown')
    """
    if rate is None:
        return "unknown"
    value, low, high = (SHARE * rate[word] for word in ("value", "low", "high"))
    part = round(rate["value"] * rate["n"])
    what = f"{part:,} of {rate['n']:,} {noun}".rstrip()
    return f"{what} ({value:.1f}%, 95% interval {low:.1f}-{high:.1f}%)"


def brief(rate: Mapping[str, Any] | None) -> str:
    """Writes a share without its interval.

    >>> brief({"value": 0.75, "low": 0.3006, "high": 0.9544, "n": 4}), brief(None)
    ('75.0% of 4', '-')
    """
    return NONE if rate is None else f"{SHARE * rate['value']:.1f}% of {rate['n']:,}"
