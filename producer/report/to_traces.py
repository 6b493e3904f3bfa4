"""Writes the trace events of a turns run: one breakpoint event for each decided turn, made from its row.

A row is committed exactly once, so its event exists exactly once, whatever was killed or delivered twice. A
turn that ended in error has none, nor has a repeated request, whose first turn has it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.json import Decoder, Encoder

from producer.report.to_jsonl import ORDINARY
from shared.rows import DECISION_OF_CODE
from shared.runs import RunInfo, TurnRow
from worker.breakpoint.trace import BreakpointEvent, breakpoint_event


class _Memento(Struct, rename="camel"):
    updated_at: str


class _Result(Struct):
    source: str
    memento: _Memento


_decode = Decoder(_Result).decode
_encode = Encoder().encode


class TracesReport:
    """Writes events as rows go by.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._run = out, info.run

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Writes the events of some rows, one a line."""
        self._out.write(b"".join([_encode(event) + b"\n" for event in events(self._run, rows)]))

    def end(self, document: Mapping[str, Any]) -> None:
        """Has nothing to add."""


def events(run: str, rows: Iterable[TurnRow]) -> list[BreakpointEvent]:
    """Makes the events of some rows."""
    made = list[BreakpointEvent]()
    for row in rows:
        if row.code[:1] not in ORDINARY or "d" in row.code:
            continue
        result = _decode(row.line)
        event = breakpoint_event(
            run=run,
            index=row.index,
            decision=str(DECISION_OF_CODE[row.code[0]]),
            peak_guardrail_active="f" in row.code,
            source=result.source,
            ts=result.memento.updated_at,
        )
        made.append(event)
    return made
