"""Writes the pages of `proctor view` as HTML: values in, bytes out; templates escape every text."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from producer.item_ids import item_id
from producer.report.cells import Size, plain
from producer.report.html.rendering import Text, fill, markup
from producer.report.html.viewer import Letter
from producer.report.shown_item import ShownItem, without_quote
from producer.report.transcript import Spoken
from producer.review.answer_labels import AnswerLabel
from producer.row_reader import RowsPage
from producer.view.cards import Card
from producer.view.desk import FleetBox
from producer.view.history import RunHistory
from producer.view.links import Links
from producer.view.params import NO_FILTER, GivenFilter
from producer.view.run_lines import RunsQuery, RunsTable
from producer.view.stream_lines import HEADINGS, StreamCard, StreamLine, TurnsList
from shared.kinds import TURNS, Kind, kind_named
from shared.runs import RunInfo

TEMPLATE: Final = "view/page.html.j2"
KEYS: Final = (
    ("j k", "next, previous row"),
    ("Enter", "open it"),
    ("f F", "next, previous failure or error"),
    ("x", "mark a run"),
    ("c", "compare those marked"),
    ("/", "search"),
    ("Esc", "close the details"),
    ("y", "copy the command"),
)


class Frame(NamedTuple):
    """What is around a page."""

    title: str
    links: Links
    topic: str | None = None
    """What it follows: the id of a run, or empty for all; None: nothing."""
    crumbs: Sequence[tuple[str, str]] = ()
    """Names and addresses of what it is in."""
    kind: str = ""
    """Whose style it needs as well; empty: of no kind."""
    keys: Sequence[tuple[str, str]] = KEYS
    """Keys, separated by spaces, and what they do."""


def framed(frame: Frame, body: bytes) -> bytes:
    """Writes a whole page."""
    return fill(TEMPLATE, "page", frame, markup(body.decode()))


class RunsView(NamedTuple):
    """What the page of all runs shows."""

    table: RunsTable
    query: RunsQuery
    cards: Sequence[Card]
    fleet: FleetBox
    history: RunHistory | None = None
    """Of the runs of one name."""
    streams: Sequence[StreamLine] = ()
    given: GivenFilter = NO_FILTER
    """The filter of runs."""


def runs_page(view: RunsView, links: Links) -> bytes:
    """Writes the page of all runs."""
    table, query, cards, fleet = view.table, view.query, view.cards, view.fleet
    live, beside = (markup(part) for part in (live_html(view.streams, cards, links), fleet_html(fleet)))
    words = {name: str(value) for name, value in query._asdict().items() if value and name != "page"}
    body = fill(TEMPLATE, "runs", table, query, view.given, words, live, beside, links, view.history)
    title = f"{len(cards)} running · Proctor" if cards else "Runs · Proctor"
    return framed(Frame(title, links, topic=""), body)


def live_html(streams: Sequence[StreamLine], cards: Sequence[Card], links: Links) -> str:
    """Writes streams, and the runs that go on."""
    return (fill(TEMPLATE, "streams", streams, links) + fill(TEMPLATE, "cards", cards, links)).decode()


def stream_card_html(card: StreamCard) -> str:
    """Writes the totals of a stream."""
    return fill(TEMPLATE, "totals", card, HEADINGS).decode()


def stream_page(
    card: StreamCard, turns: TurnsList, given: GivenFilter, last_hour: str, links: Links
) -> bytes:
    """Writes the page of a stream: its totals, then a page of its latest turns.

    Args:
        card: its totals.
        turns: the page of turns.
        given: the filter of turns.
        last_hour: name of the part of it that is reported.
        links: addresses.
    """
    found = ((item_line(item, TURNS), time) for item, time in turns.items)
    lines = [line._replace(figures=f"{line.figures} · {time}") for line, time in found]
    frame = Frame(f"{card.name} · Proctor", links, card.name, [("Runs", links.to())])
    return framed(frame, fill(TEMPLATE, "stream", card, HEADINGS, turns, lines, given, last_hour, links))


def card_html(card: Card, links: Links) -> str:
    """Writes one run's progress, on its own page."""
    return fill(TEMPLATE, "progress", card, links).decode()


