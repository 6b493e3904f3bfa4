"""The producer's declaration of a kind: one object, whose parts are imported when they are used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from shared.lazy import Lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from producer.aggregate.compared_items import Comparing
    from producer.aggregate.gates import Metric
    from producer.cli.options.shared_options import SubmitChoice
    from producer.cli.preflight import Forecast
    from producer.cli.session import Session
    from producer.item_ids import IdParts
    from producer.load.chunks import RunInput
    from producer.load.source import Source
    from producer.options import SubmitOptions
    from producer.report.comparison.item_texts import ItemTexts
    from producer.report.interfaces import Report, Screen, Totals, TurnText
    from producer.report.junit import JunitTest
    from producer.report.shown_item import ShownItem
    from producer.retry_turns import Retry
    from shared.codecs.item_rows import ItemRow
    from shared.errors import UsageError
    from shared.kinds import Kind
    from shared.runs import RunInfo, RunStore

    ReadOptions = Callable[[SubmitOptions, SubmitChoice], SubmitOptions]
    Loader = Callable[[Source, SubmitOptions], RunInput]
    Format = Callable[[BinaryIO, RunInfo], Report]
    Poisoned = Callable[[ItemRow], tuple[str, str, Any]]
    Inputs = Callable[[RunStore, RunInfo], Iterator[tuple[int, bytes]]]
    Tests = Callable[[Iterable[Any]], Iterator[JunitTest]]

    class Pages(Protocol):
        """Yields the rows of a run in input order, page by page."""

        def __call__(self, store: RunStore, run: str, text: TurnText) -> Iterator[Sequence[Any]]:
            """`text`: what rows of turns contain of their input."""

    class Unfinished(Protocol):
        """Returns whether an item with a result is put back to work."""

        def __call__(self, row: ItemRow, *, errors: bool) -> bool:
            """`errors`: also items that ended in error."""


ITEM_FORMATS: Final[Mapping[str, Lazy[Format]]] = {
    "jsonl": Lazy("producer.report.items.to_jsonl", "ItemsJsonlReport"),
    "json": Lazy("producer.report.items.to_jsonl", "json_report"),
    "csv": Lazy("producer.report.items.to_csv", "ItemsCsvReport"),
    "md": Lazy("producer.report.items.to_markdown", "ItemsMarkdownReport"),
    "html": Lazy("producer.report.items.to_html", "ItemsHtmlReport"),
    "junit": Lazy("producer.report.items.to_junit", "ItemsJunitReport"),
    "github": Lazy("producer.report.github", "GithubReport"),
}
"""Writers for any kind whose results are single items; a kind replaces those for which it has its own."""

REPORT_SUFFIXES: Final[Mapping[str, Sequence[str]]] = {
    "md": (".md", ".markdown"),
    "json": (".json",),
    "jsonl": (".jsonl", ".ndjson"),
    "csv": (".csv",),
    "html": (".html", ".htm"),
    "junit": (".xml",),
    "github": (),
}
"""Formats of report files with the suffixes that select them; the first one names a default file."""
NOT_PRINTED: Final = frozenset({"html", "github"})
"""Formats that `results --format` does not print, because they are not read in a terminal."""


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
class ProducerKind:
    """How the producer loads, reads, shows and retries runs of one kind.

    What has a default works for any kind whose results are single items.
    """

    kind: Kind

    # Input files
    loader: Lazy[Loader]
    """Reads a file."""
    read_options: Lazy[ReadOptions] = Lazy("producer.cli.submission", "add_no_options")
    """Adds this kind's options of the command line to the settings of a submit."""
    keys: frozenset[str] = frozenset()
    """Top-level keys of a file by which the kind is recognised."""
    suffixes: Sequence[str] = ()
    """Suffixes of files, used if the content has none of the keys."""
    problems: Lazy[Callable[[Source], tuple[int, list[UsageError]]]] | None = None
    """Lists every problem of a file; without it a dry run stops at the first one."""
    dry_run: Lazy[Callable[[Session, Source, SubmitOptions], int]] | None = None
    """Prints what is in a file and returns the exit code; without it a dry run counts items and chunks."""
    forecast: Lazy[Callable[[Source, SubmitOptions], Forecast | None]] | None = None
    """Counts what a run is going to send; returns None for a stream, which is read once."""
    limit: Lazy[Callable[[SubmitOptions, Sequence[bytes]], SubmitOptions]] | None = None
    """Limits a run to the items with such inputs, for `--last-failed`."""
    examples: Sequence[Example] = ()
    """Packaged examples that `init` writes."""

    asks_models: bool = False
    """Whether the options of models are for such files."""

    # Results
    pages: Lazy[Pages] = Lazy("producer.document", "item_pages")
    """Reads the rows of a run in input order."""
    totals: Lazy[Callable[[], Totals]] = Lazy("producer.aggregate.items", "ItemTotals")
    """Counts rows."""
    settings: Lazy[Callable[[RunInfo], Mapping[str, Any]]] = Lazy("producer.run_settings", "no_settings")
    """Returns the settings of a run that its summary shows."""
    fails_fast: Lazy[Callable[[RunInfo], bool]] = Lazy("producer.run_settings", "never_fails_fast")
    """Returns whether the first failure was to end a run."""
    has_text: bool = False
    """Whether results come with the text of their input, which `--no-text` leaves out."""
    is_read_early: bool = False
    """Whether results are read chunk by chunk while the run goes on."""

    # Reports
    formats: Mapping[str, Lazy[Format]] = field(default_factory=lambda: ITEM_FORMATS)
    """Writers by the name of their format; `results --traces` uses those with `traces` in their name."""
    columns: Sequence[str] = ()
    """Keys of a result that the tables of `producer.report.items` show."""
    screen: Lazy[Screen] = Lazy("producer.report.items.terminal", "SCREEN")
    """What a terminal shows of a run."""
    tests: Lazy[Tests] = Lazy("producer.report.items.to_junit", "tests_of")
    """Makes a test of each row, for JUnit and GitHub."""
    poisoned: Lazy[Poisoned] = Lazy("producer.report.items.opened_rows", "poisoned")
    """Returns error code, message and result of an item that no worker survived."""

    shown: Lazy[Callable[[RunInfo], Callable[[Any], ShownItem]]] = Lazy(
        "producer.report.items.shown_items", "shown_items"
    )
    """Returns what makes of a row with its input what a terminal shows of one item."""
    row_keys: Lazy[Callable[[RunInfo], Callable[[ItemRow], Mapping[str, Any]]]] | None = None
    """Returns what makes the further keys of a JSON row, from its input."""

    # Gates and comparisons
    metrics: Lazy[Mapping[str, Metric]] = Lazy("producer.aggregate.gates", "COMMON_METRICS")
    """Numbers that a gate may use."""
    comparing: Lazy[Comparing] = Lazy("producer.aggregate.compared_items", "COMPARED_ITEMS")
    """How the items of two runs are compared."""
    compared_texts: Lazy[Callable[[Mapping[str, Any]], ItemTexts]] = Lazy(
        "producer.report.comparison.item_texts", "texts_of_item"
    )
    """Returns what a comparison shows of an item, from a line of its results."""
    compared_inputs: Lazy[Callable[[RunInfo], Callable[[Any], Mapping[str, Any]]]] | None = None
    """Makes for a run a function that returns of a row what was asked and how it was judged, where lines of
    results do not contain it: `inputs`, and what a kind has besides (`asked`, `weight`)."""
    configuration: Lazy[Callable[[RunInfo], Mapping[str, Any]]] = Lazy("producer.run_settings", "no_settings")
    """Returns what makes results differ: the settings that a comparison compares, by their names."""

    # Names
    id_parts: Lazy[Callable[[int, bytes], IdParts]] = Lazy("producer.item_ids", "item_id_parts")
    """Reads an item's own id from its input."""
    inputs: Lazy[Inputs] = Lazy("producer.item_ids", "item_inputs")
    """Yields position and input of every item of a run."""
    chunk_name: Lazy[Callable[[bytes], str]] = Lazy("producer.item_ids", "item_chunk_name")
    """Names a chunk of a retry after its first item."""
    has_repeated_ids: bool = False
    """Whether items with the same id are distinguished by a number."""

    # Retries
    retry: Lazy[Retry] = Lazy("producer.retry_items", "retry_items")
    """Puts items of a run back to work."""
    is_unfinished: Lazy[Unfinished] = Lazy("producer.retry_items", "is_item_unfinished")
    """Returns whether an item with a result is put back to work."""
    can_rescore: bool = False
    """Whether stored answers can be judged again."""
