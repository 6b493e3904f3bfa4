"""`proctor threads` on a real server: what is listed, shown and removed, and what is left alone."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from producer.cli import thread_view
from producer.cli.thread_view import last_turns, newest, view_of
from shared.errors import RunStateError
from shared.runs import threads
from shared.runs.threads import ThreadStore
from tests.support.conversations import felt, shape, signals, turn
from tests.support.inline_worker import InlineWorker
from tests.support.turn_files import turn_lines

if TYPE_CHECKING:
    import redis

    from producer.cli.thread_view import FoundTurn, ThreadView

Submitted = Callable[..., str]


@pytest.fixture
def store(redis_client: "redis.Redis") -> ThreadStore:
    """The reading side of threads."""
    return ThreadStore(redis_client, patience_s=5.0)


@pytest.fixture
def decided(inline_worker: InlineWorker, submitted: Submitted) -> Submitted:
    """Submits turns, decides them, and returns the run's id."""

    def send(turns: list[dict[str, Any]], **options: Any) -> str:
        run = submitted(turns, **options)
        inline_worker.register()
        inline_worker.work()
        assert inline_worker.store.info(run).is_final
        return run

    return send


def view(store: ThreadStore, namespace: str, thread: str) -> "ThreadView":
    """A thread as it stands."""
    return view_of(namespace, thread, store.state(namespace, thread))


def columns_of(last: "list[FoundTurn]") -> list[tuple[Any, ...]]:
    """Etag, decision, rule and message of turns."""
    found = [each.listed() for each in last]
    return [(each.etag, each.decision, each.rule, each.message) for each in found]


