"""Results of queries for tests of reports: good ones, bad ones of each kind, hostile ones."""

from typing import TYPE_CHECKING, Any, NamedTuple

from shared.upstream.failure_reasons import FailureReason
from worker.queries.checks import query_result
from worker.queries.reply import Reply, failed_reply
from worker.upstream.failures import UpstreamError
from worker.upstream.query_client import QueryRequest, send_once

if TYPE_CHECKING:
    import aiohttp

HOSTILE = 'a | b\n# heading <script>alert(1)</script> `code` [x](http://evil.example) \x1b[31m\u202e =1+1\r,"'
"""Text that breaks a table, a spreadsheet, a page or a terminal that trusts it."""


class Put(NamedTuple):
    """How putting one query ended."""

    reply: Reply
    retry_after_s: float | None
    """What the server asked to wait."""


async def put_once(session: "aiohttp.ClientSession", request: QueryRequest, query: str) -> Put:
    """Puts one query, as workers do; a failure is a reply in the specification's words."""
    try:
        return Put(await send_once(session, request, query), None)
    except UpstreamError as error:
        return Put(request.failed(error), error.wait_s)


def timed_out(latency_ms: int) -> Reply:
    """A query without an answer in time."""
    return failed_reply(FailureReason.TIMEOUT, latency_ms)


def baseline(identifier: str, **changes: Any) -> dict[str, Any]:
    """A baseline that a plain answer meets."""
    good = {
        "id": identifier,
        "category": "booking",
        "query": f"What about {identifier}?",
        "is_oos": False,
        "expected_docs": [],
        "must_contain": ["yes"],
        "must_not_contain": ["guess"],
        "oos_decline_signals": ["cannot help"],
    }
    return good | changes


def answered(identifier: str, answer: str = "yes", *, chunks: int = 1, **changes: Any) -> dict[str, Any]:
    """The result of a query that got an answer, cited when anything was retrieved."""
    response = {
        "answer": answer,
        "sources": [{"title": "S"}] if chunks > 0 else [],
        "confidence": {"level": "High", "reason": "found"},
        "metadata": {"chunksRetrieved": abs(chunks), "latencyMs": 1200},
    }
    return query_result(baseline(identifier, **changes), Reply(response, 1234, 200))


def one_of_each() -> list[dict[str, Any]]:
    """A run with every kind of result that a report has a place for."""
    return [
        answered("Q-01"),
        answered("Q-02", "no"),
        answered("Q-03", "yes, a guess"),
        answered("Q-04", "I cannot help.", chunks=0, is_oos=True, must_contain=[]),
        answered("Q-05", "Sure: 42", is_oos=True, must_contain=[], category="edge_case"),
        answered("Q-06", "yes", chunks=0),
        answered("Q-07", "yes", chunks=-2),
        query_result(baseline("Q-08"), timed_out(30_004)),
        answered("Q-09", must_contain=[]),
    ]
