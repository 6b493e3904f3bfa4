"""The servers of the simulation: they take turns as `proctor serve` does, hear of their ends, fold them."""

from dataclasses import dataclass, field
from typing import Final

from shared.codecs.turn_batches import unpack_block
from shared.errors import LoadLostError
from shared.ledger import Keep
from shared.names import FINAL_STATES
from tests.support.ledger_model_state import Run
from tests.support.ledger_simulation_actors import Actors
from tests.support.ledger_simulation_world import Spec, Step

NAMESPACE: Final = "shared"
MOST_SERVED: Final = 12
"""Micro-runs of a life."""
ADOPTED_MS: Final = 60_000
KEEP: Final = Keep(days=0, turns_ms=40_000_000_000_000)
"""For ever, so that the answers to requests can be counted; the stateful test lets turns leave."""


@dataclass
class Server:
    """A process that serves; dies as a whole."""

    under_way: dict[str, int] = field(default_factory=dict)
    """Micro-runs whose callers wait, with their numbers of turns."""


class Servers(Actors):
    """Servers that submit one micro-run after the other, listen, look, hand out results and fold."""

    servers: dict[str, Server]

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]  # the seed and the mirror of the world
        self.servers = {}

    def start_server(self) -> None:
        """Starts a server."""
        name = self.unique("s")
        self.servers[name] = Server()
        for steps in (self.take_turns(name), self.listen(name), self.look(name), self.adopt(name)):
            self.act(steps, name=f"server {name}")

    def kill_server(self) -> None:
        """Kills a server; its callers get no answer."""
        if self.servers:
            name = self.rnd.choice(sorted(self.servers))
            del self.servers[name]
            self.actors = [actor for actor in self.actors if actor.name != f"server {name}"]

    def take_turns(self, name: str) -> Step:
        """Submits micro-runs one after the other."""
        made = 0
        while True:
            yield self.later([10, 500, 3000], calm=60_000)
            if self.calm or sum(spec.is_served for spec in self.specs.values()) == MOST_SERVED:
                continue
            made += 1
            run = f"served-{name}-{made}"
            spec = self.specs[run] = Spec("turns", NAMESPACE, "", 0, {}, {}, is_served=True)
            self.invent_turns(run, "0", spec)
            if (yield from self.submit_turns(run, name, spec)):
                self.servers[name].under_way[run] = spec.total

    def submit_turns(self, run: str, name: str, spec: Spec) -> Step:
        """Opens, loads and seals a micro-run; returns whether its turns are accepted."""
        yield from self.call(
            "open", run, kind="turns", namespace=NAMESPACE, key="", token=name, snapshot=b"{}", ttl_s=3600,
            tells=name,
        )  # fmt: skip
        loaded = yield from self.call("load", run, name, spec.items, spec.chunks)
        if isinstance(loaded, LoadLostError):
            return False
        sealed = yield from self.call("seal", run, name, spec.total, "")
        if isinstance(sealed, LoadLostError):
            return False
        yield from self.send(sealed)
        return True

    def listen(self, name: str) -> Step:
        """Finishes what the ledger tells of; a reply that is lost takes what it told with it."""
        while True:
            yield self.later([10, 100, 1000], calm=3000)
            for run in (yield from self.call("hear", name)):
                yield from self.finish(name, run)

    def look(self, name: str) -> Step:
        """Finishes what nobody told of."""
        while True:
            yield self.later([250, 1000, 5000], calm=3000)
            for run in list(self.servers[name].under_way):
                found = self.model.state.runs.get(run)
                if found is None or found.state in FINAL_STATES:
                    yield from self.finish(name, run)

    def finish(self, name: str, run: str) -> Step:
        """Answers the callers of a run, once, and folds it."""
        total, found = self.servers[name].under_way.pop(run, None), self.model.state.runs.get(run)
        if total and found:  # else it was answered, or it is gone, and its callers get an error
            yield from self.fold(found)

    def fold(self, run: Run) -> Step:
        """Folds a run that has ended, with its results; one that was cancelled has fewer."""
        lines = [line for _, value in run.results.values() for line in unpack_block(value).lines]
        whole = run.state == "finished"
        assert not whole or len(lines) == run.total, f"{run.run} has ended with {len(lines)} of {run.total}"
        yield from self.call("fold", [run.run], KEEP)

    def adopt(self, name: str) -> Step:
        """Folds runs of servers that have gone."""
        while True:
            yield self.later([5000, 30_000], calm=5000)
            for found in list(self.model.state.runs.values()):
                others = found.tells not in {"", name} and found.state in FINAL_STATES
                if others and (found.finished_ms or 0) + ADOPTED_MS < self.now_ms:
                    yield from self.fold(found)

    def check_served(self) -> None:
        """Every turn that was accepted was decided once, in the order of acceptance, and is in the stream.

        Of a run that an operator ended, those that were decided before; one that was removed is gone.
        """
        folded, accepted = {run.run for run, _ in self.model.folded}, set(self.model.accepted)
        cut = {run.run for run, _ in self.model.folded if run.state != "finished"}
        assert accepted - self.removed <= folded <= accepted, f"not folded: {accepted - folded}"
        for (namespace, thread), log in self.model.log.items():
            if namespace == NAMESPACE:
                found = [(run, index) for run, index, _ in log if run in folded]
                wanted = [
                    (run, turn.index)
                    for run in self.model.accepted
                    for turn in self.specs[run].turns.get(thread, ())
                    if run in folded and (run not in cut or (run, turn.index) in found)
                ]
                assert found == wanted, f"{thread}: {found}, accepted {wanted}"
