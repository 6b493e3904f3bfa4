"""Drives every script of the ledger with any arguments in any order, and compares it with the model after each call.

The server is real, its clock is the model's, and replies get lost: then the client sends the script again.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from shared.errors import ProctorError
from shared.ledger import ChunkPlan, Claim, Held, PartCommit, Row, ThreadCommit, Try
from shared.rows import Block, pack_batch, pack_block, unpack_batch
from tests.support.ledger_model import LedgerModel
from tests.support.ledger_model_state import Run
from tests.support.ledger_simulation_checks import check
from tests.support.ledger_twin import Twin
from tests.support.redis_server import RedisServer

START_MS = 4_000_000_000_000
KINDS = ["turns", "cases", "queries"]
runs = st.sampled_from(["r0", "r1", "r2"])
tokens = st.sampled_from(["one", "two"])
workers = st.sampled_from(["w1", "w2"])
lengths = st.sampled_from([1, 1, 2, 3])
few = st.integers(0, 3)
chance = st.sampled_from([True, True, True, False])


class LossyRedis:
    """A client whose next replies are lost after the script ran."""

    def __init__(self, client: "redis.Redis") -> None:
        self.client: Any = client
        self.lose = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def evalsha(self, *args: Any) -> Any:
        """Runs a script, and may keep the answer to itself."""
        return self.lossy(self.client.evalsha(*args))

    def eval(self, *args: Any) -> Any:
        """Runs a script that the server did not know, and may keep the answer to itself."""
        return self.lossy(self.client.eval(*args))

    def lossy(self, answer: Any) -> Any:
        """Hands the answer on, or loses it."""
        if self.lose:
            self.lose -= 1
            raise redis.ConnectionError("reply lost")
        return answer


class LedgerMachine(RuleBasedStateMachine):
    """Any call at any time."""

    server: Any = None

    @initialize()
    def begin(self) -> None:
        """Empties the server."""
        self.client = LossyRedis(self.server.client())
        self.client.flushall()
        self.model = LedgerModel(START_MS)
        self.twin = Twin(self.client, compare_each=1)  # type: ignore[arg-type]  # a client in all that is used

    def teardown(self) -> None:
        """Gives the connection back."""
        if hasattr(self, "client"):
            self.client.close()

    def do(self, name: str, *args: Any, lost: int = 0, **keywords: Any) -> Any:
        """Calls model and scripts; `lost` replies are lost, so that the same call comes again."""
        answer: Any = None
        for _ in range(lost + 1):
            try:
                answer = getattr(self.model, name)(*args, **keywords)
            except ProctorError as error:
                answer = error
        self.client.lose = lost
        self.twin.mirror(self.model, name, args, keywords, answer)
        return answer

    def found(self, run: str) -> Run | None:
        """The run in the model."""
        return self.model.state.runs.get(run)

    @invariant()
    def holds(self) -> None:
        """Everything that must hold, holds."""
        if hasattr(self, "model"):
            check(self.model)

    # ---- time

    @rule(passed=st.sampled_from([1, 100, 900, 1000, 2500, 16_000, 31_000, 70_000, 4_000_000, -3000]))
    def time_passes(self, passed: int) -> None:
        """The clock of Redis moves, once in a while backwards."""
        self.model.state.now_ms += passed

    # ---- producers

    @rule(run=runs, kind=st.sampled_from(KINDS), shared=st.sampled_from(["", "", "ns", "r1"]),
          key=st.sampled_from(["", "k1", "k2"]), token=tokens, lost=st.integers(0, 1))  # fmt: skip
    def open(self, run: str, kind: str, shared: str, key: str, token: str, lost: int) -> None:
        """Somebody opens a run."""
        self.do(
            "open", run, kind=kind, namespace=shared if kind == "turns" else "", key=key, token=token,
            snapshot=b"{}", ttl_s=3600, lost=lost,
        )  # fmt: skip

    @rule(run=runs, token=tokens, chunk=few, parts=lengths, turns=lengths, lost=st.integers(0, 1))
    def load(self, run: str, token: str, chunk: int, parts: int, turns: int, lost: int) -> None:
        """Somebody loads a chunk; a chunk that is there already is loaded as it was."""
        found = self.found(run)
        if found and str(chunk) in found.plan:
            parts = len(found.plan[str(chunk)].parts)
            turns = found.plan[str(chunk)].size // parts
        items, plan = make_chunk(found.kind if found else "cases", chunk, parts, turns)
        self.do("load", run, token, items, plan, lost=lost)

    @rule(run=runs, token=tokens, right=chance, lost=st.integers(0, 1))
    def seal(self, run: str, token: str, right: bool, lost: int) -> None:
        """Somebody seals a run."""
        found = self.found(run)
        there = sum(plan.size for plan in found.plan.values()) if found else 0
        self.do("seal", run, token, there if right else there + 1, "digest", lost=lost)

    @rule(run=runs, token=tokens, chunks=st.integers(1, 4), parts=lengths, turns=lengths, kind=st.sampled_from(KINDS),
          shared=st.booleans())  # fmt: skip
    def submit(self, run: str, token: str, chunks: int, parts: int, turns: int, kind: str, shared: bool) -> None:
        """Somebody brings a whole run, so that most of a test is about what comes after it."""
        if self.found(run):
            return
        self.open(run, kind, "ns" if shared else "", "", token, 0)
        for chunk in range(chunks):
            self.load(run, token, chunk, parts, turns, 0)
        self.seal(run, token, right=True, lost=0)

    @rule(run=runs, token=tokens)
    def discard(self, run: str, token: str) -> None:
        """Somebody discards a run."""
        self.do("discard", run, token)

    # ---- workers

    @rule(worker=workers, kinds=st.sampled_from([KINDS, KINDS[:1], KINDS[1:]]), capacity=st.integers(1, 3),
          lost=st.integers(0, 1))  # fmt: skip
    def tick(self, worker: str, kinds: list[str], capacity: int, lost: int) -> None:
        """A steward ticks."""
        self.do("tick", worker, kinds, capacity, lost=lost)

    @rule(worker=workers)
    def leave(self, worker: str) -> None:
        """A worker leaves."""
        self.do("leave", worker)

    @rule(data=st.data(), number=st.integers(1, 2), worker=workers, lost=st.integers(0, 1))
    def claim(self, data: st.DataObject, number: int, worker: str, lost: int) -> None:
        """A worker claims a chunk, mostly one that is published."""
        run, chunk = self.some_chunk(data, "PPPPLWD")
        self.do("claim", run, chunk, f"{run}/{chunk}#{number}", worker, lost=lost)

    def some_chunk(self, data: st.DataObject, states: str) -> tuple[str, str]:
        """Any chunk that was handed out, or one that is not there."""
        wanted = data.draw(st.sampled_from(states))
        there = [
            (run.run, chunk)
            for run in self.model.state.runs.values()
            for chunk, record in run.chunks.items()
            if record.state == wanted
        ]
        return data.draw(st.sampled_from(there)) if there else ("r0", "0")

    def token_of(self, run: str, chunk: str, *, right: bool) -> str:
        """The token of a chunk's lease, or one that is not."""
        record = self.model.record(run, chunk)
        return record.token if right and record and record.token else f"{run}/{chunk}#1"

    @rule(right=chance)
    def renew(self, right: bool) -> None:
        """A worker renews all leases there are, and one that is not."""
        held = [
            Held(run.run, chunk, self.token_of(run.run, chunk, right=right))
            for run in self.model.state.runs.values()
            for chunk in run.chunks
        ]
        self.do("renew", [*held, Held("r9", "0", "none")])

    @rule(data=st.data(), right=chance, back=st.booleans(), failed=st.booleans(), lost=st.integers(0, 1),
          tried=st.booleans(), due=st.sampled_from([0, 0, 1000]))  # fmt: skip
    def commit(
        self, data: st.DataObject, right: bool, back: bool, failed: bool, lost: int, tried: bool, due: int
    ) -> None:
        """A worker commits some results of cases, and puts others off."""
        run, chunk = self.some_chunk(data, "LLLLPW")
        found = self.found(run)
        if found is None or found.kind == "turns":
            return
        plan = found.plan.get(chunk)
        indexes = data.draw(st.lists(st.sampled_from(sorted(found.items) or ["0.0"]), max_size=4, unique=True))
        generation = plan.generation if plan and right else 1
        mine = [index for index in indexes if plan and index in plan.parts]
        rows = [Row(index, generation, b"error" if failed else b"fine", failed, 2) for index in mine]
        others = [index for index in (plan.parts if plan and tried else ()) if index not in mine]
        now = self.model.state.now_ms
        self.do(
            "commit", run, chunk, self.token_of(run, chunk, right=right), rows, back=back,
            due_ms=now + due if due else 0, tries=[Try(index, 1, now + 2000, "429 é|x") for index in others],
            tally={"passed": len(rows)}, lost=lost,
        )  # fmt: skip

    @rule(data=st.data(), right=chance, back=st.booleans(), lost=st.integers(0, 1), most=st.integers(1, 6),
          request=st.sampled_from(["", "q1", "q2"]))  # fmt: skip
    def commit_threads(
        self, data: st.DataObject, right: bool, back: bool, lost: int, most: int, request: str
    ) -> None:
        """A worker asks again for what it holds, and commits some of it."""
        run, chunk = self.some_chunk(data, "LLLLPW")
        found = self.found(run)
        if found is None or found.kind != "turns":
            return
        token = self.token_of(run, chunk, right=right)
        claim = self.do("claim", run, chunk, token, "w1")
        rows = decide(claim, most, request if right else "", wrong_position=not right)
        tally = {name: {"must": 1} for name in ("r0", "r1", "r2")}
        due_ms = self.model.state.now_ms + 1000 if claim.busy else 0
        self.do("commit_threads", run, chunk, token, rows, back=back, due_ms=due_ms, tally=tally, lost=lost)

    @rule(names=st.lists(st.sampled_from(["q1", "q2"]), unique=True), namespace=st.sampled_from(["ns", "r0"]))
    def requests(self, names: list[str], namespace: str) -> None:
        """A worker asks for known requests."""
        self.do("requests", namespace, names)

    # ---- operators

    @rule(run=runs, action=st.sampled_from(["pause", "resume", "resume", "cancelled", "aborted", "incomplete"]),
          lost=st.integers(0, 1))  # fmt: skip
    def control(self, run: str, action: str, lost: int) -> None:
        """Somebody steers a run."""
        self.do("control", run, action, lost=lost)

    @rule(run=runs, data=st.data(), operation=st.sampled_from(["o1", "o2", "o3"]), lost=st.integers(0, 1))
    def retry(self, run: str, data: st.DataObject, operation: str, lost: int) -> None:
        """Somebody retries a run."""
        found = self.found(run)
        if found and found.kind == "turns":
            plan, items, extra = self.ask_turns(found)
            if plan:
                self.do("retry", run, operation, chunks=plan, items=items, extra=extra, lost=lost)
            return
        indexes = data.draw(st.lists(st.sampled_from(["0.0", "0.1", "1.0", "2.0", "9.9"]), unique=True, max_size=4))
        plan = [ChunkPlan("again", indexes[:2]), ChunkPlan("more", indexes[2:])]
        generation = found.generation if found else None
        self.do("retry", run, operation, chunks=plan, generation=generation, lost=lost)

    def ask_turns(self, run: Run) -> tuple[list[ChunkPlan], dict[str, bytes], int]:
        """All undecided turns of a run, and all decided ones again: those come first in each thread."""
        decided = {(of, index) for log in self.model.log.values() for of, index, _ in log}
        plans, items, extra = [], {}, 0
        for batch in [name for name in run.items if name.count(".") == 1]:
            indexes, body = unpack_batch(run.items[batch])
            lines = dict(zip(indexes, body.split(b"\n"), strict=True))
            order = sorted(indexes, key=lambda index: (run.run, index) not in decided)
            marks = "".join("1" if (run.run, index) in decided else "0" for index in order)
            plans.append(ChunkPlan("again", [(batch, f"t {batch[-1]}", len(order), marks)]))
            items[batch] = pack_batch(order, [lines[index] for index in order])
            extra += marks.count("1")
        return plans, items, extra

    @rule(run=runs, lost=st.integers(0, 1))
    def remove(self, run: str, lost: int) -> None:
        """Somebody removes a run."""
        self.do("remove", run, lost=lost)

    @rule()
    def backlog(self) -> None:
        """Somebody asks how much there is to do."""
        self.do("backlog")


