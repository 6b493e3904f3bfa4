"""Writes a turns run as JUnit XML: a test for each turn, or for a thousand of them and each error."""

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Final

from producer.aggregate.call_totals import call_of
from producer.report.junit import NEVER, Junit, JunitTest
from producer.turns.documents import TurnsRun
from producer.turns.report.opened_rows import ORDINARY, opened
from shared.codecs.turn_batches import ASKED
from shared.runs import RunInfo, TurnRow

MOST_TURNS: Final = 20_000
"""Turns that are a test each; of more, only those in error are, which a reader of such files can bear."""
BLOCK: Final = 1_000
"""Decided turns that are one test together in a bigger run."""


class TurnsJunitReport:
    """Writes a turns run: one suite.

    A turn is a test. Of a run beyond `MOST_TURNS` that would be a file that build servers refuse, and nobody
    looks for a turn that was decided: there 1,000 turns in a row are one test, and each turn in error still
    has its own. Threads would do as well, but are met in no order, and many of them would fill the memory.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._junit, self._suite = Junit(out, info), info.source or info.run
        self._is_big = info.total > MOST_TURNS
        self._block, self._decided, self._skipped = 0, 0, 0

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Takes some rows."""
        self._junit.add(self._suite, self._blocks(rows) if self._is_big else map(turn_test, rows))

    def end(self, document: TurnsRun) -> None:
        """Writes the file."""
        self._junit.add(self._suite, self._told())
        self._junit.end(document)

    def _blocks(self, rows: Sequence[TurnRow]) -> Iterator[JunitTest]:
        """Counts what has nothing to tell, and yields what has, and the blocks that are over."""
        for row in rows:
            block = row.index // BLOCK
            if block != self._block:
                yield from self._told()
                self._block = block
            if row.code[:1] in ORDINARY:
                self._decided += 1
            elif row.code:
                yield turn_test(row)
            else:
                self._skipped += 1

    def _told(self) -> Iterator[JunitTest]:
        """Yields the block at hand, and begins anew."""
        first = self._block * BLOCK
        name = f"turns {first:,} to {first + BLOCK - 1:,}"
        if self._decided:
            yield JunitTest("turns", f"{name}: {self._decided:,} decided")
        if self._skipped:
            yield JunitTest("turns", f"{name}: {self._skipped:,} skipped", "skipped", message=NEVER)
        self._decided = self._skipped = 0


def tests_of(rows: Iterable[TurnRow]) -> Iterator[JunitTest]:
    """Makes a test of each row."""
    return map(turn_test, rows)


def turn_test(row: TurnRow) -> JunitTest:
    """Makes a test of a turn; only a model's answer takes time that is worth telling."""
    [turn] = opened([row])
    if turn.result is None:
        return JunitTest("turns", turn.item_id, "skipped", message=NEVER)
    name = f"{turn.item_id}: {turn.result.message_id}"
    if turn.error:
        return JunitTest(turn.result.thread_id, name, "error", 0.0, turn.error.code, turn.error.message)
    time_s = call_of(row).latency_ms / 1000 if ASKED in row.code else 0.0
    return JunitTest(turn.result.thread_id, name, time_s=time_s)
