"""What people and programs are shown of a thread: its memento, what its guardrail does, its last turns."""

import json
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple

from msgspec.json import Decoder, encode

from producer.documents import ItemError
from producer.service_documents import LastTurn, ListedThread, ThreadDocument
from producer.turns.report.opened_rows import MESSAGE_CHARS, OpenedRow, message_of, opened
from producer.turns.report.turn_records import TurnRecord, record_of
from shared.clock import now_ms, parse_iso_ms
from shared.codecs.turn_batches import DUPLICATE
from shared.kinds import TURNS
from shared.runs import RunStore
from shared.runs.pages import POISONED
from shared.runs.threads import ThreadStore
from worker.breakpoint.engine import BreakpointDecision
from worker.breakpoint.memento import KeptMemento
from worker.breakpoint.orchestrator import is_summary_frozen
from worker.breakpoint.thread_decider import public_state

LOOKED_RUNS: Final = 200
"""Runs, newest first, among which those of a namespace are searched."""
LOOKED_TURNS: Final = 100_000
"""Turns, newest first, among which the last ones of a thread are searched: a second's work."""
_memento: Final = Decoder(KeptMemento).decode


class ThreadView(NamedTuple):
    """The state of a thread."""

    namespace: str
    name: str
    turns: int
    """Decided so far; the etag is the same number as text."""
    memento: KeptMemento
    """Its memento."""
    stored: bytes
    """The memento as JSON."""

    @property
    def is_frozen(self) -> bool:
        """Whether the peak guardrail keeps the summary from every turn but a `must`."""
        return is_summary_frozen(self.memento, BreakpointDecision.SHOULD)

    @property
    def updated_ms(self) -> int:
        """The time of the last turn, epoch milliseconds."""
        return parse_iso_ms(self.memento.updated_at)

    @property
    def age_s(self) -> float:
        """Seconds since the last turn; 0 for one that is dated in the future."""
        return max(0, now_ms() - self.updated_ms) / 1000

    def listed(self) -> ListedThread:
        """Returns the entry of a list for `--json`."""
        rollup = self.memento.affect.rollup
        return ListedThread(
            namespace=self.namespace,
            thread=self.name,
            turns=self.turns,
            etag=str(self.turns),
            updated_at=self.memento.updated_at,
            age_s=round(self.age_s, 3),
            phase=rollup.phase,
            intensity=rollup.intensity_bucket,
            frozen=self.is_frozen,
        )


class FoundTurn(NamedTuple):
    """A turn of a thread, and the run that decided it."""

    run: str
    turn: OpenedRow
    is_shared: bool = False
    """Whether turns of other runs may stand beside it."""

    @property
    def etag(self) -> int:
        """How many turns of the thread were decided after it."""
        return int(self.turn.result.etag) if self.turn.result else 0

    @property
    def order(self) -> tuple[int, bool, int, int]:
        """Sorts turns as they were decided: a refused one leaves the etag where it was."""
        row = self.turn.row
        return self.etag, self.turn.error is not None, row.finished_ms, row.index

    @property
    def place(self) -> str:
        """Names the turn, with its run where runs share the namespace."""
        return f"{self.turn.item_id} of {self.run}" if self.is_shared else self.turn.item_id

    def shown(self) -> "ShownTurn":
        """Returns what people read of it."""
        record = record_of(self.run, self.turn.row, MESSAGE_CHARS)
        is_error = self.turn.error is not None
        mood = record.mood
        affect = [f"affect {mood.level:.2f}, {mood.phase}"] if mood.is_measured else []
        return ShownTurn(
            record.role or "turn",
            record.text,
            record.message_id,
            f"error {record.code}" if is_error else record.decision,
            f"rule {record.rule}: {record.reason}" if record.rule else record.reason,
            [*_became(record), *affect],
            is_frozen=record.is_frozen,
        )

    def listed(self) -> LastTurn:
        """Returns it for `--json`."""
        result, error = self.turn.result, self.turn.error
        assert result is not None  # noqa: S101 - only turns with a result are collected
        return LastTurn(
            run_id=self.run,
            item_id=self.turn.item_id,
            message_id=result.message_id,
            decision=result.decision,
            rule=result.rule,
            reason=result.reason,
            frozen=result.peak_guardrail_active,
            summary_updated=result.summary_updated,
            etag=result.etag,
            error=ItemError(error.code, error.message) if error else None,
            message=message_of(self.turn.row),
        )


