"""The rules of dispatch that several scripts share, as the ledger's model states them."""

from math import ceil
from typing import Any

from shared.ledger import Wake
from shared.ledger.bounds import (
    BULK,
    OVERDUE_FACTOR,
    PERCENT,
    TOLD_MS,
    TOP_UP,
    WINDOW_FACTOR,
    WINDOW_FLOOR,
)
from shared.ledger.times import TIMES
from shared.ledger.wire import count_marks
from tests.support.ledger_model_state import (
    KindState,
    Lease,
    Namespace,
    Part,
    Record,
    Ref,
    Run,
    State,
    Told,
    outcomes_of,
)


class Dispatch:
    """The state of the ledger, and how chunks and runs move in it."""

    def __init__(self, now_ms: int = 0) -> None:
        self.state = State(now_ms)
        self.written: dict[tuple[str, str, int], bytes] = {}
        """Every result by run, field and generation; for the checks, no part of the ledger."""
        self.log: dict[tuple[str, str], list[tuple[str, int, bool]]] = {}
        """By namespace and thread: run, index and whether poisoned of every decided turn; for the checks."""
        self.gone: dict[tuple[str, str], int] = {}
        """By namespace and thread: how many entries of its log went when it was removed; for the checks."""
        self.decided: dict[str, set[int]] = {}
        """By run: which of its turns have a result; for the checks."""
        self.ended: set[str] = set()
        """Tokens whose lease was ended; for the checks."""
        self.accepted: list[str] = []
        """Runs with a listener in the order in which they were sealed; for the checks."""
        self.folded: list[tuple[Run, int]] = []
        """Every run that was folded, with the number of its results; for the checks."""

    # ---- clocks and places

    def clock(self) -> int:
        """The ledger clock: never more than two seconds past the last tick."""
        return self.state.ledger_ms + max(0, min(self.state.now_ms - self.state.tick_ms, TIMES.skew_ms))

    def steady(self) -> int:
        """Redis' time as if it had never been set back."""
        return self.state.now_ms + self.state.back_ms

    def kind_of(self, run: Run) -> KindState:
        """Dispatch of a run's kind."""
        return self.state.kinds[run.kind]

    def namespace_of(self, run: Run) -> Namespace:
        """Where a run's threads live."""
        return self.state.namespaces.setdefault(run.namespace, Namespace())

    def overdue_ms(self, kind: KindState) -> int:
        """After how long an unclaimed wake-up counts as lost."""
        return max(TIMES.overdue_ms, OVERDUE_FACTOR * (kind.usual_ms or 0))

    def undone(self, run: Run, chunk: str) -> list[Any]:
        """Those parts of a chunk that have no result of the chunk's generation."""
        plan = run.plan[chunk]
        if run.kind == "turns":
            return [part for part in plan.parts if part.batch not in run.results]
        return [
            index
            for index in plan.parts
            if (run.redo[index] == plan.generation if index in run.redo else index not in run.results)
        ]

    def write(self, run: Run, name: str, generation: int, value: bytes, token: str | None) -> None:
        """Writes a result; nothing may ever be written twice, or under a token whose lease was ended."""
        assert (run.run, name, generation) not in self.written, (
            f"second result: {run.run} {name} {generation}"
        )
        assert token not in self.ended, f"a commit by {token}, whose lease was ended"
        self.written[run.run, name, generation] = value
        run.results[name] = (generation, value)

    # ---- dispatch

    def join_ring(self, run: Run) -> None:
        """Lets a running run with waiting chunks take its turn."""
        ring = self.kind_of(run).ring
        if run.state == "running" and run.waiting and run.run not in ring:
            self.state.serial += 1
            ring[run.run] = self.state.serial

    def top_up(self, name: str, most: int = TOP_UP) -> list[Wake]:
        """Publishes waiting chunks while the window has room; the runs take turns."""
        kind, wakes = self.state.kinds[name], []
        room = min(kind.room, most)
        while room > 0 and kind.ring:
            run_id = min(kind.ring, key=kind.ring.__getitem__)
            run = self.state.runs.get(run_id)
            chunk = run.next_chunk() if run and run.state == "running" else None
            if run is None or chunk is None:
                del kind.ring[run_id]
                continue
            wakes.append(self.publish(run, chunk))
            room -= 1
            if len(kind.ring) > 1:
                self.state.serial += 1
                kind.ring[run_id] = self.state.serial
        return wakes

    def publish(self, run: Run, chunk: str) -> Wake:
        """Publishes a chunk; the first time, its turns enter the inboxes."""
        run.waiting.discard(chunk)
        plan = run.plan[chunk]
        if chunk not in run.chunks:
            run.chunks[chunk] = Record()
            for part in plan.parts if run.kind == "turns" else ():
                box = self.namespace_of(run).thread(part.thread).inbox
                box.append(Ref(run.run, part.batch, part.turns))
        record = run.chunks[chunk]
        record.state, record.repeated, record.since_ms = "P", 0, self.clock()
        kind = self.kind_of(run)
        kind.live[run.run, chunk] = self.clock() + self.overdue_ms(kind)
        return Wake(run.kind, run.run, chunk, plan.size, plan.first)

    def end_lease(self, run: Run, chunk: str) -> int | None:
        """Ends a chunk's lease, with its locks and its mark as a suspect; returns when it was claimed."""
        record, kind = run.chunks[chunk], self.kind_of(run)
        kind.live.pop((run.run, chunk), None)
        kind.parked.pop((run.run, chunk), None)
        if record.state != "L":
            return None
        lease = Lease(run.run, chunk, record.token or "")
        self.ended.add(lease.token)
        for thread in self.namespace_of(run).threads.values():
            if thread.owner == lease:
                thread.owner = None
        if self.state.suspects.get(record.worker or "") == lease:
            del self.state.suspects[record.worker or ""]
        claimed_ms = record.claimed_ms
        record.token = record.worker = record.claimed_ms = None
        return claimed_ms

    def to_wait(self, run: Run, chunk: str) -> None:
        """Lets a chunk wait to be published again."""
        self.end_lease(run, chunk)
        run.chunks[chunk].state, run.chunks[chunk].awaits = "W", False
        run.waiting.add(chunk)
        self.join_ring(run)

    def to_parked(self, run: Run, chunk: str, due_ms: int, *, awaits: bool = False) -> None:
        """Puts a chunk aside until it is due, or one of its threads is released."""
        self.end_lease(run, chunk)
        run.chunks[chunk].state, run.chunks[chunk].awaits = "D", awaits
        self.kind_of(run).parked[run.run, chunk] = due_ms
        if run.wide:
            left, parts = self.undone(run, chunk), run.plan[chunk].parts
            run.chunks[chunk].rest = ceil(PERCENT * len(left) / len(parts))
            self.join_ring(run)

    def measure_window(self, kind: KindState) -> None:
        """Sets how many chunks may be published or leased at a time."""
        kind.window = max(
            WINDOW_FLOOR, WINDOW_FACTOR * sum(capacity for capacity, _ in kind.workers.values())
        )

    # ---- the ends of chunks and runs

    def close(self, run: Run, chunk: str, *, complete: bool) -> None:
        """Ends a chunk."""
        claimed_ms = self.end_lease(run, chunk)
        if complete and claimed_ms is not None:
            kind, took = self.kind_of(run), max(0, self.clock() - claimed_ms)
            usual = took if kind.usual_ms is None else kind.usual_ms
            kind.usual_ms = (7 * usual + took) // 8
        del run.chunks[chunk], run.plan[chunk]
        run.waiting.discard(chunk)
        self.settle(run)
        if run.wide:
            self.join_ring(run)

    def drop(self, run: Run, chunk: str) -> None:
        """Gives up what is left of an admitted chunk, and ends it."""
        for part in self.undone(run, chunk):
            if run.kind == "turns":
                self.withdraw(run, part)
            else:
                self.forget_redo(run, part)
        self.close(run, chunk, complete=False)

    def withdraw(self, run: Run, part: Part) -> None:
        """Takes the turns of a part out of their inbox."""
        thread, ref = self.namespace_of(run).thread(part.thread), Ref(run.run, part.batch, part.turns)
        again = part.again
        if thread.inbox[0] == ref:
            again, thread.offset = again[thread.offset :], 0
        thread.inbox.remove(ref)
        thread.pos += 1
        thread.moved = True
        self.forget_turns(run, again)

    @staticmethod
    def forget_turns(run: Run, again: str) -> None:
        """The old results of turns stand after all."""
        run.goal -= count_marks(again)
        run.tally.update(outcomes_of(again))

    def forget_redo(self, run: Run, index: str) -> None:
        """The old result of an item stands after all."""
        if run.redo.pop(index, None) is not None and index in run.results:
            run.goal -= 1
            run.tally.update(outcomes_of(run.outcome_letter(index)))

    def drop_waiting(self, run: Run) -> None:
        """Gives up everything that was never handed out."""
        for chunk in [chunk for chunk in run.plan if chunk not in run.chunks]:
            for part in run.plan[chunk].parts:
                if run.kind == "turns":
                    self.forget_turns(run, part.again)
                else:
                    self.forget_redo(run, part)
            del run.plan[chunk]
            run.waiting.discard(chunk)
        self.settle(run)

    def drop_admitted(self, run: Run) -> None:
        """Gives up what was handed out and is not leased."""
        for chunk in [chunk for chunk, record in run.chunks.items() if record.state != "L"][:BULK]:
            self.drop(run, chunk)

    def settle(self, run: Run) -> None:
        """Ends a run without open chunks."""
        if run.plan:
            return
        complete = run.done == run.goal and run.state != "cancelling"
        run.state = "finished" if complete else run.to or "incomplete"
        run.finished_ms = self.state.now_ms
        self.state.counters[f"runs {run.kind} {run.state}"] += 1
        run.tries.clear()
        self.kind_of(run).ring.pop(run.run, None)
        run.expires_ms = self.state.now_ms + run.ttl_s * 1000 if run.ttl_s else None
        self.leave_namespace(run)
        if run.tells:
            told = self.state.told.setdefault(run.tells, Told())
            told.runs.append(run.run)
            told.expires_ms = self.state.now_ms + TOLD_MS

    def use_namespace(self, run: Run) -> None:
        """A namespace that an open run uses does not expire."""
        namespace = self.namespace_of(run)
        namespace.users.add(run.run)
        namespace.expires_ms = namespace.requests_expire_ms = None

    def leave_namespace(self, run: Run) -> None:
        """A namespace that no open run uses expires after a while."""
        namespace = self.namespace_of(run)
        was_user = run.run in namespace.users
        namespace.users.discard(run.run)
        if was_user and not namespace.users and run.namespace_ttl_s:
            namespace.expires_ms = self.state.now_ms + run.namespace_ttl_s * 1000
            namespace.requests_expire_ms = namespace.expires_ms

    def wipe(self, run: Run) -> None:
        """Removes a run without admitted chunks from everywhere."""
        if self.state.idem.get(run.key) == run.run:
            del self.state.idem[run.key]
        self.state.dead = {key: item for key, item in self.state.dead.items() if key[0] != run.run}
        if run.namespace == run.run:
            self.state.namespaces.pop(run.run, None)
            self.log = {key: log for key, log in self.log.items() if key[0] != run.run}
            self.gone = {key: count for key, count in self.gone.items() if key[0] != run.run}
        else:
            self.leave_namespace(run)
        del self.state.runs[run.run]
        self.decided.pop(run.run, None)
        self.written = {key: value for key, value in self.written.items() if key[0] != run.run}
