"""Writes runs of each kind as JUnit XML: a test for each item, with the reason where it did not pass."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

import msgspec

from producer.aggregate.calls import call_of
from producer.report.cases import opened_rows as case_rows
from producer.report.cases.opened_rows import OpenedCase
from producer.report.junit import Junit, JunitTest
from producer.report.queries import opened_rows as query_rows
from producer.report.queries.opened_rows import OpenedQuery
from producer.report.turns.opened_rows import opened
from producer.report.turns.to_jsonl import ORDINARY
from shared.codecs.item_rows import ItemRow
from shared.codecs.turn_batches import ASKED
from shared.names import Outcome
from shared.runs import RunInfo, TurnRow

MOST_TURNS: Final = 20_000
"""Turns that are a test each; of more, only those in error are, which a reader of such files can bear."""
BLOCK: Final = 1_000
"""Decided turns that are one test together in a bigger run."""
NEVER: Final = "the run ended before it"

_decode = msgspec.json.decode


class CasesJunitReport:
    """Writes a cases run: a suite for each model.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._junit = Junit(out, info)

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        self._junit.add_all((case.item.model, case_test(case)) for case in case_rows.opened(rows))

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the file."""
        self._junit.end(document)


class QueriesJunitReport:
    """Writes a queries run: a suite for each category.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._junit = Junit(out, info)

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        self._junit.add_all(map(query_test, query_rows.opened(rows)))

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the file."""
        self._junit.end(document)


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

    def end(self, document: Mapping[str, Any]) -> None:
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
            yield JunitTest("turns", f"{name}: {self._skipped:,} never decided", "skipped", message=NEVER)
        self._decided = self._skipped = 0


def case_test(case: OpenedCase) -> JunitTest:
    """Makes a test of a case."""
    row, item, result = case.row, case.item, case.result
    name = f"case {item.case + 1}" + (f" ({item.id})" if item.id else "")
    name += f" #{item.repeat + 1}" * bool(item.repeat)
    time_s = (row.latency_ms or 0) / 1000
    if result is None:
        return JunitTest(item.model, name, "skipped", message=NEVER)
    if case.code:
        return JunitTest(item.model, name, "error", time_s, case.code, case.message, f"input: {item.input}")
    if result["passed"]:
        return JunitTest(item.model, name, time_s=time_s)
    body = [f"input: {item.input}"]
    if item.expected is not None:
        body.append(f"expected: {json.dumps(item.expected, ensure_ascii=False)}")
    body.append(f"output: {result['raw_output']}")
    status = str(result["status"])
    return JunitTest(item.model, name, "failure", time_s, status, case.message or status, "\n".join(body))


def query_test(query: OpenedQuery) -> tuple[str, JunitTest]:
    """Makes a test of a query, with its category."""
    # Of a query that was never sent the row has its input, with the same keys.
    told = query.result or _decode(query.row.line)
    category = str(told["category"])
    return category, _query_test(query, category, f"{told['id']}: {told['query']}")


def _query_test(query: OpenedQuery, category: str, name: str) -> JunitTest:
    """Makes the test."""
    if query.result is None:
        return JunitTest(category, name, "skipped", message=NEVER)
    time_s = (query.result["client_latency_ms"] or 0) / 1000
    if query.row.outcome is Outcome.ERROR:
        return JunitTest(category, name, "error", time_s, query.code, str(query.shown["error"] or query.code))
    if query.result["overall_pass"]:
        return JunitTest(category, name, time_s=time_s)
    missed = {
        word: check
        for word, check in query.result["checks"].items()
        if check.get("applicable", True) and not check["pass"]
    }
    why = f"missed: {', '.join(missed)}" if missed else "no check is applicable"
    body = [f"{word}: {json.dumps(check, ensure_ascii=False)}" for word, check in missed.items()]
    body.append(f"response: {json.dumps(query.result['response'], ensure_ascii=False)}")
    return JunitTest(category, name, "failure", time_s, "failed_checks", why, "\n".join(body))


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
