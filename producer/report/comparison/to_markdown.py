"""Writes a comparison as Markdown: the sentence first, then what was broken, fixed and changed."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from producer.report.cells import Size, markdown
from producer.report.comparison.contents import Contents, Shown
from producer.report.comparison.word_difference import Stretch, compare_words
from producer.report.comparison.wording import (
    MARKS,
    ScoreTable,
    counted,
    headline,
    noun,
    score_table,
    sentences,
    transitions,
)
from producer.text import many, plural

MOST_ANSWERS: Final = 50
"""Pairs of a list whose answers are written beside each other."""
ANSWER_CHARS: Final = 2_000
"""Of each of two answers of a pair, `MOST_ANSWERS` times."""
HEADINGS: Final = {
    "broken": "Broken",
    "fixed": "Fixed",
    "changed": "Changed",
    "text": "Other answers, same outcome",
}


def comparison_markdown(contents: Contents) -> Iterator[str]:
    """Yields the lines of a comparison."""
    found, sides = contents.found, contents.figures
    good, items = found.comparing.good, many(noun(found))
    yield from ("# Comparison", "", f"**{MARKS[found.verdict]} {headline(found)}**", "")
    if contents.other_input:
        yield from (f"**{markdown(contents.other_input)}**", "")
    columns = ["", contents.sides[0].by or "run", "input", "started (UTC)", items, f"{good} (95% interval)"]
    rows = [
        [
            side.letter,
            side.title,
            f"{side.run_id} {side.source}".strip(),
            side.began,
            f"{side.total:,}",
            side.rate,
        ]
        for side in sides
    ]
    if any(side.p95 or side.cost for side in sides):
        columns += ["95th percentile", "cost"]
        rows = [[*row, side.p95, side.cost] for row, side in zip(rows, sides, strict=True)]
    yield from _table(columns, rows, numbers=[4])
    yield from ("", markdown(" ".join(sentences(found))), "", markdown(contents.differences))
    yield from ("", counted(found))
    if changes := transitions(found):
        yield from ("", markdown(changes))
    yield from _scores(score_table(found))
    for facet, groups in contents.groups.items():
        columns = [facet, items, f"{good} in A", f"{good} in B", "broken", "fixed", "p"]
        yield from (
            "",
            *_table(columns, [[group.name, *group.cells] for group in groups], numbers=range(1, 7)),
        )
    yield from _pairs(contents)
    yield from ("", f"Compare again: `{markdown(contents.command)}`")


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()
) -> Iterator[str]:
    """Writes a table; the columns of numbers are on the right."""
    yield f"| {' | '.join(columns)} |".replace("|  |", "| |")
    yield f"| {' | '.join('---:' if at in numbers else '---' for at in range(len(columns)))} |"
    for row in rows:
        yield f"| {' | '.join(map(markdown, row))} |"


def _scores(scores: ScoreTable) -> Iterator[str]:
    """Writes the scores; checks that did not change are folded below them."""
    numbers = (1, 2, 3, 5)
    yield from ("", *_table(scores.headings, scores.rows, numbers=numbers))
    if scores.note:
        yield from ("", markdown(scores.note))
    if scores.same:
        summary = f"{plural(len(scores.same), 'check')} with the same mean in both"
        yield from ("", f"<details><summary>{summary}</summary>", "")
        yield from (*_table(scores.headings, scores.same, numbers=numbers), "", "</details>")


def _pairs(contents: Contents) -> Iterator[str]:
    """Writes tables of what was broken, fixed and changed, each with the answers of its first pairs."""
    last, number, answers = "", 0, list[str]()
    for shown in contents.pairs():
        if shown.sort != last:
            yield from _folded(answers)
            last, number, answers = shown.sort, 0, []
            yield from ("", f"## {HEADINGS[last]}", "")
            if last != "text":
                yield from _table(["item", "A", "B", "reason"], [])
        number += 1
        if shown.sort != "text":
            reason = "; ".join(filter(None, (*shown.edits, shown.reason)))
            words = (markdown(text) for text in (shown.name, *(item.word for item in shown.pair)))
            yield f"| {' | '.join(words)} | {markdown(reason, Size.REASON)} |"
        if number <= MOST_ANSWERS:
            answers += _answers(shown)
    yield from _folded(answers)


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
