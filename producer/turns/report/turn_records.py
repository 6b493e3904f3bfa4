"""Reads what people are shown of a turn: message, decision, affect, and the memento after it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.json import Decoder

from producer.report.cells import Size
from producer.text import cost, latency
from producer.turns.report.opened_rows import ORDINARY, RefusedLine, StoredResult, result_line
from producer.turns.report.to_traces import events
from shared.codecs.turn_batches import ASKED, AVOIDED, CACHED, DUPLICATE
from shared.runs import TurnRow
from worker.breakpoint.memento import FROM_REQUEST, SEED_ARC
from worker.breakpoint.trace import MODEL_CALL, Event, TracedCall

FIELDS: Final = ("arc", "active", "parked", "decisions", "next")
"""Of a summary, in the order in which people read them."""
ENTRIES: Final = 40
"""Entries of one field of a memento."""
ERROR: Final = "error"
SKIPPED: Final = "not decided"


def short(text: str, most: int = Size.REASON) -> str:
    """Cuts a text; what is not printable in it is replaced when the page is filled in.

    >>> short("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Shape(Struct):
    """A summary: five fields."""

    arc: str = ""
    active: list[str] = []
    parked: list[str] = []
    decisions: list[str] = []
    next: list[str] = []

    def entries(self, name: str) -> list[str]:
        """Returns what a field says, bounded."""
        if name == "arc":
            return [short(self.arc)] if self.arc else []
        texts: list[str] = getattr(self, name)
        return list(map(short, texts[:ENTRIES]))


SEED: Final = Shape(SEED_ARC)
"""The summary of a thread before its first turn."""


class _Point(Struct, rename="camel"):
    end_message_id: str
    intensity: float
    label: str = ""


class _Rollup(Struct, rename="camel"):
    phase: str
    intensity_bucket: str


class _Affect(Struct):
    points: list[_Point]
    rollup: _Rollup


class _Memento(Shape, kw_only=True):
    affect: _Affect


class _Result(StoredResult[_Memento], rename="camel"):
    call: TracedCall | None = None
    events: list[Event] = field(default_factory=list)


class _RequestContext(Struct):
    thread_memento: Shape | None = None


class _Input(Struct, rename={"thread_id": "threadId", "proposed": "modelShape"}):
    thread_id: str = ""
    message: str = ""
    message_chars: int = 0
    role: str = "user"
    ts: str = ""
    proposed: Shape | None = None
    context: _RequestContext | None = None


_read_result: Final = Decoder(_Result).decode
_read_error: Final = Decoder(RefusedLine[_Result]).decode
_read_input: Final = Decoder(_Input).decode


class Mood(NamedTuple):
    """The affect of a thread after a turn."""

    level: float = 0.0
    """Intensity of the last measurement, 0 to 1."""
    phase: str = ""
    """Empty where nothing was ever measured."""
    label: str = ""
    is_measured: bool = False
    """Whether this turn was measured."""


class TurnRecord(Struct):
    """A turn as it is kept on disk until its place on the page is known."""

    index: int
    thread: str = ""
    message_id: str = ""
    role: str = ""
    """Empty where the input was not read."""
    ts: str = ""
    text: str = ""
    chars: int = 0
    """Length of the message; longer than the text where it was cut, or withheld."""
    is_withheld: bool = False
    decision: str = SKIPPED
    rule: int = 0
    reason: str = ""
    code: str = ""
    """Of an error."""
    is_frozen: bool = False
    is_updated: bool = False
    is_repeated: bool = False
    is_avoided: bool = False
    etag: int = 0
    source: str = ""
    mood: Mood = Mood()
    memento: Shape = field(default_factory=Shape)
    proposed: Shape | None = None
    """A summary that was proposed and not taken."""
    is_discarded: bool = False
    """Whether a proposal was not taken; what a model proposed is not stored."""
    base: Shape | None = None
    """The client's memento, where the turn started from that one."""
    response: str = ""
    call: str = ""
    """What a model call came to."""
    trace: list[str] = []

    @property
    def order(self) -> int:
        """Sorts the turns of a thread as they were decided; a refused one leaves the etag where it was."""
        if self.decision == SKIPPED:
            return 1 << 31
        return 2 * min(self.etag, (1 << 30) - 1) + (self.decision == ERROR or self.is_repeated)


def record_of(run: str, row: TurnRow, most: int) -> TurnRecord:
    """Reads a stored row with its input.

    Args:
        run: its run, which trace events name.
        row: the row.
        most: characters of a text that are kept.
    """
    given = _read_input(row.payload) if row.payload else None
    record = TurnRecord(row.index)
    if given is not None:
        record.thread, record.role, record.ts = given.thread_id, given.role, given.ts
        record.text, record.chars = given.message[:most], given.message_chars or len(given.message)
        record.is_withheld = bool(given.message_chars)
    if not row.code:
        return record
    if row.code[:1] in ORDINARY:
        result, record.decision = _read_result(row.line), ""
    else:
        line = _read_error(result_line(row))
        result, record.decision, record.code = line.result, ERROR, line.error.code
        result.reason = line.error.message
    _take_result(record, result, row.code)
    _take_proposal(record, result, given)
    if result.response:
        record.response = result.response[:most]
    record.trace = _trace(run, row)
    return record


def _take_result(record: TurnRecord, result: _Result, code: str) -> None:
    """Takes over what was decided, and the state of the thread."""
    record.thread, record.message_id = result.thread_id, result.message_id
    record.decision = record.decision or result.decision or SKIPPED
    record.rule, record.reason = result.rule or 0, short(result.reason)
    record.is_frozen, record.is_updated = result.peak_guardrail_active, result.summary_updated
    record.is_repeated, record.is_avoided = DUPLICATE in code, AVOIDED in code
    record.etag = int(result.etag) if result.etag.isdecimal() else 0
    record.source, record.mood = result.source, _mood(result)
    now = result.memento
    record.memento = Shape(now.arc, now.active, now.parked, now.decisions, now.next)
    if result.call is not None:
        record.call = _call(result.call)


def _take_proposal(record: TurnRecord, result: _Result, given: _Input | None) -> None:
    """Finds a proposed summary that was not taken, and the client's memento if that was the baseline."""
    if given is not None and result.source == FROM_REQUEST and given.context is not None:
        record.base = given.context.thread_memento
    if record.decision == ERROR or record.is_updated:
        return
    if given is not None and given.proposed is not None and result.call is None:
        record.proposed, record.is_discarded = given.proposed, True
    record.is_discarded = record.is_discarded or any(
        event.phase == MODEL_CALL and event.metadata.get("shape") == "frozen" for event in result.events
    )


def _mood(result: _Result) -> Mood:
    """Reads the affect after a turn."""
    points, rollup = result.memento.affect.points, result.memento.affect.rollup
    if not points:
        return Mood(phase="")
    last = points[-1]
    is_own = last.end_message_id == result.message_id
    return Mood(min(max(last.intensity, 0.0), 1.0), rollup.phase, last.label if is_own else "", is_own)


def _call(call: TracedCall) -> str:
    """Writes what a model call came to in one line."""
    parts = [short(call.model, Size.NAME), "from the cache" if call.cached else latency(call.latency_ms)]
    parts += [cost(call.cost_usd)] if call.cost_usd is not None else []
    tokens = (call.prompt_tokens, call.completion_tokens)
    parts += [f"{tokens[0]:,} tokens in, {tokens[1] or 0:,} out"] if tokens[0] is not None else []
    parts += [f"{call.attempts} attempts"] if call.attempts > 1 else []
    return " · ".join(parts)


def _trace(run: str, row: TurnRow) -> list[str]:
    """Writes the trace events of a turn, a line each."""
    is_live = any(flag in row.code for flag in (ASKED, CACHED, AVOIDED))
    return [_event(event) for event in events(run, [row], all_phases=is_live)]


def _event(event: Mapping[str, object]) -> str:
    """Writes a trace event in one line."""
    words = (event["ts"], event["actor"], event["phase"], event["status"], event["summary"])
    return short(" · ".join(map(str, words)))
