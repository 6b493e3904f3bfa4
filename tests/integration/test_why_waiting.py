"""Why a run that asks models waits: pauses, breakers, limits, its budget, others' calls; on a real Redis."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from shared import keys
from shared.codecs.parked_items import History, ParkedState, WaitReason, encode_parked
from shared.contracts.case_run import CaseRun
from shared.contracts.query_run import QueryRun
from shared.kinds import CASES, QUERIES, TURNS, Kind, Storage
from shared.ledger.ledger import Ledger
from shared.names import RunState
from shared.runs import RunInfo, RunStore, upstreams
from shared.runs.upstreams import Upstreams, upstreams_of
from shared.upstream.limits import LimitBook, Limits
from shared.upstream.model_target import ModelTarget
from tests.support.run_infos import info

if TYPE_CHECKING:
    from collections.abc import Mapping

    import redis

MODEL = "openai/gpt-4o"
SCOPE = f"{MODEL} 1f2e3d4c"


@pytest.fixture
def asking() -> RunInfo:
    """A cases run under way, with two models and a cap of one dollar."""
    place = ModelTarget("mine", api_base="http://Models.Example:80/v1")
    bench = CaseRun("b", "Hi", {MODEL: ModelTarget(MODEL), "mine": place}, max_cost=1.0)
    values = info(RunState.RUNNING, 4)
    return RunInfo(
        **{name: getattr(values, name) for name in ("run", "namespace", "created_ms", "total")},
        kind=CASES,
        state=RunState.RUNNING,
        sealed_ms=2_000,
        finished_ms=None,
        done=0,
        tally={},
        threads=0,
        generation=0,
        snapshot={"cases": msgspec.to_builtins(bench)},
    )


def now_ms(client: "redis.Redis") -> float:
    """Redis' own time."""
    seconds, micros = client.time()
    return float(seconds * 1000 + micros / 1000)


def use(client: "redis.Redis", name: str, **fields: float) -> None:
    """Writes what the scripts keep of a scope that is in use."""
    client.zadd(keys.SCOPES_KEY, {name: 1})
    client.hset(
        keys.scope_key(name), mapping={field: str(value) for field, value in fields.items()} or {"n": 0}
    )


def park(client: "redis.Redis", asking: RunInfo, stored: str) -> None:
    """Parks the only chunk of a run, with one item of which this is stored."""
    client.zadd(keys.parked_key("cases"), {f"{asking.run} 0": 2e12})
    client.sadd(keys.admitted_key(asking.run), "0")
    client.hset(keys.tries_key(asking.run), "0", f"0|2000000000000|{stored}")


def why(client: "redis.Redis", asking: RunInfo) -> str:
    """The sentence, with a worker alive."""
    now = round(now_ms(client))
    client.hset(keys.CLOCK_KEY, mapping={"at": now, "lc": now})
    kind = asking.kind.name
    client.zadd(keys.workers_key(kind), {"w": now + 9_000})
    client.hset(keys.capacity_key(kind), "w", 1)
    store = RunStore(client)
    return store.wait_reason_of(asking, store.upstream_status(asking))


def test_what_a_run_calls(asking: RunInfo) -> None:
    """Models, providers and endpoints of a run are known as limits know them; plain turns call nobody."""
    called = upstreams_of(CASES, asking.snapshot)
    assert called is not None
    assert called.keys == {MODEL, "openai", "mine @http://models.example/v1", "http://models.example/v1"}
    assert called.own == {MODEL, "mine @http://models.example/v1"}
    assert called.max_cost == 1.0
    assert upstreams_of(TURNS, info(RunState.RUNNING).snapshot) is None


def test_a_run_calls_what_its_settings_say() -> None:
    """Nothing else is looked at; a run of queries has no breaker, since a query that fails has its result."""
    run = QueryRun(api_url="http://127.0.0.1:8000", delay_s=2.0)
    called = upstreams_of(QUERIES, {"queries": msgspec.to_builtins(run)})
    assert called is not None
    assert (called.pace_s, called.has_breaker, len(called.own)) == (2.0, False, 1)
    live = upstreams_of(TURNS, {"asking": {"model": MODEL, "max_cost": 2.0}})
    assert live is not None
    assert (live.own, live.max_cost, live.has_breaker) == (frozenset({MODEL}), 2.0, True)
    for kind in (CASES, QUERIES, TURNS):
        assert upstreams_of(kind, {"source": "file"}) is None


def test_an_open_breaker_holds_no_queries(redis_client: "redis.Redis", asking: RunInfo) -> None:
    """Of a run of queries only a pause of its API is named."""
    run = QueryRun(api_url="http://127.0.0.1:8000", delay_s=2.0)
    queries = replace(asking, kind=QUERIES, snapshot={"queries": msgspec.to_builtins(run)})
    [own] = upstreams_of(QUERIES, queries.snapshot).own  # type: ignore[union-attr]  # the test above asserts it
    use(redis_client, own, open=now_ms(redis_client) + 30_500)
    assert why(redis_client, queries) == ""
    use(redis_client, own, pause=now_ms(redis_client) + 30_500)
    assert "asked for a pause" in why(redis_client, queries)


def upstreams_of_words(snapshot: "Mapping[str, Any]") -> Upstreams:
    """Which upstreams a run of a further kind calls."""
    called = frozenset([snapshot["dictionary"]])
    return Upstreams(called, called)


