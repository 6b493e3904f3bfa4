"""Micro-runs of `proctor serve` on a real server: they are told of, folded once, and adopted."""

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from producer.serve import micro_runs
from producer.serve.micro_runs import LostTurnsError, MicroRuns
from producer.serve.thread_requests import ConditionError, UnknownThreadError, read_thread, remove_thread
from producer.serve.turn_bodies import AcceptedTurn
from shared import keys
from shared.clock import now_ms
from shared.errors import RunStateError, UnknownRunError
from shared.ledger import Keep
from shared.ledger.bounds import HOUR_MS
from shared.runs.served import HourTotals, ServedRow, ServedStream, Window, merged
from shared.runs.threads import ThreadStore
from shared.settings import Settings
from tests.support.inline_worker import InlineWorker

if TYPE_CHECKING:
    import redis

TURNS = [AcceptedTurn(name, b'{"threadId":"%s","message":"ok"}' % name.encode()) for name in "aab"]
USUAL = Keep()
SETTINGS = Settings.from_environment({})


def runs_on(
    worker: InlineWorker, client: "redis.Redis", keep: Keep = USUAL, settings: Settings = SETTINGS
) -> MicroRuns:
    """Micro-runs whose wake-ups go to a worker inside the test."""
    access: Any = SimpleNamespace(
        ledger=worker.ledger,
        client=client,
        publisher=worker,
        impatient_store=worker.store,
        settings=settings,
    )
    return MicroRuns(access, "live", "guardrail", keep)


def submitted(runs: MicroRuns, turns: Sequence[AcceptedTurn], accepted_ms: Sequence[int] = ()) -> str:
    """Submits turns; returns their run."""
    run = runs.next_run()
    runs.submit(run, turns, accepted_ms)
    return run


def totals(client: "redis.Redis") -> HourTotals:
    """All counters of the namespace."""
    now = now_ms()
    return merged(ServedStream(client, "live").hours(now - HOUR_MS, now))


def everything(client: "redis.Redis") -> list[ServedRow]:
    """All turns of the stream."""
    pages = ServedStream(client, "live").rows(Window("live", 0, now_ms() + 1), with_payload=True)
    return [row for page in pages for row in page]


def test_results_come_in_order_and_are_folded_once(
    inline_worker: InlineWorker, redis_client: "redis.Redis"
) -> None:
    """The ledger tells which run ended; after two folds it is gone and its turns are counted once."""
    inline_worker.register()
    runs = runs_on(inline_worker, redis_client)
    micro = submitted(runs, TURNS, [now_ms() - 60_000, now_ms() - 60_000, now_ms()])
    assert inline_worker.store.list() == [], "a micro-run is in no list of runs"
    assert runs.ended_among([micro]) == []
    runs.fold([micro])
    assert totals(redis_client).total == 0, "a run that goes on is not folded"
    inline_worker.work()
    assert runs.heard().ended == [micro]
    assert runs.ended_among([micro, "served-gone-1"]) == [micro, "served-gone-1"]
    found = runs.read(micro, 3)
    assert [turn.code[:1] for turn in found] == ["k", "k", "k"]
    runs.keep_results(micro, enumerate(found))
    for _ in range(2):
        runs.fold([micro])
    counted = totals(redis_client)
    assert counted.turns == {"k5": 3}
    assert counted.latency.total() == 3
    assert 57_000 < counted.percentile_ms(1.0) < 90_000
    assert runs.kept_result(f"{micro}.2") == found[2]
    left: Any = redis_client.keys("proctor:run:*")
    assert left == [], "nothing of a folded run is left"
    rows = everything(redis_client)
    assert [(row.row.index, row.row.line) for row in rows] == [
        (at, bytes(turn.result)) for at, turn in enumerate(found)
    ], "rows of the stream are those of the run"
    assert [row.row.payload for row in rows] == [turn.line for turn in TURNS]
    assert rows[0].latency_ms >= 60_000 > rows[2].latency_ms


