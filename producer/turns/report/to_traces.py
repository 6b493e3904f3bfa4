"""Writes the trace events of a turns run: one breakpoint event for each decided turn, made from its row.

With all phases also what a live turn did beside: those events were committed with its row. A row is committed
exactly once, so its events exist exactly once, whatever was killed or delivered twice. A turn that ended in
error has none, nor has a repeated request, whose first turn has them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.json import Decoder, Encoder

from producer.turns.documents import TurnsRun
from producer.turns.report.opened_rows import ORDINARY
from shared.codecs.turn_batches import DECISION_OF_CODE
from shared.runs import RunInfo, TurnRow
from worker.breakpoint.trace import Event, all_events, breakpoint_event


class _Memento(Struct, rename="camel"):
    updated_at: str


class _Result(Struct):
    source: str
    memento: _Memento
    events: list[Event] = []


_decode = Decoder(_Result).decode
_encode = Encoder().encode


class TracesReport:
    """Writes events as rows go by.

    Args:
        out: where to.
        info: the run.
        all_phases: not only the breakpoint events.
    """

    def __init__(self, out: BinaryIO, info: RunInfo, *, all_phases: bool) -> None:
        self._out, self._run, self._all_phases = out, info.run, all_phases

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Writes the events of some rows, one a line."""
        made = events(self._run, rows, all_phases=self._all_phases)
        self._out.write(b"".join([_encode(event) + b"\n" for event in made]))

    def end(self, document: TurnsRun) -> None:
        """Has nothing to add."""


def events(run: str, rows: Iterable[TurnRow], *, all_phases: bool = False) -> list[Mapping[str, Any]]:
    """Makes the events of some rows.

    Args:
        run: their run.
        rows: some of its rows.
        all_phases: not only the breakpoint events.
    """
    made = list[Mapping[str, Any]]()
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
        made += all_events(event, result.events) if all_phases else [event]
    return made
