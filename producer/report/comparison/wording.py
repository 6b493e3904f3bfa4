"""Writes a comparison of two runs in sentences and cells: for the terminal, for Markdown and for a page."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from producer import kinds
from producer.aggregate.compared_items import CHECK_PREFIX
from producer.report.cells import plain
from producer.text import plural
from shared.kinds import kind_named
from shared.names import Outcome

if TYPE_CHECKING:
    from producer.aggregate.compared_items import Comparing
    from producer.report.comparison.contents import Shown

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
METHODS: Final = {"bca": "resampled by", "normal": "by", "bonett-price": "paired by"}
"""How an interval was made, before the word for a unit."""
TONES: Final = {"better": "p", "worse": "f"}
"""Letters of outcomes by verdict."""
ALMOST_NEVER: Final = 0.0001
OFTEN: Final = 0.4


def headline(document: Mapping[str, Any]) -> str:
    """Returns a sentence on what changed from A to B.

    >>> counts = {"pairs": 6, "broken": 1, "fixed": 0, "changed": 0, "unchanged": 5}
    >>> document = {"kind": "queries", "regressions": [], "counts": counts}
    >>> headline(document | {"verdict": "no significant difference"})
    'No significant difference: 1 answer broken, none fixed'
    >>> headline(document | {"verdict": "better", "counts": counts | {"fixed": 1_000}})
    'B is better: 1,000 answers fixed, 1 broken'
    """
    counts, item = document["counts"], noun(document)
    broken, fixed, changed = (counts[name] for name in LISTS)
    changed_noun = "decision" if item == "turn" else item
    if not (broken or fixed or changed) and not document["regressions"]:
        return f"Nothing changed: {_every(counts['pairs'], item)} ended as before"
    order = (("fixed", fixed), ("broken", broken))
    (one, first), (other, second) = order if document["verdict"] == "better" else order[::-1]
    clause = f"{plural(first, item)} {one}, {f'{second:,}' if second else 'none'} {other}"
    if not first:
        clause = f"none {one}, {plural(second, item)} {other}"
    if not broken and not fixed:
        clause = (
            f"{plural(changed, changed_noun)} changed, none broken"
            if changed
            else "the outcomes are the same"
        )
    elif changed and item == "turn":
        clause += f", {plural(changed, changed_noun)} changed"
    scores = [NAMES.get(name, plain(name)) for name in document["regressions"] if name != "outcomes"]
    where = f" in {', '.join(scores)}" if scores else ""
    lead = {"better": "B is better", "worse": f"B is worse{where}"}.get(document["verdict"])
    return f"{lead or 'No significant difference'}: {clause}"


def sentences(document: Mapping[str, Any]) -> list[str]:
    """Writes by how much the rate changed, how often chance does the same, and what is in doubt."""
    counts = document["counts"]
    found = [_rate_sentence(document), _test_sentence(document)]
    errors = errors_in_b(document)
    if errors:
        of = f"{errors:,} of the {counts['broken']:,} broken" if counts["broken"] > 1 else "The broken one"
        ended = "ended in errors" if errors > 1 else "ended in an error"
        found.append(f"{of} {ended} in B: that may be the API and not the change.")
    unpaired = [
        f"{counts[f'only_{side}']:,} only in {side.upper()}" for side in "ab" if counts[f"only_{side}"]
    ]
    if unpaired:
        found.append(f"Not compared: {' and '.join(unpaired)}.")
    return [sentence for sentence in found if sentence]


def errors_in_b(document: Mapping[str, Any]) -> int:
    """Counts items that were broken by an error."""
    return sum(change["b"] == Outcome.ERROR for change in document["broken"])


def noun(document: Mapping[str, Any]) -> str:
    """Returns what a pair is."""
    return _comparing(document).item


def good_word(document: Mapping[str, Any]) -> str:
    """Returns what an item did that ended well."""
    return _comparing(document).good


def reason_of(shown: "Shown") -> str:
    """Returns why B did not pass, else why A did not."""
    return shown.after.reason or (f"was: {shown.before.reason}" if shown.before.reason else "")


def chance(p_value: float) -> str:
    """Describes how often chance makes a split that is at least as uneven.

    >>> chance(0.0125), chance(0.21), chance(0.5)
    ('once in 80 comparisons', 'once in 5 comparisons', 'in every second comparison')
    >>> chance(0.00001)
    'less than once in 10,000 comparisons'
    """
    if p_value < ALMOST_NEVER:
        return "less than once in 10,000 comparisons"
    if p_value > OFTEN:
        return "in every second comparison" if p_value < 1 - OFTEN else "in most comparisons"
    times = 1 / p_value
    digits = 10 ** max(0, len(str(int(times))) - 2)
    return f"once in {round(times / digits) * digits:,} comparisons"


def _comparing(document: Mapping[str, Any]) -> "Comparing":
    """Returns how items of the document's kind are compared."""
    return kinds.of(kind_named(document["kind"])).comparing.load()