def test_the_longest_request_is_one_chunk(inline_worker: InlineWorker, redis_client: "redis.Redis") -> None:
    """As many bytes as a body may have are one micro-run, so that its turns keep their order."""
    inline_worker.register()
    runs = runs_on(inline_worker, redis_client)
    line = b'{"threadId":"a","message":"%s"}' % (b"x" * 20_000)
    micro = submitted(runs, [AcceptedTurn("a", line)] * 200)
    inline_worker.work()
    found = [msgspec.json.decode(turn.result)["etag"] for turn in runs.read(micro, 200)]
    assert found == [str(at + 1) for at in range(200)]


def test_a_turn_that_is_decided_while_its_thread_is_removed_stays(
    inline_worker: InlineWorker, redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal is refused, also without a condition; the next one meets another etag."""
    inline_worker.register()
    runs, read = runs_on(inline_worker, redis_client), ThreadStore.request_ids
    access: Any = runs._access

    def decided() -> None:
        micro = submitted(runs, TURNS[:1])
        inline_worker.work()
        runs.fold([micro])

    def slow(self: ThreadStore, namespace: str, threads: Collection[str]) -> list[str]:
        decided()
        return read(self, namespace, threads)

    decided()
    with monkeypatch.context() as patched:
        patched.setattr(ThreadStore, "request_ids", slow)
        for condition in ('"1"', "*"):
            with pytest.raises(RunStateError, match="a turn of thread a has just been decided"):
                remove_thread(access, "live", "a", condition)
    with pytest.raises(ConditionError):
        remove_thread(access, "live", "a", '"1"')
    remove_thread(access, "live", "a", '"3"')
    with pytest.raises(UnknownThreadError):
        read_thread(access, "live", "a")


def test_runs_of_a_dead_server_are_adopted(
    inline_worker: InlineWorker, redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server folds them once they have ended long ago, with results that are kept for later."""
    monkeypatch.setattr(micro_runs, "ADOPTED_MS", -10_000)
    inline_worker.register()
    dead, alive = runs_on(inline_worker, redis_client), runs_on(inline_worker, redis_client)
    ended = submitted(dead, TURNS)
    assert alive.kept_result(f"{ended}.0") is None
    inline_worker.work()
    found = alive.kept_result(f"{ended}.0")
    assert found == alive.read(ended, 3)[0], "what has ended is read where it is"
    with pytest.raises(UnknownRunError):
        alive.kept_result(f"{ended}.3")
    going_on = submitted(dead, TURNS)
    alive.adopt([ended])
    assert totals(redis_client).total == 0, "a server folds its own runs itself"
    alive.adopt()
    assert totals(redis_client).turns["k5"] == 3
    assert alive.kept_result(f"{ended}.0") == found
    waiting = keys.served_open_key("live")
    assert redis_client.zrange(waiting, 0, -1) == [going_on.encode()]
    redis_client.delete(keys.run_key(going_on))
    alive.adopt()
    assert not redis_client.exists(waiting), "what has expired is no longer looked for"


def test_micro_runs_are_cancelled_and_nothing_else(
    inline_worker: InlineWorker, redis_client: "redis.Redis"
) -> None:
    """Paused, it would hold its threads unseen; retried, its turns would be twice in the stream."""
    inline_worker.register()
    runs = runs_on(inline_worker, redis_client)
    micro = submitted(runs, TURNS)
    with pytest.raises(RunStateError, match="a part of a stream"):
        inline_worker.ledger.control(micro, "pause")
    assert inline_worker.ledger.control(micro, "cancelled")[0] == "cancelled"
    with pytest.raises(RunStateError, match="a part of a stream"):
        inline_worker.ledger.retry(micro, "again", chunks=[])
    assert runs.heard().ended == [micro]
    with pytest.raises(LostTurnsError, match="or their run was ended"):
        runs.read(micro, 3)
    runs.fold([micro])
    assert totals(redis_client).total == 0
    assert [row.row.code for row in everything(redis_client)] == ["", "", ""], "they were never decided"
    requests = keys.requests_key("live")
    again = submitted(runs, [AcceptedTurn("a", b'{"threadId":"a","message":"ok","clientRequestId":"c"}')])
    inline_worker.work()
    assert redis_client.ttl(requests) > 25 * 24 * 3600
    runs.fold([again])
    assert redis_client.ttl(requests) <= 24 * 3600, "known requests end with the last turns"


def test_what_is_kept_is_bounded(inline_worker: InlineWorker, redis_client: "redis.Redis") -> None:
    """Turns leave with the requests that they answered; days, turns and threads have an end."""
    inline_worker.register()
    runs = runs_on(inline_worker, redis_client, Keep(days=1, turns=100, turns_ms=60_000))
    inline_worker.ledger.namespace_ttl_s = 3_600
    for step in range(8):
        ids = range(40 * step, 40 * step + 40)
        turn = b'{"threadId":"t%d","message":"ok","clientRequestId":"c%d"}'
        micro = submitted(runs, [AcceptedTurn(f"t{at}", turn % (at, at)) for at in ids])
        inline_worker.work()
        runs.fold([micro])
    kept = everything(redis_client)
    assert [row.row.index for row in kept] == list(range(220, 320))
    assert ServedStream(redis_client, "live").state(now_ms()).per_s > 100 / 60, "more a minute than are kept"
    assert set(redis_client.hkeys(keys.requests_key("live"))) == {b"c%d" % at for at in range(220, 320)}
    assert redis_client.zcard(keys.served_threads_key("live")) == 320
    assert 0 < redis_client.pttl(keys.served_turns_key("live")) <= 60_000
    [hour] = redis_client.scan_iter("proctor:ns:live:served:[0-9]*")
    assert 0 < redis_client.ttl(hour) <= 24 * 3600

    long_ago = {f"t{at}": now_ms() - 3_700_000 for at in range(120)}
    redis_client.zadd(keys.served_threads_key("live"), long_ago)
    for thread in ("t0", "t200"):
        micro = submitted(runs, [AcceptedTurn(thread, b'{"threadId":"%s","message":"ok"}' % thread.encode())])
        inline_worker.work()
        runs.fold([micro])
    left = {b"t%d" % at for at in (0, *range(120, 320))}
    assert set(redis_client.hkeys(keys.mementos_key("live"))) == left, "those that were silent have gone"
    assert set(redis_client.hkeys(keys.positions_key("live"))) == left


def test_turns_that_were_decided_in_parts_are_in_the_stream(
    inline_worker: InlineWorker, redis_client: "redis.Redis"
) -> None:
    """Parts of a batch, and a stream whose clock was set back, are read in order, also one by one."""
    inline_worker.register()
    runs = runs_on(inline_worker, redis_client)
    lines = [
        b'{"threadId":"%s","message":"m%d","messageId":"m%d"}' % (b"ab"[at % 2 :][:1], at, at)
        for at in range(9)
    ]
    for _ in range(2):
        micro = submitted(runs, [AcceptedTurn(line[13:14].decode(), line) for line in lines])
        inline_worker.work(turns=2)
        runs.fold([micro])
    stream = ServedStream(redis_client, "live")
    rows = everything(redis_client)
    expected = [*lines[::2], *lines[1::2]] * 2
    assert [row.row.payload for row in rows] == expected
    assert [row.row.index for row in rows] == list(range(18))
    assert [stream.row(at) for at in range(18)] == rows
    assert (stream.row(18), stream.row(-1)) == (None, None)
    first = stream.page(most=3)
    second = stream.page(first.older, most=3)
    assert [*first.rows, *second.rows] == rows[::-1]
    assert (first.older > "", second.older) == (True, "")
    assert stream.extent(Window("live", 0, now_ms() + 1)) == (18, 2)
    state = stream.state(now_ms())
    assert (state.kept, state.today.total) == (18, 18)
    assert state.per_s == round(18 / 60, 2)


def test_personal_data_is_taken_out_before_turns_are_stored(
    inline_worker: InlineWorker, redis_client: "redis.Redis"
) -> None:
    """A mail address in a turn is found in no key, neither while it is decided nor after it was folded."""
    inline_worker.register()
    settings = Settings.from_environment({"PROCTOR_REDACT": "mail"})
    runs = runs_on(inline_worker, redis_client, settings=settings)
    secret = b"ann@secret.example"
    line = b'{"threadId":"t","message":"write to %s","messageId":"m"}' % secret
    micro = submitted(runs, [AcceptedTurn("t", line)])
    for work in (lambda: None, inline_worker.work, lambda: runs.fold([micro])):
        work()
        dumps: list[Any] = [redis_client.dump(key) for key in redis_client.keys("*")]
        assert not any(secret in dump for dump in dumps)
    assert totals(redis_client).turns == {"s6": 1}
