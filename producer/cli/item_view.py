"""Prints single items of a run: as two lines in a list, whole, or as they were before and are now."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from producer.cli.output import Output, Style, printable
from producer.cli.session import Session
from producer.item_names import names_of
from producer.report.cells import Size, plain
from producer.report.shown_item import ShownItem, without_quote
from producer.report.transcript import Spoken
from producer.row_reader import RowReader, shown_of
from producer.tables import hanging
from producer.text import plural
from shared.names import Outcome
from shared.runs import RunInfo

STYLES: Final[dict[Outcome, Style]] = {
    Outcome.PASSED: "green",
    Outcome.DECIDED: "green",
    Outcome.FAILED: "red",
    Outcome.ERROR: "yellow",
    Outcome.SKIPPED: "dim",
}
MOST_OTHERS: Final = 50
"""Other answers to the same case."""


def read_items(session: Session, info: RunInfo, positions: Collection[int]) -> list[ShownItem]:
    """Reads items with their input, in the order of the input.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    shown = shown_of(info)
    return [shown(row) for row in read_rows(session, info, positions)]


def read_rows(session: Session, info: RunInfo, positions: Collection[int]) -> list[Any]:
    """Reads the rows of items with their input."""
    return list(RowReader(session.access.store, info).at(sorted(set(positions))))


def others_of(session: Session, info: RunInfo, item: ShownItem) -> list[ShownItem]:
    """Reads the other answers to the case of an item."""
    if item.name == item.group:
        return []
    names = names_of(session.access.store, info)
    same = (name.position for name in names if name.own == item.group and name.position != item.position)
    return read_items(session, info, list(islice(same, MOST_OTHERS)))


def print_whole(output: Output, items: Sequence[ShownItem], others: Sequence[ShownItem] = ()) -> None:
    """Prints items with all that was asked, answered and checked; what several were asked only once."""
    asked: Sequence[Spoken] | None = None
    for number, item in enumerate(items):
        lines = [*([""] if number else []), *_head(output, item), *_reason(item)]
        for spoken in (() if item.asked == asked else item.asked, item.answered):
            lines += _spoken(output, spoken)
        lines += [*_checks(output, item), *_spoken(output, item.wanted)]
        asked = item.asked
        output.data("\n".join(lines))
    if others:
        output.data(f"\n{output.paint('other answers', 'bold')}")
        print_records(output, others)


def print_change(output: Output, before: ShownItem, after: ShownItem) -> None:
    """Prints an item that was asked again: the question once, then both answers with their verdicts."""
    lines = [*_head(output, after, was=before), *_spoken(output, after.asked)]
    for title, item in (("before", before), ("now", after)):
        head = " · ".join([f"{item.mark} {item.word}", *item.figures])
        lines += ["", f"{output.paint(title, 'bold')}  {output.paint(head, STYLES[item.outcome])}"]
        lines += [*_reason(item), *_spoken(output, item.answered), *_checks(output, item)]
    output.data("\n".join([*lines, *_spoken(output, after.wanted)]))


def print_records(output: Output, items: Iterable[ShownItem]) -> None:
    """Prints each item in two lines: name and figures, then why it did not pass, and the answer."""
    for item in items:
        output.data("\n".join(_record(output, item)))


def _record(output: Output, item: ShownItem) -> Iterator[str]:
    """Writes an item in two lines; one that is not answered, such as a turn, has what was said instead."""
    figures = output.paint("  ".join(["", *item.figures]), "dim")
    yield f"{output.paint(item.mark, STYLES[item.outcome])} {plain(item.name, Size.LINE)}{figures}"
    reason, answer = plain(without_quote(item.reason), Size.REASON), plain(item.answer, Size.LINE)
    texts = [text for text in (reason, f"→ {answer}" if answer else "") if text]
    texts = texts or [plain(spoken.text, Size.LINE) for spoken in item.asked[-1:]]
    if texts:
        yield f"  {hanging('  '.join(texts), '    ')}"


def _head(output: Output, item: ShownItem, was: ShownItem | None = None) -> list[str]:
    """Writes name, outcome and figures in a line."""
    word = item.word if was is None or was.word == item.word else f"{was.word} → {item.word}"
    mark = output.paint(item.mark, STYLES[item.outcome])
    figures = "" if was else output.paint(" · ".join(["", *item.figures]), "dim")
    name = output.paint(plain(item.name, Size.LINE), "bold")
    return [f"{mark} {name}  {output.paint(word, STYLES[item.outcome])}{figures}"]


def _reason(item: ShownItem) -> list[str]:
    """Writes why an item did not pass."""
    reason = plain(without_quote(item.reason) if item.answered else item.reason, Size.REASON)
    return [f"  {hanging(reason, '  ')}"] if reason else []


def _spoken(output: Output, spoken: Iterable[Spoken]) -> Iterator[str]:
    """Writes who speaks in a line, and below it what."""
    for who, text in spoken:
        yield ""
        yield f"  {output.paint(printable(who), 'cyan')}"
        for line in text[: Size.WHOLE].split("\n"):
            yield f"    {hanging(printable(line.expandtabs()), '    ')}".rstrip()
        if len(text) > Size.WHOLE:
            yield f"    … {plural(len(text) - Size.WHOLE, 'more character')}: --json has them"


def _checks(output: Output, item: ShownItem) -> Iterator[str]:
    """Writes what each stage and check found."""
    if item.checks:
        yield ""
        yield f"  {output.paint('checks', 'cyan')}"
    styles: dict[str, Style] = {"✓": "green", "✗": "red"}
    for line in item.checks:
        text = plain(line, Size.REASON)
        mark = output.paint(text[:1], *[styles[text[0]]] if text[:1] in styles else ())
        yield f"    {mark}{hanging(text[1:], '      ')}"
