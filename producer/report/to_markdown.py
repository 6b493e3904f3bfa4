"""Writes the report of a run as Markdown: verdict, figures, tables, then items."""

from collections.abc import Callable, Iterable, Iterator

from producer.report.cells import Size, markdown, markdown_table
from producer.report.figures import ShownIn, Table
from producer.report.run_report import Failures, RunReport
from producer.text import plural


def markdown_report(report: RunReport, items: Iterable[str] = ()) -> bytes:
    """Writes a report.

    Args:
        report: of the run.
        items: blocks of Markdown about single items, which are safe.
    """
    return ("\n\n".join([*_head(report), *items]) + "\n").encode(errors="replace")


def table_blocks(table: Table, safe: Callable[[str], str]) -> Iterator[str]:
    """Yields the sentences and the rows of a table, without its title.

    Args:
        table: of a report.
        safe: makes texts safe for the cells of a table.
    """
    if table.lines:
        yield "\n".join(f"- {safe(line)}" for line in table.lines)
    if table.rows:
        yield markdown_table(table.headings, table.texts(safe))
    if table.rows and table.note:
        yield safe(table.note)


def failure_blocks(failures: Failures, run: str, safe: Callable[[str], str]) -> Iterator[str]:
    """Yields failures by reason as a list, each with its first items.

    Args:
        failures: of a run.
        run: its id.
        safe: makes texts safe.
    """
    lines = list[str]()
    for group in failures.groups:
        lines.append(f"- **{plural(group.number, group.noun)}:** {safe('; '.join(group.reasons))}")
        for example in group.examples:
            answer = f" → {safe(example.answer)}" if example.answer else ""
            lines.append(f"  - {safe(f'{example.name} {example.found}'.rstrip())}{answer}")
        if group.left:
            lines.append(f"  - and {group.left:,} more")
    if lines:
        yield "\n".join(lines)
    if failures.left:
        yield f"{failures.left:,} more: `proctor results {run} --failed`"


def _head(report: RunReport) -> Iterator[str]:
    """Yields what is said of the run as a whole."""
    title = f"{report.title}: " if report.title else ""
    yield f"# {title}{markdown(str(report.verdict))}"
    if report.badge:
        yield f"**{markdown(report.badge)}**"
    if report.verdict.why:
        yield markdown(" ".join(report.verdict.why))
    yield f"{markdown(report.name, Size.LINE)} · {markdown(report.headline)} · run `{report.run.run_id}`"
    yield from (markdown(str(line)) for line in report.lines_in(ShownIn.MARKDOWN))
    for table in report.tables_in(ShownIn.MARKDOWN):
        yield f"## {table.title}"
        yield from table_blocks(table, _cell)
    if report.failures.groups:
        yield "## Failures by reason"
        yield from failure_blocks(report.failures, report.run.run_id, markdown)


def _cell(text: str) -> str:
    return markdown(text, Size.LINE)
