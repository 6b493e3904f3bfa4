"""Says how far the judges of a cases run can be trusted, for people; nothing where there is nothing to say."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from producer.report.cases.words import NONE, dollars
from producer.report.cells import plain
from producer.report.wording import plural

NAME_CHARS: Final = 60
SHARE: Final = 100.0
COLUMNS: Final = (
    "Judge",
    "PASS",
    "FAIL",
    "Unclear",
    "Not reached",
    "As the panel",
    "Same again",
    "As people",
    "Cost",
)
"""Of the table of judges."""


def judge_lines(document: Mapping[str, Any]) -> list[str]:
    """Writes what the judges decided, and what speaks for and against them, in lines of plain text.

    Args:
        document: as `producer.document` makes it.
    """
    judge = document["summary"]["judge"]
    if not _is_known(judge):
        return []
    lines = _decided(judge) + _agreed(judge) + _repeated(judge) + _labelled(judge)
    corrected = judge["corrected_pass_rate"]
    if corrected:
        lines.append(f"of what was judged, people would have passed about {_share(corrected)}")
    return lines


def judge_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Returns a row with `COLUMNS` for each judge of a panel; names are not escaped yet."""
    judge = document["summary"]["judge"]
    if judge["agreement"] is None:
        return []
    return [
        [
            plain(each["model"], NAME_CHARS),
            *(f"{each[word]:,}" for word in ("passed", "failed", "unclear", "unreached")),
            _brief(each["with_panel"]),
            _brief((each["consistency"] or {}).get("same")),
            _brief((each["calibration"] or {}).get("accuracy")),
            dollars(each["cost_usd"]),
        ]
        for each in judge["judges"]
    ]


def _is_known(judge: Mapping[str, Any]) -> bool:
    """Tells whether anything but the verdicts themselves is known."""
    figures = (judge["agreement"], judge["consistency"], judge["calibration"])
    return any(figure is not None for figure in figures) or bool(judge["labelled"])


def _decided(judge: Mapping[str, Any]) -> list[str]:
    """What the judges passed."""
    if not judge["pass_rate"]:
        return []
    names: Sequence[str] = [plain(each["model"], NAME_CHARS) for each in judge["judges"]]
    who = f"a panel of {len(names)}" if len(names) > 1 else names[0]
    return [f"judged by {who}: passed {_share(judge['pass_rate'])} that were not equal"]


def _agreed(judge: Mapping[str, Any]) -> list[str]:
    """How far a panel agrees."""
    found = judge["agreement"]
    if found is None:
        return []
    alpha = found["krippendorff_alpha"]
    told = "not defined, all said the same word" if alpha is None else f"{alpha:.2f}"
    return [f"agreement of the panel: Krippendorff's alpha {told}; unanimous in {_share(found['unanimous'])}"]


def _repeated(judge: Mapping[str, Any]) -> list[str]:
    """Whether the same is judged the same way."""
    found = judge["consistency"]
    if found is None:
        return []
    return [f"the same output got the same verdict again: {_share(found['same'])}"]


def _labelled(judge: Mapping[str, Any]) -> list[str]:
    """What people say."""
    found = judge["calibration"]
    if found is None:
        labels = plural(judge["labelled"], "labelled answer")
        return [f"{labels}, and no judge decided about one"] * bool(judge["labelled"])
    lines = [
        f"as people say: {_share(found['accuracy'])}; PASS precision {_share(found['precision'])}, "
        f"recall {_share(found['recall'])}",
        f"PASS rightly {found['true_passed']:,}, wrongly {found['false_passed']:,}; "
        f"no PASS rightly {found['true_failed']:,}, wrongly {found['false_failed']:,}",
    ]
    if found["few"]:
        lines.append(f"only {plural(found['answers'], 'labelled answer')}: what people say is a rough figure")
    return lines


def _share(rate: Mapping[str, Any] | None) -> str:
    """Writes a share with its interval and of how many it is.

    >>> _share({"value": 0.75, "low": 0.3006, "high": 0.9544, "n": 4}), _share(None)
    ('75.0% of 4 (30.1% to 95.4%)', 'unknown')
    """
    if rate is None:
        return "unknown"
    value, low, high = (SHARE * rate[word] for word in ("value", "low", "high"))
    return f"{value:.1f}% of {rate['n']:,} ({low:.1f}% to {high:.1f}%)"


def _brief(rate: Mapping[str, Any] | None) -> str:
    """Writes a share without its interval.

    >>> _brief({"value": 0.75, "low": 0.3006, "high": 0.9544, "n": 4}), _brief(None)
    ('75.0% of 4', '-')
    """
    return NONE if rate is None else f"{SHARE * rate['value']:.1f}% of {rate['n']:,}"