def _rate_sentence(document: Mapping[str, Any]) -> str:
    """Describes how the share of good items changed, with its interval."""
    score = document["scores"].get("pass_rate")
    if score is None:
        return ""
    comparing = _comparing(document)
    name, how = comparing.good_rate, f"{METHODS.get(score['method'], 'by')} {comparing.unit}"
    level = f"{100 * (1 - document['test']['level_each']):g} %"
    interval = f"{100 * score['low']:+.1f} to {100 * score['high']:+.1f}"
    if not _has_interval(score):
        both = f"{_percent(score['a'])} → {_percent(score['b'])}"
        return f"{name} {both if score['difference'] else _percent(score['a']) + ' in both'}."
    if not score["difference"]:
        return f"{name} {_percent(score['a'])} in both ({level} interval of the change {interval}, {how})."
    way = "a gain" if score["difference"] > 0 else "a loss"
    points = f"{100 * abs(score['difference']):.1f} points ({level} interval {interval}, {how})"
    return f"{name} {_percent(score['a'])} → {_percent(score['b'])}, {way} of {points}."


def _test_sentence(document: Mapping[str, Any]) -> str:
    """Describes how often chance makes such a split, and whether that is seldom enough."""
    test, comparing = document["test"], _comparing(document)
    worse, better, units = test["worse"], test["better"], plural(test["units"], comparing.unit)
    if not worse and not better:
        return f"None of {units} got better or worse." if test["units"] > 1 else ""
    p = f"McNemar p {_p(test['p_value'])}, level {test['level_each']:g}"
    split = f"{worse:,} of {units} got worse, {better:,} better"
    if worse == better:
        return f"{split}: as many as chance would make ({p})."
    often = f"by chance alone, so uneven a split comes up {chance(test['p_value'])}"
    if test["p_value"] <= test["level_each"]:
        return f"{split}; {often} ({p})."
    few = f"{units} cannot tell A and B apart" if worse + better < 10 else "that is no evidence"  # noqa: PLR2004 - few pairs changed
    return f"{split}; {often} ({p}): {few}."


def _has_interval(score: Mapping[str, Any]) -> bool:
    """Whether the bounds say anything: cases that all changed alike show no doubt, where there is some."""
    return bool(score["low"] != score["high"])


def _every(number: int, item: str) -> str:
    """Names all items.

    >>> _every(1, "answer"), _every(3, "answer")
    ('the only answer', 'all 3 answers')
    """
    return f"the only {item}" if number == 1 else f"all {plural(number, item)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def counted(document: Mapping[str, Any]) -> str:
    """Counts pairs by what became of them, in one line."""
    counts = document["counts"]
    names = ("pairs", "broken", "fixed", "changed", "unchanged")
    parts = [f"{name} {counts[name]:,}" for name in names]
    parts += [f"only in {side.upper()} {number:,}" for side in "ab" if (number := counts[f"only_{side}"])]
    skipped = ((side.upper(), counts[f"skipped_{side}"]) for side in "ab")
    return " · ".join(parts + [f"skipped in {side} {number:,}" for side, number in skipped if number])


def transitions(document: Mapping[str, Any]) -> str:
    """Lists which decisions became which, the most frequent first; nothing when none did.

    >>> share = {"value": 0.25, "low": 0.05, "high": 0.7, "n": 4}
    >>> transitions({"transitions": {"must → skip": 1}, "changed_share": share})
    'changed in 25.0 % (5.0-70.0, n 4): must → skip 1'
    """
    if not document["transitions"]:
        return ""
    listed = ", ".join(f"{plain(name)} {number:,}" for name, number in document["transitions"].items())
    return f"changed in {rate_cells(document['changed_share'])}: {listed}"


def rate_cells(rate: Mapping[str, Any]) -> str:
    """Writes a pass rate with its Wilson interval.

    >>> rate_cells({"value": 0.75, "low": 0.3006, "high": 0.9544, "n": 4})
    '75.0 % (30.1-95.4, n 4)'
    """
    low, high = 100 * rate["low"], 100 * rate["high"]
    return f"{100 * rate['value']:.1f} % ({low:.1f}-{high:.1f}, n {rate['n']:,})"


def score_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Returns the scores as cells of a table with `COLUMNS`.

    A star means that 0 is not in the interval; cases that all changed alike have no interval.
    """
    return [
        [
            plain(NAMES.get(name, name), NAME_CHARS),
            _number(name, score["a"]),
            _number(name, score["b"]),
            _change(name, score["difference"]) + " *" * (score["significant"] and _has_interval(score)),
            f"{_signed(name, score['low'])} to {_signed(name, score['high'])}"
            if _has_interval(score)
            else "-",
            f"{score['n']:,}",
        ]
        for name, score in document["scores"].items()
    ]


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
