"""The actors of the simulation: producers that load runs, and workers that decide them."""

from shared.codecs.turn_batches import Block, pack_batch, pack_block, unpack_batch
from shared.errors import LoadLostError
from shared.ledger import (
    ChunkPlan,
    Claim,
    ClaimedThread,
    Committed,
    HeldLease,
    PartCommit,
    Row,
    ThreadCommit,
    Try,
    Wake,
)
from tests.support.ledger_simulation_world import KINDS, Killed, Spec, Step, Turn, Worker, World

NO_WORK = Committed("lost", [], "", [])
IDLE_LOOKS = 0.5
"""Share of the ticks of an idle worker at which it looks for wake-ups that were lost."""


class Actors(World):
    """Producers and workers."""

    # ---- producers

    def submit(self, number: int) -> None:
        """Invents an input, and lets a producer load it."""
        run, kind = f"r{number}", self.rnd.choice(KINDS)
        spec = Spec(kind, "", self.rnd.choice(["", f"key-{run}"]), 0, {}, {})
        for chunk in map(str, range(self.rnd.choice([1, 2, 3, 6, 12]))):
            if kind == "turns":
                self.invent_turns(run, chunk, spec)
            else:
                self.invent_items(run, chunk, spec)
        spec.wide = self.rnd.choice([0, 0, 0, 0, 1, 2])
        if kind == "turns":
            spec.namespace = self.rnd.choice(["", "shared"])
        self.specs[run] = spec
        self.act(self.producer(run), name=f"producer {run}")

    def invent_turns(self, run: str, chunk: str, spec: Spec) -> None:
        """Adds a chunk of turns; some repeat a request, some kill their worker."""
        parts = []
        for at, thread in enumerate(self.rnd.sample(["t 0", "t:1", "t2", "t3"], self.rnd.randint(1, 3))):
            count = self.rnd.randint(1, 4)
            turns = [
                Turn(spec.total + place, self.rnd.choice(["", "", "", f"q{self.rnd.randint(0, 5)}"]))
                for place in range(count)
            ]
            self.poison |= {(run, turn.index) for turn in turns if self.rnd.random() < 0.02}
            parts.append((f"{chunk}.{at}", thread, count))
            spec.items[f"{chunk}.{at}"] = pack_batch(
                [turn.index for turn in turns], [turn.line for turn in turns]
            )
            spec.turns.setdefault(thread, []).extend(turns)
            spec.total += count
        spec.chunks[chunk] = ChunkPlan(parts[0][1], parts)

    def invent_items(self, run: str, chunk: str, spec: Spec) -> None:
        """Adds a chunk of cases or queries; some end in error at first, some kill their worker."""
        indexes = [str(spec.total + at) for at in range(self.rnd.choice([1, 1, 3, 5]))]
        for index in indexes:
            spec.items[index] = f"payload {index}".encode()
            if self.rnd.random() < 0.03:
                self.poison.add((run, int(index)))
            if self.rnd.random() < 0.2:
                self.flaky.add((run, index))
        spec.total += len(indexes)
        spec.chunks[chunk] = ChunkPlan(f"case {indexes[0]}", indexes)

    def producer(self, run: str) -> Step:
        """Opens, loads and seals a run; starts again when it lost it."""
        spec, token = self.specs[run], self.unique("load")
        settings = {"kind": spec.kind, "namespace": spec.namespace, "key": spec.key, "token": token}
        while True:
            opened = yield from self.call("open", run, **settings, snapshot=b"{}", ttl_s=3600, wide=spec.wide)
            if opened.status in {"sealed", "exists"}:
                return
            if opened.status == "busy":
                yield self.now_ms + 5000
                continue
            if self.rnd.random() < 0.05 and not self.calm:
                yield from self.call("discard", run, token)
                continue
            if (yield from self.load(run, token)):
                sealed = yield from self.call("seal", run, token, spec.total, "digest")
                if not isinstance(sealed, LoadLostError):
                    self.snapshot = None  # WAITAOF: a crash does not lose what was written before this
                    yield from self.send(sealed)
                    return

    def load(self, run: str, token: str) -> Step:
        """Loads chunk by chunk."""
        spec = self.specs[run]
        for chunk, plan in spec.chunks.items():
            names = [part[0] for part in plan.parts] if spec.kind == "turns" else plan.parts
            items = {name: spec.items[name] for name in names}
            answer = yield from self.call("load", run, token, items, {chunk: plan})
            if isinstance(answer, LoadLostError):
                return False
            yield self.later([0, 100, 3000])
        return True

    # ---- workers

    def spawn(self, kinds: tuple[str, ...] | None = None) -> None:
        """Starts a worker: a steward, a renewer and a consumer."""
        name = self.unique("w")
        some = self.rnd.choice([KINDS, KINDS, ("cases", "queries"), ("turns",)])
        self.workers[name] = Worker(kinds or (KINDS if self.calm else some), self.rnd.choice([1, 2, 4]))
        self.act(self.steward(name), name, "steward")
        self.act(self.renewer(name), name, "renewer")
        self.act(self.consumer(name), name, "consumer")

    def kill(self, name: str) -> None:
        """Ends a worker with all its actors; another one starts after a while."""
        self.workers.pop(name, None)
        self.actors = [actor for actor in self.actors if actor.worker != name]
        self.act(self.respawn(), name="respawn")

    def respawn(self) -> Step:
        """Starts a worker after a while."""
        yield self.later([100, 3000, 40_000])
        self.spawn()

    def steward(self, name: str) -> Step:
        """Ticks each second."""
        worker = self.workers[name]
        while True:
            idle = worker.kinds if not worker.held and self.rnd.random() < IDLE_LOOKS else ()
            wakes = yield from self.call("tick", name, worker.kinds, worker.capacity, idle=idle)
            yield from self.send(wakes)
            yield self.now_ms + 1000

    def renewer(self, name: str) -> Step:
        """Renews all leases each five seconds."""
        worker = self.workers[name]
        while True:
            held = [HeldLease(*key, token) for key, token in worker.held.items()]
            if held:
                answers = yield from self.call("renew", held)
                for lease, state in zip(held, answers, strict=True):
                    key = (lease.run, lease.chunk)
                    if state == "lost" and worker.held.get(key) == lease.token:
                        del worker.held[key]
            yield self.now_ms + 5000

    def consumer(self, name: str) -> Step:
        """Takes messages as long as there is a free slot."""
        worker = self.workers[name]
        while True:
            yield self.later([50], calm=300)
            mine = [
                entry for entry in self.broker if entry[0] <= self.now_ms and entry[1].kind in worker.kinds
            ]
            if mine and len(worker.held) < worker.capacity:
                entry = self.rnd.choice(mine)
                self.broker.remove(entry)
                self.act(self.work(name, entry[1]), name, "chunk")

    def work(self, name: str, wake: Wake) -> Step:
        """Works on a chunk."""
        worker, key, token = self.workers[name], (wake.run, wake.chunk), self.unique(f"{name}:")
        worker.held.setdefault(key, token)
        try:
            claim = yield from self.call("claim", wake.run, wake.chunk, token, name)
            if claim.status == "ok":
                worker.held[key] = token
                decide = self.decide_turns if wake.kind == "turns" else self.decide_items
                yield from decide(name, wake, token, claim)
            else:
                yield from self.send(claim.wakes)
        except Killed:
            self.kill(name)
        finally:
            if worker.held.get(key) == token:
                del worker.held[key]

    def decide_items(self, _: str, wake: Wake, token: str, claim: Claim) -> Step:
        """Decides cases or queries in any order; some are to be tried again later."""
        rows: list[Row] = []
        tries: list[Try] = []
        for item in self.rnd.sample(claim.items, len(claim.items)):
            yield self.later([10, 10, 10, 200, 200, 2000, 9000, 25_000, 40_000], calm=10)
            if (wake.run, int(item.index)) in self.poison:
                raise Killed
            if self.rnd.random() < 0.1 and not self.calm:
                due = self.now_ms + self.rnd.choice([500, 5000])
                tries.append(Try(item.index, item.attempts + 1, due, "429"))
                continue
            failed = (wake.run, item.index) in self.flaky and item.generation == 0
            value = b"x|error" if failed else b"p|passed"
            rows.append(Row(item.index, item.generation, value, failed, item.attempts + 1))
            if self.rnd.random() < 0.4:
                kept = yield from self.call(
                    "commit", wake.run, wake.chunk, token, rows, back=False, tries=tries
                )
                rows, tries = [], []
                if kept.status == "lost":
                    return
                if kept.state != "running":
                    break
        due_ms = self.rnd.choice([0, min((attempt.not_before_ms for attempt in tries), default=0)])
        done = yield from self.call(
            "commit", wake.run, wake.chunk, token, rows, back=True, tries=tries, due_ms=due_ms,
            tally={"passed": len(rows)},
        )  # fmt: skip
        yield from self.send(done.wakes)

    def decide_turns(self, name: str, wake: Wake, token: str, claim: Claim) -> Step:
        """Decides turns thread by thread; commits some threads only in part, and claims again."""
        while True:
            names = sorted(
                {turn.request for thread in claim.threads for turn in _turns(thread) if turn.request}
            )
            known = set((yield from self.call("requests", claim.namespace, names)))
            rows: list[ThreadCommit] = []
            for thread in claim.threads:
                decided = yield from self.decide_thread(thread, known, suspect=claim.suspect)
                rows.append(decided)
            back = claim.busy_threads > 0 or self.rnd.random() < 0.5
            due_ms = self.now_ms + 1000 if claim.busy_threads else 0
            tally = {wake.run: {"must": len(rows)}, "r0": {"must": 1}}
            done = yield from self.call(
                "commit_threads",
                wake.run,
                wake.chunk,
                token,
                rows,
                back=back,
                due_ms=due_ms,
                tally=tally,
                awaits=back and bool(due_ms),
            )
            if done.status == "lost" or back:
                yield from self.send(done.wakes)
                return
            claim = yield from self.call("claim", wake.run, wake.chunk, token, name)
            if claim.status != "ok":
                yield from self.send(claim.wakes)
                return

    def decide_thread(self, thread: ClaimedThread, known: set[str], *, suspect: bool) -> Step:
        """Decides what stands in a thread's inbox; a suspect's thread, and some others, turn by turn."""
        parts, requests, memento, offset = [], [], thread.memento, thread.offset
        stop = suspect or self.rnd.random() < 0.3
        for batch in thread.batches:
            indexes, body = unpack_batch(batch.payload)
            lines = body.split(b"\n")
            end = offset + 1 if stop else batch.count
            codes, dead, answers = [], [], []
            for at in range(offset, end):
                yield self.later([0, 0, 10, 10, 10, 500, 10_000])
                if (batch.run, indexes[at]) in self.poison:
                    raise Killed
                request = lines[at].decode().split(" ")[1]
                codes.append("s6d" if request in known else "m2")
                answers.append(b"first" if request and request not in known else b"{}")
                if request and request not in known:
                    known.add(request)
                    requests.append((request, f"{batch.run}/{indexes[at]}".encode()))
                if indexes[at] % 7 == 6 and (batch.run, str(at)) not in self.flaky:
                    dead.append(at)
                memento += f"{batch.run}/{indexes[at]},".encode()
            block = Block(offset, self.now_ms, self.now_ms, indexes[offset:end], codes, answers)
            parts.append(PartCommit(offset, end - offset, pack_block(block), dead))
            if end < batch.count:
                break
            offset = 0
        return ThreadCommit(thread.thread, thread.pos, memento, parts, requests)


def _turns(thread: ClaimedThread) -> list[Turn]:
    """The turns that stand in a thread's inbox."""
    turns = []
    for batch in thread.batches:
        for line in unpack_batch(batch.payload)[1].decode().split("\n"):
            index, request = line.split(" ")
            turns.append(Turn(int(index), request))
    return turns
