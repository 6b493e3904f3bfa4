"""Makes of a result of any kind what a terminal shows of a single item."""

import json
from collections.abc import Callable

from producer.item_ids import item_id
from producer.items.report.opened_rows import opened
from producer.report.shown_item import ShownItem
from producer.report.transcript import Spoken
from producer.text import latency
from shared.codecs.item_rows import ItemRow
from shared.runs import RunInfo


def shown_items(info: RunInfo) -> Callable[[ItemRow], ShownItem]:
    """Returns what makes a shown item of a row."""

    def shown(row: ItemRow) -> ShownItem:
        [item] = opened([row])
        text = "" if item.result is None else json.dumps(item.result, indent=2, ensure_ascii=False)
        return ShownItem(
            position=row.index,
            name=item_id(info.kind, row.index),
            group=item_id(info.kind, row.index),
            outcome=row.outcome,
            word=row.outcome.value,
            answered=[Spoken("result", text)] if text else (),
            reason=f"{item.code}: {item.message}" if item.code else "",
            figures=[latency(row.latency_ms)] if row.latency_ms is not None else (),
        )

    return shown
