"""Writes the report of a run for a terminal: tables, figures, failures by reason."""

from collections.abc import Sequence
from typing import Any, Final

from producer.documents import AnyRun
from producer.report.cells import ELLIPSIS, Size, plain
from producer.report.figures import Figure, Name, ShownIn, Table
from producer.report.interfaces import FailureCollector, Paint, unpainted
from producer.report.run_report import FailureExample, FailureGroup, Failures, RunReport
from producer.tables import fitted_table, hanging, terminal_width
from producer.text import plural, ranked

MOST_ROWS: Final = 50
"""Rows of a table that are shown."""
TONES: Final = {"p": "green", "f": "red"}
LINE_CHARS: Final = 100
"""Length of a question or an answer on a wide terminal; a narrow one shows less."""
LEAST_CHARS: Final = 20
"""Their shortest length, however narrow the terminal is."""
ASKED: Final = "    input:  "
ANSWERED: Final = "    answer: "
BELOW: Final = "      → "
"""Comes before an answer on the line below its finding."""
BAR_CHARS: Final = 30
"""Length of a bar of 100%."""


def summary_text(report: RunReport, paint: Paint = unpainted) -> str:
    """Writes the figures of a run.

    Args:
        report: report of the run.
        paint: colours the name of the run, headings and marks.
    """
    head = "  ".join([report.run.run_id, *(plain(name, Size.CELL) for name in report.names)])
    lines = [paint(head, "bold"), ""]
    for at, table in enumerate(report.tables_in(ShownIn.BRIEF)):
        if at:  # the first one needs no title: it is what the run is about
            lines += _titled(table, paint)
        lines += [*_rows(table, report.run.run_id, paint), ""]
    lines += [hanging(plain(str(line)), "  ") for line in report.lines_in(ShownIn.BRIEF)]
    return "\n".join([*lines, *_last(report)])


def more_text(report: RunReport, paint: Paint = unpainted) -> str:
    """Writes what `-v` adds: further tables, and what their headings mean; empty where a run has no more."""
    tables = report.tables_in(ShownIn.VERBOSE)
    lines = list[str]()
    for table in tables:
        lines += [*_titled(table, paint), *_rows(table, report.run.run_id, paint), ""]
    shown = [column for table in tables for column in table.columns if column.meaning]
    notes = dict.fromkeys(f"{column.heading}: {column.meaning}" for column in shown)
    lines += [paint(hanging(note, "  "), "dim") for note in notes]
    return "\n".join(lines).strip("\n")


def failures_text(failures: Failures, run: str, paint: Paint = unpainted) -> str:
    """Writes failures by reason, one under the other; empty when nothing failed."""
    lines = [line for group in failures.groups for line in _group(group)]
    if failures.left:
        lines.append(f"{failures.left:,} more: `proctor results {run} --failed`")
    return "\n".join(marked(line, paint) for line in lines)


class FailureText:
    """Shows failures by reason after a run.

    Args:
        collector: groups them.
    """

    def __init__(self, collector: FailureCollector) -> None:
        self._collector, self._run = collector, ""

    def page(self, rows: Sequence[Any]) -> None:
        """Takes some rows."""
        self._collector.page(rows)

    def end(self, document: AnyRun) -> None:
        """Keeps the run's id, for the command that lists the rest."""
        self._run = document.run_id

    def text(self, paint: Paint = unpainted) -> str:
        """Writes them one under the other; empty when nothing failed."""
        return failures_text(self._collector.failures(), self._run, paint)


def in_line(text: str, before: str) -> str:
    """Returns the beginning of a question or an answer, shortened to fit its line.

    Args:
        text: the whole text.
        before: the beginning of the line.
    """
    room = terminal_width() - len(before) - len(ELLIPSIS)
    return plain(text, max(LEAST_CHARS, min(LINE_CHARS, room)))


def marked(line: str, paint: Paint) -> str:
    """Colours the mark of a line."""
    styles = {"✗": "red", "✓": "green"}
    return paint(line[0], styles[line[0]]) + line[1:] if line[:1] in styles else line


def indented(indent: int, text: str) -> str:
    """Indents a line, which wraps where the terminal is narrow."""
    return " " * indent + hanging(text, " " * (indent + 2))


def _group(group: FailureGroup) -> list[str]:
    """Writes failures with the same reason: how many, why they failed, and the first ones."""
    if group.asked is not None:
        [only] = group.examples
        lines = [indented(0, f"✗ {only.name}"), *(indented(4, reason) for reason in group.reasons)]
        lines.append(f"{ASKED}{in_line(group.asked, ASKED)}")
        return [*lines, f"{ANSWERED}{in_line(only.answer, ANSWERED)}"] if only.answer else lines
    first, *others = group.reasons
    lines = [indented(0, f"✗ {plural(group.number, group.noun)}: {first}")]
    lines += [indented(4, reason) for reason in others]
    if not any(example.found or example.answer for example in group.examples):
        names = ", ".join(example.name for example in group.examples)
        return [*lines, indented(4, f"{names} and {group.left:,} more" if group.left else names)]
    for example in group.examples:
        lines += _example(example)
    return [*lines, f"    and {group.left:,} more"] if group.left else lines


def _example(example: FailureExample) -> list[str]:
    """Writes one of several failures: its answer is beside its name, or below its finding."""
    if not example.found:
        return [
            indented(
                4,
                f"{example.name}  → {in_line(example.answer, ANSWERED)}" if example.answer else example.name,
            )
        ]
    lines = [indented(4, f"{example.name} {example.found}")]
    return [*lines, f"{BELOW}{in_line(example.answer, BELOW)}"] if example.answer else lines


def _titled(table: Table, paint: Paint) -> Sequence[str]:
    return [paint(table.title, "bold"), *(plain(line) for line in table.lines)]


def _rows(table: Table, run: str, paint: Paint) -> list[str]:
    """Draws the rows of a table, headings in grey: colours are left to verdicts."""
    if not table.rows:
        return []
    headings = table.headings
    cells = table.texts(lambda text: plain(text, Size.CELL))[:MOST_ROWS]
    spare = sorted((column for column in table.columns if column.spare), key=lambda column: column.spare)
    named = [cell for row in table.rows for cell in row if isinstance(cell, Name)]
    styles = {name.text: TONES[name.tone] for name in named if name.tone}

    def painted(_: str, cell: str) -> str:
        style = styles.get(cell.strip())
        return paint(cell, style) if style else cell

    first, *rest = fitted_table(
        headings,
        cells,
        names=table.names,
        spare=[column.heading for column in spare],
        paint=painted,
    )
    lines = [paint(first, "dim"), *rest]
    if table.bars and len(rest) == len(cells):
        shares = [row[headings.index(table.bars)] for row in table.rows]
        bars = ["█" * round(BAR_CHARS * (each.value or 0)) for each in shares if isinstance(each, Figure)]
        lines[1:] = [
            f"{line}  {paint(bar, 'cyan')}" if bar else line for line, bar in zip(rest, bars, strict=True)
        ]
    left = len(table.rows) - MOST_ROWS
    return [*lines, f"{left:,} more: `proctor report {run} -o report.html`"] if left > 0 else lines


def _last(report: RunReport) -> list[str]:
    """Writes the errors by their codes, and the files that were written."""
    lines = []
    if errors := report.run.summary.errors:
        codes = (f"{plain(code, Size.CELL)} {number:,}" for code, number in ranked(errors))
        lines.append("errors by code: " + ", ".join(codes))
    return lines + [f"{file.format} written to {plain(file.path)}" for file in report.run.files]
