"""A fourth kind of work, declared in one file: words, which pass when they read the same backwards.

`PROCTOR_KINDS=tests.support.fourth_kind` registers it in every command and worker. Its reports, totals,
terminal view, gates, comparison and retry are those of any kind whose results are single items.
"""

import json
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from producer import kinds as producer_kinds
from producer.items import kind as items
from producer.kind import Traits
from shared.codecs.packing import PLAIN
from shared.kinds import Kind, Storage, register
from shared.names import Outcome
from worker import kinds as worker_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from producer.aggregate.gate_metrics import GateMetric
    from producer.documents import AnyRun
    from producer.item_ids import ItemNames
    from producer.kind import ComparedKind
    from producer.load.chunks import RunInput
    from producer.load.source import Source
    from producer.options import SubmitOptions
    from producer.report.interfaces import ReadFile, Report, Screen, Totals, TurnText
    from producer.report.junit import JunitTest
    from producer.report.run_report import RunReport
    from producer.report.shown_item import ShownItem
    from producer.review.answer_labels import Review
    from producer.row_filter import RowFacts
    from producer.turns.retry import Retry
    from shared.codecs.item_rows import ItemRow
    from shared.errors import UsageError
    from shared.runs import RunInfo, RunStore
    from worker.executors.items import Item, ItemResult, ItemsExecutor
    from worker.process import WorkerProcess

WORDS: Final = register(
    Kind(
        "words",
        "word",
        task="proctor.words.evaluate",
        storage=Storage.LIST,
        outcomes=(Outcome.PASSED, Outcome.FAILED, Outcome.ERROR),
    )
)


class Word(NamedTuple):
    """What is loaded of a line."""

    id: str
    word: str


class WordRuns:
    """Runs of words."""

    kind: ClassVar = WORDS
    traits: ClassVar = Traits(keys=frozenset({"word"}), formats=items.FORMATS)

    def load(self, source: "Source", _options: "SubmitOptions", /) -> "RunInput":
        """Begins to load a file with a word a line."""
        from producer.load.chunks import RunInput, chunk_size, item_chunks  # noqa: PLC0415 - start-up, as every loader

        rows = [json.loads(line) for line in b"".join(source.blocks()).splitlines()]
        words = [Word(f"w-{at}", row["word"]) for at, row in enumerate(rows)]
        payloads = [(word.id, json.dumps(word._asdict()).encode()) for word in words]
        return RunInput(item_chunks(payloads, chunk_size(len(payloads))), {})

    def problems(self, _source: "Source", /) -> "Sequence[UsageError]":
        return ()

    def contents(self, _source: "Source", _options: "SubmitOptions", /) -> None:
        return None

    def forecast(self, _source: "Source", _options: "SubmitOptions", /) -> None:
        return None

    def limit(self) -> None:
        return None

    def pages(self, store: "RunStore", run: str, _text: "TurnText", /) -> "Iterator[Sequence[ItemRow]]":
        return items.pages(store, run)

    def totals(self, _review: "Review", /) -> "Totals":
        return items.totals()

    def fails_fast(self, _info: "RunInfo", /) -> bool:
        return False

    def report(self, name: str, out: "BinaryIO", info: "RunInfo", /) -> "Report":
        return items.report(name, out, info, columns=("word", "reversed"))

    def run_report(self, document: "AnyRun", /) -> "RunReport":
        return items.run_report(document)

    def screen(self) -> "Screen":
        return items.screen()

    def tests(self, rows: "Iterable[ItemRow]", /) -> "Iterator[JunitTest]":
        return items.tests(rows)

    def shown(self, info: "RunInfo", /) -> "Callable[[ItemRow], ShownItem]":
        return items.shown(info)

    def item_html(self, _info: "RunInfo", _read: "ReadFile", /) -> None:
        return None

    def facts(self, _fields: frozenset[str], /) -> "Callable[[ItemRow], RowFacts]":
        return items.facts()

    def metrics(self) -> "Mapping[str, GateMetric]":
        return items.metrics()

    def compared(self) -> "ComparedKind":
        return items.compared()

    def names(self) -> "ItemNames":
        return items.names()

    def retry(self) -> "Retry":
        return items.retry()


producer_kinds.register(WordRuns())


class WordsEngine:
    """Evaluates words."""

    packing = PLAIN
    together = 10

    async def process(self, item: "Item") -> str:
        """Returns the word; a number is answered by nobody."""
        item.attempts += 1
        return str(json.loads(item.payload)["word"])

    def result_of(self, item: "Item", processed: str) -> "ItemResult":
        """Compares a word with its reverse."""
        from worker.executors.items import ItemResult  # noqa: PLC0415 - commands import this file too

        if processed.isdecimal():
            return self.error_result(item, "no_word", f"{processed} is a number")
        outcome = Outcome.PASSED if processed == processed[::-1] else Outcome.FAILED
        return ItemResult(
            outcome, json.dumps({"word": processed, "reversed": processed[::-1]}).encode(), latency_ms=1
        )

    def error_result(self, item: "Item", code: str, message: str) -> "ItemResult":
        """Makes the result of a word without a verdict."""
        from worker.executors.items import ItemResult  # noqa: PLC0415 - as above

        del item
        line = {"error": {"code": code, "message": message}, "result": None}
        return ItemResult(Outcome.ERROR, json.dumps(line).encode(), code=code)


class WordWork:
    """How words are executed."""

    kind: ClassVar = WORDS
    slots: ClassVar[int | None] = None

    def make_executor(self, process: "WorkerProcess", _store: "RunStore", /) -> "ItemsExecutor[str]":
        from worker.executors.items import ItemsExecutor  # noqa: PLC0415 - commands import this file too

        process.loop.prepare()
        return ItemsExecutor(process, lambda _run: WordsEngine())

    def preload(self) -> None:
        import worker.executors.items  # noqa: F401, PLC0415 - for the processes that are forked


worker_kinds.register(WordWork())
