"""Drives every script of the ledger with any arguments in any order, and compares it with the model.

The server is real, its clock is the model's, and replies get lost: then the client sends the script again.
"""

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from shared.ledger import ChunkPlan, HeldLease, Keep, Row, Try
from tests.support.exploring import machine_settings
from tests.support.ledger_machine import RUNS, LedgerMachine, decide
from tests.support.ledger_model_state import OUTCOMES
from tests.support.redis_server import RedisServer

KEEP = Keep(days=1, turns=4, turns_ms=60_000)
"""Little, so that turns leave the stream while others come."""
KINDS = ["turns", "cases", "queries"]
runs = st.sampled_from(RUNS)
tokens = st.sampled_from(["one", "two"])
workers = st.sampled_from(["w1", "w2"])
lost = st.sampled_from([0, 0, 0, 1, 2])
widths = st.sampled_from([0, 0, 0, 1, 2])
listeners = st.sampled_from(["", "", "l1", "l2"])
mostly = st.sampled_from([True, True, True, False])
actions = st.sampled_from(["pause", "resume", "resume", "cancelled", "aborted", "incomplete"])
shapes = st.tuples(st.sampled_from([1, 1, 2, 3]), st.sampled_from([1, 1, 2, 3]))
"""Parts of a chunk, and turns of each part."""


