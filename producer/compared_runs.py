"""Reads stored runs for a comparison, page by page, and compares two of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from io import BytesIO
from typing import NamedTuple

from msgspec.json import Decoder

from producer import kinds
from producer.aggregate.compared_items import Known, Line, items_of
from producer.aggregate.comparison import LEVEL, compare
from producer.document import pages_of
from producer.report.comparison.contents import Contents, Side
from producer.report.comparison.item_texts import TextStore
from producer.report.formats import format_of
from producer.report.interfaces import TurnText
from shared.clock import iso_utc
from shared.errors import UsageError
from shared.kinds import Kind
from shared.runs import RunInfo, RunStore


class ReadLine(NamedTuple):
    """A result of a run, as a comparison reads it."""

    position: int
    line: Line
    known: Known | None
    """What else is known of the item."""


def lines_of_run(store: RunStore, info: RunInfo) -> Iterator[ReadLine]:
    """Yields the results of a run in input order.

    Args:
        store: reads the run.
        info: the run.
    """
    write, compared = format_of(info.kind, "jsonl"), kinds.of(info.kind).compared()
    read = compared.inputs(info) if compared.inputs else None
    decode = Decoder(compared.comparing.line).decode
    for rows in pages_of(store, info, TurnText.SHOWN):
        out = BytesIO()
        write(out, info).page(rows)
        for row, line in zip(rows, out.getvalue().split(b"\n")[:-1], strict=True):
            yield ReadLine(row.index, decode(line), read(row) if read else None)


def side_of_run(store: RunStore, info: RunInfo, resources: ExitStack, *, tag: str | None = None) -> Side:
    """Reads the results of a run.

    Args:
        store: reads the run.
        info: the run.
        resources: closes the texts of its items.
        tag: only cases with this tag.
    """
    compared, texts = kinds.of(info.kind).compared(), texts_of(info.kind, resources)
    lines = ((line, known) for _, line, known in lines_of_run(store, info))
    items = items_of(compared.comparing, lines, tag=tag, keep=texts.add)
    return Side(
        name=info.run,
        source=info.source,
        kind=info.kind,
        items=items,
        is_final=info.is_final,
        texts=texts,
        began=iso_utc(info.created_ms),
        configuration=compared.configuration(info),
        label=info.name,
        bench=info.bench,
    )


def texts_of(kind: Kind, resources: ExitStack) -> TextStore:
    """Makes a store for texts of items."""
    return resources.enter_context(closing(TextStore(kinds.of(kind).compared().texts)))


def compared_runs(
    store: RunStore, a: RunInfo, b: RunInfo, resources: ExitStack, address: Callable[[str, str], str]
) -> Contents:
    """Compares a run with an earlier one.

    Args:
        store: reads both.
        a: the earlier run.
        b: the run.
        resources: closes the texts of their items.
        address: makes the address of an item's page of its run and its id.

    Raises:
        UsageError: they are of two kinds, or share no item.
    """
    if a.kind is not b.kind:
        raise UsageError(f"{a.run} has {a.kind} and {b.run} has {b.kind}", hint="compare runs of one kind")
    one, other = (side_of_run(store, info, resources) for info in (a, b))
    found = compare(a.kind, one.items, other.items, level=LEVEL, judged=())
    if not found.counts.pairs:
        raise UsageError(f"{a.run} and {b.run} share no item", hint="compare runs of the same file")
    document = found.as_document(one.as_document(), other.as_document(), [], code=0)
    return Contents(document, found, (one, other), f"proctor compare {a.run} {b.run}", address)
