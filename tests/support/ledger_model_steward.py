"""The steward's tick and the operators' calls, as the ledger's model states them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from json import loads
from math import ceil, log
from typing import Any, NamedTuple

from shared.codecs.turn_batches import Block, unpack_batch, unpack_block
from shared.errors import RunStateError, UnknownRunError, UsageError
from shared.kinds import all_kinds
from shared.ledger import ChunkPlan, Keep, Wake
from shared.ledger.bounds import (
    BULK,
    EVICTED,
    HOUR_MS,
    LATENCY_GROWTH,
    MOST_DOUBLINGS,
    TICK_TOP_UP,
    WIPE_BULK,
)
from shared.ledger.times import TIMES
from shared.ledger.wire import again_marks, count_marks
from shared.names import FINAL_STATES
from tests.support.ledger_model_rules import Rules
from tests.support.ledger_model_state import Entry, Namespace, Part, Plan, Run, Served, outcomes_of


class Steward(Rules):
    """What heals the ledger, and what people may ask of it."""

    # ---- the tick

    def tick(
        self, worker: str, kinds: Sequence[str], capacity: int, *, idle: Collection[str] = ()
    ) -> list[Wake]:
        """Registers a worker, looks for what it could do, and heals what is due unless somebody just did."""
        state, clock = self.state, self.clock()
        for name in kinds:
            state.kinds[name].workers[worker] = (capacity, clock + TIMES.lease_ms)
        wakes: list[Wake] = []
        for name in idle:
            self.wake_unclaimed(name, wakes)
        if state.tick_ms and 0 <= state.now_ms - state.tick_ms < TIMES.tick_ms:
            return wakes
        state.back_ms += max(0, state.tick_ms - state.now_ms)
        state.tick_ms, state.ledger_ms = state.now_ms, clock
        for run in [run for run in state.runs.values() if run.state in {"cancelling", "loading"}]:
            if run.state == "cancelling":
                self.drop_admitted(run)
            elif run.until_ms <= clock:
                self.wipe(run)
        over = sorted((run.expires_ms or 0, run.run) for run in state.runs.values() if self.expired(run))
        for _, name in over[:WIPE_BULK]:
            self.wipe(state.runs[name])
        for name in map(str, all_kinds()):
            self.forget_dead_workers(name)
            self.measure_window(state.kinds[name])
            self.heal_live(name, wakes)
            self.heal_parked(name)
            wakes += self.top_up(name, TICK_TOP_UP)
        return wakes

    def expired(self, run: Run) -> bool:
        """Tells whether a final run's time is over."""
        return (
            run.state in FINAL_STATES and run.expires_ms is not None and run.expires_ms <= self.state.now_ms
        )

    def forget_dead_workers(self, name: str) -> None:
        """Takes workers off that fell silent; wake-ups they may have taken with them are due at once."""
        kind, clock = self.state.kinds[name], self.clock()
        gone = [worker for worker, (_, until) in kind.workers.items() if until <= clock]
        for worker in gone:
            del kind.workers[worker]
        if gone:
            self.repeat_wakes(name)

    def repeat_wakes(self, name: str, worker: str = "") -> None:
        """Makes all unclaimed wake-ups of a kind due, and the leases of a worker."""
        live = self.state.kinds[name].live
        for run, chunk in live:
            record = self.state.runs[run].chunks[chunk]
            if record.state == "P" or (worker and record.worker == worker):
                live[run, chunk] = self.clock()

    def heal_live(self, name: str, wakes: list[Wake]) -> None:
        """Ends leases that ran out, and repeats wake-ups that are overdue."""
        kind, clock = self.state.kinds[name], self.clock()
        due = [key for _, key in sorted((at, " ".join(key)) for key, at in kind.live.items() if at <= clock)]
        for run_id, chunk in [tuple(key.split()) for key in due[:BULK]]:
            if (run_id, chunk) not in kind.live:
                continue
            run = self.state.runs[run_id]
            record = run.chunks[chunk]
            if record.state == "L":
                self.expire(run, chunk)
            elif run.state != "running":
                self.to_wait(run, chunk)
            else:
                wakes.append(self.wake_again(run, chunk))

    def wake_again(self, run: Run, chunk: str) -> Wake:
        """Repeats a wake-up; the next repetition comes after twice the time."""
        kind, record, plan = self.kind_of(run), run.chunks[chunk], run.plan[chunk]
        record.repeated = min((record.repeated or 0) + 1, MOST_DOUBLINGS)
        record.since_ms = self.clock()
        kind.live[run.run, chunk] = self.clock() + self.overdue_ms(kind) * 2**record.repeated
        self.state.counters[f"steward {run.kind} wake_repeated"] += 1
        return Wake(run.kind, run.run, chunk, plan.size, plan.first)

    def wake_unclaimed(self, name: str, wakes: list[Wake]) -> None:
        """Repeats wake-ups that nobody has claimed for a while; some worker has nothing to do."""
        live = self.state.kinds[name].live
        newest = sorted(((at, " ".join(key)) for key, at in live.items()), reverse=True)
        for run_id, chunk in [key.split() for _, key in newest[:BULK]]:
            run = self.state.runs[run_id]
            record = run.chunks[chunk]
            if record.state != "P" or run.state != "running":
                continue
            if self.clock() - (record.since_ms or 0) >= TIMES.unclaimed_ms * 2 ** (record.repeated or 0):
                wakes.append(self.wake_again(run, chunk))

    def heal_parked(self, name: str) -> None:
        """Lets delayed chunks wait again when they are due."""
        kind = self.state.kinds[name]
        due = sorted((at, " ".join(key)) for key, at in kind.parked.items() if at <= self.steady())
        for run_id, chunk in [key.split() for _, key in due[:BULK]]:
            self.to_wait(self.state.runs[run_id], chunk)

    def leave(self, worker: str, *, abrupt: bool = False) -> None:
        """Takes a worker off the lists."""
        for name, kind in self.state.kinds.items():
            if kind.workers.pop(worker, None):
                self.measure_window(kind)
                if abrupt:
                    self.repeat_wakes(name, worker)

    # ---- operators

    def control(self, run: str, action: str) -> tuple[str, list[Wake]]:
        """Pauses, resumes or ends a run."""
        found = self.state.runs.get(run)
        if found is None:
            raise UnknownRunError(f"no run is called {run}")
        if found.state == "loading" or found.state in FINAL_STATES:
            return found.state, []
        ring = self.kind_of(found).ring
        if action in FINAL_STATES:
            if found.state != "cancelling":
                found.state, found.to = "cancelling", action
                ring.pop(run, None)
                self.drop_waiting(found)
            self.drop_admitted(found)
        elif action == "pause" and found.state == "running":
            if found.tells:
                raise RunStateError(f"{run} is a part of a stream")
            found.state = "paused"
            ring.pop(run, None)
        elif action == "resume" and found.state == "paused":
            found.state = "running"
            self.join_ring(found)
        return found.state, self.top_up(found.kind)

    def retry(
        self, run: str, operation: str, *, chunks: Sequence[ChunkPlan],
        items: Mapping[str, bytes] | None = None, extra: int = 0, generation: int | None = None,
        is_anew: bool = False,
    ) -> list[Wake]:  # fmt: skip
        """Asks for items again."""
        found = self.state.runs.get(run)
        if found is None:
            raise UnknownRunError(f"no run is called {run}")
        over = found.state in FINAL_STATES
        if found.tells or found.state in {"loading", "cancelling"}:
            raise RunStateError(f"run {run} is {found.state}")
        if found.operation == operation:
            return self.top_up(found.kind)
        if found.kind == "turns" and not over:
            raise RunStateError(f"run {run} is {found.state}")
        if generation not in {None, found.generation}:
            raise RunStateError(f"run {run} was retried by somebody else")
        if found.kind == "turns":
            again = self.ask_turns(found, chunks, items or {}, extra)
        else:
            again = self.ask_items(found, chunks, over=over)
        if again is None:
            raise UsageError(f"run {run} has nothing to retry")
        found.generation, found.operation, found.goal = found.generation + 1, operation, found.goal + again
        if is_anew:
            found.anew = (*(() if over else found.anew), found.generation)
        if over:
            found.idle_ms = (found.idle_ms or 0) + self.state.now_ms - (found.finished_ms or 0)
            found.state, found.finished_ms, found.expires_ms = "running", None, None
            found.again_ms = self.state.now_ms
            self.use_namespace(found)
        self.join_ring(found)
        return self.top_up(found.kind)

    def ask_turns(
        self, run: Run, chunks: Sequence[ChunkPlan], items: Mapping[str, bytes], extra: int
    ) -> int | None:
        """Adds chunks of turns; returns how many of the turns already have a result."""
        again = 0
        for number, chunk in enumerate(chunks):
            name, parts = f"{run.generation + 1}.{number}", []
            marks = again_marks(chunk.parts, max(0, extra - again))
            for at, (part, mark) in enumerate(zip(chunk.parts, marks, strict=True)):
                parts.append(Part(f"{name}.{at}", part[1], part[2], mark if count_marks(mark) else ""))
                run.items[f"{name}.{at}"] = items[part[0]]
            again += count_marks("".join(marks))
            run.tally.subtract(outcomes_of("".join(marks)))
            run.batches[name] = len(parts)
            self.add_chunk(
                run, name, Plan(run.generation + 1, chunk.first, sum(part.turns for part in parts), parts)
            )
        return again if chunks else None

    def ask_items(self, run: Run, chunks: Sequence[ChunkPlan], *, over: bool) -> int | None:
        """Adds chunks of what can be asked for; returns how many items have a result; None for nothing."""
        again, number = 0, 0
        for chunk in chunks:
            parts: list[Any] = []
            for index in chunk.parts:
                askable = index in run.items and index not in run.redo
                if askable and (over or index in run.results):
                    parts.append(index)
                    run.redo[index] = run.generation + 1
                    if index in run.results:
                        again += 1
                        run.tally.subtract(outcomes_of(run.outcome_letter(index)))
            if parts:
                plan = Plan(run.generation + 1, chunk.first, len(parts), parts)
                self.add_chunk(run, f"{run.generation + 1}.{number}", plan)
                number += 1
        return again if number else None

    @staticmethod
    def add_chunk(run: Run, name: str, plan: Plan) -> None:
        """Lets a new chunk wait."""
        run.plan[name] = plan
        run.waiting.add(name)

    def remove(self, run: str) -> bool:
        """Removes a final or paused run, one that is being cancelled, or one whose loader is gone."""
        found = self.state.runs.get(run)
        if found is None:
            return False
        loader_gone = found.state == "loading" and found.until_ms <= self.clock()
        if not (found.state in FINAL_STATES or found.state in {"paused", "cancelling"} or loader_gone):
            raise RunStateError(f"run {run} is {found.state}")
        for chunk in list(found.chunks):
            self.drop(found, chunk)
        self.wipe(found)
        return True

    def fold(self, runs: Sequence[str], keep: Keep) -> list[bool]:
        """Folds runs one after the other."""
        return [self.fold_one(run, keep) for run in runs]

    def fold_one(self, run: str, keep: Keep) -> bool:
        """Adds the turns of a run that has ended to the stream of its namespace, and removes the run."""
        found = self.state.runs.get(run)
        if found is None:
            return True
        if not found.tells or found.state not in FINAL_STATES:
            return False
        served = self.state.served.setdefault(found.namespace, Served())
        if batches := _ended_batches(found):
            self._count(served, found, batches, keep)
            evicted = _add_batches(served, batches, keep, self.state.now_ms)
            namespace = self.namespace_of(found)
            for request in evicted & namespace.requests.keys():
                del namespace.requests[request]
            if not namespace.users:
                namespace.requests_expire_ms = self.state.now_ms + keep.turns_ms
        self.folded.append((found, sum(len(block.codes) for batch in batches for block in batch.blocks)))
        self._evict_threads(served, found)
        self.wipe(found)
        return True

    def _count(self, served: Served, run: Run, batches: "Sequence[_EndedBatch]", keep: Keep) -> None:
        """Counts turns by the hour in which they are folded."""
        now_ms = self.state.now_ms
        words = served.hours.setdefault(now_ms // HOUR_MS, Counter())
        for block in (block for batch in batches for block in batch.blocks):
            latency = max(1, block.finished_ms - run.created_ms)
            bucket = ceil(log(latency) / log(LATENCY_GROWTH) - 1e-9)
            words.update(f"turns {code[:2]}" for code in block.codes)
            words.update({f"latency {bucket}": len(block.codes)})
        served.last_ms = now_ms
        if keep.days:
            keep_ms = keep.days * 86_400_000
            served.hours_expire_ms[now_ms // HOUR_MS] = now_ms + keep_ms
            for other in self.state.served.values():
                if other.last_ms is not None and other.last_ms <= now_ms - keep_ms:
                    other.last_ms = None

    def _evict_threads(self, served: Served, run: Run) -> None:
        """Notes which threads talked, and removes those that have been silent for long."""
        now_ms, namespace = self.state.now_ms, self.namespace_of(run)
        served.seen.update(dict.fromkeys(run.threads, now_ms))
        if run.namespace_ttl_s <= 0:
            return
        before_ms = now_ms - run.namespace_ttl_s * 1000
        silent = sorted((at, name) for name, at in served.seen.items() if at <= before_ms)
        for _, name in silent[:EVICTED]:
            del served.seen[name]
            thread = namespace.thread(name)
            if thread.owner is None and not thread.inbox:
                del namespace.threads[name]
        served.seen_expire_ms = now_ms + run.namespace_ttl_s * 1000

    def forget(
        self, namespace: str, threads: Mapping[str, bytes] | None = None, requests: Sequence[str] = ()
    ) -> int:
        """Removes threads in the state that was read, or a whole namespace, unless a run uses it."""
        found = self.state.namespaces.get(namespace, Namespace())
        if found.users:
            raise RunStateError(f"the threads of {namespace} are in use")
        states = {
            name: thread.memento for name, thread in found.threads.items() if thread.memento is not None
        }
        read = threads or states
        changed = [name for name, state in read.items() if states.get(name, state) != state]
        if changed:
            raise RunStateError(f"a turn of thread {changed[0]} has just been decided")
        for name in read if threads else list(found.threads):
            found.threads.pop(name, None)
            self.gone[namespace, name] = len(self.log.get((namespace, name), ()))
        for request in requests if threads else list(found.requests):
            found.requests.pop(request, None)
        return len(states.keys() & read.keys())

    def hear(self, listener: str) -> list[str]:
        """Takes what a listener is told."""
        told = self.state.told.pop(listener, None)
        return told.runs if told else []

    def backlog(self) -> int:
        """Items that sealed, unfinished runs still have to decide."""
        opened = [run for run in self.state.runs.values() if run.sealed_ms and run.state not in FINAL_STATES]
        return sum(max(0, run.goal - run.done) for run in opened)


class _EndedBatch(NamedTuple):
    """A batch of a run that has ended, and what is there of its result."""

    payload: bytes
    accepted: Sequence[int]
    parts: dict[str, bytes]
    blocks: Sequence[Block]


def _ended_batches(run: Run) -> list[_EndedBatch]:
    """Returns the batches of a run, in their order."""
    found = []
    for name in sorted(run.items, key=lambda name: (int(name.rpartition(".")[2]), name)):
        parts = {
            field.removeprefix(name): value
            for field, value in run.results.items()
            if field.partition(":")[0] == name
        }
        accepted = [run.created_ms] * len(unpack_batch(run.items[name])[0])
        stored = {f"r{part}": b"%d|%b" % value for part, value in parts.items()}
        blocks = [unpack_block(value) for _, value in parts.values()]
        found.append(_EndedBatch(run.items[name], accepted, stored, blocks))
    return found


def _add_batches(served: Served, batches: Sequence[_EndedBatch], keep: Keep, now_ms: int) -> set[str]:
    """Adds batches to a stream, and returns the requests of those that leave it."""
    last = served.entries[-1] if served.entries else Entry(0, 0, {})
    at_ms, number = max(now_ms, last.at_ms), last.number
    for batch in batches:
        number += len(batch.accepted)
        accepted = " ".join(map(str, batch.accepted)).encode()
        served.entries.append(Entry(at_ms, number, {"a": accepted, "i": batch.payload, **batch.parts}))
    served.entries_expire_ms = now_ms + keep.turns_ms
    requests = set[str]()
    for entry in served.entries[: len(batches) + EVICTED]:
        is_new = entry.at_ms >= now_ms - keep.turns_ms and entry.number > number - keep.turns
        if is_new or entry.number == number:
            break
        served.entries.remove(entry)
        for line in entry.fields["i"].split(b"\n")[1:]:
            if b"clientRequestId" in line:
                requests.add(loads(line)["clientRequestId"])
    return requests
