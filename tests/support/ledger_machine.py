"""The base of the ledger's stateful test: makes each call on model and scripts, with arguments that fit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import redis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from shared.codecs.turn_batches import Block, pack_batch, pack_block, unpack_batch
from shared.errors import ProctorError
from shared.ledger import ChunkPlan, Claim, Committed, PartCommit, ThreadCommit
from shared.ledger.wire import count_marks
from tests.support.ledger_model import LedgerModel
from tests.support.ledger_model_state import Namespace
from tests.support.ledger_runs import rows_of
from tests.support.ledger_simulation_checks import check
from tests.support.ledger_twin import Twin

if TYPE_CHECKING:
    from tests.support.ledger_model_state import Run

START_MS = 4_000_000_000_000
RUNS = ("r0", "r1", "r2")


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
    """Model and scripts side by side; `server` is set by the test."""

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

    @invariant()
    def holds(self) -> None:
        """Everything that must hold, holds."""
        if hasattr(self, "model"):
            check(self.model)

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

    @property
    def now_ms(self) -> int:
        """The time in Redis, and everywhere else."""
        return self.model.state.now_ms

    def found(self, run: str) -> "Run | None":
        """The run in the model."""
        return self.model.state.runs.get(run)

    def some_chunk(self, data: st.DataObject, states: str) -> tuple[str, str]:
        """Any chunk that was handed out and is in one of the states, or one that is not there."""
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

    def states(self, namespace: str, names: Sequence[str], *, right: bool) -> dict[str, bytes]:
        """The states of some threads, or others."""
        found = self.model.state.namespaces.get(namespace, Namespace()).threads
        stored = {name: found[name].memento if name in found else None for name in names}
        return {name: (state or b"") if right else b"another" for name, state in stored.items()}

    def load_chunk(self, run: str, token: str, chunk: int, shape: tuple[int, int], lost: int) -> None:
        """Loads a chunk; one that is there already is loaded as it was."""
        found = self.found(run)
        if found and str(chunk) in found.plan:
            parts = len(found.plan[str(chunk)].parts)
            shape = (parts, found.plan[str(chunk)].size // parts)
        items, plan = make_chunk(found.kind if found else "cases", chunk, *shape)
        self.do("load", run, token, items, plan, lost=lost)

    def work_on(self, run: str, chunk: str, *, most: int, request: str) -> Committed | None:
        """Decides all items of what is leased, or up to `most` turns of each thread, and gives it back."""
        token = self.token_of(run, chunk, right=True)
        claim = self.do("claim", run, chunk, token, "w1")
        found = self.found(run)
        if claim.status != "ok" or found is None:
            return None
        if found.kind == "turns":
            rows = decide(claim, most, request, wrong_position=False)
            done = self.do("commit_threads", run, chunk, token, rows, back=True)
        else:
            done = self.do("commit", run, chunk, token, rows_of(claim), back=True)
        return done if isinstance(done, Committed) else None

    def ask_turns(self, run: "Run") -> tuple[list[ChunkPlan], dict[str, bytes], int]:
        """All turns of a run again, decided or not, in another order; and how many of them are decided."""
        decided = {(of, index) for log in self.model.log.values() for of, index, _ in log}
        plans, items, extra = [], dict[str, bytes](), 0
        for batch in [name for name in run.items if name.count(".") == 1]:
            indexes, body = unpack_batch(run.items[batch])
            lines = dict(zip(indexes, body.split(b"\n"), strict=True))
            order = sorted(indexes, key=lambda index: (run.run, index) not in decided)
            marks = "".join("mskx1"[index % 5] if (run.run, index) in decided else "0" for index in order)
            plans.append(ChunkPlan("again", [(batch, f"t {batch[-1]}", len(order), marks)]))
            items[batch] = pack_batch(order, [lines[index] for index in order])
            extra += count_marks(marks)
        return plans, items, extra


def make_chunk(
    kind: str, chunk: int, parts: int, turns: int
) -> tuple[dict[str, bytes], dict[str, ChunkPlan]]:
    """A chunk of `parts` items, or of `parts` threads with `turns` turns each."""
    names = [f"{chunk}.{at}" for at in range(parts)]
    if kind != "turns":
        return {name: f"payload {name}".encode() for name in names}, {str(chunk): ChunkPlan("case 0", names)}
    items, entries = {}, []
    for at, name in enumerate(names):
        indexes = [100 * chunk + 10 * at + turn for turn in range(turns)]
        lines = [b'{"line":%d,"clientRequestId":"q%d"}' % (index, index % 3) for index in indexes]
        items[name] = pack_batch(indexes, lines)
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
