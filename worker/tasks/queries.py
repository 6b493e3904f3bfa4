"""Puts queries to an API and judges the answers, as the evaluation harness document has it.

One send at a time by default, in the order of ids; what a reply amounts to, when a query is sent again and
how an answer is judged is decided by the pure engine (`worker.queries`). A failure to connect ends the run: that
query is a failed result, and those that had not been sent have none.
"""

import asyncio
from functools import lru_cache
from typing import Any, Final

import msgspec

from shared.errors import ConfigError
from shared.names import Outcome, RunState
from shared.query_run import QueryRun
from shared.runs import RunStore
from worker.loop import Loop
from worker.process import WorkerProcess
from worker.queries.policy import RetryPolicy, retry_wait_s
from worker.queries.reply import Reply
from worker.queries.verdict import outcome, query_result
from worker.tasks.asking import Request, ask, prepare
from worker.tasks.in_hand import Item, Postponed
from worker.tasks.items import ItemsHandler, Judged

SHORT_WAIT_S: Final = 2.0
"""Longer waits free the slot."""
RUNS: Final = 256
"""Runs whose settings a process remembers."""

_encode = msgspec.json.Encoder().encode


class QueriesEngine:
    """Works on the queries of one run.

    Args:
        run: its settings.
        loop: the process's.
    """

    def __init__(self, run: QueryRun, loop: Loop) -> None:
        self.most = run.together
        self._run = run
        self._policy = RetryPolicy(delay_s=run.delay_s, retry_errors=run.retry_errors)
        self._loop = loop
        self._request: Request | None = None

    async def work(self, item: Item) -> Reply | Postponed | ConfigError:
        """Sends a query, again where the policy says so, until its reply stands or is long in coming."""
        query = msgspec.json.decode(item.payload)["query"]
        while True:
            try:
                request = self._request = self._request or prepare(self._run)
            except ConfigError as error:
                return error
            with item.calling():
                asked = await ask(self._loop.session(), request, query)
            item.attempts += 1
            wait_s = retry_wait_s(
                self._policy,
                asked.reply.failure,
                retries=item.attempts - 1,
                retry_after_s=asked.retry_after_s,
            )
            if wait_s is None:
                return asked.reply
            if wait_s > SHORT_WAIT_S:
                return Postponed(item.attempts, wait_s, asked.reply.error or "")
            await asyncio.sleep(wait_s)

    def judge(self, item: Item, answer: Reply | ConfigError) -> Judged:
        """Runs the six checks; a failure to connect ends the run."""
        if isinstance(answer, ConfigError):
            return self.refuse(item, answer.code, answer.message)._replace(ends_run=RunState.ABORTED)
        result = query_result(msgspec.json.decode(item.payload), answer)
        code = answer.failure or ""
        return Judged(
            outcome(result),
            result_line(result, code),
            latency_ms=answer.latency_ms,
            ends_run=RunState.ABORTED if answer.ends_run else "",
        )

    def refuse(self, item: Item, code: str, message: str) -> Judged:
        """Makes the result of a query without a reply."""
        result = query_result(msgspec.json.decode(item.payload), Reply(None, 0, 0, message))
        return Judged(Outcome.ERROR, result_line(result, code))


def make_handler(process: WorkerProcess, store: RunStore) -> ItemsHandler:
    """Makes the handler of a process."""

    @lru_cache(RUNS)
    def engine_of(run: str) -> QueriesEngine:
        return QueriesEngine(QueryRun.from_snapshot(store.info(run).snapshot), process.loop)

    return ItemsHandler(process, engine_of)


def result_line(result: dict[str, Any], code: str) -> bytes:
    """Writes what is stored of a result: of an error with its code before it.

    >>> result_line({"id": "Q-1", "error": None}, ""), result_line({"error": "Timeout"}, "api_timeout")[:32]
    (b'{"id":"Q-1","error":null}', b'{"error":{"code":"api_timeout","')
    """
    if not code:
        return _encode(result)
    return _encode({"error": {"code": code, "message": result["error"]}, "result": result})
