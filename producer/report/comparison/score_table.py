"""Writes the scores of a comparison as rows of a table, with a note on what a star in it means."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from producer import kinds
from producer.aggregate.compared_items import CHECK_PREFIX, Comparing
from producer.aggregate.comparison import can_differ
from producer.report.cells import plain
from producer.text import many
from shared.kinds import kind_named

PASS_RATE: Final = "pass_rate"  # noqa: S105 - a score, no secret
NAMES: Final = {
    "score": "score",
    "keywords_found": "keywords found",
    "rouge_l": "ROUGE-L",
    "latency_ms": "mean latency",
    "cost_usd": "cost per {item}",
}
"""Scores as people read them."""
NAME_CHARS: Final = 60
LEAST_USD: Final = 0.000001
"""A smaller price is written as less than this."""
STAR: Final = " *"
NO_INTERVAL: Final = "-"


class ScoreTable(NamedTuple):
    """The scores of a comparison."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    """Scores, then checks that changed, the most first."""
    same: Sequence[Sequence[str]]
    """Checks with the same mean in both."""
    note: str
    """What a star means; empty where there is none."""


def comparing_of(document: Mapping[str, Any]) -> Comparing:
    """Returns how items of this kind are compared."""
    comparing: Comparing = kinds.of(kind_named(document["kind"])).compared().comparing
    return comparing


def score_table(document: Mapping[str, Any]) -> ScoreTable:
    """Returns the scores; means over cases, queries or threads that have the score in both runs."""
    scores = document["scores"]
    checks = [name for name in scores if name.startswith(CHECK_PREFIX)]
    changed = sorted(
        (name for name in checks if scores[name]["difference"]),
        key=lambda name: -abs(scores[name]["difference"]),
    )
    shown = [*(name for name in scores if name not in checks), *changed]
    unit = many(comparing_of(document).unit)
    return ScoreTable(
        ("score", "A", "B", "change", f"{level_of(document)} interval", unit),
        [_row(document, name) for name in shown],
        [_row(document, name) for name in checks if not scores[name]["difference"]],
        _star_note(document),
    )


def score_name(document: Mapping[str, Any], name: str) -> str:
    """Names a score.

    >>> score_name({"kind": "turns"}, "pass_rate"), score_name({"kind": "cases"}, "cost_usd")
    ('decided', 'cost per answer')
    """
    if name == PASS_RATE:
        return comparing_of(document).good_rate.lower()
    return NAMES.get(name, name).replace("{item}", comparing_of(document).item)


def is_beyond_chance(document: Mapping[str, Any]) -> bool:
    """Whether outcomes changed by more than chance; only the test decides that."""
    test = document["test"]
    return bool(test["p_value"] <= test["level_each"] and test["worse"] != test["better"])


def leaves_out_zero(score: Mapping[str, Any]) -> bool:
    """Whether no change at all lies outside of the interval of a score."""
    return bool(score["low"] > 0 or score["high"] < 0)


def level_of(document: Mapping[str, Any]) -> str:
    """Writes the confidence of the intervals."""
    return f"{100 * (1 - document['test']['level_each']):g}%"


def change_of(name: str, value: float) -> str:
    """Writes a difference with its sign and unit.

    >>> change_of("latency_ms", -12.3), change_of("cost_usd", -0.5), change_of("pass_rate", 0.05)
    ('-12 ms', '-$0.500000', '+5.0 pts')
    >>> change_of("score", 0.0)
    '0'
    """
    units = {"latency_ms": " ms", PASS_RATE: " pts", "keywords_found": " pts"}
    return _signed(name, value) + units.get(name, "") if value else "0"


def interval_of(document: Mapping[str, Any], name: str) -> str:
    """Writes the interval of a difference; nothing where the cases are too few or all changed alike.

    A bootstrap of a handful of cases shows no doubt where there is much.
    """
    score = document["scores"][name]
    if score["low"] == score["high"] or not can_differ(score["n"], document["test"]["level_each"]):
        return ""
    return f"{_signed(name, score['low'])} to {_signed(name, score['high'])}"


def amount_of(name: str, value: float) -> str:
    """Writes a score with its unit.

    >>> amount_of("cost_usd", 0.00002), amount_of("pass_rate", 0.5), amount_of("score", 0.5)
    ('$0.000020', '50.0%', '0.500')
    >>> amount_of("cost_usd", 0.0), amount_of("cost_usd", 1e-7)
    ('$0', '<$0.000001')
    """
    if name == "latency_ms":
        return f"{value:,.0f} ms"
    if name == "cost_usd":
        return _dollars(value)
    return f"{value:.3f}" if _is_score(name) else f"{100 * value:.1f}%"


def _row(document: Mapping[str, Any], name: str) -> list[str]:
    """Writes a score as cells."""
    score = document["scores"][name]
    return [
        plain(score_name(document, name), NAME_CHARS),
        amount_of(name, score["a"]),
        amount_of(name, score["b"]),
        change_of(name, score["difference"]) + STAR * _has_star(document, name),
        interval_of(document, name) or NO_INTERVAL,
        f"{score['n']:,}",
    ]


def _has_star(document: Mapping[str, Any], name: str) -> bool:
    """Whether a score changed by more than chance: outcomes by the test, others by their interval."""
    if name == PASS_RATE:
        return is_beyond_chance(document)
    return bool(interval_of(document, name)) and leaves_out_zero(document["scores"][name])


def _star_note(document: Mapping[str, Any]) -> str:
    """Explains a star; nothing where there is none."""
    starred = [name for name in document["scores"] if _has_star(document, name)]
    if not starred:
        return ""
    if starred == [PASS_RATE]:
        return "* more than chance, by McNemar's test."
    one_in = round(1 / document["test"]["level_each"])
    by_chance = f"the interval leaves out 0; by chance, this happens for 1 in {one_in} unchanged scores"
    if PASS_RATE not in starred:
        return f"* {by_chance}."
    rate = score_name(document, PASS_RATE)
    return f"* more than chance: {rate} by McNemar's test, other scores where {by_chance}."


def _dollars(usd: float) -> str:
    """Writes a price of one answer, which is a small part of a cent."""
    return "$0" if not usd else f"<${LEAST_USD:.6f}" if usd < LEAST_USD else f"${usd:.6f}"


def _signed(name: str, value: float) -> str:
    """Writes a difference with its sign; zero has none.

    >>> _signed("latency_ms", -0.3), _signed("score", 0.25), _signed("cost_usd", -0.1)
    ('0', '+0.250', '-$0.100000')
    """
    size = abs(value)
    if name == "latency_ms":
        text = f"{round(size):,d}"
    elif name == "cost_usd":
        return "0" if not size else f"{'-' if value < 0 else '+'}{_dollars(size)}"
    else:
        text = f"{size:.3f}" if _is_score(name) else f"{100 * size:.1f}"
    return f"{'-' if value < 0 else '+'}{text}" if text.strip("$0.") else text


def _is_score(name: str) -> bool:
    """Whether a value is a score from 0 to 1 rather than a share."""
    return name in {"rouge_l", "score"} or name.startswith(CHECK_PREFIX)
