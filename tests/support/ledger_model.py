"""A model of the ledger in plain Python: one method per script, with the names and arguments of `Ledger`.

It is the oracle of the scripts' tests (`tests/property`); the fault exploration runs on it (`tests/chaos`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.errors import LoadLostError, UsageError
from shared.ledger import (
    ChunkPlan,
    Claim,
    ClaimedBatch,
    ClaimedItem,
    ClaimedThread,
    Committed,
    HeldLease,
    Opened,
    Row,
    ThreadCommit,
    Try,
    Wake,
)
from shared.ledger.bounds import FIRST_LAYOUT, INBOX_DEPTH, SUSPECT_STRIKES
from shared.ledger.ledger import NAMESPACE_TTL_S
from shared.ledger.times import TIMES
from tests.support.ledger_model_state import Attempts, Lease, Part, Plan, Record, Ref, Run
from tests.support.ledger_model_steward import Steward

LOST = Committed("lost", [], "", [])


class LedgerModel(Steward):
    """The ledger without Redis; `state.now_ms` is the server's clock and the callers' too."""

    # ---- producers

    def open(
        self, run: str, *, kind: str, namespace: str, key: str, token: str, snapshot: bytes, ttl_s: int,
        wide: int = 0, layout: int = FIRST_LAYOUT, tells: str = "",
    ) -> Opened:  # fmt: skip
        """Begins a run, or finds the one of the same idempotency key."""
        runs = self.state.runs
        if key and key in self.state.idem:
            run = self.state.idem[key]
            found = runs[run]
            if found.state != "loading":
                return Opened("sealed", run, found.digest or "")
            if found.token != token:
                if found.until_ms > self.clock():
                    return Opened("busy", run, "")
                self.wipe(found)
        elif run in runs and runs[run].token != token:
            return Opened("exists", run, "")
        if run not in runs:
            if self.in_use(run):
                return Opened("exists", run, "")
            if namespace and (namespace == run or namespace in runs):
                raise UsageError(f"namespace {namespace} is the id of a run")
            runs[run] = Run(
                run, kind, namespace or run, key, token, snapshot,
                ttl_s=ttl_s, namespace_ttl_s=NAMESPACE_TTL_S if namespace else ttl_s, wide=wide,
                layout=layout, tells=tells,
                until_ms=self.clock() + TIMES.loader_ms, created_ms=self.state.now_ms,
            )  # fmt: skip
            if key:
                self.state.idem[key] = run
        return Opened("ok", run, "")

    def in_use(self, namespace: str) -> bool:
        """Tells whether a namespace has threads."""
        threads = self.state.namespaces[namespace].threads if namespace in self.state.namespaces else {}
        return any(thread.moved or thread.owner for thread in threads.values())

    def load(self, run: str, token: str, items: Mapping[str, bytes], plan: Mapping[str, ChunkPlan]) -> int:
        """Writes a part of a loading run."""
        found = self.state.runs.get(run)
        if found is None or found.token != token or found.state != "loading":
            self.state.counters["fenced loader"] += 1
            raise LoadLostError(f"run {run} is not ours")
        found.items.update(items)
        for chunk, entry in plan.items():
            parts: list[Any] = list(entry.parts)
            size = len(parts)
            if found.kind == "turns":
                parts = [Part(batch, thread, turns, "") for batch, thread, turns in parts]
                size = sum(part.turns for part in parts)
                found.batches[chunk] = len(parts)
                found.threads.update(part.thread for part in parts)
            found.plan[chunk] = Plan(0, entry.first, size, parts)
            found.waiting.add(chunk)
        found.until_ms = self.clock() + TIMES.loader_ms
        return len(found.items)

    def seal(self, run: str, token: str, total: int, digest: str) -> list[Wake]:
        """Ends the loading, if all is there."""
        found = self.state.runs.get(run)
        if found is None or found.token != token:
            self.state.counters["fenced loader"] += 1
            raise LoadLostError(f"run {run} is not ours")
        if found.state == "loading":
            turns = sum(plan.size for plan in found.plan.values())
            there = turns if found.kind == "turns" else len(found.items)
            if there == 0 or there != total:
                raise LoadLostError(f"run {run}: {there} of {total} are there")
            found.state, found.digest, found.goal, found.total = "running", digest, total, total
            found.sealed_ms = self.state.now_ms
            if found.tells:
                self.accepted.append(run)
            self.use_namespace(found)
            self.join_ring(found)
        return self.top_up(found.kind)

    def discard(self, run: str, token: str) -> None:
        """Removes the run that this loader was loading."""
        found = self.state.runs.get(run)
        if found is not None and found.token == token and found.state == "loading":
            self.wipe(found)

    # ---- workers

    def claim(self, run: str, chunk: str, token: str, worker: str) -> Claim:  # noqa: PLR0911 - one per answer
        """Takes a published chunk."""
        found = self.state.runs.get(run)
        record = found.chunks.get(chunk) if found else None
        if found is None or record is None:
            return Claim("gone", [])
        if record.state == "L" and record.token == token:
            return self.give(found, chunk, token)
        if record.state != "P":
            return Claim("busy", [])
        if found.state == "cancelling":
            self.drop(found, chunk)
            return Claim("gone", self.top_up(found.kind))
        if found.state == "paused":
            self.to_wait(found, chunk)
            return Claim("paused", self.top_up(found.kind))
        if record.suspect(SUSPECT_STRIKES):
            if worker in self.state.suspects:
                self.to_parked(found, chunk, self.steady() + TIMES.park_ms)
                return Claim("later", self.top_up(found.kind))
            self.state.suspects[worker] = Lease(run, chunk, token)
        self.ended.discard(token)  # a claim that is sent again after its first lease was over gets a new one
        record.state, record.token, record.worker, record.claimed_ms = "L", token, worker, self.clock()
        self.kind_of(found).live[run, chunk] = self.clock() + TIMES.lease_ms
        return self.give(found, chunk, token)

    def give(self, run: Run, chunk: str, token: str) -> Claim:
        """What a worker needs to work on a chunk."""
        left, suspect = self.undone(run, chunk), run.chunks[chunk].suspect(SUSPECT_STRIKES)
        if not left:
            self.close(run, chunk, complete=False)
            return Claim("done", self.top_up(run.kind))
        if run.kind == "turns":
            threads, busy = self.lock_threads(run, chunk, token, left, 1 if suspect else INBOX_DEPTH)
            snapshot = run.snapshot if run.tells else b""
            return Claim("ok", [], [], threads, suspect, busy, run.namespace, snapshot=snapshot)
        tries = {index: run.tries.get(index, Attempts(0, 0, "")) for index in left}
        due = [index for index in left if tries[index].due_ms <= self.steady()]
        if not due:
            self.to_parked(run, chunk, min(attempt.due_ms for attempt in tries.values()))
            return Claim("later", self.top_up(run.kind))
        items = [
            ClaimedItem(
                index,
                run.redo.get(index, 0),
                run.items[index],
                tries[index].attempts,
                tries[index].parked_state,
            )
            for index in due
        ]
        is_anew = run.plan[chunk].generation in run.anew
        return Claim("ok", [], items, [], suspect, 0, run.namespace, is_anew)

    def lock_threads(
        self, run: Run, chunk: str, token: str, left: Sequence[Part], depth: int
    ) -> tuple[list[ClaimedThread], int]:
        """Locks the free threads of a chunk; counts the others."""
        lease, threads, busy = Lease(run.run, chunk, token), [], 0
        for name in dict.fromkeys(part.thread for part in left):
            thread = self.namespace_of(run).thread(name)
            if thread.owner not in (None, lease):
                busy += 1
                continue
            thread.owner = lease
            batches = [
                ClaimedBatch(ref.run, ref.batch, ref.turns, self.state.runs[ref.run].items[ref.batch])
                for ref in thread.inbox[:depth]
            ]
            threads.append(ClaimedThread(name, thread.pos, thread.offset, thread.memento or b"", batches))
        return threads, busy

    def renew(self, held: Sequence[HeldLease]) -> list[str]:
        """Renews leases."""
        answers = []
        for run, chunk, token in held:
            record = self.record(run, chunk)
            if record and record.token == token:
                found = self.state.runs[run]
                self.kind_of(found).live[run, chunk] = self.clock() + TIMES.lease_ms
                answers.append(found.state)
            else:
                answers.append("lost")
        return answers

    def record(self, run: str, chunk: str) -> Record | None:
        """The record of an admitted chunk."""
        return self.state.runs[run].chunks.get(chunk) if run in self.state.runs else None

    def commit(
        self, run: str, chunk: str, token: str, rows: Sequence[Row], *, back: bool, due_ms: int = 0,
        tries: Sequence[Try] = (), tally: Mapping[str, int] | None = None,
    ) -> Committed:  # fmt: skip
        """Writes results of cases or queries."""
        record = self.record(run, chunk)
        if record is None or record.token != token:
            self.state.counters["fenced worker"] += 1
            return LOST
        found, accepted = self.state.runs[run], []
        for row in rows:
            wanted = found.redo.get(row.index)
            fits = (
                wanted == row.generation if wanted else not row.generation and row.index not in found.results
            )
            accepted.append(fits)
            if fits:
                self.accept(found, row, token)
        for attempt in tries:
            due = self.steady() + max(0, attempt.not_before_ms - self.state.now_ms)
            found.tries[attempt.index] = Attempts(attempt.attempts, due, attempt.parked_state)
            found.tried = True
        if any(accepted) or not rows:
            found.tally.update(tally or {})
            self.count_outcomes(found.kind, tally or {})
        return self.finish(found, chunk, accepted, back=back, due_ms=due_ms)

    def accept(self, run: Run, row: Row, token: str) -> None:
        """Writes one result."""
        self.write(run, row.index, row.generation, row.value, token)
        run.redo.pop(row.index, None)
        run.tries.pop(row.index, None)
        run.done += 1
        if row.dead:
            payload = run.items[row.index]
            self.bury(run, row.index, row.generation, row.attempts, payload=payload, result=row.value)
        elif row.generation:
            self.state.dead.pop((run.run, row.index), None)

    def commit_threads(
        self, run: str, chunk: str, token: str, threads: Sequence[ThreadCommit], *, back: bool,
        awaits: bool = False, due_ms: int = 0, tally: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Committed:  # fmt: skip
        """Writes decided turns, each thread as a whole or not at all."""
        record = self.record(run, chunk)
        if record is None or record.token != token:
            self.state.counters["fenced worker"] += 1
            return LOST
        found, lease, written = self.state.runs[run], Lease(run, chunk, token), list[Ref]()
        accepted = [self.accept_thread(found, lease, row, written) for row in threads]
        for of in {ref.run for ref in written} & (tally or {}).keys():
            self.state.runs[of].tally.update((tally or {})[of])
            self.count_outcomes(found.kind, (tally or {})[of])
        if any(accepted) and (record.strikes or 0) > SUSPECT_STRIKES:
            record.strikes = SUSPECT_STRIKES
        released = [row.thread for row, is_written in zip(threads, accepted, strict=True) if is_written]
        is_woken = self.wake_awaiting(found, released, written)
        if awaits and not self.are_held(found, chunk):
            due_ms = 0
        done = self.finish(found, chunk, accepted, back=back, due_ms=due_ms, awaits=awaits)
        return done._replace(wakes=self.top_up(found.kind)) if is_woken and not back else done

    def wake_awaiting(self, run: Run, released: Sequence[str], written: Sequence[Ref]) -> bool:
        """Lets chunks wait again that were put aside for threads which are released now."""
        boxes = [self.namespace_of(run).thread(name).inbox for name in released]
        is_woken = False
        for ref in [*written, *(box[0] for box in boxes if box)]:
            chunk = ref.batch.rpartition(".")[0]
            record = self.record(ref.run, chunk)
            if record and record.awaits:
                self.to_wait(self.state.runs[ref.run], chunk)
                is_woken = True
        return is_woken

    def are_held(self, run: Run, chunk: str) -> bool:
        """Tells whether all threads that a chunk still needs are held by others."""
        owners = [self.owner(run, part) for part in self.undone(run, chunk)]
        return all(owner and (owner.run, owner.chunk) != (run.run, chunk) for owner in owners)

    def accept_thread(self, run: Run, lease: Lease, row: ThreadCommit, written: list[Ref]) -> bool:
        """Writes what was decided for one thread, if its lock, its position and its requests fit."""
        namespace = self.namespace_of(run)
        thread = namespace.threads.get(row.thread)
        if thread is None or thread.owner != lease or thread.pos != row.pos:
            return False
        if any(name in namespace.requests for name, _ in row.requests):
            return False
        namespace.requests.update(row.requests)
        for part in row.parts:
            ref = thread.inbox[0]
            written.append(ref)
            generation = self.take(run.namespace, row.thread, part, lease.token)
            if part.dead or generation:
                self.account_dead(ref, generation, part)
            thread.pos += part.count
        thread.memento, thread.owner, thread.moved = row.memento, None, True
        return True

    def finish(
        self, run: Run, chunk: str, accepted: list[bool], *, back: bool, due_ms: int, awaits: bool = False
    ) -> Committed:
        """Keeps the lease, or gives back what is left of the chunk."""
        if not back:
            return Committed("ok", accepted, run.state, [])
        if not self.undone(run, chunk):
            self.close(run, chunk, complete=True)
        elif run.state == "cancelling":
            self.drop(run, chunk)
        elif due_ms > self.state.now_ms:
            self.to_parked(run, chunk, self.steady() + due_ms - self.state.now_ms, awaits=awaits)
        else:
            self.to_wait(run, chunk)
        return Committed("ok", accepted, run.state, self.top_up(run.kind))

    def requests(self, namespace: str, ids: Sequence[str]) -> dict[str, bytes]:
        """The known ones of some `clientRequestId`s."""
        known = self.state.namespaces[namespace].requests if namespace in self.state.namespaces else {}
        return {name: known[name] for name in ids if name in known}
