"""Pages to review answers one by one in the browser; verdicts are hidden until an answer is labelled."""

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from aiohttp import hdrs, web

from producer import kinds
from producer.access import Access
from producer.document import pages_of
from producer.item_ids import item_id
from producer.report.html.rendering import fill, markup
from producer.report.interfaces import TurnText
from producer.report.shown_item import ShownItem
from producer.review.answer_labels import (
    REVIEWER_HINT,
    AnswerLabel,
    Judgement,
    agreement_line,
    check_reviewer,
    digest_of,
    reviewed,
)
from producer.review.label_store import read_labels, write_labels
from producer.review.queue import Candidate, Queue, ReviewProgress, progress
from producer.row_filter import parse_filter
from producer.row_reader import RowReader, state_of
from producer.view.html_pages import Frame, ItemView, framed, item_html
from producer.view.links import Links
from producer.view.params import PathParams, typed
from shared.clock import now_ms
from shared.errors import UnknownRunError, UsageError
from shared.names import Outcome
from shared.runs import RunInfo

TEMPLATE: Final = "view/review.html.j2"
MOST_KEPT: Final = 8
"""Queues whose candidates are cached, so that the next answer does not require reading all rows."""
DOUBT: Final = "doubt"
HIDDEN: Final = "to be labelled"
"""Shown instead of a hidden outcome."""
KEYS: Final = (
    ("1 2 3", "pass, fail, defer"),
    ("n", "write a note"),
    ("u", "back to the answer before"),
    ("Esc", "leave the note"),
)


class ReviewParams(msgspec.Struct, frozen=True):
    """Query parameters of a review page, which define its queue."""

    by: str = ""
    """The reviewer; empty: not given yet."""
    where: str = ""
    """A filter of answers, as for `results --where`; empty: all."""
    sample: int | None = None
    reviewers: int = 1
    open: bool = False
    """Whether verdicts are shown before an answer is labelled."""
    position: int | None = None
    """The answer that is shown; None: the next one."""

    def words(self) -> dict[str, str]:
        """Returns the query parameters for an address of the same queue."""
        given = msgspec.structs.asdict(self)
        return {name: str(given[name]) for name in given if given[name] and name != "position"}


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A label as a page sends it."""

    verdict: Judgement
    note: str = ""
    tags: str = ""
    """Separated by commas."""
    answer: str = ""
    """Digest of the answer that was shown."""


class LabelReply(msgspec.Struct, frozen=True):
    """Reply to a label."""

    said: str
    next: str
    """Address of the next answer."""
    hint: str = ""


class ReviewView(NamedTuple):
    """What the page of a review shows."""

    run: str
    title: str
    params: ReviewParams
    progress: ReviewProgress
    agreement: str
    """A line on how far the labels of the run agree; empty without labels."""
    position: int | None
    """Of the answer that is shown; None: all are labelled."""
    answer: str
    """Its digest."""
    mine: AnswerLabel | None
    """This reviewer's earlier label of the answer."""


_given: Final = msgspec.json.Decoder(Given).decode
_encode: Final = msgspec.json.Encoder().encode


