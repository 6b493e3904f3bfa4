"""What goes wrong between us and an API, and a worker that dies: each has its documented outcome."""

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from producer.queries.kind import QueryRuns
from producer.sample_api.behaviour import RequestLog
from producer.sample_api.server import in_background
from shared.errors import UsageError
from shared.names import RunState
from shared.upstream.limits import LimitBook, limit_key
from tests.support.eventually import eventually
from tests.support.processes import Processes
from tests.support.query_desk import QueryDesk, numbered
from tests.support.query_results import baseline
from tests.support.scripted_api import ScriptedApi, Step
from tests.support.workers import start_worker

if TYPE_CHECKING:
    import redis

FAULTS = {
    "html": "api_invalid_body",
    "null": "api_invalid_body",
    "empty": "api_invalid_body",
    "list": "api_invalid_body",
    "huge:mib=50": "output_too_large",
    "half": "api_connection_lost",
    "reset": "api_connection_lost",
    "silent": "api_timeout",
    "500": "api_server_error",
    "404": "api_refused",
    "401": "api_refused",
}
"""Behaviours of the sample API, and the error code of a query that meets it."""
STATUSES = {"reset": None, "silent": None}
"""HTTP status that is kept, where it is neither the behaviour's name nor 200."""


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str, tmp_path: Path) -> QueryDesk:
    """A producer on the session's server."""
    return QueryDesk(redis_client, redis_url, tmp_path)


def test_every_fault_is_a_failed_result_and_the_run_goes_on(desk: QueryDesk, processes: Processes) -> None:
    """Each way of not answering ends its query with its code; none is sent twice, none counts as invented."""
    start_worker(processes, "-Q", "queries")
    log = RequestLog()
    with in_background(log=log) as url:
        runs = {
            name: desk.submit_queries(
                numbered(1), api_url=url, timeout_s=2.0, headers={"X-Sample-Behaviour": name}
            )
            for name in [*FAULTS, "nulls", "odd"]
        }
        for run in runs.values():
            desk.ended(run)
    for name, code in FAULTS.items():
        [found] = desk.results(runs[name])
        assert found["error"]["code"] == code, name
        assert found["error"].get("status") == STATUSES.get(name, int(name) if name.isdecimal() else 200)
        assert found["result"]["error"] == found["error"]["message"]
        assert found["result"]["response"] is None
        assert not any(check["pass"] for check in found["result"]["checks"].values())
    for name in ("nulls", "odd"):
        [found] = desk.results(runs[name])
        assert found["error"] is None
        assert found["overall_pass"] is False
    assert log.total - len(runs) in {0, 1}  # a reset of a used connection is sent again, once


def test_429_is_retried_three_times_a_second_apart(desk: QueryDesk, processes: Processes) -> None:
    """With a delay of 0 and no Retry-After the waits are a second each; the fourth refusal is the result."""
    start_worker(processes, "-Q", "queries")
    with ScriptedApi(lambda query, _nth: Step(429) if query == "query 1" else Step()) as api:
        run = desk.submit_queries(numbered(2), api_url=api.url)
        rows = desk.ended(run)
    assert [(row.code, row.attempts) for row in rows] == [("x", 4), ("p", 1)]
    times = [request.at_s for request in api.requests if request.query == "query 1"]
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(times))
    refused = {"code": "api_rate_limited", "message": "Rate limited (429)", "status": 429}
    assert json.loads(rows[0].line)["error"] == refused
    assert desk.info(run).tally == {"passed": 1, "error": 1, "retried": 1}


def test_retry_after_is_honoured_and_parks_the_query(desk: QueryDesk, processes: Processes) -> None:
    """A server that asks for four seconds gets them, whatever the delay; then the answer counts."""
    start_worker(processes, "-Q", "queries")

    def script(_query: str, nth: int) -> Step:
        return Step(429, headers={"Retry-After": "4"}) if nth == 1 else Step()

    with ScriptedApi(script) as api:
        [row] = desk.ended(desk.submit_queries(numbered(1), api_url=api.url))
    first, second = (request.at_s for request in api.requests)
    assert 4.0 <= second - first < 8.0
    assert (row.code, row.attempts) == ("p", 2)


def test_errors_are_retried_when_asked_to(desk: QueryDesk, processes: Processes) -> None:
    """`retry_errors` sends a query again after a 500, a reset and a timeout; without it none is."""
    start_worker(processes, "-Q", "queries")
    bad = {"query 1": Step(500), "query 2": Step(is_reset=True), "query 3": Step(after_s=30)}
    with ScriptedApi(lambda query, nth: bad.get(query, Step()) if nth == 1 else Step()) as api:
        settings: dict[str, Any] = {"api_url": api.url, "timeout_s": 1.0, "concurrency": 3}
        patient = desk.ended(desk.submit_queries(numbered(3), retry_errors=1, **settings))
    with ScriptedApi(lambda query, _nth: bad.get(query, Step())) as api:
        settings["api_url"] = api.url
        strict = desk.ended(desk.submit_queries(numbered(3), **settings))
    assert [row.code for row in patient] == ["p"] * 3
    first, reset, third = (row.attempts for row in patient)
    assert (first, third) == (2, 2)
    assert reset in {1, 2}  # on a connection that was used before, the reset is no attempt
    assert [(row.code, row.attempts) for row in strict] == [("x", 1)] * 3


