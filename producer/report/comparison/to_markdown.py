"""Writes a comparison as Markdown: the sentence first, then what was broken, fixed and changed."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from producer.aggregate.comparison_groups import Group, SideFacts
from producer.report.cells import markdown
from producer.report.comparison.contents import Contents, Shown, Side
from producer.report.comparison.word_difference import Part, compare_words
from producer.report.comparison.wording import (
    good_word,
    headline,
    noun,
    rate_cells,
    reason_of,
    score_rows,
    sentences,
    transitions,
)
from producer.text import cost, duration, plural

MOST_ANSWERS: Final = 50
"""Pairs of a list whose answers are written beside each other."""
ANSWER_CHARS: Final = 2_000
REASON_CHARS: Final = 300
MARKS: Final = {"better": "✓", "worse": "✗"}
HEADINGS: Final = {
    "broken": "Broken",
    "fixed": "Fixed",
    "changed": "Changed",
    "text": "Other answers, same outcome",
}


def comparison_markdown(contents: Contents) -> Iterator[str]:
    """Yields the lines of a comparison."""
    document = contents.document
    yield from ("# Comparison", "", f"**{MARKS.get(document['verdict'], '=')} {headline(document)}**", "")
    yield from (" ".join(sentences(document)), "")
    good = good_word(document)
    yield from (f"| | run | {good} | 95th percentile | cost |", "| --- | --- | --- | ---: | ---: |")
    for letter, side, facts in zip("ab", contents.sides, contents.facts, strict=True):
        yield _side_row(letter, side, facts, document["pass_rate"][letter])
    yield from ("", markdown(contents.differences()), "", _counts(document))
    if changes := transitions(document):
        yield from ("", changes)
    yield from _scores(document)
    for facet, groups in contents.groups.items():
        yield from _groups(facet, groups, good)
    yield from _pairs(contents)
    yield from ("", f"Compare again: `{markdown(contents.command)}`")


def _side_row(letter: str, side: Side, facts: SideFacts, rate: Mapping[str, Any]) -> str:
    """Writes one side as a row of the first table."""
    name = markdown(f"{side.name} {side.source}".rstrip())
    p95 = "" if facts.p95_ms is None else duration(facts.p95_ms / 1000)
    price = "" if facts.cost_usd is None else cost(facts.cost_usd)
    return f"| {letter.upper()} | {name} | {rate_cells(rate)} | {p95} | {price} |"


def _counts(document: Mapping[str, Any]) -> str:
    """Counts the pairs."""
    counts = document["counts"]
    parts = [f"{counts[name]:,} {name}" for name in ("broken", "fixed", "changed", "unchanged")]
    parts += [f"{counts[f'only_{side}']:,} only in {side.upper()}" for side in "ab" if counts[f"only_{side}"]]
    parts += [
        f"{counts[f'skipped_{side}']:,} skipped in {side.upper()}"
        for side in "ab"
        if counts[f"skipped_{side}"]
    ]
    return f"{plural(counts['pairs'], noun(document))} in both: {' · '.join(parts)}"


def _scores(document: Mapping[str, Any]) -> Iterator[str]:
    """Writes the table of scores."""
    level = f"{100 * (1 - document['test']['level_each']):g} %"
    yield from ("", f"| score | A | B | change | {level} interval | n |")
    yield "| --- | ---: | ---: | ---: | --- | ---: |"
    for row in score_rows(document):
        yield f"| {' | '.join((markdown(row[0]), *row[1:]))} |"


def _groups(facet: str, groups: Sequence[Group], good: str) -> Iterator[str]:
    """Writes the table of one facet."""
    yield from ("", f"| {facet} | {good} in A | {good} in B | of | broken | fixed | p |")
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for group in groups:
        figures = (*group.passed, group.pairs, group.broken, group.fixed)
        numbers = " | ".join(f"{number:,}" for number in figures)
        yield f"| {markdown(group.name)} | {numbers} | {group.p_value:.2g} |"


def _pairs(contents: Contents) -> Iterator[str]:
    """Writes tables of what was broken, fixed and changed, each with the answers of its first pairs."""
    last, number, answers = "", 0, list[str]()
    for shown in contents.pairs():
        if shown.sort != last:
            yield from _folded(answers)
            last, number, answers = shown.sort, 0, []
            yield from ("", f"## {HEADINGS[last]}", "")
            if last != "text":
                yield from ("| item | A | B | reason |", "| --- | --- | --- | --- |")
        number += 1
        if shown.sort != "text":
            yield _row(shown)
        if number <= MOST_ANSWERS:
            answers += _answers(shown)
    yield from _folded(answers)


def _row(shown: Shown) -> str:
    """Writes a pair as a row."""
    before, after = shown.pair
    words = (markdown(text) for text in (shown.name, before.word, after.word))
    return f"| {' | '.join(words)} | {markdown(reason_of(shown), REASON_CHARS)} |"


def _folded(answers: Sequence[str]) -> Iterator[str]:
    """Folds the answers of a list."""
    if answers:
        first = f"first {MOST_ANSWERS} answers" if len(answers) > 4 * MOST_ANSWERS - 1 else "answers"
        yield from ("", f"<details><summary>{first}</summary>", "", *answers, "</details>")


def _answers(shown: Shown) -> list[str]:
    """Writes both answers, what differs struck out in A and underlined in B."""
    texts = [texts.answer[:ANSWER_CHARS] for texts in (shown.before, shown.after)]
    if not any(texts):
        return []
    difference = compare_words(*texts)
    parts = [_marked(difference.before, "del"), _marked(difference.after, "ins")]
    return [
        f"<p><b>{_text(shown.name)}</b></p>",
        *(f"<pre>{letter}: {text}</pre>" for letter, text in zip("AB", parts, strict=True)),
        "",
    ]


def _marked(parts: Sequence[Part], tag: str) -> str:
    return "".join(
        f"<{tag}>{_text(part.text)}</{tag}>" if part.is_changed else _text(part.text) for part in parts
    )


def _text(text: str) -> str:
    r"""Returns text for HTML within Markdown: nothing in it ends the element or is read as Markdown.

    >>> _text("<b> [x](y) \x1b")
    '&lt;b&gt; &#91;x&#93;(y) '
    """
    shown = "".join(sign for sign in text if sign.isprintable() or sign in "\n\t")
    return (
        escape(shown).replace("[", "&#91;").replace("]", "&#93;").replace("`", "&#96;").replace("\n", "&#10;")
    )
