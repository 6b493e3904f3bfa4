"""Compares streams of turns that share no message, or parts of one, and prints their shares for people."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UNSET

from producer.aggregate.turn_shares import ShareChange, SharesDocument, SharesSide, TurnShares, compare_shares
from producer.atomic_file import atomic_file
from producer.cli.session import Session
from producer.documents import WrittenFile, as_json
from producer.report.cells import markdown_table
from producer.report_files import ReportFile
from producer.text import latency, percent, plural
from shared.errors import UsageError
from shared.runs import RunInfo, RunStore
from shared.runs.served import ServedRow, window_named

COLUMNS: Final = ("", "A", "B", "CHANGE", "INTERVAL")


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
        UsageError: one has no turn, or a report is asked for that there is not.
    """
    if pages := [file for file in files if file.format == "html"]:
        hint = "write it as .md or .json; a page compares turns one by one"
        raise UsageError(f"{pages[0].path}: turns without partners have no page", hint=hint)
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
            text = as_json(document, indent=2) if file.format == "json" else "\n".join(_markdown(document))
            out.write(text.encode() + b"\n")
    if session.options.json:
        session.output.document(document)
        return document
    for letter, side in (("A", document.a), ("B", document.b)):
        session.output.data(f"{letter}  {_about(side)}")
    session.output.data("")
    session.output.table(COLUMNS, list(_rows(document)), right=COLUMNS[1:4])
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


def _about(side: SharesSide) -> str:
    """Describes one side in a line."""
    text, times = f"{plural(side.turns, 'turn')} of {plural(side.threads, 'thread')}", side.latency_ms
    if times is not UNSET:
        text += f", p50 {latency(times.p50)}, p95 {latency(times.p95)}, p99 {latency(times.p99)}"
    return f"{side.name}: {text}"


def _rows(document: SharesDocument) -> Iterator[Sequence[str]]:
    """Yields a row for each share."""
    for share, change in document.shares.items():
        star = " *" if change.significant else ""
        yield (
            share,
            percent(change.a.value),
            percent(change.b.value),
            f"{100 * change.difference:+.1f} points{star}",
            f"{100 * change.low:+.1f} to {100 * change.high:+.1f}",
        )


def _verdict(document: SharesDocument) -> str:
    """Writes what is more than chance."""
    changed: list[tuple[str, ShareChange]] = [
        (share, change) for share, change in document.shares.items() if change.significant
    ]
    if not changed:
        return f"No significant difference in {len(document.shares)} shares (level {document.level:g})."
    listed = ", ".join(f"{share} {100 * change.difference:+.1f} points" for share, change in changed)
    return f"More than chance (*, level {document.level:g} over all shares): {listed}."


def _markdown(document: SharesDocument) -> Iterator[str]:
    """Yields the lines of a report."""
    yield from ("# Comparison of shares", "", f"**{_verdict(document)}**", "")
    for letter, side in (("A", document.a), ("B", document.b)):
        yield f"- {letter}: {_about(side)}"
    yield from ("", markdown_table([name.lower() or "share" for name in COLUMNS], _rows(document)))