def test_a_worker_killed_during_a_backoff_loses_and_repeats_nothing(
    desk: QueryDesk, processes: Processes
) -> None:
    """The attempt and the wait of a query survive `kill -9`; answered queries are not asked again."""
    worker = start_worker(processes, "-Q", "queries")

    def script(query: str, nth: int) -> Step:
        return Step(429, headers={"Retry-After": "6"}) if query == "query 3" and nth == 1 else Step()

    with ScriptedApi(script) as api:
        run = desk.submit_queries(numbered(5), api_url=api.url)

        def is_parked() -> None:
            assert [each.attempts for each in desk.store.tries(run).values()] == [1]

        eventually(is_parked, 20)
        worker.kill()
        start_worker(processes, "-Q", "queries")
        rows = desk.ended(run, within_s=60)
    assert [(row.code, row.attempts) for row in rows] == [
        ("p", 1), ("p", 1), ("p", 2), ("p", 1), ("p", 1)
    ]  # fmt: skip
    assert api.asked() == {f"query {number}": 2 if number == 3 else 1 for number in range(1, 6)}


def test_a_worker_killed_at_work_repeats_only_what_was_under_way(
    desk: QueryDesk, processes: Processes
) -> None:
    """After `kill -9` every query has one result, and at most those under way were asked twice."""
    worker = start_worker(processes, "-Q", "queries")
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.2)) as api:
        run = desk.submit_queries(numbered(120), api_url=api.url, concurrency=10)
        eventually(lambda: _asserted(desk.info(run).done >= 30), 30)
        worker.kill()
        start_worker(processes, "-Q", "queries")
        rows = desk.ended(run, within_s=60)
    assert [row.code for row in rows] == ["p"] * 120
    assert sum(api.asked().values()) <= 120 + 10


def test_an_aborted_run_is_resumed_where_it_stopped(desk: QueryDesk, processes: Processes) -> None:
    """When the API is back, what was never sent is sent, the refused query too, and answers are kept."""
    start_worker(processes, "-Q", "queries")
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.1)) as api:
        run = desk.submit_queries(numbered(8), api_url=api.url)
        eventually(lambda: _asserted(desk.info(run).done >= 3), 20)
    rows = desk.ended(run, RunState.ABORTED)
    answered = sum(row.code == "p" for row in rows)
    assert 3 <= answered < 8
    [state] = [each for each in LimitBook(desk.ledger.caller).states() if each.key == limit_key(api.url)]
    assert 0 < state.failed <= state.counted, "it answered before, and is not shown as ok any more"
    retried = QueryRuns().retry()(desk.ledger, desk.publisher, desk.store, run, errors=False)
    assert retried.items == 8 - sum(row.code == "p" for row in rows) - _lost(desk, run)


def _lost(desk: QueryDesk, run: str) -> int:
    """Queries whose connection broke when the API went: they have reached it."""
    found = [result["error"] for result in desk.results(run) if result.get("error")]
    return sum(error["code"] == "api_connection_lost" for error in found if isinstance(error, dict))


def test_retry_asks_again_for_errors_only(desk: QueryDesk, processes: Processes) -> None:
    """`retry` sends the queries that ended in error; a run without any has nothing to retry."""
    start_worker(processes, "-Q", "queries")
    with ScriptedApi(lambda query, nth: Step(500) if (query, nth) == ("query 2", 1) else Step()) as api:
        run = desk.submit_queries(numbered(3), api_url=api.url)
        assert [row.code for row in desk.ended(run)] == ["p", "x", "p"]
        assert QueryRuns().retry()(desk.ledger, desk.publisher, desk.store, run).items == 1
        eventually(lambda: _asserted([row.code for row in desk.rows(run)] == ["p", "p", "p"]), 20)
        assert api.asked() == {"query 1": 1, "query 2": 2, "query 3": 1}
        with pytest.raises(UsageError, match="nothing to retry"):
            QueryRuns().retry()(desk.ledger, desk.publisher, desk.store, run)


def test_other_apis_are_asked_in_their_own_words(desk: QueryDesk, processes: Processes) -> None:
    """Method, path, places of fields, headers and a bearer token from the worker's environment are used."""
    own = {"API_TOKEN": "geheim", "TENANT": "blue", "PROCTOR_KEY_VARIABLES": "TENANT"}
    start_worker(processes, "-Q", "queries", env={**processes.env, **own})
    reply = {"out": {"text": "yes"}, "hits": [{"id": "BK-1"}], "refs": ["r"]}
    with ScriptedApi(lambda _query, _nth: Step(body=reply)) as api:
        run = desk.submit_queries(
            [baseline("Q-1", query="How?", expected_docs=["bk-1"])],
            api_url=api.url,
            path="/v2/ask",
            query_at="/input/question",
            places={"answer": "/out/text", "related_docs": "/hits", "doc_id": "/id", "sources": "/refs"},
            headers={"X-Tenant": "$TENANT"},
            bearer_env="API_TOKEN",
        )
        [row] = desk.ended(run)
    [request] = api.requests
    assert row.code == "p"
    assert (request.method, request.path) == ("POST", "/v2/ask")
    assert request.body == {"input": {"question": "How?"}}
    assert request.headers["Authorization"] == "Bearer geheim"
    assert request.headers["X-Tenant"] == "blue"
    assert "geheim" not in json.dumps(desk.info(run).snapshot)


def test_a_missing_secret_ends_the_run_with_its_name(desk: QueryDesk, processes: Processes) -> None:
    """A worker without the token's variable sends nothing and says which variable it is."""
    start_worker(processes, "-Q", "queries")
    with ScriptedApi() as api:
        run = desk.submit_queries(numbered(2), api_url=api.url, bearer_env="API_TOKEN")
        desk.ended(run, RunState.ABORTED)
    assert api.requests == []
    assert "API_TOKEN" in desk.results(run)[0]["error"]["message"]


def _asserted(holds: bool) -> None:  # noqa: FBT001 - a condition to be waited for
    assert holds
