"""Lives the ledger's life under a seeded scheduler: producers, workers and operators take single steps.

Time is the model's; an actor is a generator that yields the time at which it may go on. After every script
all invariants are checked. `Simulation(seed).run(steps)` is exactly repeatable.
"""

import copy
from collections.abc import Iterable
from typing import Any

from shared.codecs.turn_batches import pack_batch
from shared.errors import ProctorError
from shared.ledger import ChunkPlan
from shared.names import FINAL_STATES
from tests.support.ledger_model_state import Namespace, Served
from tests.support.ledger_simulation_checks import check, check_rest
from tests.support.ledger_simulation_servers import NAMESPACE, Servers
from tests.support.ledger_simulation_world import KINDS, Actor, Mirror, Step

FAULTS = (
    "kill", "kill_all", "stop_worker", "stop_worker", "stall", "stall", "freeze", "step_back", "crash",
    "control", "control", "retry", "retry", "retry", "remove", "forget", "kill_producers", "submit_again",
    "submit_new", "submit_new", "deliver_again", "shut_down", "kill_server", "start_server",
)  # fmt: skip
MOST_CALM_STEPS = 60_000
MOST_RUNS = 10


class Simulation(Servers):
    """A life of the ledger under faults, and its quiet end."""

    def __init__(self, seed: int, mirror: Mirror | None = None) -> None:
        super().__init__(seed, mirror)
        for number in range(self.rnd.randint(1, 4)):
            self.submit(number)
        for _ in range(self.rnd.randint(1, 3)):
            self.spawn()
        for _ in range(self.rnd.choice([0, 1, 2])):
            self.start_server()

    def run(self, steps: int = 1200) -> int:
        """Lives for some steps and comes to rest, twice; returns how many steps the longest rest took.

        The second time there are final runs to be retried, and threads that have a past.
        """
        longest = 0
        for _ in range(2):
            self.live(steps // 2)
            longest = max(longest, self.come_to_rest())
            check_rest(self.model)
            self.check_order()
            self.check_requests()
            self.check_served()
        self.forget_everything()
        return longest

    def live(self, steps: int) -> None:
        """Lives under faults."""
        self.calm = False
        for _ in range(steps):
            self.step()
            if self.rnd.random() < 0.02 and not self.mirror:
                self.snapshot = copy.deepcopy(self.model)
            if self.rnd.random() < self.trouble:
                getattr(self, self.rnd.choice(FAULTS))()

    def step(self) -> None:
        """Lets one of those that are ready take a step, or time pass."""
        now_ms = self.now_ms
        ready = [actor for actor in self.actors if actor.ready_ms <= now_ms and not self.is_stopped(actor)]
        if not ready:
            self.now_ms += 50
            return
        actor = self.rnd.choice(ready)
        try:
            actor.ready_ms = next(actor.steps)
        except StopIteration:
            self.actors = [other for other in self.actors if other is not actor]
        self.now_ms += self.rnd.choice([0, 0, 1, 5, 40])

    def is_stopped(self, actor: Actor) -> bool:
        """Tells whether an actor's process stands still."""
        return bool(actor.worker) and self.workers[actor.worker].stopped_until_ms > self.now_ms

    # ---- faults

    def kill(self, name: str = "") -> None:
        """Kills a worker."""
        if name:
            super().kill(name)
        elif self.workers and self.kills:
            super().kill(self.rnd.choice(sorted(self.workers)))

    def kill_all(self) -> None:
        """Kills all workers, sometimes."""
        if self.kills and self.rnd.random() < 0.3:
            for name in sorted(self.workers):
                super().kill(name)

    def shut_down(self) -> None:
        """Lets a worker leave; what it holds runs out."""
        if self.workers and self.kills:
            name = self.rnd.choice(sorted(self.workers))
            super().kill(name)
            self.act(self.call("leave", name, abrupt=self.rnd.random() < 0.5), name="leave")

    def stop_worker(self) -> None:
        """Stops a worker for a while, as a debugger or a swapping machine does."""
        if self.workers and self.kills:
            worker = self.workers[self.rnd.choice(sorted(self.workers))]
            worker.stopped_until_ms = self.now_ms + self.rnd.choice([2000, 20_000, 60_000])

    def stall(self) -> None:
        """Lets a worker lose sight of a chunk: it is not renewed any more, and committed much too late."""
        working = [actor for actor in self.actors if actor.name == "chunk"]
        if working:
            actor = self.rnd.choice(working)
            self.workers[actor.worker].held.clear()
            actor.ready_ms = self.now_ms + self.rnd.choice([17_000, 20_000, 40_000])

    def freeze(self) -> None:
        """Stops Redis for a while."""
        if self.rnd.random() < 0.3:
            self.now_ms += self.rnd.choice([5000, 20_000, 90_000])

    def step_back(self) -> None:
        """Sets the clock back."""
        if self.rnd.random() < 0.2:
            self.now_ms -= 3000

    def crash(self) -> None:
        """Lets Redis crash and lose the last second."""
        if self.snapshot and self.rnd.random() < 0.5:
            now_ms, self.model, self.snapshot = self.now_ms, self.snapshot, None
            self.now_ms = now_ms + 2000

    def kill_producers(self) -> None:
        """Kills some producers."""
        self.actors = [
            actor for actor in self.actors if not actor.name.startswith("producer") or self.rnd.random() < 0.5
        ]

    def submit_again(self) -> None:
        """Submits the same input again: with the same key, or when nothing is there."""
        run = self.rnd.choice(sorted(run for run, spec in self.specs.items() if not spec.is_served))
        if run not in self.removed and (self.specs[run].key or run not in self.model.state.runs):
            self.act(self.producer(run), name=f"producer {run}")

    def submit_new(self) -> None:
        """Brings another run."""
        number = sum(not spec.is_served for spec in self.specs.values())
        if number < MOST_RUNS:
            self.submit(number)

    def deliver_again(self) -> None:
        """Delivers a message twice."""
        if self.broker:
            self.broker.append((self.now_ms + 30_000, self.rnd.choice(self.broker)[1]))

    def control(self) -> None:
        """Lets somebody pause, resume or end a run."""
        if run := self.some_run():
            action = self.rnd.choice(["pause", "pause", "resume", "resume", "resume", "cancelled", "aborted"])
            self.act(self.operate("control", run, action), name="operator")

    def remove(self) -> None:
        """Lets somebody remove a run."""
        if (run := self.some_run()) and self.rnd.random() < 0.3:
            self.act(self.operate("remove", run), name="operator")

    def forget(self) -> None:
        """Lets somebody remove threads."""
        self.act(self.forget_threads(), name="operator")

    def retry(self) -> None:
        """Lets somebody retry a run."""
        if run := self.some_run():
            self.act(self.retry_run(run), name="operator")

    def some_run(self) -> str | None:
        """Any run."""
        runs = sorted(self.model.state.runs)
        return self.rnd.choice(runs) if runs else None

    def operate(self, name: str, run: str, *args: Any, **keywords: Any) -> Step:
        """Does what an operator asks for."""
        answer = yield from self.call(name, run, *args, **keywords)
        if name != "remove" and not isinstance(answer, ProctorError):
            yield from self.send(answer[1] if name == "control" else answer)

    def forget_threads(self) -> Step:
        """Reads threads, and removes them later; no turn goes that was decided in between."""
        namespace = self.model.state.namespaces.get(NAMESPACE, Namespace())
        read = {
            name: thread.memento or b""
            for name, thread in namespace.threads.items()
            if self.rnd.random() < 0.5
        }
        decided, removals = self.decided_turns(read), self.calls["forget"]
        yield self.later([0, 500, 5000])
        is_first = self.calls["forget"] == removals
        if read:
            answer = yield from self.call("forget", NAMESPACE, read)
            if is_first and isinstance(answer, int):
                assert self.decided_turns(read) == decided, f"a turn was lost: {read}"

    def decided_turns(self, threads: Iterable[str]) -> int:
        """How many turns some threads have had."""
        return sum(len(self.model.log.get((NAMESPACE, name), ())) for name in threads)

    def retry_run(self, run: str) -> Step:
        """Retries some cases, or those turns that were poisoned or never decided, and some others."""
        found, operation = self.model.state.runs.get(run), self.unique("op")
        if found is None:
            return
        if found.kind != "turns":
            some = sorted(index for index in found.items if self.rnd.random() < 0.5)
            yield from self.operate("retry", run, operation, chunks=[ChunkPlan("again", some)])
            return
        if found.state not in FINAL_STATES:
            return
        parts, items = [], {}
        for thread, turns in self.specs[run].turns.items():
            last = self.last_words(run, found.namespace, thread)
            wanted = [turn for turn in turns if last.get(turn.index, True) or self.rnd.random() < 0.2]
            marks = "".join("01"[turn.index in last] for turn in wanted)
            if wanted:
                parts.append((thread, thread, len(wanted), marks))
                items[thread] = pack_batch([turn.index for turn in wanted], [turn.line for turn in wanted])
        if parts:
            chunks, generation = [ChunkPlan("again", parts)], found.generation
            yield from self.operate(
                "retry", run, operation, chunks=chunks, items=items, generation=generation
            )

    def last_words(self, run: str, namespace: str, thread: str) -> dict[int, bool]:
        """For every decided turn whether it was poisoned the last time."""
        log = self.model.log.get((namespace, thread), [])
        return {index: poisoned for of, index, poisoned in log if of == run}

    # ---- the end

    def come_to_rest(self) -> int:
        """Ends all faults, starts a worker for everything, and waits until every run is final."""
        self.actors = [actor for actor in self.actors if actor.name != "operator"]
        self.calm = True
        self.spawn(KINDS)
        self.start_server()
        for worker in self.workers.values():
            worker.stopped_until_ms = 0
        for name, run in sorted(self.model.state.runs.items()):
            if run.state == "paused":
                self.ask("control", name, "resume")
        for taken in range(MOST_CALM_STEPS):
            self.step()
            if taken % 10 == 0 and self.is_at_rest():
                return taken
        raise AssertionError({run.run: (run.state, len(run.plan)) for run in self.model.state.runs.values()})

    def is_at_rest(self) -> bool:
        """Tells whether nobody loads, every run is final, and those of servers are folded."""
        runs = self.model.state.runs.values()
        loading = any(actor.name.startswith("producer") for actor in self.actors)
        served = any(run.tells for run in runs) or any(each.under_way for each in self.servers.values())
        return not loading and not served and all(run.state in FINAL_STATES for run in runs)

    def check_order(self) -> None:
        """In every thread the turns of a run were decided in input order, each once; finished means all.

        A run that was removed and submitted again under its name is left out: the log tells both lives of it.
        """
        for (_, thread), log in self.model.log.items():
            for run in ({entry[0] for entry in log} & self.model.state.runs.keys()) - self.removed:
                found = self.model.state.runs[run]
                want = [turn.index for turn in self.specs[run].turns[thread]]
                got = [index for of, index, _ in log if of == run]
                if found.state == "finished":
                    assert set(got) == set(want), f"{run} {thread}: {got} of {want}"
                first = list(dict.fromkeys(got))
                if not found.generation:
                    assert got == [index for index in want if index in first], f"{run} {thread}: {got}"

    def check_requests(self) -> None:
        """Every `clientRequestId` has one first answer in its namespace."""
        for name, namespace in self.model.state.namespaces.items():
            stream = self.model.state.served.get(name, Served()).entries
            firsts = sum(value.count(b"first") for entry in stream for value in entry.fields.values())
            for run in self.model.state.runs.values():
                if run.namespace == name:
                    firsts += sum(value.count(b"first") for _, value in run.results.values())
            removed = self.removed or any(run.generation for run in self.model.state.runs.values())
            known = len(namespace.requests)
            assert firsts == known or (removed and firsts <= known), (
                f"{name}: {firsts} first answers of {known}"
            )

    def forget_everything(self) -> None:
        """After their time all runs go, and leave nothing behind."""
        self.now_ms += 3_600_000
        self.actors.clear()
        for _ in range(2):
            self.now_ms += 1000
            self.ask("tick", "last", KINDS, 1)
        check(self.model)
        assert not self.model.state.runs, f"kept: {self.model.state.runs.keys()}"
        assert not self.model.state.idem, f"kept: {self.model.state.idem}"
        assert not self.model.state.dead, f"kept: {self.model.state.dead}"
        assert self.model.state.namespaces.keys() <= {"shared"}, f"kept: {self.model.state.namespaces.keys()}"
