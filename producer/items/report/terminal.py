"""What a terminal shows of single items, for kinds without a table of their own."""

import json
from collections.abc import Sequence
from typing import Final

from producer.items.report.opened_rows import opened
from producer.report.cells import Size, plain
from producer.report.interfaces import Screen
from producer.text import latency
from shared.codecs.item_rows import ItemRow

COLUMNS: Final = ("item", "outcome", "attempts", "latency", "result")
"""Of the table of results."""


def table_rows(rows: Sequence[ItemRow]) -> list[list[str]]:
    """Returns results as cells of a table with `COLUMNS`, safe to print."""
    return [
        [
            str(item.row.index),
            item.row.outcome.value,
            f"{item.row.attempts:,}",
            "" if item.row.latency_ms is None else latency(item.row.latency_ms),
            plain(
                f"{item.code}: {item.message}" if item.code else json.dumps(item.result, ensure_ascii=False),
                Size.CELL,
            ),
        ]
        for item in opened(rows)
    ]


SCREEN: Final = Screen(COLUMNS, table_rows, right=("attempts", "latency"))
"""What a terminal shows of the items of a run."""
