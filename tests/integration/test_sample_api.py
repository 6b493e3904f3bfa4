"""Evaluates the sample API over real sockets, and starts it in each of its three ways."""

import asyncio
import json
import signal
import socket
import threading
from pathlib import Path
from time import perf_counter
from typing import Any

import aiohttp
import pytest

from producer.aggregate.queries import calculate_metrics, metrics_of, targets
from producer.queries.report.files import (
    OutputPaths,
    write_report_md,
    write_results_csv,
    write_results_json,
)
from producer.sample_api.behaviour import Behaviour, RequestLog
from producer.sample_api.pace import LEAST, Pace
from producer.sample_api.server import in_background, running
from shared.errors import InfrastructureError
from shared.names import Outcome
from shared.upstream.model_target import ModelTarget
from tests.support.processes import Processes
from tests.support.sample_api import BASELINES, QUERY, Client, ask, evaluate, meeting
from worker.queries.checks import outcome
from worker.queries.reply import Reply
from worker.upstream.chat import ModelRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_clients import DirectClient


def test_the_honest_api_meets_the_targets_but_not_everything(tmp_path: Path) -> None:
    """Believable numbers: every target is met, some queries fail, and the files tell which."""
    results = evaluate()
    metrics = calculate_metrics(results)
    assert [target.status for target in targets(metrics_of(results))] == ["PASS"] * 5
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
    metrics = metrics_of(evaluate("wrong"))
    status = {target.metric: target.status for target in targets(metrics)}
    assert status["deflection_rate"] == status["oos_handling_rate"] == "FAIL"


def test_health_and_requests_tell_what_is_there() -> None:
    """Documents and chunks; how often each query was asked."""

    async def look(at: Client) -> tuple[Any, Any]:
        """Both documents."""
        session, url = at
        await ask(at, "VGM?")
        await ask(at, "VGM?")
        async with session.get(f"{url}/api/health") as health, session.get(f"{url}/api/requests") as counts:
            return await health.json(), await counts.json()

    health, counts = meeting("normal", look)
    assert health["status"] == "ok"
    assert health["documents"] == len(list((BASELINES.parent.parent / "knowledge").glob("*.md")))
    assert counts == {"total": 2, "by_query": {"VGM?": 2}}


def test_its_index_says_what_it_serves() -> None:
    """`/` lists routes, models, and what both know; `/v1/models` has the models as OpenAI's protocol does."""

    async def look(at: Client) -> tuple[str, dict[str, Any]]:
        """Reads both."""
        session, url = at
        async with session.get(f"{url}/") as index, session.get(f"{url}/v1/models") as models:
            assert (index.status, index.content_type) == (200, "text/plain")
            return await index.text(), await models.json()

    page, models = meeting("normal", look)
    for words in ("POST /api/query", "POST /v1/chat/completions", "GET  /v1/models", "Switzerland"):
        assert words in page
    assert "Demurrage, detention and storage" in page, "a document of its knowledge base"
    assert {each["object"] for each in models["data"]} == {"model"}
    assert all(each["id"] in page for each in models["data"])


def test_answers_take_the_latency_that_is_set() -> None:
    """A query takes about that long, and the API reports what it measured; models take as long."""

    async def timed() -> tuple[float, int]:
        """Asks one query."""
        async with running(pace=Pace.of(200)) as url, aiohttp.ClientSession() as session:
            began = perf_counter()
            async with session.post(f"{url}/api/query", json={"query": QUERY}) as response:
                body = await response.json()
            return 1000 * (perf_counter() - began), body["metadata"]["latencyMs"]

    whole_ms, reported_ms = asyncio.run(timed())
    assert 200 * LEAST <= reported_ms <= whole_ms + 1


def test_a_taken_port_is_an_error_with_a_way_out() -> None:
    """The message names the address."""

    async def serve_on(port: int) -> None:
        """Starts and stops."""
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
        """One reply."""
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
            """One reply."""
            async with aiohttp.ClientSession() as session:
                return await ask((session, process.output.strip()))

        assert asyncio.run(once()).error is None
        process.send(number)
        assert process.wait() == 0
    finally:
        started.close()


def test_its_models_speak_openais_protocol() -> None:
    """A known prompt has its answer, whole and in pieces, from either model; no question is refused."""

    async def asked() -> tuple[list[str], list[int]]:
        """Asks the two models, then sends what is no question."""
        async with running() as url, aiohttp.ClientSession() as session:
            clients = DirectClient(lambda: session, {})
            replies = [
                await clients.complete(
                    ModelRequest(
                        ModelTarget(model, api_base=f"{url}/v1"),
                        "",
                        "What is 17 + 25?",
                        is_streamed=is_streamed,
                    )
                )
                for model in ("gpt-4o-mini", "mine")
                for is_streamed in (False, True)
            ]
            assert all(
                reply.usage.input_tokens and reply.usage.output_tokens is not None for reply in replies
            )
            statuses = []
            for body in (b"{", b'{"model": "m", "messages": []}'):
                async with session.post(f"{url}/v1/chat/completions", data=body) as response:
                    statuses.append(response.status)
        return [reply.text for reply in replies], statuses

    texts, statuses = asyncio.run(asked())
    assert texts == ["42", "42", "17 + 25 = 42", "17 + 25 = 42"]
    assert statuses == [400, 400]


def test_its_models_misbehave_as_configured() -> None:
    """What a behaviour does to queries it does to models too."""

    async def asked() -> None:
        """Asks a model that is set to be too busy."""
        async with running(Behaviour("429", retry_after=7)) as url, aiohttp.ClientSession() as session:
            request = ModelRequest(ModelTarget("mine", api_base=f"{url}/v1"), "", "What is 17 + 25?")
            with pytest.raises(UpstreamError) as refused:
                await DirectClient(lambda: session, {}).complete(request)
            assert (refused.value.status, refused.value.wait_s) == (429, 7)

    asyncio.run(asked())
