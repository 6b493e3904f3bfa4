"""Runs as a table has them: standing, rate, change since the run before, cost, age, and its filter; pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from producer.aggregate.statistics import independent_difference, wilson
from producer.documents import Rate
from producer.report.html.viewer import Letter
from producer.row_filter import AGE, MONEY, NUMBER, Field, FilterTable, RowFilter
from producer.run_standing import Standing, passed_of, standing_of, state_text
from producer.text import age, cost, duration, percent, plural
from shared.kinds import Kind, all_kinds
from shared.names import Outcome, RunState
from shared.runs import RunInfo

PAGE: Final = 100
"""Runs of a page."""
LETTERS: Final[Mapping[Standing, Letter]] = {
    Standing.GOOD: Letter.PASSED,
    Standing.BAD: Letter.FAILED,
    Standing.SHORT: Letter.ERROR,
    Standing.WORKING: Letter.ABSENT,
    Standing.WAITING: Letter.NONE,
}
WORDS: Final[Mapping[Standing, str]] = {
    Standing.GOOD: "all passed",
    Standing.BAD: "with failures",
    Standing.SHORT: "ended early",
    Standing.WORKING: "at work",
    Standing.WAITING: "waits",
}
"""What chips and marks call a standing."""


class RunFacts(Struct, gc=False):
    """The facts of a run that filters test."""

    status: Sequence[str]
    """How it stands, and whether some of its items failed or ended in an error."""
    state: str
    kind: str
    name: str
    id: str
    file: str
    models: Sequence[str]
    prompts: Sequence[str]
    rate: float | None
    cost_usd: float | None
    took_ms: float | None
    age_ms: float
    items: float
    errors: float


_STATUS: Final[Mapping[Standing, str]] = {
    Standing.GOOD: "passed",
    Standing.SHORT: "early",
    Standing.WORKING: "working",
    Standing.WAITING: "waiting",
}
_BAD: Final = (Outcome.FAILED.value, Outcome.ERROR.value)
_STATUSES: Final = ("passed", *_BAD, "early", "working", "waiting")
_STATES: Final = tuple(state.value for state in RunState)
RUNS: Final = FilterTable(
    {
        "status": Field(
            "status",
            "`passed` (all did), `failed` or `error` (some did), `early` (ended early), `working`, `waiting`",
            values=_STATUSES,
            alone=_STATUSES,
        ),
        "state": Field("state", "such as `finished`, `cancelled`, `paused`", values=_STATES, alone=_STATES),
        "kind": Field("kind", "`turns`, `cases` or `queries`", values=[kind.name for kind in all_kinds()]),
        "name": Field("name", "name of the run, else of its bench or file"),
        "id": Field("id", "id of the run"),
        "file": Field("file", "name of its file"),
        "model": Field("models", "one of its models"),
        "prompt": Field("prompts", "id of one of its prompts"),
        "rate": Field("rate", "how much of it passed", NUMBER),
        "cost": Field("cost_usd", "cost of its calls", MONEY),
        "took": Field("took_ms", "time from its begin to its end", AGE),
        "age": Field("age_ms", "time since its begin", AGE),
        "items": Field("items", "number of its items", NUMBER),
        "errors": Field("errors", "number of items that ended in an error", NUMBER),
    },
    "failed, age < 2d, rate < 90%",
)
"""The fields by which runs are filtered."""


class RateChange(NamedTuple):
    """How a rate differs from that of the run before, of the same name."""

    text: str
    tone: str
    """`p` or `f` where the difference is more than chance; else empty."""
    about: str


class RunLine(NamedTuple):
    """A run in the table."""

    run: str
    title: str
    source: str
    kind: str
    standing: Standing
    letter: Letter
    state: str
    rate: Rate | None
    rate_text: str
    change: RateChange | None
    cost: str
    took: str
    age: str
    items: str
    words: str
    """What the search looks at, in lower case."""
    facts: RunFacts
    """What filters look at."""


class RunsQuery(NamedTuple):
    """Which runs are shown, as the address of the page says it."""

    q: str = ""
    kind: str = ""
    standing: str = ""
    name: str = ""
    """Exactly this title: the runs of one bench."""
    where: str = ""
    """A filter in the fields of `RUNS`."""
    page: int = 1

    def fits(self, line: RunLine) -> bool:
        """Returns whether a run is shown; every word of the search has to be in it."""
        return (
            self.kind in ("", line.kind)
            and self.standing in ("", line.standing.value)
            and self.name in ("", line.title)
            and all(word in line.words for word in self.q.lower().split())
        )


class Counted(NamedTuple):
    """A filter with the number of runs that it would show."""

    field: str
    value: str
    label: str
    number: int


class RunsTable(NamedTuple):
    """A page of the table, of the runs that meet its filter."""

    lines: Sequence[RunLine]
    found: int
    total: int
    chips: Sequence[Counted]
    pages: int


def lines_of(runs: Sequence[RunInfo], worked_on: Collection[Kind], now_ms: int) -> list[RunLine]:
    """Makes the lines of all runs.

    Args:
        runs: the newest first.
        worked_on: kinds that a live worker works on.
        now_ms: the time.
    """
    rates = [rate_of(info) for info in runs]
    before = dict[tuple[str, Kind], Rate]()
    changes = list[RateChange | None]()
    for info, rate in zip(reversed(runs), reversed(rates), strict=True):
        key = (info.title, info.kind)
        changes.append(change_of(before[key], rate) if rate and key in before else None)
        if rate:
            before[key] = rate
    return [
        _line(info, rate, change, is_worked_on=info.kind in worked_on, now_ms=now_ms)
        for info, rate, change in zip(runs, rates, reversed(changes), strict=True)
    ]


def table_of(lines: Sequence[RunLine], query: RunsQuery, wanted: RowFilter | None = None) -> RunsTable:
    """Chooses what a page of the table shows.

    Args:
        lines: all runs.
        query: what the address asks for.
        wanted: the filter of the query, parsed; None: all runs.
    """
    meeting = [line for line in lines if wanted is None or wanted.matches(line.facts)]
    found = [line for line in meeting if query.fits(line)]
    pages = max(1, -(-len(found) // PAGE))
    first = (min(query.page, pages) - 1) * PAGE
    chips = list(_chips(meeting, query))
    return RunsTable(found[first : first + PAGE], len(found), len(lines), chips, pages)


def rate_of(info: RunInfo) -> Rate | None:
    """Returns how much of a run passed, with its interval."""
    found = passed_of(info)
    return None if found is None else wilson(found.passed, found.done)


def change_of(before: Rate, now: Rate) -> RateChange:
    """Compares two rates that were measured apart; pairing the items tells more: `compare`.

    >>> from producer.aggregate.statistics import wilson
    >>> change_of(wilson(50, 100), wilson(90, 100))[:2], change_of(wilson(5, 10), wilson(6, 10))[:2]
    (('▲ 40.0 points', 'p'), ('▲ 10.0 points', ''))
    """
    step, (low, high) = now.value - before.value, independent_difference(before, now)
    sign = "▲" if step > 0 else "▼" if step < 0 else "="
    points = f"{sign} {abs(100 * step):.1f} points" if step else "= same"
    tone = "p" if low > 0 else "f" if high < 0 else ""
    sure = "more than chance" if tone else "may be chance"
    about = (
        f"{percent(before.value)} before; {sure}: 95% interval {100 * low:+.1f} to {100 * high:+.1f} points"
    )
    return RateChange(points, tone, about)


def _line(
    info: RunInfo, rate: Rate | None, change: RateChange | None, *, is_worked_on: bool, now_ms: int
) -> RunLine:
    standing = standing_of(info, is_worked_on=is_worked_on)
    return RunLine(
        run=info.run,
        title=info.title,
        source=info.source,
        kind=info.kind.name,
        standing=standing,
        letter=LETTERS[standing],
        state=state_text(info, is_worked_on=is_worked_on),
        rate=rate,
        rate_text="" if rate is None else percent(rate.value),
        change=change,
        cost=cost(info.paid_usd) if info.paid_usd else "",
        took="" if info.duration_ms is None else duration(info.duration_ms / 1000),
        age=age((now_ms - info.created_ms) / 1000),
        items=plural(info.total, info.kind.noun),
        facts=_facts(info, standing, rate, now_ms),
        words=f"{info.run} {info.title} {info.source} {info.description} {info.kind.name}".lower(),
    )


def _facts(info: RunInfo, standing: Standing, rate: Rate | None, now_ms: int) -> RunFacts:
    return RunFacts(
        status=[*filter(None, [_STATUS.get(standing)]), *(word for word in _BAD if info.outcomes.get(word))],
        state=info.state.value,
        kind=info.kind.name,
        name=info.title,
        id=info.run,
        file=info.source,
        models=info.models,
        prompts=info.prompts,
        rate=None if rate is None else rate.value,
        cost_usd=info.paid_usd,
        took_ms=info.duration_ms,
        age_ms=now_ms - info.created_ms,
        items=info.total,
        errors=info.tally.get(Outcome.ERROR, 0),
    )


def _chips(lines: Sequence[RunLine], query: RunsQuery) -> Iterable[Counted]:
    """Yields the filters that some run fits, each with what it would show beside what else is chosen."""
    for standing in Standing:
        rest = query._replace(standing=standing.value)
        if number := sum(map(rest.fits, lines)):
            yield Counted("standing", standing.value, WORDS[standing], number)
    kinds = dict.fromkeys(line.kind for line in lines)
    for kind in sorted(kinds) if len(kinds) > 1 else ():
        if number := sum(map(query._replace(kind=kind).fits, lines)):
            yield Counted("kind", kind, kind, number)
