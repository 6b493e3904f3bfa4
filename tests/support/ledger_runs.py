"""Puts runs into a ledger and decides them, in as few words as a test can say it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shared.codecs.turn_batches import Block, pack_batch, pack_block, unpack_batch
from shared.kinds import Storage, kind_named
from shared.ledger import ChunkPlan, Claim, Committed, PartCommit, Row, ThreadCommit, Wake
from shared.ledger.ledger import Ledger
from tests.support.ledger_twin import TEST_CLOCK_KEY, TEST_SCRIPTS

if TYPE_CHECKING:
    import redis

Store = Any
"""A redis-py client: its own annotations mix sync and async answers."""
START_MS = 4_000_000_000_000
"""Where the test clock begins: ahead of any real one, so that Redis itself expires nothing meanwhile."""


class TimedLedger(Ledger):
    """A ledger whose server has the time that the test says."""

    def __init__(self, client: "redis.Redis", **keywords: Any) -> None:
        keywords = {"scripts": TEST_SCRIPTS, **keywords}
        super().__init__(client, clock=lambda: self.now_ms, **keywords)
        self.client = client
        self.now_ms = START_MS
        self.pass_ms(0)

    def pass_ms(self, passed: int) -> None:
        """Lets time pass in Redis."""
        self.now_ms += passed
        self.client.set(TEST_CLOCK_KEY, self.now_ms)

    def live_ms(self, passed: int, worker: str = "", kinds: Sequence[str] = ("cases", "turns")) -> list[Wake]:
        """Lets time pass with a tick each second; returns the wakes. Without a name nobody is registered."""
        wakes = []
        for _ in range(passed // 1000):
            self.pass_ms(1000)
            wakes += self.tick(worker or "steward", kinds if worker else (), 1)
        return wakes


def open_run(ledger: Ledger, run: str, kind: str, **keywords: Any) -> str:
    """Opens a run with a token, and returns the token."""
    settings: dict[str, Any] = {"namespace": "", "key": "", "token": "load", "snapshot": b"{}", "ttl_s": 3600}
    assert ledger.open(run, kind=kind, **{**settings, **keywords}).status == "ok"
    return str(keywords.get("token", "load"))


def submit_cases(ledger: Ledger, run: str, chunks: Sequence[Sequence[str]], **keywords: Any) -> list[Wake]:
    """Brings a run of cases; returns the first wakes."""
    token = open_run(ledger, run, "cases", **keywords)
    items = {index: f"payload {index}".encode() for chunk in chunks for index in chunk}
    plan = {str(at): ChunkPlan(f"case {chunk[0]}", list(chunk)) for at, chunk in enumerate(chunks)}
    ledger.load(run, token, items, plan)
    return ledger.seal(run, token, len(items), "digest")


def submit_turns(
    ledger: Ledger, run: str, chunks: Sequence[Mapping[str, Sequence[int]]], **keywords: Any
) -> list[Wake]:
    """Brings a run of turns, given per chunk the indexes of each thread; returns the first wakes."""
    token = open_run(ledger, run, keywords.pop("kind", "turns"), **keywords)
    items, plan, total = {}, {}, 0
    for number, threads in enumerate(chunks):
        parts = []
        for at, (thread, indexes) in enumerate(threads.items()):
            items[f"{number}.{at}"] = batch_of(indexes)
            parts.append((f"{number}.{at}", thread, len(indexes)))
            total += len(indexes)
        plan[str(number)] = ChunkPlan(parts[0][1], parts)
    ledger.load(run, token, items, plan)
    return ledger.seal(run, token, total, "digest")


def batch_of(indexes: Sequence[int]) -> bytes:
    """A batch of turns whose lines tell their index."""
    return pack_batch(indexes, [b'{"turn":%d}' % index for index in indexes])


def rows_of(claim: Claim, value: bytes = b"fine") -> list[Row]:
    """One result for each claimed item."""
    return [Row(item.index, item.generation, value) for item in claim.items]


def threads_of(claim: Claim, most: int = 1_000) -> list[ThreadCommit]:
    """Decides up to `most` turns of each claimed thread."""
    rows = []
    for thread in claim.threads:
        parts, memento, offset, left = [], thread.memento, thread.offset, most
        for batch in thread.batches:
            indexes, end = unpack_batch(batch.payload)[0], min(batch.count, offset + left)
            if end == offset:
                break
            some = indexes[offset:end]
            block = Block(offset, 1, 2, some, ["m2"] * len(some), [b"{}"] * len(some))
            parts.append(PartCommit(offset, end - offset, pack_block(block)))
            memento += "".join(f"{batch.run}/{index}," for index in some).encode()
            left, offset = left - (end - offset), 0
        rows.append(ThreadCommit(thread.thread, thread.pos, memento, parts))
    return rows


def decide(ledger: Ledger, wake: Wake, token: str = "", worker: str = "w1") -> Committed:
    """Works on a chunk from claim to end, if there is anything left to do."""
    token = token or f"token {wake.run} {wake.chunk}"
    claim = ledger.claim(wake.run, wake.chunk, token, worker)
    if claim.status == "done":
        return Committed("done", [], "", claim.wakes)
    assert claim.status == "ok", claim
    if kind_named(wake.kind).storage is Storage.MAILBOXES:
        return ledger.commit_threads(wake.run, wake.chunk, token, threads_of(claim), back=True)
    return ledger.commit(wake.run, wake.chunk, token, rows_of(claim), back=True)


def decide_all(ledger: Ledger, wakes: Sequence[Wake]) -> list[Wake]:
    """Works until no wakes come any more; returns all there were, in order."""
    queue, done = list(wakes), []
    while queue:
        wake = queue.pop(0)
        done.append(wake)
        queue += decide(ledger, wake).wakes
    return done


def state_of(client: "redis.Redis", run: str) -> dict[str, str]:
    """The fields of a run."""
    store: Any = client  # redis-py's own annotations mix sync and async answers
    return {name.decode(): value.decode() for name, value in store.hgetall(f"proctor:run:{run}:run").items()}


def keys_with(client: "redis.Redis", text: str) -> list[str]:
    """Every key that has a text in its name or somewhere in its value."""
    store: Any = client
    found = []
    for key in store.keys("proctor:*"):
        value: Any = None
        match store.type(key):
            case b"hash":
                value = store.hgetall(key)
            case b"zset":
                value = store.zrange(key, 0, -1)
            case b"set":
                value = store.smembers(key)
            case b"list":
                value = store.lrange(key, 0, -1)
            case _:
                value = store.get(key)
        if text in key.decode() or text in str(value):
            found.append(key.decode())
    return sorted(found)