class ShownTurn(NamedTuple):
    """A turn of a conversation as people read it."""

    role: str
    text: str
    name: str
    """Of its message."""
    decision: str
    reason: str
    became: list[str]
    """What became of summary and affect, where something did."""
    is_frozen: bool = False


def _became(record: TurnRecord) -> list[str]:
    """Names what became of the summary; empty where nothing did."""
    if record.is_updated:
        return ["summary changed"]
    if record.is_discarded:
        return ["summary kept", "proposal discarded"]
    return ["summary kept"] if record.is_frozen else []


def view_of(namespace: str, name: str, state: bytes) -> ThreadView:
    """Reads a thread's stored state."""
    etag, stored = public_state(state)
    return ThreadView(namespace, name, int(etag), _memento(stored), stored)


def newest(store: ThreadStore, namespaces: Iterable[str], most: int) -> list[ThreadView]:
    """Returns the threads whose last turns are the latest, in flat memory."""
    views = (view_of(space, name, state) for space in namespaces for name, state in store.threads(space))
    found = nsmallest(most, views, key=lambda view: (-view.updated_ms, view.namespace, view.name))
    return list({(view.namespace, view.name): view for view in found}.values())


def last_turns(store: RunStore, view: ThreadView, most: int) -> list[FoundTurn]:
    """Finds the last turns of a thread, oldest first, in runs that are still stored.

    Args:
        store: reads runs.
        view: the thread.
        most: how many turns.
    """
    wanted = set(range(max(0, view.turns - most) + 1, view.turns + 1))
    decided, refused = dict[int, FoundTurn](), list[FoundTurn]()
    for last in _turns_of(store, view):
        if last.turn.error is not None:
            refused.append(last)
        # What was decided before the thread was removed may have the same etag.
        elif last.etag not in decided or last.order > decided[last.etag].order:
            decided[last.etag] = last
        wanted.discard(last.etag)
        if not wanted:
            break
    return sorted([*decided.values(), *refused], key=lambda last: last.order)[-most:]


def _turns_of(store: RunStore, view: ThreadView) -> Iterator[FoundTurn]:
    """Yields turns of a thread that may be among its last, from the newest run and chunk on."""
    needle, looked = encode(view.name), 0
    runs = [info for info in store.list(limit=LOOKED_RUNS, kind=TURNS) if info.namespace == view.namespace]
    for info in runs:
        reader = store.reader(info.run, with_open=False, with_payload=True)
        for _, rows in reader.by_chunk(reversed(store.chunks(info.run))):
            looked += len(rows)
            mine = [row for row in rows if needle in row.line or row.code == POISONED]
            for turn in reversed(list(opened(row for row in mine if DUPLICATE not in row.code))):
                last = FoundTurn(info.run, turn, is_shared=view.namespace != info.run)
                if turn.result and turn.result.thread_id == view.name and last.etag <= view.turns:
                    yield last
            if looked >= LOOKED_TURNS:
                return


def document_of(view: ThreadView, turns: Sequence[FoundTurn], users: Sequence[str]) -> ThreadDocument:
    """Returns a thread for `--json`; the memento can be sent with a turn unchanged."""
    listed = view.listed()
    return ThreadDocument(
        namespace=listed.namespace,
        thread=listed.thread,
        turns=listed.turns,
        etag=listed.etag,
        updated_at=listed.updated_at,
        age_s=listed.age_s,
        phase=listed.phase,
        intensity=listed.intensity,
        frozen=listed.frozen,
        used_by=tuple(users),
        memento=json.loads(view.stored),
        last_turns=tuple(last.listed() for last in turns),
    )