def test_threads_are_found_in_pages(
    store: ThreadStore, decided: Submitted, redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every thread of every namespace is found once, the latest first; odd names do no harm."""
    monkeypatch.setattr(threads, "PAGE", 10)
    run = decided([{**each, "ts": "2026-02-01T09:00:00Z"} for each in turn_lines(300, 1)])
    odd = [{"threadId": "x:mem", "message": "hi", "ts": f"2026-02-01T10:00:0{at}Z"} for at in range(2)]
    decided([*odd, {"threadId": "é", "message": "hi", "ts": "2026-02-01T11:00:00Z"}], namespace="shared")
    redis_client.rpush("proctor:ns:shared:in:x:mem", "r 0.0 1")
    assert store.namespaces() == sorted([run, "shared"])
    assert (store.count(run), store.count("shared")) == (300, 2)
    assert sorted(name for name, _ in store.threads(run)) == sorted(f"t{at}" for at in range(300))
    first = newest(store, store.namespaces(), 3)
    assert [(each.namespace, each.name, each.turns) for each in first] == [
        ("shared", "é", 1),
        ("shared", "x:mem", 2),
        (run, "t0", 1),
    ]


def test_a_frozen_thread_says_so(store: ThreadStore, decided: Submitted) -> None:
    """At a peak the summary is frozen, and the next turns show when it is open again."""
    calm = turn("Hello.", modelShape=shape("boats"))
    decided([calm, turn("This is too much!", affectSignal=felt(0.9))], namespace="shared")
    found = view(store, "shared", "t")
    assert (found.is_frozen, found.turns, found.memento.arc) == (True, 2, "boats")
    assert found.listed().phase == "peak"
    decided([turn("Better.", affectSignal=felt(0.2))], namespace="shared")
    assert not view(store, "shared", "t").is_frozen


def test_the_last_turns_come_from_every_run_of_the_namespace(
    store: ThreadStore, decided: Submitted, inline_worker: InlineWorker
) -> None:
    """Oldest first, errors in their place, no repeated request, nothing of other threads and namespaces."""
    decided([turn("elsewhere")])
    first = [turn(f"one {at}", clientRequestId=f"c{at}") for at in range(3)]
    decided([*first, *turn_lines(3, 2)], namespace="shared", chunk_turns=2)
    late = [turn("late", thread_memento_etag="0"), turn("two", signals=signals("pivot")), turn("ok")]
    decided([first[1], *late], namespace="shared")
    shown = last_turns(inline_worker.store, view(store, "shared", "t"), 4)
    assert columns_of(shown) == [
        ("3", "should", 6, "one 2"),
        ("3", None, None, "late"),
        ("4", "must", 2, "two"),
        ("5", "skip", 5, "ok"),
    ]
    assert len(last_turns(inline_worker.store, view(store, "shared", "t"), 100)) == 6


def test_the_search_for_turns_is_bounded(
    store: ThreadStore, decided: Submitted, inline_worker: InlineWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns that lie too far back are not searched for."""
    monkeypatch.setattr(thread_view, "LOOKED_TURNS", 50)
    run = decided([turn("old"), *turn_lines(1, 200)], chunk_turns=10)
    assert last_turns(inline_worker.store, view(store, run, "t"), 1) == []
    assert len(last_turns(inline_worker.store, view(store, run, "t0"), 5)) == 5


def test_a_removed_thread_begins_anew(
    store: ThreadStore, decided: Submitted, inline_worker: InlineWorker
) -> None:
    """Its memento is empty, its requests may come again, and turns from before are not its own."""
    mine = [turn(f"turn {at}", clientRequestId=f"c{at}", modelShape=shape("old")) for at in range(3)]
    other = {"threadId": "u", "message": "hi", "clientRequestId": "other"}
    decided([*mine, other], namespace="shared")
    requests = store.request_ids("shared", {"t"})
    assert sorted(requests) == ["c0", "c1", "c2"]
    assert inline_worker.ledger.forget("shared", {"t": store.state("shared", "t")}, requests) == 1
    run = decided([{**mine[0], "message": "new"}, other], namespace="shared")
    assert [row.code for row in inline_worker.store.rows(run)] == ["s6u", "s6d"]
    found = view(store, "shared", "t")
    assert found.turns == 1
    assert columns_of(last_turns(inline_worker.store, found, 5)) == [("1", "should", 6, "new")]


def test_threads_of_an_open_run_are_kept(
    store: ThreadStore, submitted: Submitted, inline_worker: InlineWorker
) -> None:
    """Also while it is paused; the users of a namespace are named."""
    run = submitted(turn_lines(2, 4), chunk_turns=4, namespace="shared")
    inline_worker.register()
    inline_worker.work(chunks=1)
    inline_worker.ledger.control(run, "pause")
    assert store.users("shared") == [run]
    with pytest.raises(RunStateError, match=f"in use by run {run}"):
        inline_worker.ledger.forget("shared", {"t0": store.state("shared", "t0")})
    assert store.count("shared") == 1


def test_a_thread_reads_as_a_conversation(decided: Submitted, printed: Callable[..., str]) -> None:
    """Each turn has its text, decision, rule and freeze, and what came of the summary; last is the state."""
    storm = {"affectSignal": felt(0.95), "modelShape": shape("storm")}
    run = decided(
        [
            turn("Hello \x1b[31mthere.", affectSignal=felt(0.9), modelShape=shape("boats")),
            turn("This is too much!", role="user", **storm),
            turn("Go.", role="assistant", signals=signals("pivot"), modelShape=shape("calm")),
            turn("late", thread_memento_etag="0"),
        ]
    )
    lines = printed("threads", "show", run, "t", "--color", "never").splitlines()
    assert lines[0] == f"t of {run}"
    assert lines[3:15] == [
        "1  user       Hello [31mthere.",
        "              should  rule 6: no other rule matched",
        "              summary changed · affect 0.90, peak · turn-0",
        "2  user       This is too much!",
        "              should  ❄ frozen  rule 6: no other rule matched",
        "              summary kept · proposal discarded · affect 0.95, peak · turn-1",
        "3  assistant  Go.",
        "              must  rule 2: MUST signal pivot",
        "              summary changed · turn-2",
        "3  user       late",
        "              error etag_conflict  thread_memento_etag is stale: the thread is at 3",
        "              turn-3",
    ]
    assert "  Arc: calm" in lines
    assert lines[-1] == "frozen: only a must changes the summary"
    painted = printed("threads", "show", run, "t", "--color", "always")
    assert "\x1b[1mmust\x1b[0m" in painted
    assert "\x1b[36m❄ frozen\x1b[0m" in painted
    assert "\x1b[33merror etag_conflict\x1b[0m" in painted
    assert "\x1b[31m" not in painted
    decided([turn("Again.")], namespace="shared")
    assert "turn-0 of run-" in printed("threads", "show", "shared", "t")
