"""Writes results as JSON Lines or one JSON document, composed from stored bytes without parsing them.

{"run_id":…, "item_id":…, "kind":…, "index":…,  "outcome":… … "cost_usd":null,  "error":null,"result":{…}
 made per row                                   the same for a whole block      the stored line

Last stands `"message":…`, copied from the input, where rows come with it, or `"message_chars":…` where the
text is withheld.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import BinaryIO, Final

from msgspec import Raw
from msgspec.json import Decoder, Encoder

from producer.aggregate.call_totals import call_of
from producer.report.json_document import JsonDocument
from producer.turns.documents import TurnsRun
from producer.turns.report.opened_rows import ORDINARY, message_json, outcome, result_line, withheld_chars
from shared.clock import iso_utc
from shared.codecs.turn_batches import ASKED
from shared.kinds import TURNS
from shared.runs import RunInfo, TurnRow

PLAIN: Final = frozenset(
    f"{letter}{rule}{frozen}{updated}{repeated}"
    for letter in "msk"
    for rule in range(1, 7)
    for frozen in ("", "f")
    for updated in ("", "u")
    for repeated in ("", "d")
)
"""Codes of decided turns of runs without a model."""
MESSAGE: Final = b',"message":'
MESSAGE_CHARS: Final = b',"message_chars":'
END: Final = b"}\n"
_fields: Final = Decoder(dict[str, Raw]).decode
_encode: Final = Encoder().encode


class JsonlReport:
    """Writes rows as they go by.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._lines = out, TurnLines(info.run)

    def page(self, rows: Sequence[TurnRow]) -> None:
        """Writes some rows, one a line."""
        self._out.write(self._lines.page(rows))

    def end(self, document: TurnsRun) -> None:
        """Has nothing to add."""


def json_report(out: BinaryIO, info: RunInfo) -> JsonDocument:
    """Begins one JSON document of a run."""
    return JsonDocument(out, TurnLines(info.run).page)


class TurnLines:
    r"""Composes the lines of one run.

    >>> TurnLines("r").page([TurnRow(7, "", b"", 0, 0, 0)])[:70]
    b'{"run_id":"r","item_id":"turn-7","kind":"turns","index":7,"outcome":"s'
    """

    def __init__(self, run: str) -> None:
        head = f'{{"run_id":{json.dumps(run)},"item_id":"turn-'.encode().replace(b"%", b"%%")
        self._head = head + b'%d","kind":"' + TURNS.name.encode() + b'","index":%d'

    def page(self, rows: Sequence[TurnRow]) -> bytes:
        """Returns the lines of some rows, each with its line end."""
        head, middles, parts = self._head, dict[tuple[str, int, int, int], bytes](), list[bytes]()
        for index, code, line, started, finished, attempts, payload in rows:
            key = (code, started, finished, attempts)
            middle = middles.get(key)
            if middle is None:
                middle = middles[key] = _middle(*key)
            if code not in PLAIN:
                row = TurnRow(index, code, line, started, finished, attempts)
                middle, line = _odd(row, middle)  # noqa: PLW2901 - same line, composed
            parts += (head % (index, index), middle, line)
            if payload:
                message = message_json(payload)
                parts += (MESSAGE, message) if message else (MESSAGE_CHARS, b"%d" % withheld_chars(payload))
            parts.append(END)
        return b"".join(parts)


def _middle(code: str, started_ms: int, finished_ms: int, attempts: int) -> bytes:
    """Writes what rows of the same code and block share."""
    cached = "true" if "d" in code else "false"
    times = _times(started_ms, finished_ms) if code else _NO_TIMES
    text = f',"outcome":"{outcome(code)}","attempts":{attempts},"cached":{cached},{times},"cost_usd":null,'
    return (text + '"error":null,"result":' if code[:1] in ORDINARY else text).encode()


_NO_TIMES: Final = '"started_at":null,"finished_at":null,"latency_ms":null'


@lru_cache(64)
def _times(started_ms: int, finished_ms: int) -> str:
    """Writes the times of a block, which many rows share."""
    latency_ms = finished_ms - started_ms
    started, finished = _iso_utc(started_ms), _iso_utc(finished_ms)
    return f'"started_at":"{started}","finished_at":"{finished}","latency_ms":{latency_ms}'


_iso_utc: Final = lru_cache(64)(iso_utc)


def _odd(row: TurnRow, middle: bytes) -> tuple[bytes, bytes]:
    """Writes middle and end of a row that is no plain decision, without the brace that ends the object."""
    if not row.code:
        return middle, b'"error":null,"result":null'
    if row.code[:1] not in ORDINARY:
        return middle, result_line(row)[1:-1]
    return _live(row) if ASKED in row.code else (middle, row.line)


def _live(row: TurnRow) -> tuple[bytes, bytes]:
    """Writes middle and result of a turn that a model answered; its trace events are printed elsewhere."""
    call, result = call_of(row), _fields(row.line)
    result.pop("events", None)
    fields = {
        "outcome": outcome(row.code),
        "attempts": max(row.attempts, call.attempts),
        "cached": call.cached or "d" in row.code,
        "started_at": _iso_utc(row.started_ms),
        "finished_at": _iso_utc(row.finished_ms),
        "latency_ms": call.latency_ms,
        "cost_usd": call.cost_usd,
        "error": None,
        "result": result,
    }
    return b",", _encode(fields)[1:-1]
