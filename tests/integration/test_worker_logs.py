"""What worker processes log of a run: the events that operators need, as JSON, without content or keys."""

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from tests.support.case_runs import bench
from tests.support.eventually import eventually
from tests.support.model_server import ModelServer, Say
from tests.support.processes import Process, Processes
from tests.support.workers import Desk, start_supervisor, start_worker

if TYPE_CHECKING:
    import redis

KEY: Final = "sk-of-the-test-4711"
PROMPT: Final = "What did the patient in room nine say?"
ANSWER: Final = "That the soup was cold."


def logged(process: Process) -> list[dict[str, Any]]:
    """Reads the log; every line but the announcement of readiness is JSON."""
    lines = process.errors.splitlines()
    return [json.loads(line) for line in lines if not line.startswith("ready ")]


def of(process: Process, event: str) -> list[dict[str, Any]]:
    """The lines of one event."""
    return [line for line in logged(process) if line["event"] == event]


def say(prompt: str, nth: int) -> Say:
    """Fails once, is busy once, refuses one prompt for good and quotes it; answers all else."""
    if "refused" in prompt:
        return Say(f"I will not answer {prompt}, {KEY}", status=400)
    if nth == 1:
        return Say(f"overloaded by {prompt}", status=503)
    return Say("slow down", status=429, headers={"Retry-After": "0"}) if nth == 2 else Say(ANSWER)


def test_a_run_with_failures_is_logged_as_events(
    redis_client: "redis.Redis", redis_url: str, processes: Processes, tmp_path: Path
) -> None:
    """Retries, failures and pauses of a run stand in the log with run, chunk, item and attempt."""
    desk = Desk(redis_client, redis_url)
    with ModelServer(say) as server:
        model = {"api_base": server.api_base, "api_key_env": "MY_MODEL_API_KEY"}
        cases = [{"input": PROMPT}, {"input": f"{PROMPT} refused"}]
        path = bench(tmp_path, server, cases, models=["alpha"], model_configs={"alpha": model})
        env = {**processes.env, "MY_MODEL_API_KEY": KEY, "PROCTOR_LOG_LEVEL": "debug"}
        worker = start_worker(processes, "-Q", "cases", env=env)
        run = submit(desk.ledger, desk.publisher, Source(str(path)), options=SubmitOptions()).run
        eventually(lambda: _is_finished(desk, run))
        eventually(lambda: _is_given_back(worker))
        worker.terminate()
        assert worker.wait() == 0
    where = {"run": run, "worker": of(worker, "worker started")[0]["worker"]}
    failed, busy = of(worker, "item retried")
    for line, reason, status in ((failed, "server_error", 503), (busy, "rate_limited", 429)):
        assert where.items() <= line.items()
        assert (line["item"], line["model"], line["reason"], line["status"]) == (
            "0",
            "alpha",
            f"upstream_{reason}",
            status,
        )
        assert 0 <= line["pause_s"] < 2
    assert (failed["attempt"], busy["attempt"]) == (1, 2)
    [refused] = of(worker, "call failed")
    assert (refused["item"], refused["reason"], refused["status"]) == ("1", "upstream_refused", 400)
    [connected] = [line for line in logged(worker) if line.get("logger", "").startswith("celery.")]
    assert connected["event"].startswith("Connected to")
    chunks = {line["chunk"] for line in of(worker, "chunk claimed")}
    assert chunks == {line["chunk"] for line in of(worker, "chunk given back")}
    assert [line["event"] for line in logged(worker)][-2:] == ["worker draining", "worker stopped"]
    for hidden in (KEY, PROMPT, ANSWER, "overloaded", "Traceback"):
        assert hidden not in worker.errors


def _is_given_back(worker: Process) -> None:
    """A run has ended a moment before its last chunk is logged."""
    chunks = {line["chunk"] for line in of(worker, "chunk claimed")}
    assert chunks == {line["chunk"] for line in of(worker, "chunk given back")}


def _is_finished(desk: Desk, run: str) -> None:
    info = desk.info(run)
    assert info.state == "finished", info


def test_a_paused_upstream_and_an_aborted_run_are_logged(
    redis_client: "redis.Redis", redis_url: str, processes: Processes, tmp_path: Path
) -> None:
    """A pause that the upstream asks for is logged once, whoever meets it; a wrong key ends the run."""
    desk = Desk(redis_client, redis_url)

    def script(prompt: str, _nth: int) -> Say:
        if "key" in prompt:
            return Say("wrong key", status=401)
        return Say("slow down", status=429, headers={"Retry-After": "60"})

    with ModelServer(script) as server:
        worker, run = start_worker(processes, "-Q", "cases"), ""
        for name, prompts in (("alpha", ("Hi", "Hello", "Hey")), ("beta", ("key",))):
            models = {name: {"api_base": server.api_base}}
            cases = [{"input": prompt} for prompt in prompts]
            path = bench(tmp_path, server, cases, models=[name], model_configs=models)
            run = submit(desk.ledger, desk.publisher, Source(str(path)), options=SubmitOptions()).run
            eventually(lambda: _has(worker, "upstream paused"))
        eventually(lambda: _has(worker, "run ends early"))
        worker.send(signal.SIGKILL)
    [paused] = of(worker, "upstream paused")
    assert 55 < paused["pause_s"] <= 61
    assert paused["endpoint"].startswith("alpha at http://127.0.0.1:")
    [ended] = of(worker, "run ends early")
    assert (ended["run"], ended["state"], ended["level"]) == (run, "aborted", "error")


def _has(process: Process, event: str) -> None:
    assert of(process, event), process.output_text()


def test_the_supervisor_tells_of_a_worker_that_died(processes: Processes) -> None:
    """Which one, how, and when it is started again."""
    supervisor = start_supervisor(processes, 1, "-Q", "turns")
    [child] = supervisor.tree()[:1]
    child.kill()
    eventually(lambda: _has(supervisor, "worker ended"))
    [ended] = of(supervisor, "worker ended")
    assert (ended["exit_code"], ended["pause_s"], ended["level"]) == (-9, 0.5, "warning")
    assert ended["ended"].startswith("turns-1.")
    assert ended["worker"].startswith("supervisor.")
