"""Makes of a turn what a terminal shows of a single item."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.json import Decoder

from producer.item_ids import turn_id_parts
from producer.report.shown_item import ShownItem
from producer.report.transcript import Spoken
from producer.turns.report.opened_rows import TurnResult, message_of, opened, result_line
from producer.turns.report.turn_records import FIELDS, Shape
from shared.runs import TurnRow

NEVER_DECIDED: Final = "the run ended before it was decided"


class _Input(Struct):
    role: str = "user"


class _Line(Struct):
    memento: Shape | None = None
    result: "_Line | None" = None


_input, _line = Decoder(_Input).decode, Decoder(_Line).decode


def shown_turn(row: TurnRow) -> ShownItem:
    """Makes a shown item of a row with its input."""
    [opened_row] = opened([row])
    result, error = opened_row.result, opened_row.error
    parts = turn_id_parts(row.index, row.payload or b'{"threadId":""}')
    name = parts.before + parts.own
    reason = NEVER_DECIDED if result is None else f"{error.code}: {error.message}" if error else ""
    return ShownItem(
        position=row.index,
        name=name,
        group=name,
        outcome=opened_row.outcome,
        word=opened_row.outcome.value,
        asked=[Spoken(_input(row.payload or b"{}").role, message_of(row))],
        answered=[Spoken("answer", result.response)] if result and result.response else (),
        reason=reason,
        wanted=[*_decision(result), *_summary(row)] if result else (),
        figures=[result.decision] if result and result.decision else (),
    )


def _decision(result: TurnResult) -> Iterator[Spoken]:
    """Yields what was decided, by which rule, and why."""
    if result.decision:
        flags = ["frozen"] * result.peak_guardrail_active + ["summary updated"] * result.summary_updated
        rule = ", ".join([f"rule {result.rule}", *flags])
        yield Spoken("decision", f"{result.decision} ({rule}): {result.reason}")


def _summary(row: TurnRow) -> Iterator[Spoken]:
    """Yields the fields of the thread's summary after the turn."""
    line = _line(result_line(row))
    shape = line.memento or (line.result and line.result.memento) or Shape()
    for name in FIELDS:
        if entries := shape.entries(name):
            yield Spoken(name, "\n".join(entries))
