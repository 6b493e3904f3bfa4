"""Reads the stored rows of a turns run: how each ended, its fields, and its message.

A poisoned turn has no result line, because every worker that tried it died: the ledger keeps its input line
and its thread's state, and `result_line` writes them in the form of every other refused turn.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Raw, Struct
from msgspec.json import Decoder, Encoder

from producer.text import plural
from shared.clock import iso_utc
from shared.names import Outcome
from shared.runs import TurnRow
from shared.runs.pages import POISONED
from worker.breakpoint.orchestrator import Refusal
from worker.breakpoint.thread_decider import refused_line
from worker.breakpoint.turn_wire import decode_turns

ORDINARY: Final = frozenset("msk")
"""First letters of the codes of decided turns."""
MESSAGE_CHARS: Final = 2_000
"""Longest message in a report; the input may hold ten times as much."""
CUT: Final = "…"
SHOWN_INPUT: Final = ("threadId", "role", "ts", "affectSignal", "modelShape", "context")
"""Fields of the input that reports show beside the message, also where that is withheld."""
REFUSAL: Final = Refusal("poison", "every worker that tried this turn was lost")
"""Error code and message of a turn whose workers all died: none could write its result."""


class _Memento(Struct):
    arc: str


M = TypeVar("M")


class StoredResult(Struct, Generic[M], rename="camel"):
    """The result of a turn, with as much of the memento as a reader needs."""

    thread_id: str
    message_id: str
    decision: str | None
    rule: int | None
    peak_guardrail_active: bool
    summary_updated: bool
    reason: str
    source: str
    etag: str
    memento: M
    response: str | None = None


TurnResult: TypeAlias = StoredResult[_Memento]
"""The result of a turn, as far as tables show it."""


class TurnError(Struct):
    """Why a turn has no decision."""

    code: str
    message: str


class RefusedLine(Struct, Generic[M]):
    """The stored line of a turn that ended in error."""

    error: TurnError
    result: M


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
    def cells(self) -> list[str]:
        """What tables show: thread, message, outcome, decision, rule, freeze, summary, and why."""
        result = self.result
        if result is None:
            return ["", "", self.outcome.value, "", "", "", "", ""]
        return [
            result.thread_id,
            result.message_id,
            self.outcome.value,
            result.decision or "",
            str(result.rule or ""),
            "frozen" if result.peak_guardrail_active else "",
            "updated" if result.summary_updated else "",
            f"{self.error.code}: {self.error.message}" if self.error else result.reason,
        ]

    @property
    def started_at(self) -> str:
        """When its block was begun; empty without a result."""
        return iso_utc(self.row.started_ms) if self.row.code else ""

    @property
    def finished_at(self) -> str:
        """When its block was decided; empty without a result."""
        return iso_utc(self.row.finished_ms) if self.row.code else ""


_result = Decoder(TurnResult)
_error = Decoder(RefusedLine[TurnResult])


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


def outcome(code: str) -> Outcome:
    """Names how a row ended.

    >>> outcome("m2u").value, outcome("x0").value, outcome("").value
    ('decided', 'error', 'skipped')
    """
    if code[:1] in ORDINARY:
        return Outcome.DECIDED
    return Outcome.ERROR if code else Outcome.SKIPPED


def result_line(row: TurnRow) -> bytes:
    """Returns the stored JSON of a row, written now if no worker could."""
    return _poisoned(row) if row.code == POISONED else row.line


def _poisoned(row: TurnRow) -> bytes:
    """Writes the line of a poisoned turn in the form of every other error."""
    raw, _, state = row.line.partition(b"\n")
    [turn] = decode_turns(raw)
    thread = turn.thread_id if turn else ""
    message_id = (turn.message_id if turn else None) or f"{thread}#{row.index}"
    return refused_line(thread, message_id, REFUSAL, state=state, now_ms=row.finished_ms)


class _Input(Struct):
    message: str = ""
    message_chars: int = 0


class _RawInput(Struct):
    message: Raw = Raw()


_input: Final = Decoder(_Input).decode
_raw_input: Final = Decoder(_RawInput).decode
_fields: Final = Decoder(dict[str, Raw]).decode
_encode: Final = Encoder().encode


def message_of(row: TurnRow) -> str:
    """Returns the message of a turn, cut, or that it is withheld; empty where the row has no input.

    >>> message_of(TurnRow(0, "", b"", 0, 0, 0, b'{"threadId":"t","message":"Rome?"}'))
    'Rome?'
    """
    if not row.payload:
        return ""
    found = _input(row.payload)
    return withheld_text(found.message_chars) if found.message_chars else _cut(found.message)


def message_json(payload: bytes) -> bytes:
    r"""Returns the same as JSON, copied as it is where it is short; empty where it is withheld.

    Args:
        payload: a line of the input, or what `without_text` left of it.

    >>> message_json(b'{"threadId":"t","message":"Caf\\u00e9?"}')
    b'"Caf\\u00e9?"'
    """
    message = bytes(_raw_input(payload).message)
    return message if len(message) <= MESSAGE_CHARS else _encode(_cut(_input(payload).message))


def withheld_chars(payload: bytes) -> int:
    """Returns the length of a message that was withheld.

    >>> withheld_chars(b'{"threadId":"t","message_chars":84}')
    84
    """
    return _input(payload).message_chars


def withheld_text(chars: int) -> str:
    """Returns the note in place of a message that is not shown.

    >>> withheld_text(1_084)
    'text withheld, 1,084 characters'
    """
    return f"text withheld, {plural(chars, 'character')}"


def withheld(page: Sequence[TurnRow]) -> list[TurnRow]:
    """Withholds the messages of some rows."""
    return list(map(without_text, page))


def without_text(row: TurnRow) -> TurnRow:
    r"""Withholds the message of a turn: its input keeps what reports show beside it, and its length.

    >>> without_text(TurnRow(0, "", b"", 0, 0, 0, b'{"message":"Rome?","role":"user","meta":{}}')).payload
    b'{"role":"user","message_chars":5}'
    """
    if not row.payload:
        return row
    fields = _fields(row.payload)
    kept: dict[str, Raw | int] = {name: fields[name] for name in SHOWN_INPUT if name in fields}
    kept["message_chars"] = len(_input(row.payload).message)
    return row._replace(payload=_encode(kept))


def _cut(text: str) -> str:
    """Shortens a long message."""
    return text if len(text) <= MESSAGE_CHARS else text[: MESSAGE_CHARS - len(CUT)] + CUT
