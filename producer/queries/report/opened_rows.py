"""Opens the stored rows of a queries run: the result with the document's nine keys, and why there is none."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from producer.queries.results import AskedQuery
from shared.codecs.item_rows import POISON_CODE, POISON_ERROR, ItemRow
from shared.contracts.query_run import QueryRun
from shared.names import Outcome
from shared.upstream.addresses import shown_url, with_path
from shared.upstream.failure_reasons import NOT_FOUND
from worker.queries.checks import query_result
from worker.queries.reply import Reply


class _Error(msgspec.Struct):
    code: str
    status: int | None = None


class _ErrorLine(msgspec.Struct):
    error: _Error
    result: dict[str, Any]


_decode = msgspec.json.decode
_error = msgspec.json.Decoder(_ErrorLine).decode


class OpenedQuery(NamedTuple):
    """A row with its result."""

    row: ItemRow
    """As it is stored."""
    result: AskedQuery | None
    """None when the run ended before it was sent."""
    code: str
    """Error code; empty when it has an answer."""
    status: int = 0
    """HTTP status of the reply that was no answer; 0 when there was none."""

    @property
    def error(self) -> str:
        """Why there is no answer, with code and HTTP status; empty when there is one."""
        return self._worded(f" (HTTP {self.status})" if self.status else "")

    def explained(self, run: QueryRun) -> str:
        """Returns the error; a 404 with the URL that was called, which is most likely a mistake."""
        if self.status != NOT_FOUND:
            return self.error
        url = shown_url(with_path(run.api_url, run.path))
        return self._worded(f" (HTTP {self.status} from {url}; check --path and --api-url)")

    def _worded(self, status: str) -> str:
        """Returns why there is no answer, with what is said of the HTTP status."""
        return f"{self.code}{status}: {self.result.error}" if self.code and self.result else ""

    @property
    def shown(self) -> AskedQuery:
        """The result as reports for people show it: an error with its HTTP status."""
        result = self.result or AskedQuery({})
        if not self.status or str(self.status) in str(result.error):
            return result
        return AskedQuery({**result.keys, "error": f"HTTP {self.status}: {result.error}"})


def opened(rows: Iterable[ItemRow]) -> Iterator[OpenedQuery]:
    """Opens rows one by one."""
    for row in rows:
        if row.code == POISON_CODE:
            code, message = POISON_ERROR
            lost = query_result(_decode(row.line), Reply(None, 0, 0, message))
            yield OpenedQuery(row, AskedQuery(lost), code)
        elif row.outcome is Outcome.ERROR:
            line = _error(row.line)
            yield OpenedQuery(row, AskedQuery(line.result), line.error.code, line.error.status or 0)
        else:
            yield OpenedQuery(row, AskedQuery(_decode(row.line)) if row.code else None, "")


def poisoned(row: ItemRow) -> tuple[str, str, Any]:
    """Returns code, message and result of a query that no worker survived."""
    [query] = opened([row])
    return query.code, str(query.shown.error), query.shown.keys
