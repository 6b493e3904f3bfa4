"""Writes what the summaries of all kinds have in common: the line that names the run, and the last lines."""

from producer.documents import AnyRun
from producer.report.cells import Size, plain
from producer.turns.totals import ranked


def head_of(document: AnyRun, bench: str = "") -> str:
    """Writes the id of a run and what it is called, given the name of its bench."""
    named = (document.name, bench, document.summary.source)
    names = [plain(name, Size.CELL) for name in dict.fromkeys(named) if name]
    return "  ".join([document.run_id, *names])


def last_lines(document: AnyRun) -> list[str]:
    """Writes the errors by their codes, and the files that were written."""
    lines = []
    if errors := document.summary.errors:
        codes = (f"{plain(code, Size.CELL)} {number:,}" for code, number in ranked(errors))
        lines.append("errors by code: " + ", ".join(codes))
    return lines + [f"{file.format} written to {plain(file.path)}" for file in document.files]
