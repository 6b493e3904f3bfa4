"""Writes results as JSON Lines: one object per item, composed from stored bytes without parsing them.

{"run_id":…, "item_id":…, "kind":…, "index":…,  "outcome":… … "cost_usd":null,  "error":null,"result":{…}}
 made per row                                   the same for a whole block      the stored line
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, BinaryIO, Final

from producer.report.poison import result_line
from shared.clock import iso_utc
from shared.names import Kind, Outcome
from shared.runs import RunInfo, TurnRow

ORDINARY: Final = frozenset("msk")
"""First letters of the codes of decided turns."""
END: Final = b"}\n"


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

    def end(self, document: Mapping[str, Any]) -> None:
        """Has nothing to add."""


class TurnLines:
    r"""Composes the lines of one run.

    >>> TurnLines("r").page([TurnRow(7, "", b"", 0, 0, 0)])[:70]
    b'{"run_id":"r","item_id":"turn-7","kind":"turns","index":7,"outcome":"s'
    """

    def __init__(self, run: str) -> None:
        head = f'{{"run_id":{json.dumps(run)},"item_id":"turn-'.encode().replace(b"%", b"%%")
        self._head = head + b'%d","kind":"' + Kind.TURNS.encode() + b'","index":%d'

    def page(self, rows: Sequence[TurnRow]) -> bytes:
        """Returns the lines of some rows, each with its line end."""
        head, middles, parts = self._head, dict[tuple[str, int, int, int], bytes](), list[bytes]()
        for index, code, line, started, finished, attempts in rows:
            key = (code, started, finished, attempts)
            middle = middles.get(key)
            if middle is None:
                middle = middles[key] = _middle(*key)
            if code[:1] not in ORDINARY:
                line = _odd_end(TurnRow(index, code, line, started, finished, attempts))  # noqa: PLW2901 - same line, composed
            parts += (head % (index, index), middle, line, END)
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


def _odd_end(row: TurnRow) -> bytes:
    """Writes error and result of a row that has no decision, without the brace that ends the object."""
    return result_line(row)[1:-1] if row.code else b'"error":null,"result":null'


def outcome(code: str) -> Outcome:
    """Names how a row ended.

    >>> outcome("m2u").value, outcome("x0").value, outcome("").value
    ('decided', 'error', 'skipped')
    """
    if code[:1] in ORDINARY:
        return Outcome.DECIDED
    return Outcome.ERROR if code else Outcome.SKIPPED
