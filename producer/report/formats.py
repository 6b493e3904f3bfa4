"""Finds the writer of a format for a kind of run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from producer import kinds
from shared.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from producer.report.interfaces import Report
    from shared.kinds import Kind
    from shared.runs import RunInfo

TRACES: Final = "traces"
"""In the names of formats that `results --traces` prints, and that no report is written in."""


def format_of(kind: Kind, name: str, *, where: str = "") -> Callable[[BinaryIO, RunInfo], Report]:
    """Finds a format of a kind.

    Args:
        kind: of the run.
        name: of the format.
        where: the file that is to be written so, for the message.

    Raises:
        UsageError: runs of this kind are not written so.
    """
    handled = kinds.of(kind)
    known = handled.traits.formats
    if name not in known:
        names = ", ".join(name for name in known if TRACES not in name)
        problem = f"{kind} cannot be written as {name}"
        raise UsageError(f"{where}: {problem}" if where else problem, hint=f"one of {names}")
    return partial(handled.report, name)
