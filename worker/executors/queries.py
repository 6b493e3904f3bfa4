"""The engine of queries: sends queries to an API and checks the answers by the harness specification.

One send at a time by default, in the order of ids; what a reply amounts to, when a query is sent again and
how an answer is judged is decided by the pure engine (`worker.queries`). Limits and pace hold for the API's
URL over the whole fleet; there is no breaker, because here every failure is a result. A failure to connect
ends the run: that query is a failed result, and those that had not been sent have none.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from shared.codecs.packing import Packing
from shared.contracts.query_run import QueryRun
from shared.errors import ConfigError
from shared.names import Outcome, RunState
from shared.observability import tracing
from shared.observability.counters import CallCount
from shared.redaction import Redactor, redactor_of
from shared.runs import RunStore
from shared.upstream.limits import Limits
from worker.executors.items import Item, ItemResult, ItemsExecutor
from worker.loop import Loop
from worker.process import WorkerProcess
from worker.queries.checks import fold_apostrophes, outcome, query_result
from worker.queries.reply import ERROR_BODY_CHARS, Reply
from worker.upstream.endpoints import GRACE_S, api_endpoint, run_scope
from worker.upstream.failures import UpstreamError
from worker.upstream.gate import CallGate, Sent
from worker.upstream.query_client import QueryRequest, build_request, send_once
from worker.upstream.redacting import redacted_error, redacted_reply
from worker.upstream.retry import QueryRetryPolicy, plan_query_retry
from worker.upstream.telemetry import http_attributes, log_failure

STATUS: Final = "http.response.status_code"
"""Attribute of a span."""

_encode = msgspec.json.Encoder().encode


class QueriesEngine:
    """Evaluates the queries of one run.

    Args:
        name: the run's id.
        run: its settings.
        loop: the process's.
        gate: applies the limits of the fleet.
        packing: how the texts of the run are stored.
        redactor: what is replaced in replies; None: nothing.
    """

    def __init__(  # noqa: PLR0917 - one call, below
        self,
        name: str,
        run: QueryRun,
        loop: Loop,
        gate: CallGate,
        packing: Packing,
        redactor: Redactor | None = None,
    ) -> None:
        self.together = max(run.concurrency, run.together)
        self.packing = packing
        self._run = run
        self._gate = gate
        self._redactor = redactor
        self._endpoint = api_endpoint(
            run.api_url,
            run_scope(name, concurrency=run.concurrency),
            limits=Limits(pace_s=run.delay_s or None),
            has_breaker=False,
            timeout_s=run.timeout_s + GRACE_S,
        )
        self._target = http_attributes(run.api_url, run.method, run.path)
        policy = QueryRetryPolicy(delay_s=run.delay_s, retry_errors=run.retry_errors)
        self._plan = partial(plan_query_retry, policy)
        self._loop = loop
        self._request: QueryRequest | None = None

    async def process(self, item: Item) -> Reply | ConfigError:
        """Sends a query, with retries by policy, until its reply is final or the next attempt is far away."""
        query = msgspec.json.decode(item.payload)
        try:
            request = self._request = self._request or build_request(self._run)
        except ConfigError as error:
            return error
        send = partial(self._send, item, request, query)
        call = partial(self._gate.call, self._endpoint, send, owner=item.lease.token)
        try:
            return await item.calls.until_answered(call, self._plan, self._report)
        except UpstreamError as error:
            return request.failed(error)

    async def _send(self, item: Item, request: QueryRequest, query: Mapping[str, Any]) -> Sent[Reply]:
        """Sends a query once."""
        with item.working(), tracing.span(self._run.method, self._target, kind="client") as span:
            try:
                reply = await send_once(self._loop.session(), request, query["query"], query)
            except UpstreamError as error:
                span.set({STATUS: error.status or None})
                span.fail(error.reason.api_code)
                if self._redactor is not None:
                    raise redacted_error(error, self._redactor, ERROR_BODY_CHARS) from None
                raise
            span.set({STATUS: reply.status_code})
        return Sent(reply if self._redactor is None else redacted_reply(reply, self._redactor))

    def _report(self, error: UpstreamError, attempt: int, wait_s: float | None) -> None:
        """Logs a query that failed, and counts it where another attempt follows."""
        code = error.reason.api_code
        fields = {
            "endpoint": self._endpoint.scopes[0].key,
            "reason": code,
            "attempt": attempt,
            "status": error.status or None,
        }
        log_failure(fields, wait_s)
        if wait_s is not None:
            self._gate.counts.add(self._run.api_url, CallCount.RETRIES + code)

    def result_of(self, item: Item, processed: Reply | ConfigError) -> ItemResult:
        """Runs the six checks; a failure to connect ends the run."""
        if isinstance(processed, ConfigError):
            return self.error_result(item, processed.code, processed.message)._replace(
                ends_run=RunState.ABORTED
            )
        fold = fold_apostrophes if self._run.fold_apostrophes else str.casefold
        result = query_result(msgspec.json.decode(item.payload), processed, fold=fold)
        return ItemResult(
            outcome(result),
            result_line(result, processed.code, processed.status_code),
            latency_ms=processed.latency_ms,
            ends_run=RunState.ABORTED if processed.ends_run else None,
        )

    def error_result(self, item: Item, code: str, message: str) -> ItemResult:
        """Makes the result of a query without a reply."""
        result = query_result(msgspec.json.decode(item.payload), Reply(None, 0, 0, message))
        return ItemResult(Outcome.ERROR, result_line(result, code), code=str(code))


def make_executor(process: WorkerProcess, store: RunStore) -> ItemsExecutor[Reply | ConfigError]:
    """Makes the executor of a process."""
    process.loop.prepare()

    def open_engine(run: str) -> QueriesEngine:
        settings = QueryRun.from_snapshot(store.info(run).snapshot)
        packing, redactor = store.packing(run), redactor_of(process.settings)
        return QueriesEngine(run, settings, process.loop, process.upstream.gate, packing, redactor)

    return ItemsExecutor(process, open_engine)


def result_line(result: dict[str, Any], code: str, status: int = 0) -> bytes:
    """Writes what is stored of a result: of an error with its code, and the HTTP status if there was one.

    >>> result_line({"id": "Q-1", "error": None}, ""), result_line({"error": "Timeout"}, "api_timeout")[:32]
    (b'{"id":"Q-1","error":null}', b'{"error":{"code":"api_timeout","')
    """
    if not code:
        return _encode(result)
    error = {"code": code, "message": result["error"], **({"status": status} if status else {})}
    return _encode({"error": error, "result": result})
