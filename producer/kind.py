"""What a kind declares to the producer: one class, whose methods import what they need when called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from producer.aggregate.compared_items import Comparing, Known
    from producer.aggregate.gate_metrics import GateMetric
    from producer.documents import AnyRun
    from producer.forecasts import FileContents, Forecast
    from producer.item_ids import ItemNames
    from producer.load.chunks import RunInput
    from producer.load.source import Source
    from producer.options import SubmitOptions
    from producer.report.comparison.item_texts import ItemTexts
    from producer.report.interfaces import ReadFile, Report, Screen, Totals, TurnText
    from producer.report.junit import JunitTest
    from producer.report.run_report import RunReport
    from producer.report.shown_item import ShownItem
    from producer.review.answer_labels import Review
    from producer.row_filter import RowFacts
    from producer.turns.retry import Retry
    from shared.errors import UsageError
    from shared.kinds import Kind
    from shared.runs import RunInfo, RunStore

    Limit = Callable[[SubmitOptions, Sequence[bytes], str], SubmitOptions]


class Example(NamedTuple):
    """A packaged example, which `init` writes."""

    name: str
    """How it is asked for."""
    about: str
    """What it shows."""
    files: Sequence[str]
    """The file that is to be run, and those that it needs."""
    need: str = ""
    """What follows in the command that runs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a command asks of a kind before it imports any of its parts."""

    keys: frozenset[str] = frozenset()
    """Top-level keys of a file by which the kind is recognised."""
    suffixes: Sequence[str] = ()
    """Suffixes of files, used if the content has none of the keys."""
    examples: Sequence[Example] = ()
    """Packaged examples that `init` writes."""
    formats: Sequence[str]
    """Formats of `report`; `results --traces` uses those with `traces` in their name."""
    asks_models: bool = False
    """Whether the options of models are for such files."""
    has_text: bool = False
    """Whether results come with the text of their input, which `--no-text` leaves out."""
    is_read_early: bool = False
    """Whether results are read chunk by chunk while the run goes on."""
    can_rescore: bool = False
    """Whether stored answers can be judged again."""


class ComparedKind(NamedTuple):
    """How two runs of a kind are compared."""

    comparing: Comparing
    """How their items are paired and measured."""
    texts: Callable[[Any], ItemTexts]
    """Returns what a comparison shows of an item, from a line of its results."""
    inputs: Callable[[RunInfo], Callable[[Any], Known | None]] | None
    """Makes for a run a function that returns of a row what was asked and how it was judged, where lines of
    results do not contain it."""
    configuration: Callable[[RunInfo], Mapping[str, Any]]
    """Returns what makes results differ: the settings that a comparison compares, by their names."""


class ProducerKind(Protocol):
    """How the producer loads, reads, shows and retries runs of one kind.

    `producer.items.kind` has a function for each method that works for any kind whose results are single
    items; a kind without anything of its own to add calls it.
    """

    kind: ClassVar[Kind]
    traits: ClassVar[Traits]

    # Input files
    def load(self, source: Source, options: SubmitOptions, /) -> RunInput:
        """Begins to read a file."""

    def problems(self, source: Source, /) -> Sequence[UsageError]:
        """Lists every problem of a file; empty for a kind whose loader lists them itself."""

    def contents(self, source: Source, options: SubmitOptions, /) -> FileContents | None:
        """Returns what is in a file; None: its items and chunks are counted."""

    def forecast(self, source: Source, options: SubmitOptions, /) -> Forecast | None:
        """Counts what a run is going to send; None for a run without calls, and for a stream."""

    def limit(self) -> Limit | None:
        """Returns what limits a run to the items with such inputs, for `--last-failed` and `--only`."""

    # Results
    def pages(self, store: RunStore, run: str, text: TurnText, /) -> Iterator[Sequence[Any]]:
        """Yields the rows of a run in input order, page by page; `text`: what turns have of their input."""

    def totals(self, review: Review, /) -> Totals:
        """Begins to count rows; `review` is what people say of them."""

    def fails_fast(self, info: RunInfo, /) -> bool:
        """Returns whether the first failure was to end a run."""

    # Reports
    def report(self, name: str, out: BinaryIO, info: RunInfo, /) -> Report:
        """Begins a report in one of the kind's formats."""

    def run_report(self, document: AnyRun, /) -> RunReport:
        """Returns what is said of a run in every format."""

    def screen(self) -> Screen:
        """Returns what a terminal shows of the items of a run."""

    def tests(self, rows: Iterable[Any], /) -> Iterator[JunitTest]:
        """Makes a test of each row, for JUnit and GitHub."""

    def shown(self, info: RunInfo, /) -> Callable[[Any], ShownItem]:
        """Returns what makes of a row with its input what a terminal shows of one item."""

    def item_html(self, info: RunInfo, read: ReadFile, /) -> Callable[[Any], bytes] | None:
        """Returns what writes of a row with its input all that pages say of an item; None: as a terminal."""

    def facts(self, fields: frozenset[str], /) -> Callable[[Any], RowFacts]:
        """Returns what reads from a row the facts that a filter looks at."""

    # Gates, comparisons, names, retries
    def metrics(self) -> Mapping[str, GateMetric]:
        """Returns the numbers that a gate may use."""

    def compared(self) -> ComparedKind:
        """Returns how two runs are compared."""

    def names(self) -> ItemNames:
        """Returns how items are named."""

    def retry(self) -> Retry:
        """Returns what puts items of a run back to work."""
