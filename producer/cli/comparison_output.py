"""Prints a comparison for people: A and B, what was broken, fixed and changed, scores, the verdict last."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from textwrap import wrap
from typing import BinaryIO, Final

from rich.cells import cell_len

from producer.aggregate.compared_items import CHECK_PREFIX
from producer.aggregate.comparison import Comparison, Pair, compare
from producer.atomic_file import atomic_file
from producer.cli.compare_inputs import CompareChoice, sides_of, streams_of
from producer.cli.output import Output, Style
from producer.cli.session import Session
from producer.cli.shares_output import compare_turns
from producer.documents import WrittenFile, as_json
from producer.report.cells import Size, plain
from producer.report.comparison.contents import Contents
from producer.report.comparison.to_markdown import comparison_markdown
from producer.report.comparison.wording import (
    LISTS,
    MARKS,
    ScoreTable,
    counted,
    headline,
    noun,
    score_table,
    sentences,
    transitions,
)
from producer.report_files import ReportFile
from producer.tables import LEAST_NAME, cut_middle
from producer.text import many, plural
from shared.errors import UsageError
from shared.names import Outcome

WIDTH: Final = 100
"""Characters of a line where no terminal has a width."""
USUAL_WIDTH: Final = 80
"""Characters of a terminal that leave room for more of a name."""
TITLE: Final = 40
"""Cells of the name of a run or file, enough to distinguish A from B."""
LEAST_REASON: Final = 20
"""Cells of a line that are worth a reason."""
MOST_CHECKS: Final = 10
"""Checks that changed, the most first, which the table has; a page has all."""
TONES: Final[Mapping[str, Style]] = {"better": "green", "worse": "red"}
HEADINGS: Final[Mapping[str, Style]] = {"broken": "red", "fixed": "green", "changed": "yellow"}
WORDS: Final[Mapping[str, Style]] = {
    Outcome.PASSED: "green",
    Outcome.DECIDED: "green",
    Outcome.FAILED: "red",
    Outcome.ERROR: "yellow",
}


def compare_sides(
    session: Session, choice: CompareChoice, files: Sequence[ReportFile], first: int, *, has_gate: bool
) -> int:
    """Compares runs, parts of one, or streams; writes and prints the comparison, and returns the exit code.

    Args:
        session: access to Redis.
        choice: what is compared.
        files: the reports.
        first: most items of a list.
        has_gate: whether a regression makes the exit code 1.

    Raises:
        UsageError: the two have nothing in common, or are of two kinds.
    """
    if streams := streams_of(session, choice):
        return compare_turns(session, streams, choice.level, files, has_gate=has_gate).exit
    with ExitStack() as resources:
        choice, one, other = sides_of(session, choice, resources)
        found = compare(one.kind, one.items, other.items, level=choice.level, judged=choice.judged)
        if not found.counts.pairs:
            raise UsageError(
                f"{one.name} and {other.name} share no item", hint="compare runs of the same file"
            )
        document = found.as_document(
            one.as_document(),
            other.as_document(),
            [WrittenFile(file.format, str(file.path)) for file in files],
            code=int(has_gate and bool(found.regressions)),
        )
        contents = Contents(document, found, (one, other), choice.command)
        if contents.other_input:
            session.output.warn(contents.other_input)
        for file in files:
            with atomic_file(file.path) as out:
                _write(file.format, contents, out)
        if session.options.json:
            session.output.document(document)
        else:
            print_comparison(session.output, contents, first)
    return document.exit


def _write(form: str, contents: Contents, out: BinaryIO) -> None:
    """Writes a comparison as a file has it."""
    if form == "json":
        out.write(as_json(contents.document, indent=2).encode() + b"\n")
    elif form == "html":
        from producer.report.comparison.to_html import comparison_page  # noqa: PLC0415 - start-up: only a page needs its templates

        out.writelines(comparison_page(contents))
    else:
        out.writelines(line.encode(errors="replace") + b"\n" for line in comparison_markdown(contents))


def print_comparison(output: Output, contents: Contents, first: int) -> None:
    """Prints a comparison.

    Args:
        output: the terminal.
        contents: what was compared.
        first: most items of a list.
    """
    found, files = contents.found, contents.document.files
    _print_sides(output, contents)
    for name, pairs in zip(LISTS, (found.pairs.broken, found.pairs.fixed, found.pairs.changed), strict=True):
        if pairs:
            lines = [_change_line(output, contents, pair) for pair in pairs[:first]]
            if len(pairs) > first:
                lines.append(f"  {len(pairs) - first:,} more")
            head = output.paint(f"{name} ({len(pairs):,})", "bold", HEADINGS[name])
            output.data("\n".join(["", head, *lines]))
    output.data("")
    _print_scores(output, score_table(found))
    output.data("\n".join(["", *_verdict(output, found)]))
    if not files:
        output.note(f"all answers beside each other: `{contents.command} -o compare.html`")
    for file in files:
        output.note(f"{file.format} written to {plain(file.path)}")


def _print_sides(output: Output, contents: Contents) -> None:
    """Prints which run is A and which is B, the size and rate of each, and what differs between them."""
    found, one = contents.found, contents.sides[0]
    title, items, good = one.by.upper() or "RUN", many(noun(found)).upper(), found.comparing.good.upper()
    sides = contents.figures
    is_named, is_same_input = any(side.run_id for side in sides), len({side.source for side in sides}) == 1
    columns = ["", title, "ID", "INPUT", "STARTED (UTC)", items, f"{good} (95% CI)"]
    rows = [
        [
            side.letter,
            cut_middle(plain(side.title), TITLE) if side.run_id or not is_named else "",
            side.run if is_named else "",
            "" if is_named and is_same_input else plain(side.source),
            side.began,
            f"{side.total:,}",
            side.rate,
        ]
        for side in sides
    ]
    used = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    columns, rows = [columns[at] for at in used], [[row[at] for at in used] for row in rows]
    spare = [name for name in ("STARTED (UTC)", "INPUT") if name in columns]
    least = TITLE // 2 if (output.width or WIDTH) >= USUAL_WIDTH else LEAST_NAME
    output.table(columns, rows, right=(items,), spare=spare, middle=(title, "INPUT"), least=least)
    lines = []
    for key, both in (("models", found.models), ("prompts", found.prompts)):
        if both is not None:
            most = ((output.width or 10_000) - 30) // 2
            a, b = (cut_middle(plain(name), max(LEAST_NAME, most)) for name in (both.a, both.b))
            lines.append(f"{key}: A {a}, B {b}, compared case by case")
    lines += [contents.differences, counted(found), transitions(found)]
    output.data("\n".join(part for line in lines if line for part in _folded(output, line)))


def _print_scores(output: Output, table: ScoreTable) -> None:
    """Prints the scores, and of checks those that changed most."""
    headings = [heading.upper() for heading in table.headings]
    scores = [row for row in table.rows if not row[0].startswith(CHECK_PREFIX)]
    checks = table.rows[len(scores) :]
    shown = [*scores, *checks[:MOST_CHECKS]]
    output.table(headings, shown, right=(*headings[1:4], headings[-1]), middle=headings[:1])
    parts = []
    if len(checks) > MOST_CHECKS:
        parts.append(f"{plural(len(checks) - MOST_CHECKS, 'check')} changed less")
    if table.same:
        parts.append(f"{plural(len(table.same), 'check')} did not change")
    notes = [f"{'; '.join(parts)}."] if parts else []
    if any("*" in row[3] for row in shown):
        notes.append(table.note)
    for note in notes:
        output.data("\n".join(output.paint(line, "dim") for line in _folded(output, note, indent="  ")))


def _change_line(output: Output, contents: Contents, pair: Pair) -> str:
    """Writes an item that ended otherwise: its name, cut in the middle where it must be, and why."""
    width, (before, after), shown_pair = output.width or WIDTH, pair, contents.shown("", pair)
    tail = f": {plain(before.word)} → {plain(after.word)}"
    name = cut_middle(plain(shown_pair.name), max(LEAST_NAME, width - 2 - cell_len(tail)))
    painted = f": {_word(output, before.word)} → {_word(output, after.word)}"
    reason = plain("; ".join(filter(None, (*shown_pair.edits, shown_pair.reason))), Size.REASON)
    width_left = width - 4 - cell_len(name) - cell_len(tail)
    if not reason or width_left < LEAST_REASON:
        return f"  {name}{painted}"
    shown = reason if cell_len(reason) <= width_left else plain(reason, max(LEAST_REASON, width_left - 3))
    return f"  {name}{painted}  {output.paint(shown, 'dim')}"


def _word(output: Output, word: str) -> str:
    """Writes an outcome in its colour, a decision as it is."""
    return output.paint(plain(word), WORDS[word]) if word in WORDS else plain(word)


def _verdict(output: Output, found: Comparison) -> list[str]:
    """Writes the verdict and what is behind it."""
    tone = TONES.get(found.verdict)
    head = _folded(output, f"{MARKS[found.verdict]} {headline(found)}", indent="  ")
    return [
        *(output.paint(line, "bold", *([tone] if tone else [])) for line in head),
        *(line for sentence in sentences(found) for line in _folded(output, f"  {sentence}", indent="  ")),
    ]


def _folded(output: Output, text: str, indent: str = "") -> list[str]:
    """Folds a sentence by words."""
    return wrap(text, output.width or WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]
