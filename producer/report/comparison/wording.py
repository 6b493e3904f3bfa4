"""Writes a comparison of two runs in rows and sentences: for the terminal, for Markdown and for a page."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from producer.aggregate.compared_items import CHECK_PREFIX, Comparing
from producer.aggregate.comparison import PASS_RATE, Comparison, can_differ
from producer.report.cells import Size, plain
from producer.text import bounds, cost_each, latency, many, percent, plural
from shared.names import Outcome

NAMES: Final = {
    "score": "score",
    "keywords_found": "keywords found",
    "rouge_l": "ROUGE-L",
    "latency_ms": "mean latency",
    "cost_usd": "cost per {item}",
}
"""Scores as people read them."""
LISTS: Final = ("broken", "fixed", "changed")
"""What became of items, in the order in which it is always written."""
MARKS: Final = {"better": "✓", "worse": "✗", "no significant difference": "="}
"""Marks of verdicts."""
FEW: Final = 10
"""Changed units below which a test finds little; fewer than five are never significant at a level of 0.05."""
_OBVIOUS: Final = {"passed → failed", "failed → passed"}


class ScoreTable(NamedTuple):
    """The scores of a comparison."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    """Scores, then checks that changed, the most first."""
    same: Sequence[Sequence[str]]
    """Checks with the same mean in both."""
    note: str
    """What a star means; empty where there is none."""


def score_table(found: Comparison) -> ScoreTable:
    """Returns the scores; means over cases, queries or threads that have the score in both runs."""
    checks = {name: score for name, score in found.scores.items() if name.startswith(CHECK_PREFIX)}
    changed = sorted(
        (name for name in checks if checks[name].difference), key=lambda name: -abs(checks[name].difference)
    )
    shown = [*(name for name in found.scores if name not in checks), *changed]
    starred = [name for name in shown if is_sure(found, name)]
    note = ""
    if starred == [PASS_RATE]:
        note = "* more than chance, by McNemar's test."
    elif starred:
        one_in = round(1 / found.test.level_each)
        note = f"the interval leaves out 0; by chance, this happens for 1 in {one_in} unchanged scores."
        rate = score_name(found.comparing, PASS_RATE)
        by_test = f"more than chance: {rate} by McNemar's test, other scores where "
        note = f"* {by_test if PASS_RATE in starred else ''}{note}"
    return ScoreTable(
        ("score", "A", "B", "change", f"{level_of(found)} interval", many(found.comparing.unit)),
        [_row(found, name) for name in shown],
        [_row(found, name) for name, score in checks.items() if not score.difference],
        note,
    )


def score_name(comparing: Comparing, name: str) -> str:
    """Names a score.

    >>> from producer.aggregate.compared_items import COMPARED_CASES, COMPARED_TURNS
    >>> score_name(COMPARED_TURNS, "pass_rate"), score_name(COMPARED_CASES, "cost_usd")
    ('decided', 'cost per answer')
    """
    if name == PASS_RATE:
        return comparing.good_rate.lower()
    return NAMES.get(name, name).replace("{item}", comparing.item)


def level_of(found: Comparison) -> str:
    """Writes the confidence of the intervals."""
    return f"{100 * (1 - found.test.level_each):g}%"


def change_of(name: str, value: float) -> str:
    """Writes a difference with its sign and unit.

    >>> change_of("latency_ms", -12.3), change_of("cost_usd", -0.5), change_of("pass_rate", 0.05)
    ('-12 ms', '-$0.500000', '+5.0 pts')
    """
    units = {"latency_ms": " ms", PASS_RATE: " pts", "keywords_found": " pts"}
    return _signed(name, value) + units.get(name, "") if value else "0"


def interval_of(found: Comparison, name: str) -> str:
    """Writes the interval of a difference; empty if cases are too few or all changed by the same amount.

    A bootstrap of a handful of cases understates the uncertainty.
    """
    score = found.scores[name]
    if score.low == score.high or not can_differ(score.n, found.test.level_each):
        return ""
    return f"{_signed(name, score.low)} to {_signed(name, score.high)}"


def amount_of(name: str, value: float) -> str:
    """Writes a score with its unit.

    >>> amount_of("cost_usd", 0.00002), amount_of("pass_rate", 0.5), amount_of("score", 0.5)
    ('$0.000020', '50.0%', '0.500')
    """
    if name == "latency_ms":
        return latency(value)
    if name == "cost_usd":
        return cost_each(value)
    return f"{value:.3f}" if _is_score(name) else percent(value)


def _row(found: Comparison, name: str) -> list[str]:
    score, change = found.scores[name], change_of(name, found.scores[name].difference)
    return [
        plain(score_name(found.comparing, name), Size.CELL),
        amount_of(name, score.a),
        amount_of(name, score.b),
        f"{change} *" if is_sure(found, name) else change,
        interval_of(found, name) or "-",
        f"{score.n:,}",
    ]


def is_sure(found: Comparison, name: str) -> bool:
    """Returns whether a score changed by more than chance: outcomes by the test, others by their interval."""
    if name == PASS_RATE:
        return found.test.is_significant
    return bool(interval_of(found, name)) and found.scores[name].leaves_out_zero


def _signed(name: str, value: float) -> str:
    """Writes a difference with its sign; zero has none.

    >>> _signed("latency_ms", -0.3), _signed("score", 0.25), _signed("cost_usd", -0.1)
    ('0', '+0.250', '-$0.100000')
    """
    size = abs(value)
    if name == "latency_ms":
        text = f"{round(size):,d}"
    elif name == "cost_usd":
        return "0" if not size else f"{'-' if value < 0 else '+'}{cost_each(size)}"
    else:
        text = f"{size:.3f}" if _is_score(name) else f"{100 * size:.1f}"
    return f"{'-' if value < 0 else '+'}{text}" if text.strip("0.") else text


def _is_score(name: str) -> bool:
    """Whether a value is a score from 0 to 1 rather than a share."""
    return name in {"rouge_l", "score"} or name.startswith(CHECK_PREFIX)


def headline(found: Comparison) -> str:
    """Returns a sentence on what changed from A to B: broken before fixed before changed."""
    counts, regressions, item = found.counts, found.regressions, noun(found)
    if not (counts.broken or counts.fixed or counts.changed or regressions):
        every = f"the only {item}" if counts.pairs == 1 else f"all {plural(counts.pairs, item)}"
        return f"Nothing changed: {every} ended as before"
    names = (score_name(found.comparing, name) for name in regressions if name != "outcomes")
    scores = ", ".join(plain(name.removeprefix("mean ")) for name in names)
    where = f"{', also' if 'outcomes' in regressions else ''} in {scores}" if scores else ""
    lead = {"better": "B is better", "worse": f"B is worse{where}"}.get(found.verdict)
    return f"{lead or 'No significant difference'}: {_changes(found)}"


def sentences(found: Comparison) -> list[str]:
    """Writes what the test found, by how much the rate and judged scores changed, and what is in doubt."""
    return [sentence for sentence in _sentences(found) if sentence]


def _sentences(found: Comparison) -> Iterator[str]:
    counts, item, broken = found.counts, found.comparing.item, found.pairs.broken
    yield _test_sentence(found)
    edited = sum(pair.has_other_expectation for pair in found.pairs.differing())
    if edited:
        ended = found.counts.pairs - found.counts.unchanged
        lead = f"{edited:,} of the {ended:,} that" if ended > 1 else "The one that"
        yield f"{lead} ended differently had another expectation in A: no test counts this."
    for name in found.regressions:
        if name in found.scores:
            subject = plain(score_name(found.comparing, name))
            yield (
                f"{subject[:1].upper()}{subject[1:]} is worse by more than chance: "
                f"{change_of(name, found.scores[name].difference)} ({level_of(found)} interval"
                f" {interval_of(found, name)})."
            )
    yield _rate_sentence(found)
    errors = sum(pair.after.word == Outcome.ERROR for pair in broken)
    if errors:
        of = f"{errors:,} of the {len(broken):,} broken" if len(broken) > 1 else "The broken one"
        ended_in = "ended in errors" if errors > 1 else "ended in an error"
        yield f"{of} {ended_in} in B: that may be the API and not the change."
    left_out = {
        "only in A": counts.only_a,
        "only in B": counts.only_b,
        "skipped in A": counts.skipped_a,
        "skipped in B": counts.skipped_b,
    }
    if parts := [f"{plural(number, item)} {where}" for where, number in left_out.items() if number]:
        yield f"Not compared: {', '.join(parts)}."


def noun(found: Comparison) -> str:
    """Returns the word for what is counted: the unit of the test itself where it has only one answer."""
    comparing, counts = found.comparing, found.counts
    has_one_each = counts.pairs == found.test.units and counts.are_all_paired
    return comparing.unit if comparing.item == "answer" and has_one_each else comparing.item


def counted(found: Comparison) -> str:
    """Counts the items that both runs have, their cases, and what became of them; zeros are left out."""
    counts = found.counts
    numbers = (counts.broken, counts.fixed, counts.changed, counts.unchanged)
    parts = [f"{n:,} {name}" for n, name in zip(numbers, (*LISTS, "unchanged"), strict=True) if n]
    return f"{_sized(found)} in both: {', '.join(parts)}."


def transitions(found: Comparison) -> str:
    """Lists what became what, the most frequent first; nothing that `broken` and `fixed` already show."""
    if found.transitions.keys() <= _OBVIOUS:
        return ""
    counts, share = found.counts, found.changed_share
    changed = f"{counts.pairs - counts.unchanged:,} of {plural(counts.pairs, noun(found))}"
    rate = f"{percent(share.value)}, 95% interval {'-'.join(bounds(share))}%"
    listed = ", ".join(f"{number:,} {plain(name)}" for name, number in found.transitions.items())
    return f"{changed} ended differently ({rate}): {listed}."


def _sized(found: Comparison) -> str:
    """Counts what both runs have, as `6 turns (3 threads)`."""
    unit, item = found.comparing.unit, noun(found)
    size = plural(found.counts.pairs, item)
    return size if item == unit else f"{size} ({plural(found.test.units, unit)})"


def _changes(found: Comparison) -> str:
    """Counts what was broken, fixed and changed, the first of them of how many."""
    counts, item = found.counts, noun(found)
    changed_noun = "decision" if item == "turn" else item
    if not counts.broken and not counts.fixed:
        if not counts.changed:
            return "the outcomes are the same"
        return f"{counts.changed:,} of {plural(counts.pairs, changed_noun)} changed, nothing broken"
    of, fixed = plural(counts.pairs, item), f"{counts.fixed:,} fixed" if counts.fixed else "nothing fixed"
    text = f"{counts.broken:,} of {of} broken, {fixed}"
    if not counts.broken:
        text = f"{counts.fixed:,} of {of} fixed, nothing broken"
    return f"{text}, {plural(counts.changed, changed_noun)} changed" if counts.changed else text


def _test_sentence(found: Comparison) -> str:
    """Describes whether the change is more than chance, and why: the test that the verdict follows."""
    test, unit = found.test, found.comparing.unit
    worse, better, units = test.worse, test.better, plural(test.units, unit)
    if not worse and not better:
        if any(not pair.has_other_expectation for pair in found.pairs.broken):
            return f"No {unit} got better or worse in all: as many of its answers broke as were fixed."
        return f"None of {units} got better or worse." if test.units > 1 else ""
    if worse == better:
        return f"{worse:,} of {units} got worse and as many got better: no sign of a difference."
    split = f"{worse:,} of {units} got worse, {better or 'none'} better"
    if not worse:
        split = f"{better:,} of {units} got better, none worse"
    p = f"McNemar's mid-p test: p {_p(test.p_value, test.level_each)}, level {test.level_each:g}"
    if test.is_significant:
        return f"{split}, which is more than chance ({p})."
    changed = worse + better
    few = f"; {plural(changed, f'changed {unit}')} {'is' if changed == 1 else 'are'} too few to decide"
    return f"{split}, which may be chance ({p}){few if changed < FEW else ''}."


def _rate_sentence(found: Comparison) -> str:
    """Writes how the share of good items changed, with its interval, and what decides if the test differs."""
    score, name = found.scores.get(PASS_RATE), found.comparing.good_rate
    if score is None:
        return ""
    if not found.counts.are_all_paired:
        name += f" over the {_sized(found)} in both:"
    shown = interval_of(found, PASS_RATE)
    interval = f" ({level_of(found)} interval {shown})" if shown else ""
    if not score.difference:
        of_change = interval.replace("interval", "interval of the change")
        return f"{name} {percent(score.a)} in A and B{of_change}."
    way = "a gain" if score.difference > 0 else "a loss"
    points = f"{100 * abs(score.difference):.1f} points{interval}"
    sentence = f"{name} {percent(score.a)} → {percent(score.b)}, {way} of {points}."
    if not shown or score.leaves_out_zero == found.test.is_significant:
        return sentence
    zero = "leaves out 0" if score.leaves_out_zero else "includes 0"
    return f"{sentence} This interval, computed by another method, {zero}; the verdict follows the test."


def _p(value: float, level: float) -> str:
    """Writes a p-value with digits enough to be on its side of the level.

    >>> _p(0.0389, 0.05), _p(0.05013, 0.05), _p(1e-9, 0.05)
    ('= 0.039', '= 0.0501', '< 0.0001')
    """
    if value < 0.0001:  # noqa: PLR2004 - almost never
        return "< 0.0001"
    texts = (f"{value:.{digits}g}" for digits in range(2, 17))
    return f"= {next((text for text in texts if (float(text) <= level) == (value <= level)), value)}"
