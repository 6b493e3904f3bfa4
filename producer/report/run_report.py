"""The contents of a run's report as values: its kind fills them in, and each format writes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from msgspec import UNSET

from producer.documents import AnyRun, Percentiles
from producer.report.figures import Figure, Labelled, ShownIn, Table, Unit
from producer.report.run_verdict import Verdict
from producer.text import duration, share


class FigureLine(NamedTuple):
    """Figures on one line."""

    figures: Sequence[Labelled]
    title: str = ""
    places: ShownIn = ShownIn.EVERYWHERE

    def __str__(self) -> str:
        if self.title:
            return f"{self.title}: {', '.join(map(str, self.figures))}"
        return " · ".join(map(str, self.figures))


class FailureExample(NamedTuple):
    """An item that failed."""

    name: str
    found: str = ""
    """What was found in it, where that differs from item to item."""
    answer: str = ""
    """The beginning of its answer."""


class FailureGroup(NamedTuple):
    """Failures with the same reason."""

    number: int
    noun: str
    """What they are: answers, errors, queries."""
    reasons: Sequence[str]
    """Why; a reason that does not hold for all is an example."""
    examples: Sequence[FailureExample]
    """The first of them."""
    asked: str | None = None
    """Of a single failure, the beginning of what was asked."""

    @property
    def left(self) -> int:
        """How many have no example."""
        return self.number - len(self.examples)


class Failures(NamedTuple):
    """What failed in a run, by reason, the most frequent first."""

    groups: Sequence[FailureGroup] = ()
    left: int = 0
    """Failures that are in no group."""


NOTHING_FAILED: Final = Failures()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What people read of a run; texts are not escaped yet."""

    run: AnyRun
    """The document; its state may also be `interrupted`."""
    names: Sequence[str]
    """What the run is called, its input last."""
    headline: str
    """What the run is and how far it came."""
    verdict: Verdict
    outcomes: Sequence[Labelled] = ()
    """Counts that the verdict also contains; a page, which shows the verdict above them, leaves them out."""
    figures: Sequence[Labelled] = ()
    """Of the whole run, in one line with the outcomes."""
    lines: Sequence[FigureLine] = ()
    """Further figures of the whole run."""
    tables: Sequence[Table] = ()
    failures: Failures = NOTHING_FAILED
    title: str = ""
    """Of its Markdown, before the verdict, where a document gives it one."""
    badge: str = ""
    """The type of the run, if it is unusual."""
    is_checked: bool = True
    """Whether what passed was checked."""

    @property
    def name(self) -> str:
        """Its first name, else its id."""
        return self.names[0] if self.names else self.run.run_id

    def lines_in(self, place: ShownIn) -> Sequence[FigureLine]:
        """Returns the figures of the whole run that are shown in a place, the outcomes first."""
        first = self.figures if place is ShownIn.PAGE else [*self.outcomes, *self.figures]
        return [
            line
            for line in (FigureLine(first), *self.lines, *_forgotten(self.run))
            if line.figures and place in line.places
        ]

    def noting(self, sentences: Iterable[str]) -> "RunReport":
        """Returns the report with further sentences on its verdict; empty ones are left out."""
        why = [*self.verdict.why, *filter(None, sentences)]
        return replace(self, verdict=replace(self.verdict, why=why))

    def tables_in(self, place: ShownIn) -> Sequence[Table]:
        """Returns the tables that are shown in a place, except empty ones."""
        return [table.shown_in(place) for table in self.tables if table and place in table.places]


def headline_of(document: AnyRun, what: str, *, per_s: str = "") -> str:
    """Returns a line on what a run is, and on how far it came or how long it took.

    Args:
        document: document of the run.
        what: its items in words.
        per_s: its rate in words; empty: it is not shown.
    """
    counts, seconds = document.counts, document.summary.duration_s
    if seconds is None:
        done = f"{counts.done:,} of {counts.total:,} done ({share(counts.done, counts.total)})"
        return f"{document.state}: {what}, {done}"
    return f"{document.state}: {what} in {duration(seconds)}{per_s and f' ({per_s})'}"


def _forgotten(document: AnyRun) -> Sequence[FigureLine]:
    """Returns when the texts of a run were deleted; empty for a run that has them."""
    at = document.texts_forgotten_at
    return [] if at is UNSET else [FigureLine([Labelled("forgotten", at)], "texts")]


def names_of(document: AnyRun, bench: str = "") -> Sequence[str]:
    """Names a run: as `--name` gave it, by its bench, by its input."""
    named = (document.name, bench, document.summary.source)
    return [name for name in dict.fromkeys(named) if name]


def latencies(
    times: Percentiles, title: str = "latency", *, places: ShownIn = ShownIn.EVERYWHERE
) -> Sequence[FigureLine]:
    """Returns a line of latencies in milliseconds; nothing where none was measured.

    Args:
        times: percentiles.
        title: of the line.
        places: where it is shown.

    >>> [str(line) for line in latencies(Percentiles(7, 8, 1200, 1300, 1400))]
    ['latency: p50 7 ms, p90 8 ms, p95 1,200 ms, p99 1,300 ms, max 1,400 ms']
    """
    found = [Labelled(name, Figure(ms, Unit.LATENCY_MS)) for name, ms in times.named().items() if ms >= 0]
    return [FigureLine(found, title, places)] if found else []
