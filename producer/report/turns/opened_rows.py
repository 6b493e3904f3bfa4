"""Opens stored result lines for reports that show single fields; JSON Lines does without."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct
from msgspec.json import Decoder

from producer.report.turns.poison import result_line
from producer.report.turns.to_jsonl import outcome
from shared.clock import iso_utc
from shared.names import Outcome
from shared.runs import TurnRow


class _Memento(Struct):
    arc: str


class TurnResult(Struct, rename="camel"):
    """The result of a turn, as far as tables show it."""

    thread_id: str
    message_id: str
    decision: str | None
    rule: int | None
    peak_guardrail_active: bool
    summary_updated: bool
    reason: str
    source: str
    etag: str
    memento: _Memento
    response: str | None = None


class TurnError(Struct):
    """Why a turn has no decision."""

    code: str
    message: str


class _ErrorLine(Struct):
    error: TurnError
    result: TurnResult


class OpenedRow(NamedTuple):
    """A row with its fields."""

    row: TurnRow
    """As it is stored."""
    outcome: Outcome
    """How it ended."""
    result: TurnResult | None
    """None when it was skipped."""
    error: TurnError | None
    """None unless it ended in error."""

    @property
    def item_id(self) -> str:
        """The item's name."""
        return f"turn-{self.row.index}"

    @property
    def started_at(self) -> str:
        """When its block was begun; empty without a result."""
        return iso_utc(self.row.started_ms) if self.row.code else ""

    @property
    def finished_at(self) -> str:
        """When its block was decided; empty without a result."""
        return iso_utc(self.row.finished_ms) if self.row.code else ""


_result = Decoder(TurnResult)
_error = Decoder(_ErrorLine)


def opened(rows: Iterable[TurnRow]) -> Iterator[OpenedRow]:
    """Opens rows one by one."""
    for row in rows:
        ended = outcome(row.code)
        if ended is Outcome.DECIDED:
            yield OpenedRow(row, ended, _result.decode(row.line), None)
        elif ended is Outcome.ERROR:
            line = _error.decode(result_line(row))
            yield OpenedRow(row, ended, line.result, line.error)
        else:
            yield OpenedRow(row, ended, None, None)
