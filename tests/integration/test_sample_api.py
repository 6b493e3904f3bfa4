"""Talks to the sample API over real sockets: honest answers, every misbehaviour, and a whole evaluation."""

import asyncio
import json
import signal
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import aiohttp
import pytest

from producer.aggregate.queries import calculate_metrics, targets
from producer.load.baselines import load_baselines
from producer.report.queries.files import (
    OutputPaths,
    write_report_md,
    write_results_csv,
    write_results_json,
)
from producer.sample_api.behaviour import Behaviour, RequestLog, parse_behaviour
from producer.sample_api.server import in_background, running
from shared.errors import InfrastructureError
from shared.names import Outcome
from tests.support.processes import Processes
from tests.support.tree import ROOT
from worker.queries.reply import MAX_REPLY_BYTES, Failure, Reply, connection_lost, read_reply
from worker.queries.verdict import outcome, query_result

BASELINES = ROOT / "examples" / "copilot" / "data" / "evaluation_baselines.json"
QUERY = "How long is a binding tariff ruling valid?"
T = TypeVar("T")
Client = tuple[aiohttp.ClientSession, str]


@asynccontextmanager
async def client(behaviour: str = "normal", *, log: RequestLog | None = None) -> AsyncIterator[Client]:
    """A session, and the URL of a server of its own."""
    async with (
        running(parse_behaviour(behaviour), log=log) as url,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session,
    ):
        yield session, url


async def ask(at: Client, query: str = QUERY, **headers: str) -> Reply:
    """Asks one query, as far as this test needs a client."""
    session, url = at
    began = perf_counter()
    try:
        async with session.post(f"{url}/api/query", json={"query": query}, headers=headers) as response:
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > MAX_REPLY_BYTES:
                    break
            latency = round(1000 * (perf_counter() - began))
            return read_reply(status_code=response.status, body=bytes(body), latency_ms=latency)
    except aiohttp.ClientError:
        return connection_lost(round(1000 * (perf_counter() - began)))


def meeting(behaviour: str, what: Callable[[Client], Awaitable[T]]) -> T:
    """Does something with a server that behaves so."""

    async def inside() -> T:
        async with client(behaviour) as at:
            return await what(at)

    return asyncio.run(inside())


def evaluate(behaviour: str = "normal") -> list[dict[str, Any]]:
    """Puts all fifty packaged queries to a server, one after the other."""

    async def inside(at: Client) -> list[dict[str, Any]]:
        return [
            query_result(baseline, await ask(at, baseline["query"]))
            for baseline in load_baselines(str(BASELINES))
        ]

    return meeting(behaviour, inside)


def test_the_honest_api_meets_the_targets_but_not_everything(tmp_path: Path) -> None:
    """Believable numbers: every target is met, some queries fail, and the files tell which."""
    results = evaluate()
    metrics = calculate_metrics(results)
    assert [target.status for target in targets(metrics)] == ["PASS"] * 5
    assert metrics["total_queries"] == metrics["successful_queries"] == 50
    assert (metrics["in_scope_queries"], metrics["oos_queries"]) == (40, 10)
    assert 40 <= metrics["deflection_rate"] < 95
    assert 80 <= metrics["citation_accuracy"] < 100
    assert 0 < metrics["hallucination_rate"] < 15
    assert 90 <= metrics["oos_handling_rate"] < 100
    assert metrics["citation_na_queries"] > 0
    failures = sum(outcome(result) is Outcome.FAILED for result in results)
    assert 3 <= failures <= 15

    paths = OutputPaths.under(tmp_path)
    run = write_results_json(results, metrics, {"delay": 0}, path=paths.json)
    write_results_csv(results, path=paths.csv)
    write_report_md(results, metrics, run, path=paths.report)
    assert json.loads(paths.json.read_bytes())["metrics"] == metrics
    assert len(paths.csv.read_bytes().splitlines()) == 51
    text = paths.report.read_text(encoding="utf-8")
    for title in ("must_contain Failures", "Hallucination", "OOS Handling Failures", "Citation Missing"):
        assert "| Q-" in text.partition(f"## {title}")[2].partition("\n## ")[0]


def test_answers_do_not_change_from_run_to_run() -> None:
    """Two servers give the same verdicts and the same texts."""
    first, second = evaluate(), evaluate()
    assert [result["checks"]["must_contain"] for result in first] == [
        result["checks"]["must_contain"] for result in second
    ]
    assert [result["response"]["answer"] for result in first] == [
        result["response"]["answer"] for result in second
    ]


def test_wrong_answers_are_caught() -> None:
    """An API that answers something else misses its targets."""
    metrics = calculate_metrics(evaluate("wrong"))
    status = {target.metric: target.status for target in targets(metrics)}
    assert status["deflection_rate"] == status["oos_handling_rate"] == "FAIL"


@pytest.mark.parametrize(
    ("behaviour", "failure", "error"),
    [
        ("429", Failure.RATE_LIMITED, "Rate limited (429)"),
        ("503", Failure.SERVER_ERROR, '{"error": "told to answer 503"}'),
        ("401", Failure.REFUSED, '{"error": "told to answer 401"}'),
        ("html", Failure.INVALID_BODY, "Invalid response body"),
        ("null", Failure.INVALID_BODY, "Invalid response body"),
        ("empty", Failure.INVALID_BODY, "Invalid response body"),
        ("list", Failure.INVALID_BODY, "Invalid response body"),
        ("huge:mib=5", Failure.TOO_LARGE, "Response body larger than 1024 KiB"),
        ("half", Failure.LOST, "Connection lost before the answer was complete"),
        ("reset", Failure.LOST, "Connection lost before the answer was complete"),
        ("nulls", None, None),
        ("odd", None, None),
    ],
)
def test_each_misbehaviour_has_its_documented_end(
    behaviour: str, failure: Failure | None, error: str | None
) -> None:
    """Over a real connection every fault becomes its failure, and is judged without a crash."""
    baseline = load_baselines(str(BASELINES))[0]
    reply = meeting(behaviour, ask)
    assert (reply.failure, reply.error) == (failure, error)
    result = query_result(baseline, reply)
    assert not result["overall_pass"]
    assert outcome(result) is (Outcome.FAILED if error is None else Outcome.ERROR)


