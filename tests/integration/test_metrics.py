"""States what the exporter reads of a fleet: gauges of the ledger, counters that only grow, few labels."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from producer.metrics.exporter import registry_of, serving
from producer.metrics.families import FAMILIES
from shared import keys
from shared.ledger import ChunkPlan
from shared.ledger.ledger import Ledger
from shared.observability.counters import MOST_UPSTREAMS, OTHER
from shared.server.client import RedisTarget
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.limits import Limits
from shared.upstream.model_target import ModelTarget
from tests.support.ledger_runs import decide, open_run, rows_of, submit_cases
from tests.support.redis_server import RedisServer
from tests.support.upstream import API, discipline
from worker.outcomes import Deferred
from worker.upstream.endpoints import Endpoint, api_endpoint, model_endpoint
from worker.upstream.failures import UpstreamError
from worker.upstream.gate import Sent

if TYPE_CHECKING:
    import redis

    from worker.upstream.stack import UpstreamStack


class Scrape:
    """One scrape, to be asked for its samples."""

    def __init__(self, client: "redis.Redis") -> None:
        self.text = generate_latest(registry_of(client)).decode()
        self.samples = [
            sample for family in text_string_to_metric_families(self.text) for sample in family.samples
        ]

    def value(self, name: str, **labels: str) -> float:
        """The value of the one sample with this name and these labels."""
        (found,) = [each.value for each in self.samples if each.name == name and each.labels == labels]
        return float(found)

    def labels(self, label: str) -> set[str]:
        """Every value of a label."""
        return {each.labels[label] for each in self.samples if label in each.labels}


async def call(upstream: "UpstreamStack", endpoint: Endpoint, error: UpstreamError | None = None) -> object:
    """Makes one call that is answered at once, or fails."""

    async def send() -> Sent[str]:
        """Answers at once."""
        if error is not None:
            raise error
        return Sent("answer")

    try:
        return await upstream.gate.call(endpoint, send)
    except (UpstreamError, Deferred) as raised:
        return raised


def test_every_family_is_there_before_its_first_sample(redis_client: "redis.Redis") -> None:
    """An empty server has HELP and TYPE of every family; families by kind begin at 0."""
    scrape = Scrape(redis_client)
    for family in FAMILIES:
        assert f"# TYPE {family.name} {family.type}\n" in scrape.text
        assert f"# HELP {family.name} {family.help}\n" in scrape.text
    assert len(FAMILIES) >= 15
    assert scrape.value("proctor_backlog_items", kind="queries") == 0
    assert scrape.value("proctor_items_total", kind="cases", outcome="error") == 0


def test_gauges_say_what_the_ledger_holds(redis_client: "redis.Redis") -> None:
    """Backlog, age, runs, chunks by state, workers and slots are those of the ledger at this moment."""
    ledger = Ledger(redis_client)
    ledger.tick("w1", ["cases"], 2)
    wakes = submit_cases(ledger, "r1", [["0", "1"], ["2"], ["3"], ["4"], ["5"], ["6"]])
    claim = ledger.claim(wakes[0].run, wakes[0].chunk, "token", "w1")
    ledger.commit("r1", wakes[0].chunk, "token", rows_of(claim)[:1], back=False, tally={"passed": 1})
    open_run(ledger, "r2", "turns")
    scrape = Scrape(redis_client)
    assert scrape.value("proctor_backlog_items", kind="cases") == 6
    assert 0 <= scrape.value("proctor_oldest_item_age_seconds", kind="cases") < 60
    assert scrape.value("proctor_runs", kind="cases", state="running") == 1
    assert scrape.value("proctor_runs", kind="turns", state="loading") == 1
    assert scrape.value("proctor_chunks", kind="cases", state="leased") == 1
    assert scrape.value("proctor_chunks", kind="cases", state="published") == len(wakes) - 1
    assert scrape.value("proctor_workers", kind="cases", state="ready") == 1
    assert scrape.value("proctor_worker_slots", kind="cases") == 2
    assert scrape.value("proctor_steward_age_seconds") < 60


def test_a_paused_run_leaves_backlog_and_age(redis_client: "redis.Redis") -> None:
    """Nothing that scales or alerts sees a paused run; its state shows it, and resuming brings it back."""
    ledger = Ledger(redis_client)
    submit_cases(ledger, "r1", [["0", "1"], ["2"]])
    redis_client.hset(keys.run_key("r1"), "sealed", 1)
    ledger.control("r1", "pause")
    scrape = Scrape(redis_client)
    assert scrape.value("proctor_backlog_items", kind="cases") == 0
    assert scrape.value("proctor_oldest_item_age_seconds", kind="cases") == 0
    assert scrape.value("proctor_runs", kind="cases", state="paused") == 1
    ledger.control("r1", "resume")
    scrape = Scrape(redis_client)
    assert scrape.value("proctor_backlog_items", kind="cases") == 3
    assert scrape.value("proctor_oldest_item_age_seconds", kind="cases") > 0


def test_a_removed_run_takes_no_counter_with_it(redis_client: "redis.Redis") -> None:
    """Outcomes and ended runs are counted once, and stay when the run is removed."""
    ledger = Ledger(redis_client)
    (wake,) = submit_cases(ledger, "r1", [["0", "1"]])
    claim = ledger.claim("r1", "0", "token", "w1")
    rows, tally = rows_of(claim), {"passed": 1, "failed": 1, "retried": 1}
    ledger.commit("r1", "0", "token", rows, back=False, tally=tally)
    ledger.commit("r1", "0", "token", rows, back=True, tally=tally)
    assert ledger.commit("r1", "0", "another", rows, back=True).status == "lost"
    assert ledger.remove("r1")
    scrape = Scrape(redis_client)
    assert scrape.value("proctor_items_total", kind=wake.kind, outcome="passed") == 1
    assert scrape.value("proctor_items_total", kind=wake.kind, outcome="failed") == 1
    assert scrape.value("proctor_runs_ended_total", kind="cases", state="finished") == 1
    assert scrape.value("proctor_fenced_writes_total", writer="worker") == 1
    assert scrape.value("proctor_backlog_items", kind="cases") == 0


def test_a_retried_run_is_as_old_as_its_retry(redis_client: "redis.Redis") -> None:
    """The age counts from the retry, since all that was there before has its result."""
    ledger = Ledger(redis_client)
    (wake,) = submit_cases(ledger, "r1", [["0"]])
    decide(ledger, wake)
    redis_client.hset(keys.run_key("r1"), "sealed", 1)
    ledger.retry("r1", "again", chunks=[ChunkPlan("case 0", ["0"])])
    assert Scrape(redis_client).value("proctor_oldest_item_age_seconds", kind="cases") < 60


def test_calls_are_counted_by_upstream_and_result(redis_client: "redis.Redis") -> None:
    """Results, latencies, pauses, waits and denials reach Redis when the process ends, at the latest."""
    model = model_endpoint(ModelTarget("openai/gpt-4o"), "account1")
    limited = api_endpoint(API, limits=Limits(pace_s=0.2))
    refusal = UpstreamError(FailureReason.RATE_LIMITED, "slowly", status=429, wait_s=30)

    async def work() -> None:
        async with discipline(redis_client) as upstream:
            await call(upstream, limited)
            await call(upstream, limited)
            await call(upstream, model)
            await call(upstream, model, refusal)
            await call(upstream, model, refusal)
            assert isinstance(await call(upstream, model), Deferred)

    asyncio.run(work())
    scrape, name = Scrape(redis_client), "openai/gpt-4o"
    assert scrape.value("proctor_calls_total", upstream=name, result="ok") == 1
    assert scrape.value("proctor_calls_total", upstream=name, result="upstream_rate_limited") == 2
    assert scrape.value("proctor_call_seconds_count", upstream=name) == 3
    assert scrape.value("proctor_call_seconds_bucket", upstream=name, le="120.0") == 3
    assert 0 < scrape.value("proctor_call_seconds_sum", upstream=name) < 10
    assert scrape.value("proctor_pauses_total", upstream=name) == 2
    assert scrape.value("proctor_limiter_denials_total", upstream=name, reason="paused") == 1
    assert 20 < scrape.value("proctor_upstream_paused_seconds", upstream=name) <= 30
    assert scrape.value("proctor_breaker_state", upstream=name) == 0
    assert scrape.value("proctor_limiter_waits_total", upstream=API, reason="rate") == 1
    assert 0.05 < scrape.value("proctor_limiter_wait_seconds_total", upstream=API) < 2


def test_labels_stay_few(redis_client: "redis.Redis") -> None:
    """Upstreams beyond the first fifty are counted together, and no label holds a secret or is odd."""

    async def work() -> None:
        async with discipline(redis_client) as upstream:
            for number in range(MOST_UPSTREAMS + 10):
                upstream.gate.counts.call_ended(f"model-{number}", "ok", 0.1)
            for name in ("two words", "m" * 1000, "a\nb", "\ud800"):
                upstream.gate.counts.call_ended(name, "ok", 0.1)
            await call(upstream, api_endpoint("http://me:secret@api.example/v1?key=secret"))

    asyncio.run(work())
    scrape = Scrape(redis_client)
    assert len(scrape.labels("upstream") - {"http://api.example/v1"}) == MOST_UPSTREAMS + 1
    assert scrape.value("proctor_calls_total", upstream=OTHER, result="ok") >= 10
    assert "secret" not in scrape.text


def test_a_batch_that_is_sent_again_counts_once(redis_client: "redis.Redis") -> None:
    """A lost reply makes a worker send its counts again; they are added once."""

    async def work() -> None:
        async with discipline(redis_client) as upstream:
            counts = upstream.gate.counts
            counts.call_ended("m", "ok", 0.1)
            batch = counts._take()
            for _ in range(3):
                await upstream.gate.counts._scripts.run("add_counts", *batch)

    asyncio.run(work())
    assert Scrape(redis_client).value("proctor_calls_total", upstream="m", result="ok") == 1


def test_without_redis_a_scrape_says_so(new_redis_server: Callable[[], RedisServer]) -> None:
    """While Redis is away a scrape is answered: all types, one sample that is 0, and no traceback."""
    server = new_redis_server()
    client = RedisTarget.parse(server.url).client()
    server.kill()
    scrape = Scrape(client)
    assert [(each.name, each.value) for each in scrape.samples] == [("proctor_redis_up", 0)]
    assert scrape.text.count("# TYPE ") == len(FAMILIES)
    client.close()


def test_the_server_knows_one_page(redis_client: "redis.Redis") -> None:
    """`/metrics` is the page, `/` says where it is, and anything else is not found."""
    with serving(redis_client, "127.0.0.1", 0) as port:
        base = f"http://127.0.0.1:{port}"
        with urlopen(f"{base}/metrics", timeout=10) as reply:  # noqa: S310 - loopback
            assert b"proctor_redis_up 1.0" in reply.read()
        with urlopen(base, timeout=10) as reply:
            assert b"/metrics" in reply.read()
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{base}/etc/passwd", timeout=10)  # noqa: S310 - loopback
        assert refused.value.code == 404
        refused.value.close()


def test_parallel_scrapes_say_the_same(redis_client: "redis.Redis") -> None:
    """Eight scrapes at the same moment are all answered, with the same state of the ledger."""
    submit_cases(Ledger(redis_client), "r1", [["0", "1"], ["2"]])
    with serving(redis_client, "127.0.0.1", 0) as port, ThreadPoolExecutor(8) as pool:

        def backlog(_: int) -> list[str]:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
                lines = reply.read().decode().splitlines()
            return [line for line in lines if line.startswith("proctor_backlog_items")]

        found = list(pool.map(backlog, range(8)))
    assert found == [found[0]] * 8
    assert 'proctor_backlog_items{kind="cases"} 3.0' in found[0]
