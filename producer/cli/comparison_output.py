"""Prints a comparison for people: what was broken, fixed and changed, the scores, and the verdict last."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from rich.cells import cell_len

from producer.aggregate.comparison import Change
from producer.cli.output import Output, Style
from producer.report.cells import plain
from producer.report.comparison.contents import Contents
from producer.report.comparison.wording import (
    COLUMNS,
    LISTS,
    counted,
    good_word,
    headline,
    rate_cells,
    reason_of,
    score_rows,
    sentences,
    transitions,
)
from producer.tables import LEAST_NAME, cut_middle
from shared.names import Outcome

WIDTH: Final = 100
"""Characters of a line where no terminal has a width."""
LEAST_REASON: Final = 20
"""Cells of a line that are worth a reason."""
REASON_CHARS: Final = 300
TONES: Final[Mapping[str, Style]] = {"better": "green", "worse": "red"}
MARKS: Final = {"better": "✓", "worse": "✗"}
HEADINGS: Final[Mapping[str, Style]] = {"broken": "red", "fixed": "green", "changed": "yellow"}
WORDS: Final[Mapping[str, Style]] = {
    Outcome.PASSED: "green",
    Outcome.DECIDED: "green",
    Outcome.FAILED: "red",
    Outcome.ERROR: "yellow",
}


def print_comparison(output: Output, contents: Contents, first: int) -> None:
    """Prints a comparison.

    Args:
        output: the terminal.
        contents: what was compared.
        first: most items of a list.
    """
    document = contents.document
    for name in LISTS:
        changes: Sequence[Change] = getattr(contents.found, name)
        if changes:
            lines = [_change_line(output, contents, change) for change in changes[:first]]
            lines += [f"  {len(changes) - first:,} more"] * (len(changes) > first)
            head = output.paint(f"{name} ({len(changes):,})", "bold", HEADINGS[name])
            output.data("\n".join([head, *lines, "", ""]))
    level = f"{100 * (1 - document['test']['level_each']):g} % INTERVAL"
    headings = [level if name == "interval" else name.upper() for name in COLUMNS]
    output.table(headings, score_rows(document), right=("A", "B", "CHANGE", "N"), middle=("SCORE",))
    output.data("\n".join(["", *_sides(output, contents), "", *_verdict(output, document)]))
    if not document["files"]:
        output.note(f"all answers beside each other: `{contents.command} -o compare.html`")
    for file in document["files"]:
        output.note(f"{file['format']} written to {plain(file['path'])}")


def _change_line(output: Output, contents: Contents, change: Change) -> str:
    """Writes an item that ended otherwise: its name, cut in the middle where it must be, and why."""
    width = output.width or WIDTH
    tail = f": {plain(change.before)} → {plain(change.after)}"
    name = cut_middle(plain(change.item), max(LEAST_NAME, width - 2 - cell_len(tail)))
    before, after = change.pair
    painted = f": {_word(output, before.word)} → {_word(output, after.word)}"
    reason = plain(reason_of(contents.shown("", change.pair)), REASON_CHARS)
    width_left = width - 4 - cell_len(name) - cell_len(tail)
    if not reason or width_left < LEAST_REASON:
        return f"  {name}{painted}"
    shown = reason if cell_len(reason) <= width_left else plain(reason, max(LEAST_REASON, width_left - 3))
    return f"  {name}{painted}  {output.paint(shown, 'dim')}"


def _word(output: Output, word: str) -> str:
    """Writes an outcome in its colour, a decision as it is."""
    return output.paint(plain(word), WORDS[word]) if word in WORDS else plain(word)


def _sides(output: Output, contents: Contents) -> list[str]:
    """Names both sides, their rates, and what differs between them."""
    document = contents.document
    width = (output.width or 10_000) - len("A  ")
    names = [f"{document[side]['name']}  {document[side]['source']}".rstrip() for side in "ab"]
    lines = [
        f"{side.upper()}  {cut_middle(plain(name), width)}" for side, name in zip("ab", names, strict=True)
    ]
    lines += _folded(output, contents.differences())
    rates = document["pass_rate"]
    lines.append(f"{good_word(document)}  A {rate_cells(rates['a'])}   B {rate_cells(rates['b'])}")
    for key in ("models", "prompts"):
        if both := document.get(key):
            a, b = (cut_middle(plain(both[side]), max(LEAST_NAME, (width - 30) // 2)) for side in "ab")
            lines.append(f"{key}  A {a}   B {b}, case by case")
    lines += _folded(output, counted(document))
    return lines + (_folded(output, changes) if (changes := transitions(document)) else [])


def _verdict(output: Output, document: Mapping[str, Any]) -> list[str]:
    """Writes the verdict and what is behind it."""
    mark = MARKS.get(document["verdict"], "=")
    tone = TONES.get(document["verdict"])
    head = _folded(output, f"{mark} {headline(document)}", indent="  ")
    return [
        *(output.paint(line, "bold", *([tone] if tone else [])) for line in head),
        *(line for sentence in sentences(document) for line in _folded(output, f"  {sentence}", indent="  ")),
    ]


def _folded(output: Output, text: str, indent: str = "") -> list[str]:
    """Folds a sentence by words."""
    return wrap(text, output.width or WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]
