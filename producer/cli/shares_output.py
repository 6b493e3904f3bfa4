"""Compares streams of turns that share no message, or parts of one, and prints their shares for people."""

from collections.abc import Iterator, Sequence

from msgspec import UNSET

from producer.aggregate.turn_shares import ShareChange, SharesDocument, SharesSide, TurnShares, compare_shares
from producer.atomic_file import atomic_file
from producer.cli.session import Session
from producer.documents import WrittenFile, as_json
from producer.report.figures import Column, Figure, Table, Unit
from producer.report.to_markdown import table_blocks
from producer.report_files import ReportFile
from producer.text import latency, plural
from shared.errors import UsageError
from shared.runs import RunInfo, RunStore
from shared.runs.served import ServedRow, window_named


def compare_turns(
    session: Session,
    runs: tuple[RunInfo, RunInfo],
    level: float,
    files: Sequence[ReportFile],
    *,
    has_gate: bool,
) -> SharesDocument:
    """Compares the shares of two streams or runs of turns, writes the reports, and prints the comparison.

    Raises:
        UsageError: one has no turn.
    """
    one, other = (_shares_of(session.access.store, info) for info in runs)
    for turns in (one, other):
        if not turns.total:
            raise UsageError(
                f"{turns.name} has no turns", hint="choose another time with --since and --until"
            )
    written = tuple(WrittenFile(file.format, str(file.path)) for file in files)
    document = compare_shares(one, other, level, written, has_gate=has_gate)
    for file in files:
        with atomic_file(file.path) as out:
            if file.format == "json":
                out.write(as_json(document, indent=2).encode() + b"\n")
            elif file.format == "html":
                from producer.report.comparison.to_html import table_page  # noqa: PLC0415 - start-up: only a page needs its templates

                tone = "f" if document.regressions else ""
                out.writelines(table_page(_verdict(document), _table(document), _sides(document), tone))
            else:
                out.writelines(line.encode() + b"\n" for line in _markdown(document))
    if session.options.json:
        session.output.document(document)
        return document
    for letter, side in _sides(document):
        session.output.data(f"{letter}  {side}")
    session.output.data("")
    table = _table(document)
    headings = [heading.upper() for heading in table.headings]
    session.output.table(headings, table.texts(str), right=headings[1:4])
    session.output.data(f"\n{_verdict(document)}")
    for file in files:
        session.output.note(f"{file.format} written to {file.path}")
    return document


def _shares_of(store: RunStore, info: RunInfo) -> TurnShares:
    """Counts the turns of a run, or of a part of a stream with their latencies."""
    found, window = TurnShares(info.run), window_named(info.run)
    if window:
        pages = store.stream(window.namespace).rows(window, with_payload=True)
    else:
        pages = ([ServedRow(row, 0) for row in page] for page in store.pages(info.run, with_payload=True))
    for each in (each for page in pages for each in page if each.row.code):
        found.add(each.row.code, each.thread, each.latency_ms if window else None)
    return found


def _sides(document: SharesDocument) -> Sequence[tuple[str, str]]:
    """Describes both sides."""
    return [("A", _about(document.a)), ("B", _about(document.b))]


def _about(side: SharesSide) -> str:
    """Describes one side in a line."""
    text, times = f"{plural(side.turns, 'turn')} of {plural(side.threads, 'thread')}", side.latency_ms
    if times is not UNSET:
        text += f", p50 {latency(times.p50)}, p95 {latency(times.p95)}, p99 {latency(times.p99)}"
    return f"{side.name}: {text}"


def _table(document: SharesDocument) -> Table:
    """Makes a row for each share."""
    columns: Sequence[Column[tuple[str, ShareChange]]] = (
        Column("Share", lambda each: each[0]),
        Column("A", lambda each: Figure(each[1].a.value, Unit.SHARE)),
        Column("B", lambda each: Figure(each[1].b.value, Unit.SHARE)),
        Column("Change", lambda each: f"{_points(each[1])}{' *' if each[1].significant else ''}"),
        Column("Interval", lambda each: f"{100 * each[1].low:+.1f} to {100 * each[1].high:+.1f}"),
    )
    return Table(title="Shares", columns=columns).filled(document.shares.items())


def _points(change: ShareChange) -> str:
    return f"{100 * change.difference:+.1f} points"


def _verdict(document: SharesDocument) -> str:
    """Writes what is more than chance."""
    changed: list[tuple[str, ShareChange]] = [
        (share, change) for share, change in document.shares.items() if change.significant
    ]
    if not changed:
        return f"No significant difference in {len(document.shares)} shares (level {document.level:g})."
    listed = ", ".join(f"{share} {_points(change)}" for share, change in changed)
    return f"More than chance (*, level {document.level:g} over all shares): {listed}."


def _markdown(document: SharesDocument) -> Iterator[str]:
    """Yields the lines of a report."""
    yield from ("# Comparison of shares", "", f"**{_verdict(document)}**", "")
    for letter, side in _sides(document):
        yield f"- {letter}: {side}"
    yield from ("", *table_blocks(_table(document), str))
