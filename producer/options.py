"""What a submit may be told, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from producer.load.chunks import CHUNK_TURNS
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import QueryRun
from shared.contracts.turn_vocabulary import SummaryPolicy
from shared.kinds import Kind
from shared.ledger import Wake


@dataclass(frozen=True, slots=True)
class CaseChoice:
    """What the command line says about a run of cases; it goes before the configuration."""

    models: Sequence[str] = ()
    """Asked instead of the configured ones."""
    api_base: str = ""
    """Where they are asked."""
    api_key_env: str = ""
    """The variable of the workers' environment that holds the key."""
    temperature: float | None = None
    """What they are asked with."""
    max_cost: float | None = None
    """US dollars that the run may cost."""
    price: Mapping[str, float] = field(default_factory=dict)
    """`prompt_per_million` and `completion_per_million`."""
    cache: bool = True
    """Whether equal questions share an answer."""
    concurrency: int | None = None
    """Calls that may be under way at a time in the whole fleet."""
    repeat: int | None = None
    """How often each case is put to each model."""
    judges: Sequence[str] | None = None
    """Who are asked instead of the configured judges; empty: nobody."""
    validators_file: str | None = None
    """Taken instead of the configured one."""
    outputs: str | None = None
    """File of recorded outputs."""
    stream: bool = False
    """Whether answers are taken piece by piece."""
    fail_fast: bool = False
    """Whether the first failure ends the run."""
    cases: Sequence[str] = ()
    """Ids or numbers, from 1, of the only cases to run."""
    containing: str = ""
    """Only cases with this in their id or input."""
    first: int | None = None
    """Only so many, from the start."""
    sample: int | None = None
    """Only so many, picked at random, always the same."""


@dataclass(frozen=True, slots=True)
class QueryChoice:
    """Which queries of a file a run asks."""

    categories: Sequence[str] = ()
    """Only those of one of these; empty: of all."""
    containing: str = ""
    """Only those with this in their id or text."""
    first: int | None = None
    """Only so many, from the start."""
    sample: int | None = None
    """Only so many, picked at random, always the same."""

    def __str__(self) -> str:
        """Returns it as options; empty for all queries."""
        options = [f"--category {name}" for name in self.categories]
        options += [f"-k {self.containing}"] * bool(self.containing)
        options += [f"--first {self.first}"] * (self.first is not None)
        options += [f"--sample {self.sample}"] * (self.sample is not None)
        return " ".join(options)


class Publishes(Protocol):
    """Whoever brings wake-ups to workers: `shared.broker.Publisher`."""

    def publish(self, wakes: Sequence[Wake]) -> None:
        """Publishes wake-ups; does not fail for a broker that is away."""


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """What a submit may be told."""

    idempotency_key: str = ""
    """The same key again stands for the same run; empty for none."""
    namespace: str = ""
    """Where the threads' state lives; empty for the run's own."""
    summary_policy: SummaryPolicy = SummaryPolicy.GUARDRAIL
    """What keeps a proposed summary out of a memento."""
    queries: QueryRun = field(default_factory=QueryRun)
    """How queries are asked."""
    query_choice: QueryChoice = field(default_factory=QueryChoice)
    """Which queries are asked."""
    live: LiveRun | None = None
    """How turns are answered by a model; None: their answers are recorded."""
    cases: CaseChoice = field(default_factory=CaseChoice)
    """How cases are run."""
    results_ttl_s: int = 30 * 24 * 3600
    """How long the run is kept after its end."""
    max_backlog_items: int = 5_000_000
    """Unfinished items in the ledger above which a load waits."""
    patience_s: float = 60.0
    """How long it waits for room."""
    await_disk: bool = True
    """Whether to return only when a crash of Redis cannot take the run back any more, a second or less."""
    chunk_turns: int = CHUNK_TURNS
    """Turns of one chunk."""
    on_progress: Callable[[int], None] = field(default=lambda _items: None)
    """Told how many items were loaded, after each call."""
    on_wait: Callable[[str], None] = field(default=lambda _why: None)
    """Told why nothing moves, once per reason."""
    on_warning: Callable[[str], None] = field(default=lambda _warning: None)
    """Told what the contract allows and nobody wants."""


class SubmittedRun(NamedTuple):
    """A run that is safely in the ledger."""

    run: str
    """Its id."""
    kind: Kind
    """What its items are."""
    total: int
    """How many."""
    threads: int
    """Distinct threads (turns)."""
    duplicate: bool
    """Whether the idempotency key had it already."""