def make_chunk(kind: str, chunk: int, parts: int, turns: int) -> tuple[dict[str, bytes], dict[str, ChunkPlan]]:
    """A chunk of `parts` items, or of `parts` threads with `turns` turns each."""
    names = [f"{chunk}.{at}" for at in range(parts)]
    if kind != "turns":
        return {name: f"payload {name}".encode() for name in names}, {str(chunk): ChunkPlan("case 0", names)}
    items, entries = {}, []
    for at, name in enumerate(names):
        indexes = [100 * chunk + 10 * at + turn for turn in range(turns)]
        items[name] = pack_batch(indexes, [f"line {index}".encode() for index in indexes])
        entries.append((name, f"t {at}", turns))
    return items, {str(chunk): ChunkPlan("t 0", entries)}


def decide(claim: Claim, most: int, request: str, *, wrong_position: bool) -> list[ThreadCommit]:
    """Decides up to `most` turns of each thread; every seventh ends in error."""
    rows = []
    for thread in claim.threads:
        parts, memento, offset, left = [], thread.memento, thread.offset, most
        for batch in thread.batches:
            indexes = unpack_batch(batch.payload)[0]
            end = min(batch.count, offset + left)
            if end == offset:
                break
            some = indexes[offset:end]
            block = Block(offset, 1, 2, some, ["m2"] * len(some), [b"{}"] * len(some))
            dead = [at for at in range(offset, end) if indexes[at] % 7 == 6]
            parts.append(PartCommit(offset, end - offset, pack_block(block), dead))
            memento += "".join(f"{batch.run}/{index}," for index in some).encode()
            left -= end - offset
            if end < batch.count:
                break
            offset = 0
        pos = thread.pos + 1 if wrong_position else thread.pos
        asked = [(request, b"answer")] if request and parts else []
        rows.append(ThreadCommit(thread.thread, pos, memento, parts, asked))
    return rows


@pytest.fixture
def machine(new_redis_server: Any) -> Iterator[type[LedgerMachine]]:
    """The state machine on a server of its own, since other tests must not change its clock."""
    server: RedisServer = new_redis_server()
    yield type("OwnLedgerMachine", (LedgerMachine,), {"server": server})


def test_scripts_do_what_the_model_does(machine: type[LedgerMachine]) -> None:
    """Any sequence of calls gives the same answers and leaves the same keys as in the model."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