class ReviewPages:
    """Answers requests for reviews.

    Args:
        access: access to Redis, connected.
        links: the addresses of pages.
    """

    def __init__(self, access: Access, links: Links) -> None:
        self._access, self._links = access, links
        self._candidates = lru_cache(MOST_KEPT)(
            lambda run, where, _state: candidates(access, access.impatient_store.info(run), where)
        )
        """The answers that a filter selects, read once for each state of their run."""

    def routes(self) -> list[web.RouteDef]:
        """Returns what is served."""
        return [
            web.route(hdrs.METH_GET, "/run/{run}/review", self.page),
            web.route(hdrs.METH_POST, "/run/{run}/review/{position}", self.label),
        ]

    async def page(self, request: web.Request) -> web.Response:
        """Writes the page of an answer; an address without one leads to that of the next answer."""
        run, params = typed(request.match_info, PathParams).run, typed(request.query, ReviewParams)
        info = await asyncio.to_thread(self._access.impatient_store.info, run)
        try:
            if params.by:
                check_reviewer(params.by)
            body = await asyncio.to_thread(self._page, info, params)
        except UsageError as error:
            body = self._begin(info, params, error)
            return web.Response(body=body, status=400, content_type="text/html", charset="utf-8")
        return web.Response(body=body, content_type="text/html", charset="utf-8")

    def _begin(self, info: RunInfo, params: ReviewParams, problem: UsageError | None = None) -> bytes:
        body = fill(TEMPLATE, "begin", info.run, info.title, params, problem, REVIEWER_HINT, self._links)
        return framed(self._frame(info), body)

    def _frame(self, info: RunInfo) -> Frame:
        crumbs = [("Runs", self._links.to()), (info.title, self._links.to("run", info.run))]
        return Frame(f"Review · {info.title}", self._links, crumbs=crumbs, keys=KEYS)

    def _page(self, info: RunInfo, params: ReviewParams) -> bytes:
        if not params.by:
            return self._begin(info, params)
        run, position = info.run, params.position
        labels = read_labels(self._access.impatient_store, run)
        found = self._progress(info, params, labels)
        if position is None and found.next:
            # Each answer has an address of its own, so that the browser goes back to the one before.
            here = self._links.to("run", run, "review", **params.words(), position=found.next[0])
            raise web.HTTPSeeOther(here)
        item = None if position is None else self._item(info, position)
        own = {each.position: each for each in labels if each.reviewer == params.by}
        mine = None if position is None else own.get(position)
        # What others said of an answer is hidden with the verdict, also as a part of counts.
        counted = labels if params.open else [each for each in labels if each.position in own]
        view = ReviewView(
            run=run,
            title=info.title,
            params=params,
            progress=found,
            agreement=agreement_line(reviewed(counted)) if counted else "",
            position=position,
            answer=digest_of(item.answer) if item else "",
            mine=mine,
        )
        shown = "" if item is None else self._html(item, info, is_blind=not params.open and mine is None)
        return framed(self._frame(info), fill(TEMPLATE, "review", view, markup(shown), self._links))

    def _html(self, item: ShownItem, info: RunInfo, *, is_blind: bool) -> str:
        seen = blinded(item) if is_blind else item
        return item_html(ItemView(item_id(info.kind, item.position), seen, None, info), self._links).decode()

    def _item(self, info: RunInfo, position: int) -> ShownItem:
        reader = RowReader(self._access.impatient_store, info)
        row = reader.row(position)
        if row is None:
            raise UnknownRunError(f"{info.run} has no item {position}", run=info.run)
        return reader.shown(row)

    async def label(self, request: web.Request) -> web.Response:
        """Stores a label, and names the next answer."""
        path, params = typed(request.match_info, PathParams), typed(request.query, ReviewParams)
        try:
            given = _given(await request.read())
        except msgspec.DecodeError as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        said = await asyncio.to_thread(self._label, path, params, given)
        return web.Response(body=_encode(said), content_type="application/json")

    def _label(self, path: PathParams, params: ReviewParams, given: Given) -> LabelReply:
        info = self._access.impatient_store.info(path.run)
        item = self._item(info, path.position)
        here = self._links.to("run", path.run, "review", **params.words())
        if given.answer != digest_of(item.answer):
            return LabelReply(
                "The answer has changed meanwhile: look at it again.", f"{here}&position={path.position}"
            )
        label = AnswerLabel(
            position=path.position,
            reviewer=params.by,
            verdict=given.verdict,
            note=given.note,
            tags=[tag.strip() for tag in given.tags.split(",") if tag.strip()],
            answer=given.answer,
            at_ms=now_ms(),
        )
        write_labels(self._access.client, path.run, [label])
        return LabelReply(f"{item.name}: {given.verdict}{revealed(item, given.verdict)}", here)

    def _progress(self, info: RunInfo, params: ReviewParams, labels: Iterable[AnswerLabel]) -> ReviewProgress:
        queue = Queue(params.sample, params.reviewers)
        return progress(
            self._candidates(info.run, params.where.strip(), state_of(info)),
            labels,
            queue,
            run=info.run,
            reviewer=params.by,
        )


def candidates(access: Access, info: RunInfo, where: str) -> list[Candidate]:
    """Returns the answers of a run that a filter selects, with the doubt about their verdicts.

    Raises:
        FilterError: the filter cannot be read.
    """
    wanted = parse_filter(where) if where else None
    facts = kinds.of(info.kind).facts(frozenset({DOUBT, *(wanted.fields if wanted else ())}))
    rows: Iterable[Any] = (
        row for page in pages_of(access.impatient_store, info, TurnText.NOT_READ) for row in page
    )
    read = ((row.index, facts(row)) for row in rows if row.code)
    return [
        Candidate(index, found.doubt or 0.0)
        for index, found in read
        if found.outcome != Outcome.ERROR and (wanted is None or wanted.matches(found))
    ]


def blinded(item: ShownItem) -> ShownItem:
    """Hides the findings of checks and judges on an answer.

    >>> blinded(ShownItem(0, "fr", "fr", Outcome.FAILED, "failed", reason="wrong")).word
    'to be labelled'
    """
    return item._replace(outcome=Outcome.SKIPPED, word=HIDDEN, reason="", checks=(), figures=())


def revealed(item: ShownItem, verdict: Judgement) -> str:
    """Returns what a page adds after a label: the verdict of the checks, if they had one.

    >>> failed = ShownItem(0, "fr", "fr", Outcome.FAILED, "failed")
    >>> revealed(failed, Judgement.PASS), revealed(failed, Judgement.DEFER)
    (' (the checks: failed)', '')
    """
    if verdict is Judgement.DEFER or item.outcome not in {Outcome.PASSED, Outcome.FAILED}:
        return ""
    agrees = (item.outcome is Outcome.PASSED) == (verdict is Judgement.PASS)
    return ", as the checks" if agrees else f" (the checks: {item.word})"
