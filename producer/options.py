"""Options and result of a submit, and which items of a file they select."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from producer.load.chunks import CHUNK_TURNS
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import QueryRun
from shared.contracts.turn_vocabulary import SummaryPolicy
from shared.kinds import Kind
from shared.ledger import Wake
from shared.ledger.bounds import FIRST_LAYOUT
from shared.redaction import Redactor

if TYPE_CHECKING:
    from shared.contracts.case_config import ModelConfig, RunSettings
    from shared.contracts.case_hashes import CaseHashes

T = TypeVar("T")

SAMPLE_SEED: Final = 20_260_101
"""A sample is the same one each time, so that two runs can be compared."""


class CaseItem(NamedTuple):
    """A case put to a model by a prompt."""

    case: str
    """Its id; without one `#` and its position."""
    model: str
    prompt: str = ""
    """Id of the prompt; empty: without prompts."""


def case_key(position: int, own: str | None) -> str:
    """Returns what a case is found by in another run of its file.

    >>> case_key(3, None), case_key(3, "fr")
    ('#3', 'fr')
    """
    return f"#{position}" if own is None else own


@dataclass(frozen=True, slots=True)
class CaseChoice:
    """What the command line says of a run of cases; it goes before what the file says."""

    settings: "RunSettings | None" = None
    """Settings that are given; None: none."""
    models: Sequence[str] = ()
    """Called instead of the configured ones."""
    model_config: "ModelConfig | None" = None
    """Endpoint and price of all models under test; None: neither is given."""
    validators_file: str | None = None
    """Used instead of the configured one."""
    outputs: str | None = None
    """File of recorded outputs."""
    allow_code: bool = False
    """Whether code beside the bench may run."""
    all_repeats: bool = False
    """Whether answers are asked for that cannot change the verdict on their case any more."""
    is_timed: bool = False
    """Whether answers are streamed, whatever the settings say."""
    cases: Sequence[str] = ()
    """Ids or numbers, from 1, of the only cases to run."""
    tags: Sequence[str] = ()
    """Only cases with one of these tags; empty: all."""
    only: frozenset[CaseItem] | None = None
    """Only these combinations; None: all."""
    hashes: "Mapping[int, CaseHashes]" = field(default_factory=dict)
    """Those of cases that come from another run, by position."""
    containing: str = ""
    """Only cases with this in their id or input."""
    first: int | None = None
    """Only so many, from the start."""
    sample: int | None = None
    """Only so many, picked at random, always the same."""


@dataclass(frozen=True, slots=True)
class QueryChoice:
    """Which queries of a file a run sends."""

    categories: Sequence[str] = ()
    """Only those of one of these; empty: of all."""
    containing: str = ""
    """Only those with this in their id or text."""
    first: int | None = None
    """Only so many, from the start."""
    sample: int | None = None
    """Only so many, picked at random, always the same."""
    ids: frozenset[str] | None = None
    """Only these; None: all."""
    ids_from: str = ""
    """The option that names them."""

    def __str__(self) -> str:
        """Returns it as options; empty for all queries."""
        options = [] if self.ids is None else [self.ids_from]
        options += [f"--category {name}" for name in self.categories]
        if self.containing:
            options.append(f"-k {self.containing}")
        if self.first is not None:
            options.append(f"--first {self.first}")
        if self.sample is not None:
            options.append(f"--sample {self.sample}")
        return " ".join(options)


class Publishes(Protocol):
    """Publishes wake-ups: `shared.broker.Publisher`."""

    def publish(self, wakes: Sequence[Wake]) -> None:
        """Publishes wake-ups; does not raise for an unavailable broker."""


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """Options of a submit; none is read from the settings of the environment, which a caller passes on."""

    idempotency_key: str = ""
    """The same key again returns the same run; empty for none."""
    name: str = ""
    """What people call the run; empty: its bench or its file."""
    last_failed: bool = False
    """Only what failed in the newest run of the same file; all of it where nothing did."""
    origin: str = ""
    """What the input is called where it is a file of our own making; empty: by its name."""
    namespace: str = ""
    """Namespace of the threads' state; empty for the run's own."""
    summary_policy: SummaryPolicy = SummaryPolicy.GUARDRAIL
    """What keeps a proposed summary out of a memento."""
    signals_once: bool = False
    """Whether a signal counts once in its thread."""
    queries: QueryRun = field(default_factory=QueryRun)
    """How queries are sent."""
    query_choice: QueryChoice = field(default_factory=QueryChoice)
    """Which queries are sent."""
    live: LiveRun | None = None
    """How a model answers turns; None: their answers are recorded."""
    cases: CaseChoice = field(default_factory=CaseChoice)
    """How cases are run."""
    plan: object = None
    """The `PlannedRun` of cases, where their file was read already."""
    baselines: object = None
    """The `Baselines` of queries, where their file was read already."""
    redactor: Redactor | None = None
    """What is replaced in texts before they are stored; None: nothing."""
    results_ttl_s: int = 30 * 24 * 3600
    """How long the run is kept after its end."""
    max_backlog_items: int = 5_000_000
    """Unfinished items in the ledger above which a load waits."""
    patience_s: float = 60.0
    """How long a load waits for the backlog to shrink."""
    await_disk: bool = True
    """Whether to return only when a crash of Redis cannot take the run back any more, a second or less."""
    chunk_turns: int = CHUNK_TURNS
    """Turns of one chunk."""
    on_progress: Callable[[int], None] = field(default=lambda _items: None)
    """Called with the number of loaded items after each call of the ledger."""
    on_wait: Callable[[str], None] = field(default=lambda _why: None)
    """Called with the reason when the submit waits, once per reason."""
    on_warning: Callable[[str], None] = field(default=lambda _warning: None)
    """Called with each warning about the input."""
    on_note: Callable[[str], None] = field(default=lambda _note: None)
    """Called with what `last_failed` chose, in a sentence."""


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
    layout: int = FIRST_LAYOUT
    """Workers that do not know this layout leave it alone."""


class Pick(Protocol):
    """Options that select items."""

    @property
    def containing(self) -> str:
        """Only items with this in their text, in any case of letters; empty: all."""

    @property
    def first(self) -> int | None:
        """Only so many, from the start."""

    @property
    def sample(self) -> int | None:
        """Only so many, picked at random."""


def pick_items(items: Sequence[T], pick: Pick, text_of: Callable[[T], str]) -> list[T]:
    """Returns the selected items, in their order.

    Args:
        items: in order.
        pick: the options; text is applied before numbers.
        text_of: the text of an item in which words are looked for.
    """
    found = list(items)
    if pick.containing:
        word = pick.containing.casefold()
        found = [item for item in found if word in text_of(item).casefold()]
    if pick.first is not None:
        found = found[: pick.first]
    if pick.sample is not None and pick.sample < len(found):
        chosen = random.Random(SAMPLE_SEED).sample(range(len(found)), pick.sample)  # noqa: S311 - to repeat, not to guess
        found = [found[at] for at in sorted(chosen)]
    return found
