"""Names a run in a line, for heads of summaries: the name it was given, its bench, and its input."""

from collections.abc import Mapping
from typing import Any, Final

from producer.report.cells import plain

NAME_CHARS: Final = 60


def head_of(document: Mapping[str, Any]) -> str:
    """Writes the id of a run and what it is called.

    >>> head_of({"run_id": "run-1", "name": "new", "summary": {"name": "Capitals", "source": "bench.yaml"}})
    'run-1  new  Capitals  bench.yaml'
    """
    summary = document["summary"]
    named = (document.get("name"), summary.get("name"), summary["source"])
    names = [plain(name, NAME_CHARS) for name in dict.fromkeys(named) if name]
    return "  ".join([document["run_id"], *names])
