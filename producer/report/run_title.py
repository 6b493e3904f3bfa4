"""Names a run in a line, for heads of summaries: the name it was given, its bench, and its input."""

from typing import Final

from producer.documents import AnyRun
from producer.report.cells import plain

NAME_CHARS: Final = 60


def head_of(document: AnyRun, bench: str = "") -> str:
    """Writes the id of a run and what it is called, given the name of its bench."""
    named = (document.name, bench, document.summary.source)
    names = [plain(name, NAME_CHARS) for name in dict.fromkeys(named) if name]
    return "  ".join([document.run_id, *names])