def test_a_further_kind_declares_what_its_runs_call(
    redis_client: "redis.Redis", asking: RunInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upstream of a kind that another package declares is named when it asked for a pause."""
    kind = Kind(
        "words",
        "word",
        task="proctor.words.evaluate",
        storage=Storage.LIST,
        outcomes=("passed",),
    )
    words = replace(asking, kind=kind, snapshot={"dictionary": "http://words.example"})
    assert upstreams_of(kind, words.snapshot) is None
    monkeypatch.setattr(upstreams, "_readers", dict(upstreams._readers))
    upstreams.register(kind, upstreams_of_words)
    use(redis_client, "http://words.example", pause=now_ms(redis_client) + 30_500)
    assert "words.example asked for a pause" in why(redis_client, words)


def test_breaker_and_pause_are_named(redis_client: "redis.Redis", asking: RunInfo) -> None:
    """An open breaker and a pause are reported with the scope and the time that is left."""
    assert why(redis_client, asking) == ""
    use(redis_client, SCOPE, pause=now_ms(redis_client) + 30_500)
    sentence = why(redis_client, asking)
    assert sentence.startswith(f"{MODEL} asked for a pause: all workers send nothing for ")
    use(redis_client, SCOPE, open=now_ms(redis_client) + 90_000)
    assert f"calls to {MODEL} failed: its circuit breaker is open for 1:" in why(redis_client, asking)


def test_the_same_model_elsewhere_is_no_reason(redis_client: "redis.Redis", asking: RunInfo) -> None:
    """An open breaker of a model at one endpoint holds no run back that calls it at another one."""
    use(redis_client, "mine @http://other.example/v1", open=now_ms(redis_client) + 90_000)
    assert why(redis_client, asking) == ""
    use(redis_client, "mine @http://models.example/v1", open=now_ms(redis_client) + 90_000)
    assert "calls to mine at http://models.example/v1 failed" in why(redis_client, asking)


def test_limits_are_named_while_nothing_is_under_way(redis_client: "redis.Redis", asking: RunInfo) -> None:
    """A limit is a reason while no call of the run is under way, and says which and how long."""
    LimitBook(Ledger(redis_client).caller).set("openai", Limits(rpm=6, concurrency=2))
    use(redis_client, "openai 1f2e3d4c", rl=now_ms(redis_client) + 9_500)
    use(redis_client, SCOPE, n=3)
    sentence = why(redis_client, asking)
    assert sentence.startswith("limit of openai (6 req/min, 2 at a time): the next call may go in ")
    use(redis_client, f"run:{asking.run}")
    redis_client.zadd(keys.permits_key(f"run:{asking.run}"), {"call": 9e15})
    assert why(redis_client, asking) == ""
    redis_client.delete(keys.permits_key(f"run:{asking.run}"))
    use(redis_client, "openai 1f2e3d4c", rl=0)
    for call in ("a", "b"):
        redis_client.zadd(keys.permits_key("openai 1f2e3d4c"), {call: 9e15})
    assert why(redis_client, asking) == "limit of openai: all 2 calls at a time are under way for other runs"


def test_spent_budget_and_others_answers_are_named(redis_client: "redis.Redis", asking: RunInfo) -> None:
    """A cap that is reached is shown with its amount, also of the run it ended; a parked cache wait too."""
    park(redis_client, asking, encode_parked(ParkedState(WaitReason.IDENTICAL_CALL)))
    assert why(redis_client, asking).endswith(": an identical call is in flight; its answer will be reused")
    redis_client.hset(keys.cost_key(asking.run), mapping={"spent": 999_000_000, "over": 1})
    assert why(redis_client, asking) == "max cost $1 reached"


@pytest.mark.parametrize(
    ("stored", "sentence"),
    [
        (
            encode_parked(ParkedState(WaitReason.RATE_LIMIT, judges=(History(1), History(2)))),
            "judges deferred: waiting for a rate limit",
        ),
        (
            encode_parked(ParkedState(WaitReason.RETRY, History(1, code="api_rate_limited"))),
            "waiting to retry after a rate limit response (429)",
        ),
        (
            "judge 2 upstream_timeout 0 350|1  0 0",
            "judges deferred: waiting to retry after a timeout",
        ),
        ("Rate limited (429)", "waiting to retry after a rate limit response (429)"),
        ("Timeout after 30s", "Timeout after 30s"),
    ],
)
def test_parked_items_keep_their_reason(
    redis_client: "redis.Redis", asking: RunInfo, stored: str, sentence: str
) -> None:
    """Those of judges and of queries too, and what earlier versions stored is still shown."""
    park(redis_client, asking, stored)
    assert why(redis_client, asking) == f"its next chunk is parked until 2033-05-18T03:33:20.000Z: {sentence}"


def test_what_others_wait_for_has_not_ended_a_run(redis_client: "redis.Redis", asking: RunInfo) -> None:
    """A run that ran out of time is not reported as ended by a pause that its model asks for now."""
    ended = replace(asking, state=RunState.INCOMPLETE)
    use(redis_client, SCOPE, pause=now_ms(redis_client) + 30_500)
    assert why(redis_client, ended) == ""
    redis_client.hset(keys.cost_key(asking.run), "over", 1)
    assert why(redis_client, ended) == "max cost $1 reached"
