"""The world of the ledger's simulation: time, chance, the broker, and calls that may be sent twice."""

import random
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final

from shared.errors import ProctorError
from shared.ledger import ChunkPlan, Wake
from tests.support.ledger_model import LedgerModel
from tests.support.ledger_simulation_checks import check

START_MS: Final = 4_000_000_000_000
"""Where the world's clock begins: ahead of any real one, so that no real Redis expires a key meanwhile."""
LONGEST_LIFE_S: Final = 3_600
KINDS: Final = ("cases", "turns", "queries")

Step = Generator[int, None, Any]
Mirror = Callable[[LedgerModel, str, tuple[Any, ...], dict[str, Any], Any], None]
"""Gets every call with its answer: model, name, arguments, keywords, answer or error."""


@dataclass
class Actor:
    """Somebody who takes steps."""

    ready_ms: int
    steps: Step
    worker: str = ""
    name: str = ""


@dataclass
class Worker:
    """A worker process: dies as a whole."""

    kinds: tuple[str, ...]
    capacity: int
    held: dict[tuple[str, str], str] = field(default_factory=dict)
    stopped_until_ms: int = 0


@dataclass(frozen=True)
class Turn:
    """A turn of the input."""

    index: int
    request: str

    @property
    def line(self) -> bytes:
        """How it is loaded."""
        return f"{self.index} {self.request}".encode()


@dataclass
class Spec:
    """What a submit brings."""

    kind: str
    namespace: str
    key: str
    total: int
    chunks: dict[str, ChunkPlan]
    items: dict[str, bytes]
    wide: int = 0
    is_served: bool = False
    """Whether a server took its turns one by one."""
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    """By thread, in input order."""


class Killed(Exception):  # noqa: N818 - an event in the life of a worker, not an error
    """A poison item ended the process."""


class World:
    """Time, chance, and everybody in it."""

    def __init__(self, seed: int, mirror: Mirror | None = None) -> None:
        self.rnd = random.Random(seed)
        self.model = LedgerModel(START_MS)
        self.mirror = mirror
        self.broker: list[tuple[int, Wake]] = []
        self.actors: list[Actor] = []
        self.workers: dict[str, Worker] = {}
        self.specs: dict[str, Spec] = {}
        self.removed: set[str] = set()
        self.poison: set[tuple[str, int]] = set()
        self.flaky: set[tuple[str, str]] = set()
        self.answered: dict[tuple[str, str], int] = {}
        self.snapshot: LedgerModel | None = None
        self.calm = False
        self.calls: Counter[str] = Counter()
        self.serial = 0
        self.kills = self.rnd.random() < 0.7
        self.trouble = self.rnd.choice([0.01, 0.03, 0.1])
        self.lossy = self.rnd.choice([0, 0.02, 0.15])
        self.drop = self.rnd.choice([0, 0.1, 0.5])

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.model.state.now_ms

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        """Sets the time."""
        self.model.state.now_ms = value

    def unique(self, prefix: str) -> str:
        """A name that nobody has."""
        self.serial += 1
        return f"{prefix}{self.serial}"

    def later(self, choices: list[int], calm: int = 0) -> int:
        """A moment some milliseconds from now."""
        return self.now_ms + (calm if self.calm else self.rnd.choice(choices))

    def act(self, steps: Step, worker: str = "", name: str = "") -> None:
        """Lets an actor begin."""
        self.actors.append(Actor(self.now_ms, steps, worker, name))

    def ask(self, name: str, *args: Any, **keywords: Any) -> Any:
        """Runs one script and checks everything; an error of ours is an answer too."""
        self.calls[name] += 1
        answer: Any
        try:
            answer = getattr(self.model, name)(*args, **keywords)
        except ProctorError as error:
            answer = error
        if name == "remove" and answer is True:
            self.removed.add(args[0])
        if self.mirror:
            self.mirror(self.model, name, args, keywords, answer)
        check(self.model)
        return answer

    def call(self, name: str, *args: Any, **keywords: Any) -> Step:
        """Runs a script as a client does: when the reply is lost, the same call is sent again."""
        yield self.now_ms
        answer = self.ask(name, *args, **keywords)
        while self.rnd.random() < self.lossy and not self.calm:
            yield self.later([0, 500, 5000])
            answer = self.ask(name, *args, **keywords)
        yield self.now_ms
        return answer

    def send(self, wakes: list[Wake]) -> Step:
        """Publishes wake-ups: some are lost, doubled or late."""
        for wake in wakes:
            yield self.now_ms
            copies = 1 if self.calm else self.rnd.choices([0, 1, 2], [self.drop, 1, self.drop / 2])[0]
            for _ in range(copies):
                self.broker.append((self.later([0, 0, 100, 20_000]), wake))
