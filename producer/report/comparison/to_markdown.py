"""Writes a comparison as Markdown: the sentence first, then what was broken, fixed and changed."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from producer.aggregate.comparison import Comparison
from producer.report.cells import Size, markdown
from producer.report.comparison.contents import Contents, PairGroup, Shown
from producer.report.comparison.side_figures import side_figures
from producer.report.comparison.word_difference import Stretch, compare_words
from producer.report.comparison.wording import (
    counted,
    headline,
    noun,
    reason_of,
    score_table,
    sentences,
    transitions,
)
from producer.text import many, plural

MOST_ANSWERS: Final = 50
"""Pairs of a list whose answers are written beside each other."""
ANSWER_CHARS: Final = 2_000
"""Of each of two answers of a pair, `MOST_ANSWERS` times."""
MARKS: Final = {"better": "✓", "worse": "✗"}
HEADINGS: Final = {
    "broken": "Broken",
    "fixed": "Fixed",
    "changed": "Changed",
    "text": "Other answers, same outcome",
}


def comparison_markdown(contents: Contents) -> Iterator[str]:
    """Yields the lines of a comparison."""
    found = contents.found
    yield from ("# Comparison", "", f"**{MARKS.get(found.verdict, '=')} {headline(found)}**", "")
    if other_input := contents.other_input():
        yield from (f"**{markdown(other_input)}**", "")
    good = found.comparing.good
    yield from _sides(contents, good)
    yield from ("", markdown(" ".join(sentences(found))), "", markdown(contents.differences()))
    yield from ("", counted(found))
    if changes := transitions(found):
        yield from ("", markdown(changes))
    yield from _scores(found)
    for facet, groups in contents.groups.items():
        yield from _groups(facet, groups, good, many(noun(found)))
    yield from _pairs(contents)
    yield from ("", f"Compare again: `{markdown(contents.command)}`")


def _sides(contents: Contents, good: str) -> Iterator[str]:
    """Writes the table of A and B."""
    sides, one = side_figures(contents), contents.sides[0]
    wants_cost = any(side.p95 or side.cost for side in sides)
    more = " 95th percentile | cost |" if wants_cost else ""
    items = many(noun(contents.found))
    yield f"| | {one.by or 'run'} | input | started (UTC) | {items} | {good} (95% interval) |{more}"
    yield f"| --- | --- | --- | --- | ---: | --- |{' --- | --- |' if wants_cost else ''}"
    for side in sides:
        cells = [
            side.letter,
            side.title,
            f"{side.run_id} {side.source}".strip(),
            side.began,
            side.size,
            side.rate,
        ]
        if wants_cost:
            cells += [side.p95, side.cost]
        yield f"| {' | '.join(map(markdown, cells))} |"


def _scores(found: Comparison) -> Iterator[str]:
    """Writes the table of scores; checks that did not change are folded below it."""
    table = score_table(found)
    heads = (f"| {' | '.join(table.headings)} |", "| --- | ---: | ---: | ---: | --- | ---: |")
    yield from ("", *heads, *map(_score_row, table.rows))
    if table.note:
        yield from ("", markdown(table.note))
    if table.same:
        summary = f"{plural(len(table.same), 'check')} with the same mean in both"
        yield from ("", f"<details><summary>{summary}</summary>", "", *heads, *map(_score_row, table.same))
        yield from ("", "</details>")


def _score_row(row: Sequence[str]) -> str:
    """Writes a score as a row."""
    return f"| {' | '.join(map(markdown, row))} |"


def _groups(facet: str, groups: Sequence[PairGroup], good: str, items: str) -> Iterator[str]:
    """Writes the table of one facet."""
    yield from ("", f"| {facet} | {items} | {good} in A | {good} in B | broken | fixed | p |")
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for group in groups:
        figures = (group.pairs, *group.passed, group.broken, group.fixed)
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
    return f"| {' | '.join(words)} | {markdown(reason_of(shown), Size.REASON)} |"


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


def _marked(parts: Sequence[Stretch], tag: str) -> str:
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
