"""What the HTML report shows of one query: what was asked and answered, and what each check found."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from producer.aggregate.queries import latency_ms
from producer.report.cells import plain
from producer.report.html.page import Text, cut
from producer.report.queries.check_reasons import FAILED, found_by_checks
from producer.report.queries.opened_rows import OpenedQuery
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_vocabulary import confidence_of, json_object
from shared.names import Outcome

SKIPPED: Final = "skipped"
NAME_CHARS: Final = 80
"""Of an id or a category."""
GIST_CHARS: Final = 110
"""Of a query, in the line of a closed one."""
WHY_CHARS: Final = 160
"""Of what failed, in the line of a closed query."""
_LISTS: Final[Mapping[str, str]] = {
    "citations": "Citations",
    "sources": "Sources",
    "relatedDocs": "Related documents",
    "metadata": "Metadata",
}
"""Of a reply, beside the answer."""


def told(query: OpenedQuery, limit: int) -> dict[str, Any]:
    """Returns what the page shows of a query.

    Args:
        query: as it was stored.
        limit: characters of each long text.
    """
    row, result = query.row, query.result
    shown = _input(row) if result is None else result
    tones = {"pass": "pass", "fail": "fail"}
    found = found_by_checks(shown) if result is not None and not query.code else []
    checks = [{**check._asdict(), "tone": tones.get(check.word, "skipped")} for check in found]
    confidence = confidence_of(shown.get("response"))
    return {
        "id": element_id(row.index),
        "outcome": SKIPPED if row.outcome is Outcome.SKIPPED else row.outcome.value,
        "passed": row.outcome is Outcome.PASSED,
        "name": plain(shown.get("id"), NAME_CHARS),
        "category": plain(shown.get("category"), NAME_CHARS),
        "latency": None if result is None else latency_ms(result),
        "figures": list(_figures(query, confidence[0])),
        "gist": plain(shown.get("query"), GIST_CHARS),
        "whys": list(_whys(query, checks)),
        "error": query.error,
        "checks": checks,
        "confidence": " - ".join(filter(None, (plain(part, limit) for part in confidence))),
        "texts": list(_texts(shown, limit)),
    }


def element_id(index: int) -> str:
    """Names a query on the page.

    >>> element_id(0)
    'i1'
    """
    return f"i{index + 1}"


def _input(row: ItemRow) -> dict[str, Any]:
    """Reads the input of a query that was never sent."""
    return json_object(msgspec.json.decode(row.line)) if row.line else {}


def _figures(query: OpenedQuery, level: str) -> Iterator[str]:
    """What stands at the end of the line of a closed query."""
    if query.result is None:
        return
    if query.result.get("is_oos"):
        yield "out of scope"
    if level:
        yield plain(level, NAME_CHARS)
    yield f"{latency_ms(query.result):,} ms"
    if query.row.attempts > 1:
        yield f"sent {query.row.attempts:,} times"


def _whys(query: OpenedQuery, checks: list[dict[str, str]]) -> Iterator[str]:
    """Says why there is no pass."""
    if query.result is None:
        yield "the run ended before"
    elif query.code:
        yield plain(query.error, WHY_CHARS)
    for check in checks:
        if check["word"] == FAILED:
            yield plain(f"✗ {check['name']}: {check['reason']}", WHY_CHARS)


def _texts(shown: Mapping[str, Any], limit: int) -> Iterator[tuple[str, Text]]:
    """Yields query, answer and what came with it."""
    yield "Query", cut(str(shown.get("query") or ""), limit)
    response = json_object(shown.get("response"))
    answer = response.get("answer")
    if answer is not None:
        yield "Answer", cut(answer if isinstance(answer, str) else _json(answer), limit)
    for key, label in _LISTS.items():
        value = response.get(key)
        if value:
            entries = value if isinstance(value, list) else [value]
            yield label, cut("\n".join(map(_json, entries)), limit)


def _json(value: Any) -> str:
    """Writes a value as JSON."""
    return json.dumps(value, ensure_ascii=False)