class AnyCall(LedgerMachine):
    """Any call at any time."""

    @rule(passed=st.sampled_from([1, 100, 900, 1000, 2500, 4000, 16_000, 31_000, 70_000, 4_000_000, -3000]))
    def time_passes(self, passed: int) -> None:
        """The clock of Redis moves, once in a while backwards."""
        self.model.state.now_ms += passed

    @rule(ticks=st.sampled_from([1, 8, 16]), worker=workers)
    def life_goes_on(self, ticks: int, worker: str) -> None:
        """A steward ticks for a while, so that leases run out."""
        for _ in range(ticks):
            self.model.state.now_ms += 2000
            self.do("tick", worker, KINDS, 1)

    # ---- producers

    @rule(run=runs, kind=st.sampled_from(KINDS), namespace=st.sampled_from(["", "", "ns", "r1"]),
          key=st.sampled_from(["", "k1", "k2"]), token=tokens, wide=widths, tells=listeners,
          lost=lost)  # fmt: skip
    def open(
        self, *, run: str, kind: str, namespace: str, key: str, token: str, wide: int, tells: str, lost: int
    ) -> None:
        """Somebody opens a run."""
        self.do(
            "open", run, kind=kind, namespace=namespace if kind == "turns" else "", key=key, token=token,
            snapshot=b"{}", ttl_s=3600, wide=wide, tells=tells if kind == "turns" else "", lost=lost,
        )  # fmt: skip

    @rule(run=runs, token=tokens, chunk=st.integers(0, 6), shape=shapes, lost=lost)
    def load(self, *, run: str, token: str, chunk: int, shape: tuple[int, int], lost: int) -> None:
        """Somebody loads a chunk."""
        self.load_chunk(run, token, chunk, shape, lost)

    @rule(run=runs, token=tokens, right=mostly, lost=lost)
    def seal(self, *, run: str, token: str, right: bool, lost: int) -> None:
        """Somebody seals a run."""
        found = self.found(run)
        there = sum(plan.size for plan in found.plan.values()) if found else 0
        self.do("seal", run, token, there if right else there + 1, "digest", lost=lost)

    @rule(run=runs, token=tokens, chunks=st.integers(1, 7), shape=shapes, kind=st.sampled_from(KINDS),
          namespace=st.sampled_from(["", "ns"]), wide=widths, tells=listeners)  # fmt: skip
    def submit(
        self,
        *,
        run: str,
        token: str,
        chunks: int,
        shape: tuple[int, int],
        kind: str,
        namespace: str,
        wide: int,
        tells: str,
    ) -> None:
        """Somebody brings a whole run, so that most of a test is about what comes after it."""
        if not self.found(run):
            self.open(
                run=run, kind=kind, namespace=namespace, key="", token=token, wide=wide, tells=tells, lost=0
            )
            for chunk in range(chunks):
                self.load_chunk(run, token, chunk, shape, 0)
            self.seal(run=run, token=token, right=True, lost=0)

    @rule(run=runs, token=tokens, lost=lost)
    def discard(self, *, run: str, token: str, lost: int) -> None:
        """Somebody discards a run."""
        self.do("discard", run, token, lost=lost)

    # ---- workers

    @rule(worker=workers, kinds=st.sampled_from([KINDS, KINDS[:1], KINDS[1:]]), lost=lost,
          capacity=st.sampled_from([0, 1, 1, 2]), is_idle=st.booleans())  # fmt: skip
    def tick(self, *, worker: str, kinds: list[str], capacity: int, is_idle: bool, lost: int) -> None:
        """A steward ticks; its worker may have nothing to do."""
        self.do("tick", worker, kinds, capacity, idle=kinds if is_idle else (), lost=lost)

    @rule(worker=workers, abrupt=mostly, lost=lost)
    def leave(self, *, worker: str, abrupt: bool, lost: int) -> None:
        """A worker leaves, or a new process takes the name of one that is dead."""
        self.do("leave", worker, abrupt=abrupt, lost=lost)

    @rule(data=st.data(), number=st.integers(1, 2), worker=workers, lost=lost)
    def claim(self, *, data: st.DataObject, number: int, worker: str, lost: int) -> None:
        """A worker claims a chunk, mostly one that is published."""
        run, chunk = self.some_chunk(data, "PPPPLWD")
        self.do("claim", run, chunk, f"{run}/{chunk}#{number}", worker, lost=lost)

    @rule(data=st.data(), most=st.integers(1, 6), request=st.sampled_from(["", "q1", "q2"]))
    def work(self, *, data: st.DataObject, most: int, request: str) -> None:
        """A worker does what a worker does."""
        run, chunk = self.some_chunk(data, "PPL")
        self.do("claim", run, chunk, self.token_of(run, chunk, right=True), "w1")
        self.work_on(run, chunk, most=most, request=request)

    @rule(right=mostly)
    def renew(self, *, right: bool) -> None:
        """A worker renews all leases there are, and one that is not."""
        held = [
            HeldLease(run.run, chunk, self.token_of(run.run, chunk, right=right))
            for run in self.model.state.runs.values()
            for chunk in run.chunks
        ]
        self.do("renew", [*held, HeldLease("r9", "0", "none")])

    @rule(data=st.data(), right=mostly, back=st.booleans(), failed=st.booleans(), tried=st.booleans(),
          due=st.sampled_from([0, 0, 1000]), lost=lost)  # fmt: skip
    def commit(
        self, *, data: st.DataObject, right: bool, back: bool, failed: bool, tried: bool, due: int, lost: int
    ) -> None:
        """A worker commits some results of cases and puts others off; turns it gives back untouched."""
        run, chunk = self.some_chunk(data, "LLLLPW")
        found = self.found(run)
        plan = found.plan.get(chunk) if found else None
        cases = plan.parts if plan and found and found.kind != "turns" else []
        mine = [index for index in cases if data.draw(st.booleans())]
        generation = plan.generation if plan and right else 1
        letter = "x" if failed else data.draw(st.sampled_from("pf"))
        value = f"{letter}|1|2".encode()
        rows = [Row(index, generation, value, dead=failed, attempts=2) for index in mine]
        others = [index for index in cases if index not in mine] if tried else []
        self.do(
            "commit", run, chunk, self.token_of(run, chunk, right=right), rows, back=back,
            due_ms=self.now_ms + due if due else 0,
            tries=[Try(index, 1, self.now_ms + 2000, "429 é|x") for index in others],
            tally={OUTCOMES[letter]: len(rows)}, lost=lost,
        )  # fmt: skip

    @rule(data=st.data(), right=mostly, back=st.booleans(), most=st.integers(1, 6),
          request=st.sampled_from(["", "q1", "q2"]), lost=lost)  # fmt: skip
    def commit_threads(
        self, *, data: st.DataObject, right: bool, back: bool, most: int, request: str, lost: int
    ) -> None:
        """A worker asks again for what it holds, and commits some of it."""
        run, chunk = self.some_chunk(data, "LLLLPW")
        found = self.found(run)
        if found and found.kind == "turns":
            token = self.token_of(run, chunk, right=right)
            claim = self.do("claim", run, chunk, token, "w1")
            rows = decide(claim, most, request, wrong_position=not right)
            tally = {name: {"must": 1} for name in RUNS}
            due_ms = self.now_ms + 1000 if claim.busy_threads else 0
            self.do(
                "commit_threads",
                run,
                chunk,
                token,
                rows,
                back=back,
                due_ms=due_ms,
                tally=tally,
                lost=lost,
                awaits=back and bool(due_ms),
            )

    @rule(names=st.lists(st.sampled_from(["q1", "q2"]), unique=True), namespace=st.sampled_from(["ns", "r0"]))
    def requests(self, *, names: list[str], namespace: str) -> None:
        """A worker asks for known requests."""
        self.do("requests", namespace, names)

    # ---- operators

    @rule(run=runs, action=actions, lost=lost)
    def control(self, *, run: str, action: str, lost: int) -> None:
        """Somebody steers a run."""
        self.do("control", run, action, lost=lost)

    @rule(run=runs, some=st.sets(st.sampled_from(["0.0", "0.1", "1.0", "2.0", "9.9"])),
          operation=st.sampled_from(["o1", "o2", "o3"]), generation=st.sampled_from([None, None, 0, 1]),
          anew=st.booleans(), lost=lost)  # fmt: skip
    def retry(
        self, *, run: str, some: set[str], operation: str, generation: int | None, anew: bool, lost: int
    ) -> None:
        """Somebody retries a run."""
        found = self.found(run)
        if found and found.kind == "turns":
            chunks, items, extra = self.ask_turns(found)
            asked = {"chunks": chunks, "items": items, "extra": extra, "generation": generation}
            if chunks:
                self.do("retry", run, operation, **asked, lost=lost)
        else:
            indexes = sorted(some)
            chunks = [ChunkPlan("again", indexes[:2]), ChunkPlan("more", indexes[2:])]
            asked = {"chunks": chunks, "generation": generation, "is_anew": anew}
            self.do("retry", run, operation, **asked, lost=lost)

    @rule(run=runs, lost=lost)
    def fold(self, *, run: str, lost: int) -> None:
        """A server folds a run."""
        self.do("fold", [run], KEEP, lost=lost)

    @rule(run=runs, token=tokens, shape=shapes, request=st.sampled_from(["", "q1", "q2"]),
          later_ms=st.sampled_from([0, 30_000]))  # fmt: skip
    def serve(self, *, run: str, token: str, shape: tuple[int, int], request: str, later_ms: int) -> None:
        """A server takes turns, a worker decides them, and the server folds them."""
        if not self.found(run):
            self.submit(
                run=run, token=token, chunks=1, shape=shape, kind="turns", namespace="ns", wide=0, tells="l1"
            )
            self.do("tick", "w1", KINDS, 4)
            self.work_on(run, "0", most=9, request=request)
            self.fold(run=run, lost=0)
            self.model.state.now_ms += later_ms

    @rule(namespace=st.sampled_from(["ns", "ns", "r0"]), right=mostly, lost=lost,
          names=st.lists(st.sampled_from(["t 0", "t 1", "t 2"]), unique=True),
          requests=st.lists(st.sampled_from(["q1", "q2"]), unique=True))  # fmt: skip
    def forget(
        self, *, namespace: str, names: list[str], requests: list[str], right: bool, lost: int
    ) -> None:
        """Somebody removes threads, as they are or as they were before."""
        self.do("forget", namespace, self.states(namespace, names, right=right), requests, lost=lost)

    @rule(listener=listeners)
    def hear(self, *, listener: str) -> None:
        """A server asks what has ended."""
        self.do("hear", listener)

    @rule(run=runs, lost=lost)
    def remove(self, *, run: str, lost: int) -> None:
        """Somebody removes a run."""
        self.do("remove", run, lost=lost)

    @rule()
    def backlog(self) -> None:
        """Somebody asks how much there is to do."""
        self.do("backlog")


def test_scripts_do_what_the_model_does(new_redis_server: Callable[[], RedisServer]) -> None:
    """Any sequence of calls gives the same answers and leaves the same keys as in the model."""
    server = new_redis_server()  # nothing else may change its clock
    run_state_machine_as_test(
        type("AnyCallHere", (AnyCall,), {"server": server}),
        settings=machine_settings(50),
    )  # fmt: skip
