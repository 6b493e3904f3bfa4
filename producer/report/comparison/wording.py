"""Writes a comparison of two runs in sentences: for the terminal, for Markdown and for a page."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from producer.report.cells import plain
from producer.report.comparison.score_table import (
    PASS_RATE,
    change_of,
    comparing_of,
    interval_of,
    is_beyond_chance,
    leaves_out_zero,
    level_of,
    score_name,
)
from producer.text import bounds, plural
from shared.names import Outcome

if TYPE_CHECKING:
    from producer.report.comparison.contents import Shown

LISTS: Final = ("broken", "fixed", "changed")
"""What became of items, in the order in which it is always written."""
TONES: Final = {"better": "p", "worse": "f"}
"""Letters of outcomes by verdict."""
ALMOST_NEVER: Final = 0.0001
FEW: Final = 10
"""Changed units below which a test finds little; fewer than five are never significant at a level of 0.05."""


def headline(document: Mapping[str, Any]) -> str:
    """Returns a sentence on what changed from A to B: broken before fixed before changed.

    >>> counts = {"pairs": 6, "broken": 1, "fixed": 0, "changed": 0, "unchanged": 5, "only_a": 1}
    >>> document = {"kind": "queries", "regressions": [], "counts": counts, "test": {"units": 6}}
    >>> headline(document | {"verdict": "no significant difference"})
    'No significant difference: 1 of 6 answers broken, nothing fixed'
    >>> headline(document | {"verdict": "better", "counts": counts | {"fixed": 3}})
    'B is better: 1 of 6 answers broken, 3 fixed'
    """
    counts = document["counts"]
    if not any(counts[name] for name in LISTS) and not document["regressions"]:
        return f"Nothing changed: {_every(counts['pairs'], noun(document))} ended as before"
    scores = [
        score_name(document, name).removeprefix("mean ")
        for name in document["regressions"]
        if name != "outcomes"
    ]
    also = ", also" if "outcomes" in document["regressions"] else ""
    where = f"{also} in {', '.join(map(plain, scores))}" if scores else ""
    lead = {"better": "B is better", "worse": f"B is worse{where}"}.get(document["verdict"])
    return f"{lead or 'No significant difference'}: {_changes(document)}"


def sentences(document: Mapping[str, Any]) -> list[str]:
    """Writes what the test found, by how much the rate and judged scores changed, and what is in doubt."""
    counts = document["counts"]
    found = [_test_sentence(document), *_judged_sentences(document), _rate_sentence(document)]
    errors = errors_in_b(document)
    if errors:
        of = f"{errors:,} of the {counts['broken']:,} broken" if counts["broken"] > 1 else "The broken one"
        ended = "ended in errors" if errors > 1 else "ended in an error"
        found.append(f"{of} {ended} in B: that may be the API and not the change.")
    found.append(_left_out(document))
    return [sentence for sentence in found if sentence]


def errors_in_b(document: Mapping[str, Any]) -> int:
    """Counts items that were broken by an error."""
    return sum(change["b"] == Outcome.ERROR for change in document["broken"])


def noun(document: Mapping[str, Any]) -> str:
    """Returns the word for what is counted: the unit of the test itself where it has only one answer.

    >>> counts = {"pairs": 6, "only_a": 0, "only_b": 0, "skipped_a": 0, "skipped_b": 0}
    >>> document = {"kind": "cases", "counts": counts, "test": {"units": 6}}
    >>> noun(document), noun(document | {"test": {"units": 3}}), noun(document | {"kind": "turns"})
    ('case', 'answer', 'turn')
    """
    comparing = comparing_of(document)
    return comparing.unit if comparing.item == "answer" and _has_one_each(document) else comparing.item


def good_word(document: Mapping[str, Any]) -> str:
    """Returns what an item did that ended well."""
    return comparing_of(document).good


def reason_of(shown: "Shown") -> str:
    """Returns why B did not pass, else why A did not."""
    return shown.after.reason or (f"was: {shown.before.reason}" if shown.before.reason else "")


def counted(document: Mapping[str, Any]) -> str:
    """Counts the items that both runs have, their cases, and what became of them; zeros are left out.

    >>> counts = {"pairs": 6, "broken": 1, "fixed": 0, "changed": 0, "unchanged": 5, "only_a": 1}
    >>> counted({"kind": "queries", "counts": counts, "test": {"units": 3}})
    '6 answers (3 queries) in both: 1 broken, 5 unchanged.'
    """
    counts = document["counts"]
    parts = [f"{counts[name]:,} {name}" for name in (*LISTS, "unchanged") if counts[name]]
    return f"{_sized(document)} in both: {', '.join(parts)}."


def transitions(document: Mapping[str, Any]) -> str:
    """Lists what became what, the most frequent first; nothing that `broken` and `fixed` already show.

    >>> counts = {"pairs": 4, "unchanged": 3, "only_a": 1}
    >>> share = {"value": 0.25, "low": 0.05, "high": 0.7, "n": 4}
    >>> document = {"kind": "turns", "counts": counts, "transitions": {"must → skip": 1}}
    >>> transitions(document | {"changed_share": share})
    '1 of 4 turns ended differently (25.0%, 95% interval 5.0-70.0%): 1 must → skip.'
    >>> transitions({"transitions": {"passed → failed": 3}})
    ''
    """
    if document["transitions"].keys() <= _OBVIOUS:
        return ""
    counts, share = document["counts"], document["changed_share"]
    changed = f"{counts['pairs'] - counts['unchanged']:,} of {plural(counts['pairs'], noun(document))}"
    rate = f"{_percent(share['value'])}, 95% interval {'-'.join(bounds(share))}%"
    return f"{changed} ended differently ({rate}): {listed_transitions(document)}."


def listed_transitions(document: Mapping[str, Any]) -> str:
    """Lists what became what, with counts."""
    return ", ".join(f"{number:,} {plain(name)}" for name, number in document["transitions"].items())


_OBVIOUS: Final = {"passed → failed", "failed → passed"}


def _has_one_each(document: Mapping[str, Any]) -> bool:
    """Whether each case, query or thread of both runs has one item, so that counts of both are equal."""
    counts = document["counts"]
    left_out = ("only_a", "only_b", "skipped_a", "skipped_b")
    return counts["pairs"] == document["test"]["units"] and not any(counts.get(name) for name in left_out)


def _sized(document: Mapping[str, Any]) -> str:
    """Counts what both runs have.

    >>> _sized({"kind": "turns", "counts": {"pairs": 6}, "test": {"units": 3}})
    '6 turns (3 threads)'
    """
    items, units = document["counts"]["pairs"], document["test"]["units"]
    unit = comparing_of(document).unit
    size = plural(items, noun(document))
    return size if noun(document) == unit else f"{size} ({plural(units, unit)})"


def _changes(document: Mapping[str, Any]) -> str:
    """Counts what was broken, fixed and changed, the first of them of how many."""
    counts, item = document["counts"], noun(document)
    parts = [(counts[name], name) for name in ("broken", "fixed") if counts[name]]
    changed_noun = "decision" if item == "turn" else item
    if not parts:
        if not counts["changed"]:
            return "the outcomes are the same"
        return f"{counts['changed']:,} of {plural(counts['pairs'], changed_noun)} changed, nothing broken"
    (number, name), *others = parts
    other = "fixed" if name == "broken" else "broken"
    second = f"{others[0][0]:,} {other}" if others else f"nothing {other}"
    third = f", {plural(counts['changed'], changed_noun)} changed" if counts["changed"] else ""
    return f"{number:,} of {plural(counts['pairs'], item)} {name}, {second}{third}"


def _test_sentence(document: Mapping[str, Any]) -> str:
    """Describes whether the change is more than chance, and why: the test that the verdict follows."""
    test, unit = document["test"], comparing_of(document).unit
    worse, better, units = test["worse"], test["better"], plural(test["units"], unit)
    if not worse and not better:
        if document["counts"]["broken"]:
            return f"No {unit} got better or worse in all: as many of its answers broke as were fixed."
        return f"None of {units} got better or worse." if test["units"] > 1 else ""
    if worse == better:
        return f"{worse:,} of {units} got worse and as many got better: no sign of a difference."
    split = f"{worse:,} of {units} got worse, {better or 'none'} better"
    if not worse:
        split = f"{better:,} of {units} got better, none worse"
    level = test["level_each"]
    p = f"McNemar's mid-p test: p {_p(test['p_value'], level)}, level {level:g}"
    if is_beyond_chance(document):
        return f"{split}, which is more than chance ({p})."
    changed = worse + better
    few = f"; {plural(changed, f'changed {unit}')} {'is' if changed == 1 else 'are'} too few to decide"
    return f"{split}, which may be chance ({p}){few if changed < FEW else ''}."


def _judged_sentences(document: Mapping[str, Any]) -> Iterator[str]:
    """Writes by how much each judged score became worse, with the interval that shows it."""
    for name in document["regressions"]:
        if name in document["scores"]:
            score, subject = document["scores"][name], plain(score_name(document, name))
            yield (
                f"{subject[:1].upper()}{subject[1:]} is worse by more than chance: "
                f"{change_of(name, score['difference'])} ({level_of(document)} interval"
                f" {interval_of(document, name)})."
            )


def _rate_sentence(document: Mapping[str, Any]) -> str:
    """Writes how the share of good items changed, with its interval, and what decides if the test differs."""
    score = document["scores"].get(PASS_RATE)
    if score is None:
        return ""
    name = comparing_of(document).good_rate
    counts = document["counts"]
    if any(counts[key] for key in ("only_a", "only_b", "skipped_a", "skipped_b")):
        name += f" over the {_sized(document)} in both:"
    rates = [_percent(score[side]) for side in "ab"]
    shown = interval_of(document, PASS_RATE)
    interval = f" ({level_of(document)} interval {shown})" if shown else ""
    if not score["difference"]:
        of_change = interval.replace("interval", "interval of the change")
        return f"{name} {rates[0]} in A and B{of_change}."
    way = "a gain" if score["difference"] > 0 else "a loss"
    points = f"{100 * abs(score['difference']):.1f} points{interval}"
    return f"{name} {rates[0]} → {rates[1]}, {way} of {points}.{_disagreement(document)}"


def _disagreement(document: Mapping[str, Any]) -> str:
    """Notes that the verdict follows the test where the interval of the rate would have another one."""
    score = document["scores"][PASS_RATE]
    if not interval_of(document, PASS_RATE) or leaves_out_zero(score) == is_beyond_chance(document):
        return ""
    zero = "leaves out 0" if leaves_out_zero(score) else "includes 0"
    return f" This interval, computed by another method, {zero}; the verdict follows the test."


def _left_out(document: Mapping[str, Any]) -> str:
    """Counts what could not be compared."""
    counts, item = document["counts"], comparing_of(document).item
    parts = [
        f"{plural(counts[f'{key}_{side}'], item)} {words} {side.upper()}"
        for key, words in (("only", "only in"), ("skipped", "skipped in"))
        for side in "ab"
        if counts[f"{key}_{side}"]
    ]
    return f"Not compared: {', '.join(parts)}." if parts else ""


def _every(number: int, item: str) -> str:
    """Names all items.

    >>> _every(1, "answer"), _every(3, "answer")
    ('the only answer', 'all 3 answers')
    """
    return f"the only {item}" if number == 1 else f"all {plural(number, item)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _p(value: float, level: float) -> str:
    """Writes a p-value with digits enough to be on its side of the level.

    >>> _p(0.0389, 0.05), _p(0.05013, 0.05), _p(1e-9, 0.05)
    ('= 0.039', '= 0.0501', '< 0.0001')
    """
    if value < ALMOST_NEVER:
        return "< 0.0001"
    texts = (f"{value:.{digits}g}" for digits in range(2, 17))
    return f"= {next((text for text in texts if (float(text) <= level) == (value <= level)), value)}"
