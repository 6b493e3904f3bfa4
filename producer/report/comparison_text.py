"""Writes a comparison of two runs for people: cells for tables, sentences, and Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from producer import kinds
from producer.aggregate.compared_items import CHECK_PREFIX
from producer.report.cells import markdown, plain
from producer.text import plural
from shared.kinds import kind_named

NAMES: Final = {
    "pass_rate": "passed, pairs",
    "score": "score",
    "keywords_found": "keywords found",
    "rouge_l": "ROUGE-L",
    "latency_ms": "latency",
    "cost_usd": "cost",
}
"""Scores as people read them."""
NAME_CHARS: Final = 60
LISTS: Final = ("broken", "fixed", "changed")
COLUMNS: Final = ("score", "a", "b", "change", "interval", "n")
"""Of the table of scores."""


def verdict(document: Mapping[str, Any]) -> str:
    """Says in one sentence how B did, and how sure that is.

    >>> test = {"p_value": 0.5, "level_each": 0.05, "worse": 1, "better": 0, "units": 6}
    >>> verdict({"kind": "queries", "verdict": "no significant difference", "test": test, "regressions": []})
    'B: no significant difference; 1 of 6 queries worse, 0 better (McNemar p = 0.5, level 0.05)'
    """
    test = document["test"]
    unit = kinds.of(kind_named(document["kind"])).comparing.load().unit
    sentence = f"{test['worse']} of {plural(test['units'], unit)} worse, {test['better']} better"
    sure = f"(McNemar p {_p(test['p_value'])}, level {test['level_each']:g})"
    worse = [NAMES.get(name, name) for name in document["regressions"] if name != "outcomes"]
    what = f"{document['verdict']}{' in ' + ', '.join(worse) if worse else ''}"
    return f"B: {what}; {sentence} {sure}"


def counted(document: Mapping[str, Any]) -> str:
    """Says how the pairs came out."""
    counts = document["counts"]
    names = ("pairs", "broken", "fixed", "changed", "unchanged")
    told = [f"{name} {counts[name]:,}" for name in names]
    told += [f"only in {side.upper()} {number:,}" for side in "ab" if (number := counts[f"only_{side}"])]
    skipped = ((side.upper(), counts[f"skipped_{side}"]) for side in "ab")
    return " · ".join(told + [f"skipped in {side} {number:,}" for side, number in skipped if number])


def transitions(document: Mapping[str, Any]) -> str:
    """Says which decisions became which, the most frequent first; nothing when none did.

    >>> share = {"value": 0.25, "low": 0.05, "high": 0.7, "n": 4}
    >>> transitions({"transitions": {"must → skip": 1}, "changed_share": share})
    'changed in 25.0 % (5.0-70.0, n 4): must → skip 1'
    """
    if not document["transitions"]:
        return ""
    told = ", ".join(f"{plain(name)} {number:,}" for name, number in document["transitions"].items())
    return f"changed in {rate_cells(document['changed_share'])}: {told}"


def rate_cells(rate: Mapping[str, Any]) -> str:
    """Writes a pass rate with its Wilson interval.

    >>> rate_cells({"value": 0.75, "low": 0.3006, "high": 0.9544, "n": 4})
    '75.0 % (30.1-95.4, n 4)'
    """
    low, high = 100 * rate["low"], 100 * rate["high"]
    return f"{100 * rate['value']:.1f} % ({low:.1f}-{high:.1f}, n {rate['n']:,})"


def score_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Returns the scores as cells of a table with `COLUMNS`; a star says that 0 is not in the interval."""
    return [
        [
            plain(NAMES.get(name, name), NAME_CHARS),
            _number(name, score["a"]),
            _number(name, score["b"]),
            _change(name, score["difference"]) + (" *" if score["significant"] else ""),
            f"{_signed(name, score['low'])} to {_signed(name, score['high'])}",
            f"{score['n']:,}",
        ]
        for name, score in document["scores"].items()
    ]


def change_lines(changes: Sequence[Mapping[str, str]], first: int) -> list[str]:
    """Writes items that ended otherwise, one a line."""
    lines = [f"  {plain(each['item'])}: {plain(each['a'])} → {plain(each['b'])}" for each in changes[:first]]
    return [*lines, f"  {len(changes) - first:,} more"] if len(changes) > first else lines


def comparison_markdown(document: Mapping[str, Any]) -> str:
    """Writes all of a comparison as Markdown."""
    a, b = document["a"], document["b"]
    level = f"{100 * (1 - document['test']['level_each']):g} %"
    lines = [
        "# Comparison",
        "",
        f"**{verdict(document)}**",
        "",
        "| | run | passed |",
        "| --- | --- | --- |",
        f"| A | {markdown(a['name'])} | {rate_cells(document['pass_rate']['a'])} |",
        f"| B | {markdown(b['name'])} | {rate_cells(document['pass_rate']['b'])} |",
        "",
        counted(document),
        *(["", changes] if (changes := transitions(document)) else []),
        "",
        f"| score | A | B | change | {level} interval | n |",
        "| --- | ---: | ---: | ---: | --- | ---: |",
        *(f"| {' | '.join((markdown(row[0]), *row[1:]))} |" for row in score_rows(document)),
    ]
    for name in LISTS:
        if document[name]:
            lines += ["", f"## {name.capitalize()}", "", "| item | A | B |", "| --- | --- | --- |"]
            lines += [
                f"| {' | '.join(markdown(each[key]) for key in ('item', 'a', 'b'))} |"
                for each in document[name]
            ]
    return "\n".join(lines) + "\n"


def _number(name: str, value: float) -> str:
    """Writes a score with its unit."""
    if name == "latency_ms":
        return f"{value:,.0f} ms"
    if name == "cost_usd":
        return f"${value:.6f}"
    return f"{value:.3f}" if _is_score(name) else f"{100 * value:.1f} %"


def _change(name: str, value: float) -> str:
    """Writes a difference with its sign and unit.

    >>> _change("latency_ms", -12.3), _change("cost_usd", -0.5), _change("pass_rate", 0.05)
    ('-12 ms', '-$0.500000', '+5.0 pts')
    """
    units = {"latency_ms": " ms", "pass_rate": " pts", "keywords_found": " pts"}
    return _signed(name, value) + units.get(name, "")


def _signed(name: str, value: float) -> str:
    """Writes a difference with its sign."""
    if name == "latency_ms":
        return f"{round(value):+,d}"
    if name == "cost_usd":
        return f"{'-' if value < 0 else '+'}${abs(value):.6f}"
    return f"{value:+.3f}" if _is_score(name) else f"{100 * value:+.1f}"


def _is_score(name: str) -> bool:
    """Whether a value is a score from 0 to 1 rather than a share."""
    return name in {"rouge_l", "score"} or name.startswith(CHECK_PREFIX)


def _p(value: float) -> str:
    """Writes a p-value."""
    return "< 0.0001" if value < 0.0001 else f"= {value:.2g}"  # noqa: PLR2004 - less is never of interest
