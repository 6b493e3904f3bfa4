"""A fourth kind of work, declared in one file: words, which pass when they read the same backwards.

`PROCTOR_KINDS=tests.support.fourth_kind` registers it in every command and worker. Its reports, totals,
terminal view, gates, comparison and retry are those of any kind whose results are single items.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from producer import kinds as producer_kinds
from shared.codecs.packing import PLAIN
from shared.kinds import Kind, Storage, register
from shared.names import Outcome
from worker import kinds as worker_kinds

if TYPE_CHECKING:
    from producer.load.chunks import RunInput
    from producer.load.source import Source
    from producer.options import SubmitOptions
    from shared.runs import RunStore
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
producer_kinds.register(
    producer_kinds.ProducerKind(
        kind=WORDS,
        loader=producer_kinds.Lazy(__name__, "load_words"),
        keys=frozenset({"word"}),
        columns=("word", "reversed"),
    )
)
worker_kinds.register(WORDS, worker_kinds.Execution(__name__))


class Word(NamedTuple):
    """What is loaded of a line."""

    id: str
    word: str


def load_words(source: "Source", options: "SubmitOptions") -> "RunInput":
    """Begins to load a file with a word a line."""
    from producer.load.chunks import RunInput, chunk_size, item_chunks  # noqa: PLC0415 - start-up, as every loader

    del options
    rows = [json.loads(line) for line in b"".join(source.blocks()).splitlines()]
    items = [Word(f"w-{at}", row["word"]) for at, row in enumerate(rows)]
    payloads = [(item.id, json.dumps(item._asdict()).encode()) for item in items]
    return RunInput(item_chunks(payloads, chunk_size(len(payloads))), {})


class WordsEngine:
    """Evaluates words."""

    packing = PLAIN

    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(10)

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


def make_executor(process: "WorkerProcess", store: "RunStore") -> "ItemsExecutor":
    """Makes the executor of a process."""
    from worker.executors.items import ItemsExecutor  # noqa: PLC0415 - as above

    del store
    process.loop.prepare()
    return ItemsExecutor(process, lambda _run: WordsEngine())