def fleet_html(fleet: FleetBox) -> str:
    """Writes the fleet."""
    return fill(TEMPLATE, "fleet", fleet).decode()


class ItemLine(NamedTuple):
    """An item in the list of a run."""

    position: int
    id: str
    """As addresses have it."""
    letter: Letter
    name: str
    word: str
    reason: str
    answer: str
    figures: str


def item_line(item: ShownItem, kind: Kind) -> ItemLine:
    """Makes the line of an item of a run."""
    letter = Letter.NONE if item.word == "not checked" else Letter.of(item.outcome)
    said = item.answer or (item.asked[-1].text if item.asked else "")
    return ItemLine(
        item.position,
        item_id(kind, item.position),
        letter,
        plain(item.name, Size.LINE),
        item.word,
        plain(without_quote(item.reason), Size.REASON),
        plain(said, Size.REASON),
        " · ".join(item.figures),
    )


class Search(NamedTuple):
    """A filter of rows, and how far the search for them came."""

    given: GivenFilter
    found: int = 0
    percent: int = 100
    """Of the rows that were searched."""


class RunView(NamedTuple):
    """What the page of a run shows."""

    card: Card
    rows: RowsPage
    words: Sequence[str]
    """Outcomes that rows are filtered by."""
    search: Search
    before: str
    """The run before, of the same file; empty where there is none."""
    items: str
    """How many items it has."""


def run_page(view: RunView, links: Links) -> bytes:
    """Writes the page of a run: its progress, then a page of its rows."""
    lines = [item_line(item, kind_named(view.card.kind)) for item in view.rows.items]
    frame = Frame(
        f"{view.card.title} · Proctor", links, view.card.run, [("Runs", links.to())], view.card.kind
    )
    return framed(frame, fill(TEMPLATE, "run", view, lines, links))


class ItemView(NamedTuple):
    """What is shown of an item."""

    id: str
    """As addresses have it."""
    item: ShownItem
    body: bytes | None
    """As the reports of its kind write it; None: as a terminal shows it."""
    info: RunInfo
    """Its run."""
    actions: Sequence[tuple[str, str]] = ()
    labels: Sequence[AnswerLabel] = ()
    """What people said of the answer."""


def item_html(view: ItemView, links: Links) -> bytes:
    """Writes everything about an item, for the panel and for a page of its own."""
    item = view.item
    letter = Letter.NONE if item.word == "not checked" else Letter.of(item.outcome)
    parts = (_texts(item.asked), _texts(item.answered), _texts(item.wanted))
    return fill(
        TEMPLATE, "item", view, letter, parts, _checks(item), view.body and markup(view.body.decode()), links
    )


def item_page(view: ItemView, links: Links) -> bytes:
    """Writes the page of an item."""
    crumbs = [("Runs", links.to()), (view.info.title, links.to("run", view.info.run))]
    body = fill(TEMPLATE, "alone", markup(item_html(view, links).decode()))
    frame = Frame(
        f"{plain(view.item.name, Size.NAME)} · {view.info.title}",
        links,
        crumbs=crumbs,
        kind=view.info.kind.name,
    )
    return framed(frame, body)


def message_page(title: str, text: str, hint: str, links: Links) -> bytes:
    """Writes a page that only says something, such as that there is no such run."""
    body = fill(TEMPLATE, "message", title, text, hint, links)
    return framed(Frame(title, links, crumbs=[("Runs", links.to())]), body)


def _texts(spoken: Sequence[Spoken]) -> list[tuple[str, Text]]:
    return [(each.who, Text(each.text[: Size.WHOLE], max(0, len(each.text) - Size.WHOLE))) for each in spoken]


def _checks(item: ShownItem) -> list[tuple[str, str]]:
    """Divides the lines of checks into letter and text."""
    letters = {"✓": "p", "✗": "f", "!": "e"}
    marked = [(line, letters.get(line[:1], "s")) for line in item.checks]
    return [(letter, line if letter == "s" else line[1:].strip()) for line, letter in marked]
