"""Traces of runs at a collector: one trace a run, through producer and worker processes, without content."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.case_runs import bench
from tests.support.cli import PROCTOR
from tests.support.eventually import eventually
from tests.support.model_server import ModelServer, Say
from tests.support.otlp_receiver import Collector, Seen
from tests.support.processes import Processes
from tests.support.query_desk import QueryDesk
from tests.support.query_results import baseline
from tests.support.scripted_api import ScriptedApi, Step
from tests.support.tree import ROOT
from tests.support.workers import Desk, conversation, start_worker

if TYPE_CHECKING:
    import redis

KEY: Final = "sk-of-the-test-4711"
TOKEN: Final = "token-of-the-collector"  # noqa: S105 - of a server in this file
PROMPT: Final = "Say what the patient said"
ANSWER: Final = '{"said": "that the soup was cold"}'
INSIDE: Final = ("claim", "item", "commit")
"""What stands below a chunk of cases or queries."""
CONTENT: Final = (KEY, TOKEN, "patient", "soup", "overloaded", "Answer.")


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Where traces go."""
    with Collector() as running:
        yield running


@pytest.fixture
def desk(redis_client: "redis.Redis", redis_url: str, tmp_path: Path) -> QueryDesk:
    """A producer on the session's server, in this process, which makes no spans."""
    return QueryDesk(redis_client, redis_url, tmp_path)


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    """A file of one turn."""
    path = tmp_path / "turns.jsonl"
    path.write_text('{"threadId": "t", "message": "ok"}\n')
    return path


@pytest.fixture
def env(collector: Collector, proctor_env: dict[str, str]) -> dict[str, str]:
    """An environment that asks for traces."""
    return {
        **proctor_env,
        "PYTHONPATH": f"{ROOT}:{Path(sys.prefix) / 'otel'}",  # where `make install` puts it
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{TOKEN}",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        "MY_MODEL_API_KEY": KEY,
    }


class Provider(ModelServer):
    """Three models: one fails at first, one is busy for longer than a worker waits, one judges."""

    def __init__(self) -> None:
        super().__init__(lambda _prompt, _nth: self._say())

    def _say(self) -> Say:
        models = [request.body["model"] for request in self.requests]
        if models[-1] == "judge":
            return Say("FAIL")
        if models.count(models[-1]) > 1:
            return Say(ANSWER)
        if models[-1] == "alpha":
            return Say("overloaded by the patient", status=503)
        return Say("slow down", status=429, headers={"Retry-After": "10"})


def submitted(processes: Processes, path: Path, env: dict[str, str]) -> str:
    """Submits a file as a person does, and returns the run's id."""
    done = processes.run(*PROCTOR, "submit", path, env=env)
    assert done.popen.returncode == 0, done.output_text()
    return done.output.strip()


def by_name(spans: list[Seen], name: str) -> list[Seen]:
    return [span for span in spans if span.name == name]


def tree(spans: list[Seen]) -> set[tuple[str, str]]:
    """Which names stand below which; the first has nothing above it."""
    names = {span.id: span.name for span in spans} | {"": ""}
    return {(names[span.parent], span.name) for span in spans}


def test_a_run_over_three_processes_is_one_trace(
    desk: Desk,
    collector: Collector,
    env: dict[str, str],
    processes: Processes,
    tmp_path: Path,
) -> None:
    """Submitted here, begun by one worker and retried by another: one trace, links right, no content."""
    with Provider() as server:
        prices = {"prompt_per_million": 100, "completion_per_million": 200}
        model = {"api_base": server.api_base, "api_key_env": "MY_MODEL_API_KEY", "prices": prices}
        cases = [{"input": PROMPT, "expected": {"said": 1}}]
        models = dict.fromkeys(("openai/alpha", "beta", "judge"), model)
        path = bench(tmp_path, server, cases, models=["openai/alpha", "beta"], model_configs=models)
        run = submitted(processes, path, env)
        first = start_worker(processes, "-Q", "cases", "--name", "first@here", env=env)
        eventually(lambda: _is_waiting_for_one(desk, run))
        assert first.stop() == 0
        second = start_worker(processes, "-Q", "cases", "--name", "second@here", env=env)
        eventually(lambda: _is_finished(desk, run), within_s=20)
        assert second.stop() == 0
    [spans] = collector.traces()
    assert tree(spans) == {
        ("", "submit"),
        ("submit", "chunk"),
        ("chunk", "claim"),
        ("chunk", "item"),
        ("chunk", "commit"),
        ("item", "chat alpha"),
        ("item", "chat beta"),
        ("item", "chat judge"),
        ("item", "validate"),
    }
    check_process_spans(spans, run)
    check_calls(spans, server)
    sent = b"".join(collector.bodies) + (first.errors + second.errors).encode()
    assert [word for word in CONTENT if word.encode() in sent] == []
    assert {headers["authorization"] for headers in collector.headers} == {f"Bearer {TOKEN}"}


def check_process_spans(spans: list[Seen], run: str) -> None:
    """Each process names itself; chunks say what they are of, items how they ended."""
    [submit] = by_name(spans, "submit")
    assert submit.kind == "producer"
    assert submit.attributes == {"proctor.kind": "cases", "proctor.run": run, "proctor.items": 2}
    assert {span.resource["service.name"] for span in spans} == {"proctor"}
    assert {span.resource["deployment.environment.name"] for span in spans} == {"test"}
    workers = {"first@here", "second@here"}
    assert {span.instance for span in by_name(spans, "chunk")} == workers
    assert {span.instance for span in spans} == {submit.instance, *workers}
    for chunk in by_name(spans, "chunk"):
        assert chunk.kind == "consumer"
        assert chunk.attributes["proctor.run"] == run
        assert chunk.attributes["proctor.worker"] == chunk.instance
    items = {(span.instance, span.attributes["proctor.item"]): span for span in by_name(spans, "item")}
    assert set(items) == {("first@here", "0"), ("first@here", "1"), ("second@here", "1")}
    assert items["first@here", "0"].attributes["proctor.outcome"] == "failed"
    assert items["first@here", "1"].attributes["proctor.postponed_s"] > 2
    assert items["second@here", "1"].attributes["proctor.outcome"] == "failed"
    [(name, retry)] = items["first@here", "0"].events
    assert (name, retry["proctor.reason"], retry["proctor.attempt"]) == ("retry", "upstream_server_error", 1)


