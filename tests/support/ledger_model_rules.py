"""The rules for what goes wrong and for turns, as the ledger's model states them."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.codecs.turn_batches import Block, pack_block, unpack_batch, unpack_block
from shared.ledger import DeadItem, PartCommit
from shared.ledger.bounds import POISON_STRIKES, SUSPECT_STRIKES
from tests.support.ledger_model_dispatch import Dispatch
from tests.support.ledger_model_state import Lease, Part, Plan, Record, Ref, Run

OUTCOMES = {"passed", "failed", "error", "must", "should", "skip"}
"""Words of a tally that say how items ended."""


class Rules(Dispatch):
    """What becomes of leases that ran out, of turns, and of items that ended in error."""

    # ---- what goes wrong

    def expire(self, run: Run, chunk: str) -> None:
        """A lease ran out."""
        left, record, plan = self.undone(run, chunk), run.chunks[chunk], run.plan[chunk]
        self.state.counters[f"steward {run.kind} lease_ended"] += 1
        if not left or run.state == "cancelling":
            self.drop(run, chunk)
            return
        lease = Lease(run.run, chunk, record.token or "")
        waited = run.kind == "turns" and len(left) == 1 and self.owner(run, left[0]) != lease
        if not waited:
            record.strikes = (record.strikes or 0) + 1
        if len(left) > 1 and record.suspect(SUSPECT_STRIKES):
            self.explode(run, chunk, left)
            return
        if len(left) == 1 and record.suspect(POISON_STRIKES):
            if run.kind == "turns":
                self.poison_turn(run.namespace, left[0].thread, record.strikes or 0)
                record.strikes = SUSPECT_STRIKES
            else:
                self.poison_item(run, left[0], plan.generation, record.strikes or 0)
            if not self.undone(run, chunk):
                self.close(run, chunk, complete=False)
                return
        self.to_wait(run, chunk)

    def owner(self, run: Run, part: Part) -> Lease | None:
        """Who holds the thread of a part."""
        return self.namespace_of(run).thread(part.thread).owner

    def explode(self, run: Run, chunk: str, left: Sequence[Any]) -> None:
        """Takes a chunk apart into suspects of one part each."""
        plan = run.plan[chunk]
        for at, part in enumerate(left):
            piece, first, size = f"{chunk}/{at}", plan.first if at == 0 else f"{plan.first} +{at}", 1
            if run.kind == "turns":
                first, size = part.thread, part.turns
            run.plan[piece] = Plan(plan.generation, first, size, [part])
            run.chunks[piece] = Record(strikes=SUSPECT_STRIKES)
            run.waiting.add(piece)
        self.end_lease(run, chunk)
        del run.chunks[chunk], run.plan[chunk]
        self.join_ring(run)
        self.state.counters[f"steward {run.kind} chunk_split"] += 1

    def poison_item(self, run: Run, index: str, generation: int, strikes: int) -> None:
        """Writes the error of an item that no worker survived."""
        self.write(run, index, generation, b"poison", None)
        run.redo.pop(index, None)
        run.tries.pop(index, None)
        run.done += 1
        run.tally["error"] += 1
        self.state.counters.update([f"items {run.kind} error", f"steward {run.kind} item_poisoned"])
        self.bury(run, index, generation, strikes, code="poison", payload=run.items[index])

    def poison_turn(self, namespace: str, name: str, strikes: int) -> None:
        """Writes the error of the turn at a thread's front, of whichever run it is."""
        thread, now = self.state.namespaces[namespace].threads[name], self.state.now_ms
        ref, offset = thread.inbox[0], thread.offset
        run, line = self.state.runs[ref.run], self.turn_line(ref, offset)
        index = self.indexes(ref)[offset]
        block = Block(offset, now, now, [index], ["x0p"], [thread.memento or b""])
        generation = self.take(namespace, name, PartCommit(offset, 1, pack_block(block)), None)
        thread.pos += 1
        run.tally["error"] += 1
        self.state.counters.update([f"items {run.kind} error", f"steward {run.kind} item_poisoned"])
        self.bury(run, str(index), generation, strikes, code="poison", payload=line)

    # ---- turns

    def count_outcomes(self, kind: str, tally: Mapping[str, int]) -> None:
        """Counts how items ended."""
        for word in OUTCOMES & tally.keys():
            self.state.counters[f"items {kind} {word}"] += tally[word]

    def indexes(self, ref: Ref) -> list[int]:
        """Places in the input of a batch's turns."""
        return unpack_batch(self.state.runs[ref.run].items[ref.batch])[0]

    def turn_line(self, ref: Ref, at: int) -> bytes:
        """One turn of a batch as it was loaded."""
        return unpack_batch(self.state.runs[ref.run].items[ref.batch])[1].split(b"\n")[at]

    def take(self, namespace: str, name: str, part: PartCommit, token: str | None) -> int:
        """Writes decided turns at a thread's front; returns their generation."""
        thread = self.state.namespaces[namespace].threads[name]
        ref = thread.inbox[0]
        run, whole = self.state.runs[ref.run], part.offset + part.count == ref.turns
        generation = int(ref.batch.split(".")[0]) if ref.batch.count(".") > 1 else 0
        self.write(run, ref.batch if whole else f"{ref.batch}:{part.offset}", generation, part.value, token)
        decided = self.indexes(ref)[part.offset : part.offset + part.count]
        poisoned = token is None
        self.log.setdefault((namespace, name), []).extend((run.run, index, poisoned) for index in decided)
        self.decided.setdefault(run.run, set()).update(decided)
        run.done += part.count
        thread.offset = 0 if whole else part.offset + part.count
        thread.moved = True
        if whole:
            thread.inbox.pop(0)
        return generation

    def account_dead(self, ref: Ref, generation: int, part: PartCommit) -> None:
        """Keeps the dead set right for the turns of one part."""
        run, block = self.state.runs[ref.run], unpack_block(part.value)
        if generation:
            for index in block.indexes:
                self.state.dead.pop((run.run, str(index)), None)
        for at in part.dead:
            name, result = str(self.indexes(ref)[at]), block.lines[at - part.offset]
            self.bury(run, name, generation, 1, payload=self.turn_line(ref, at), result=result)

    def bury(
        self, run: Run, index: str, generation: int, attempts: int, *,
        payload: bytes, code: str = "", result: bytes = b"",
    ) -> None:  # fmt: skip
        """Copies an item that ended in error to the dead set."""
        self.state.dead[run.run, index] = DeadItem(
            run.kind, generation, self.state.now_ms, attempts, code, payload, result
        )
