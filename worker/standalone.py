"""Sends queries to an API without a queue, in notebooks: the two functions of the harness specification.

They do what workers do, one query after the other in this process, and store nothing: a run that has to
survive Ctrl-C, a crash or a closed terminal goes through the queue (`evaluation-harness`, `proctor run`).
Queries are sent from a worker's event loop, which runs in a thread of its own: so both may be called where a
loop runs already, as in a notebook, and the same rules hold for which addresses may be called.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from threading import Event
from typing import Any, NamedTuple

from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import MAX_RETRIES
from shared.errors import InputError
from worker.loop import Loop
from worker.queries.checks import query_result
from worker.queries.reply import Reply
from worker.upstream.failures import UpstreamError
from worker.upstream.query_client import build_request, send_once
from worker.upstream.retry import QueryRetryPolicy, query_retry_wait_s

FIRST_ID = "Q-01"
"""The specification's name for the first query, whatever it is called."""


class Callbacks(NamedTuple):
    """Called while queries are sent."""

    result: Callable[[dict[str, Any]], object] = bool
    """A query is done: its result."""
    retry: Callable[[str, int, float], object] = lambda _id, _retry, _wait_s: None
    """A query met status 429 and is sent again: its id, which retry, seconds until then."""


def send_query(api_url: str, query: str) -> dict[str, Any]:
    """Sends one query to `POST /api/query`.

    Args:
        api_url: base URL, such as http://localhost:3000.
        query: the text.

    Returns:
        response, latency_ms, status_code (0 when no reply came), error.
    """
    with closing(Loop()) as loop:
        return _send(loop, api_url, query)[0].as_document()


def run_all_queries(
    baselines: Sequence[dict[str, Any]],
    api_url: str,
    delay: float,
    start_from: str = FIRST_ID,
    *,
    callbacks: Callbacks = Callbacks(),  # noqa: B008 - immutable
) -> list[dict[str, Any]]:
    """Sends all queries one after the other; a failure to connect ends it with what there is.

    Args:
        baselines: the queries, in order, with their expected answers.
        api_url: base URL.
        delay: seconds between two queries.
        start_from: id of the first query.
        callbacks: called with results and retries as they come.

    Returns:
        One result with the specification's nine keys per query that was sent.

    Raises:
        InputError: no query has the id to start from.
    """
    results, pause = list[dict[str, Any]](), Event()
    with closing(Loop()) as loop:
        for baseline in _from(baselines, start_from):
            if results:
                pause.wait(delay)
            send = partial(_send, loop, api_url, baseline["query"])
            reply = _send_with_retries(send, baseline["id"], delay, callbacks, pause)
            results.append(query_result(baseline, reply))
            callbacks.result(results[-1])
            if reply.ends_run:
                break
    return results


def _from(baselines: Sequence[dict[str, Any]], start_from: str) -> Sequence[dict[str, Any]]:
    ids = [baseline["id"] for baseline in baselines]
    if start_from in ids:
        return baselines[ids.index(start_from) :]
    if start_from == FIRST_ID:
        return baselines
    raise InputError(f"no query has the id {start_from!r}", hint="look at the ids of the baselines")


def _send_with_retries(
    send: Callable[[], tuple[Reply, float | None]],
    name: str,
    delay: float,
    callbacks: Callbacks,
    pause: Event,
) -> Reply:
    """Sends one query until its reply is final."""
    policy, retries = QueryRetryPolicy(delay_s=delay, max_retries=MAX_RETRIES), 0
    while True:
        reply, retry_after_s = send()
        wait_s = query_retry_wait_s(policy, reply.failure, retries=retries, retry_after_s=retry_after_s)
        if wait_s is None:
            return reply
        retries += 1
        callbacks.retry(name, retries, wait_s)
        pause.wait(wait_s)


def _send(loop: Loop, api_url: str, query: str) -> tuple[Reply, float | None]:
    """Sends a query once; also returns what the server asked to wait."""
    request = build_request(QueryRun(api_url=api_url.rstrip("/")))

    async def once() -> tuple[Reply, float | None]:
        try:
            return await send_once(loop.session(), request, query), None
        except UpstreamError as error:
            return request.failed(error), error.wait_s

    return loop.run(once())
