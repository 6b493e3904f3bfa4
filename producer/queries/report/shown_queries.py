"""Makes of a query what a terminal shows of a single item."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from producer.queries.report.check_reasons import FAILED, NOT_APPLICABLE, found_by_checks
from producer.queries.report.opened_rows import OpenedQuery, opened
from producer.queries.report.sources import sources_of
from producer.queries.results import AskedQuery
from producer.report.cells import Size, plain
from producer.report.shown_item import ShownItem
from producer.report.transcript import Spoken, content_text
from producer.text import latency, plural
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import json_object
from shared.names import Outcome
from shared.runs import RunInfo

NEVER_SENT: Final = "the run ended before it was sent"
TAG_KEYS: Final = ("difficulty", "type", "tags", "labels")
"""Keys of baselines, beside those of the document, whose values are tags."""
_ASKED: Final[Mapping[str, str]] = {
    "must_contain": "required",
    "must_not_contain": "forbidden",
    "should_contain": "desirable",
    "expected_docs": "documents",
    "oos_decline_signals": "signs of declining",
}
_WRONG: Final[Mapping[str, str]] = {"must_contain": "missing", "must_not_contain": "found"}
"""Where a check lists the texts of a baseline that it failed by."""
_KNOWN: Final = frozenset({"id", "category", "query", "is_oos", *_ASKED, *TAG_KEYS})


def wanted_of(baseline: Mapping[str, Any], shown: AskedQuery) -> Iterator[tuple[str, str]]:
    """Yields what a baseline demands, with a mark at what an answer failed by, and its further keys."""
    checked = AskedQuery({}) if shown.is_failed else shown
    wrong = {key: checked.check(key).texts(found) for key, found in _WRONG.items()}
    for key, label in _ASKED.items():
        texts = [text for text in baseline.get(key) or () if isinstance(text, str)]
        if texts:
            marked = (f"✗ {text}" if text in wrong.get(key, ()) else text for text in texts)
            yield label, plain(", ".join(marked), Size.REASON)
    for key, value in baseline.items():
        if key not in _KNOWN and value not in (None, "", []):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield plain(key, Size.NAME), plain(text, Size.REASON)


def shown_queries(info: RunInfo) -> Callable[[ItemRow], ShownItem]:
    """Returns what makes a shown item of a row with its input."""
    run = QueryRun.from_snapshot(info.snapshot)

    def shown(row: ItemRow) -> ShownItem:
        [query] = opened([row])
        return _shown(query, run)

    return shown


def _shown(query: OpenedQuery, run: QueryRun) -> ShownItem:
    """Makes an item of a query."""
    row = query.row
    baseline = json_object(msgspec.json.decode(row.payload)) if row.payload else {}
    result = query.result or AskedQuery(baseline)
    is_checked = row.outcome in {Outcome.PASSED, Outcome.FAILED}
    found = found_by_checks(result) if is_checked else []
    failed = [f"{check.name}: {check.reason}" for check in found if check.word == FAILED]
    name, repeat = str(result.id or ""), row.index % run.repeat
    never_sent = NEVER_SENT if query.result is None else ""
    return ShownItem(
        position=row.index,
        name=name if repeat == 0 else f"{name} #{repeat + 1}",
        group=name,
        outcome=row.outcome,
        word=row.outcome.value,
        asked=[Spoken("query", str(result.query or ""))],
        answered=list(_answered(result.response)),
        reason=query.explained(run) or never_sent or "; ".join(failed),
        checks=[
            f"{'✗' if check.word == FAILED else '✓'} {check.name}: {check.reason}"
            for check in found
            if check.word != NOT_APPLICABLE
        ],
        wanted=[Spoken(label, text) for label, text in wanted_of(baseline, result)],
        figures=list(_figures(query)),
    )


def _answered(response: Mapping[str, Any]) -> Iterator[Spoken]:
    """Yields the answer and its sources."""
    if response.get("answer") is not None:
        yield Spoken("answer", content_text(response["answer"]))
    if sources := sources_of(response):
        names = [f"{source.short}{' (cited)' if source.is_cited else ''}" for source in sources]
        yield Spoken("sources", "\n".join(names))


def _figures(query: OpenedQuery) -> Iterator[str]:
    """Yields latency and attempts."""
    if query.result is not None:
        yield latency(query.result.measured_ms)
        if (server := query.result.server_ms) is not None:
            yield f"server {latency(server)}"
    if query.row.attempts > 1:
        yield plural(query.row.attempts, "attempt")