def check_calls(spans: list[Seen], server: ModelServer) -> None:
    """Calls of a model follow the conventions: who, which model, how much, how it failed."""
    failed, answered = by_name(spans, "chat alpha")
    refused, retried = by_name(spans, "chat beta")
    judge = by_name(spans, "chat judge")
    assert {call.kind for call in (failed, answered, refused, retried, *judge)} == {"client"}
    assert (refused.attributes["http.response.status_code"], refused.is_error) == (429, True)
    assert (refused.instance, retried.instance) == ("first@here", "second@here")
    assert not retried.is_error
    assert len(judge) == 1, "the second answer is the same, and so is the question about it"
    port = int(server.api_base.rpartition(":")[2].partition("/")[0])
    asked = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "alpha",
        "gen_ai.request.temperature": 0.1,
        "server.address": "127.0.0.1",
        "server.port": port,
    }
    assert failed.attributes == {
        **asked,
        "error.type": "upstream_server_error",
        "http.response.status_code": 503,
    }
    assert answered.attributes == {
        **asked,
        "http.request.resend_count": 1,
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 3,
        "proctor.cost_usd": 0.0017,
    }


def _is_waiting_for_one(desk: Desk, run: str) -> None:
    info = desk.info(run)
    assert info.done == 1, info
    assert desk.ledger.tries(run, ["1"])


def _is_finished(desk: Desk, run: str) -> None:
    info = desk.info(run)
    assert info.state == "finished", info


def test_a_query_is_a_call_of_its_api(
    desk: QueryDesk,
    collector: Collector,
    env: dict[str, str],
    processes: Processes,
) -> None:
    """The call is named by method and template: the query, which stands in a GET's URL, is nowhere."""
    with ScriptedApi(lambda _query, nth: Step(503) if nth == 1 else Step()) as api:
        worker = start_worker(processes, "-Q", "queries", env=env)
        settings = {"api_url": api.url, "method": "GET", "query_at": "/q", "path": "/ask", "retry_errors": 1}
        run = desk.submit_queries([baseline("Q-1", query="what-nobody-may-read")], **settings)
        desk.ended(run)
        assert worker.stop() == 0
    # Submitted by a process without tracing: the worker's part is a trace of its own.
    assert tree(collector.spans) == {("", "chunk"), *(("chunk", name) for name in INSIDE), ("item", "GET")}
    ends = [
        (span.kind, span.attributes["http.response.status_code"]) for span in by_name(collector.spans, "GET")
    ]
    assert ends == [("client", 503), ("client", 200)]
    [item] = by_name(collector.spans, "item")
    assert [name for name, _ in item.events] == ["retry"]
    assert b"what-nobody-may-read" not in b"".join(collector.bodies)


def test_turns_have_spans_by_the_chunk(
    desk: Desk,
    collector: Collector,
    env: dict[str, str],
    processes: Processes,
) -> None:
    """However many turns a chunk has: one span for it, one for its claim, one for each of its commits."""
    worker = start_worker(processes, "-Q", "turns", env=env)
    desk.submit("r1", conversation(threads=20, turns=50), chunk_threads=20)
    desk.finished("r1")
    assert worker.stop() == 0
    # A wake-up that comes twice finds nothing: that is a chunk and a claim too.
    decided = [span for span in by_name(collector.spans, "chunk") if span.attributes.get("proctor.decided")]
    assert [span.attributes["proctor.decided"] for span in decided] == [1000]
    assert {span.name for span in collector.spans} == {"chunk", "claim", "commit"}
    assert len(by_name(collector.spans, "commit")) <= 2


def test_the_usual_variables_decide_what_is_sampled(
    desk: Desk,
    collector: Collector,
    env: dict[str, str],
    processes: Processes,
    turns: Path,
) -> None:
    """A run that its submitter does not sample is not sampled by workers either."""
    worker = start_worker(processes, "-Q", "turns", env=env)
    run = submitted(processes, turns, {**env, "OTEL_TRACES_SAMPLER": "parentbased_always_off"})
    eventually(lambda: _is_finished(desk, run), within_s=20)
    assert worker.stop() == 0
    assert collector.spans == []


def test_a_collector_that_is_away_costs_seconds_and_no_words(
    env: dict[str, str], processes: Processes, turns: Path
) -> None:
    """The run is submitted as ever, in time, and nothing of the exporter's troubles is shown."""
    done = processes.run(
        *PROCTOR, "submit", turns, env={**env, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    )
    assert done.popen.returncode == 0
    assert done.output.startswith("run-")
    assert [line for line in done.errors.splitlines() if "worker" not in line] == []


def test_where_tracing_is_off_nothing_of_it_is_loaded(processes: Processes) -> None:
    """Who did not ask for traces does not pay for them."""
    # redis-py loads OpenTelemetry's metrics by itself, where they are installed.
    names = (
        "[n for n in sys.modules if n.startswith(('opentelemetry.exporter', 'shared.observability.otel'))]"
    )
    program = f"import sys, worker.app, producer.submit; print({names})"
    assert processes.run(sys.executable, "-c", program).output == "[]\n"