def test_retry_after_is_sent_as_seconds_or_as_a_date() -> None:
    """Neither without being told."""

    async def headers(at: Client) -> str | None:
        session, url = at
        async with session.post(f"{url}/api/query", json={"query": "x"}) as response:
            assert response.status == 429
            return response.headers.get("Retry-After")

    assert meeting("429", headers) is None
    assert meeting("429:retry_after=7", headers) == "7"
    assert parsedate_to_datetime(meeting("429:retry_date=7", headers) or "").tzinfo is not None


def test_only_the_first_requests_of_each_query_are_refused() -> None:
    """With times=1 the second try of every query is answered."""

    async def tries(at: Client) -> list[int]:
        return [(await ask(at, query)).status_code for query in ("VGM?", "VGM?", "LCL?", "LCL?")]

    assert meeting("429:times=1", tries) == [429, 200, 429, 200]


def test_every_third_request_is_refused() -> None:
    """Requests are counted over all queries."""

    async def tries(at: Client) -> list[int]:
        return [(await ask(at, f"VGM {number}")).status_code for number in range(6)]

    assert meeting("500:every=3", tries) == [200, 200, 500, 200, 200, 500]


def test_a_request_can_choose_its_own_behaviour() -> None:
    """The header wins over the server's; nonsense in it is a bad request."""

    async def tries(at: Client) -> list[int]:
        choices: tuple[dict[str, str], ...] = (
            {},
            {"X-Sample-Behaviour": "normal"},
            {"X-Sample-Behaviour": 'no"nsense'},
        )
        return [(await ask(at, **choice)).status_code for choice in choices]

    assert meeting("500", tries) == [500, 200, 400]


def test_a_slow_answer_says_how_long_it_took() -> None:
    """The server's own latency holds the wait."""
    reply = meeting("slow:seconds=0.2", ask)
    assert reply.response is not None
    assert 200 <= reply.response["metadata"]["latencyMs"] <= reply.latency_ms + 1


def test_a_silent_api_never_answers_and_still_stops() -> None:
    """The client's time limit ends the wait; the server does not wait for it."""

    async def give_up(at: Client) -> None:
        session, url = at
        limit = aiohttp.ClientTimeout(total=0.3)
        async with session.post(f"{url}/api/query", json={"query": "x"}, timeout=limit):
            pass

    with pytest.raises(TimeoutError):
        meeting("silent", give_up)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"query": 7}', 400),
        (b'{"query": "  "}', 400),
        (json.dumps({"query": "x" * 1001}).encode(), 400),
        (b"[" * 9000, 400),
        (b"\xff", 400),
        (b'{"query": "' + b"x" * 20_000 + b'"}', 413),
    ],
)
def test_unusable_requests_are_refused(body: bytes, status: int) -> None:
    """As the API under test does: blank, too long, no JSON, too large."""

    async def post(at: Client) -> int:
        session, url = at
        async with session.post(f"{url}/api/query", data=body) as response:
            return response.status

    assert meeting("normal", post) == status


def test_health_and_requests_tell_what_is_there() -> None:
    """Documents and chunks; how often each query was asked."""

    async def look(at: Client) -> tuple[Any, Any]:
        session, url = at
        await ask(at, "VGM?")
        await ask(at, "VGM?")
        async with session.get(f"{url}/api/health") as health, session.get(f"{url}/api/requests") as counts:
            return await health.json(), await counts.json()

    health, counts = meeting("normal", look)
    assert health["status"] == "ok"
    assert health["documents"] == len(list((BASELINES.parent.parent / "knowledge").glob("*.md")))
    assert counts == {"total": 2, "by_query": {"VGM?": 2}}


def test_a_taken_port_is_an_error_with_a_way_out() -> None:
    """The message names the address."""

    async def serve_on(port: int) -> None:
        async with running(port=port):
            pass

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InfrastructureError, match=f"127.0.0.1:{port}"):
            asyncio.run(serve_on(port))


def test_callers_without_a_loop_are_served_from_a_thread() -> None:
    """The thread ends with the block, and the log is the caller's."""
    log = RequestLog()

    async def once(url: str) -> Reply:
        async with aiohttp.ClientSession() as session:
            return await ask((session, url))

    with in_background(Behaviour("500"), log=log) as url:
        assert asyncio.run(once(url)).status_code == 500
    assert log.by_query[QUERY] == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "sample-api"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_of_its_own_runs_until_a_signal(
    number: signal.Signals, python: str, tmp_path: Path, bare_env: dict[str, str]
) -> None:
    """It says where it listens, answers, and ends in order."""
    started = Processes(tmp_path, bare_env)
    program = "from producer.sample_api.server import serve; serve(0, on_ready=print)"
    try:
        process = started.start(python, "-c", program)
        process.wait_for("http://")

        async def once() -> Reply:
            async with aiohttp.ClientSession() as session:
                return await ask((session, process.output.strip()))

        assert asyncio.run(once()).error is None
        process.send(number)
        assert process.wait() == 0
    finally:
        started.close()
