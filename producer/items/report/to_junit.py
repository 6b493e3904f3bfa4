"""Writes a run of single items as JUnit XML: one suite, a test for each item."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from producer.items.documents import ItemsRun
from producer.items.report.opened_rows import OpenedItem, opened
from producer.report.junit import NEVER, Junit, JunitTest
from shared.codecs.item_rows import ItemRow
from shared.names import Outcome
from shared.runs import RunInfo


class ItemsJunitReport:
    """Writes a run.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._junit, self._suite = Junit(out, info), info.source or info.run

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        self._junit.add(self._suite, tests_of(rows))

    def end(self, document: ItemsRun) -> None:
        """Writes the file."""
        self._junit.end(document)


def tests_of(rows: Iterable[ItemRow]) -> Iterator[JunitTest]:
    """Makes a test of each row."""
    return map(_test, opened(rows))


def _test(item: OpenedItem) -> JunitTest:
    """Makes a test of an item."""
    row = item.row
    name, time_s = f"item {row.index}", (row.latency_ms or 0) / 1000
    if item.code:
        return JunitTest("items", name, "error", time_s, item.code, item.message)
    if item.result is None:
        return JunitTest("items", name, "skipped", message=NEVER)
    if row.outcome is Outcome.FAILED:
        body = json.dumps(item.result, ensure_ascii=False)
        return JunitTest("items", name, "failure", time_s, "failed", "failed", body)
    return JunitTest("items", name, time_s=time_s)
