"""Serves `proctor view` on loopback: pages, live updates, actions; what waits for Redis runs in threads."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from aiohttp import hdrs, web

from producer import api, kinds
from producer.access import Access
from producer.browser import open_browser
from producer.http_server import in_thread, listening, status_of, stop_signal
from producer.item_ids import item_id
from producer.item_names import position_of
from producer.report.html.rendering import file_text, leading_back
from producer.report_files import ReportStream
from producer.review.label_store import read_labels
from producer.row_reader import RowReader, RowsPage, shown_of, state_of
from producer.run_standing import counted
from producer.stored_runs import SEARCHED, runs_before
from producer.streams import is_stream, namespace_of
from producer.text import plural
from producer.view import desk, html_pages
from producer.view.cards import ACTIONS, Card, card_of
from producer.view.comparison_pages import ComparisonPages, settings_of, written_page
from producer.view.follow import Following
from producer.view.history import history_of
from producer.view.html_pages import message_page
from producer.view.kept_reports import KeptReports
from producer.view.links import Links, kept_token
from producer.view.live_hub import Hub
from producer.view.params import GivenFilter, PathParams, QueryParams, typed
from producer.view.request_guard import dress, guard
from producer.view.review import ReviewPages
from producer.view.row_finder import RowFinder
from producer.view.run_lines import RUNS, RunsQuery, table_of
from producer.view.stream_lines import stream_line, turns_list, turns_page
from shared.clock import now_ms
from shared.errors import ProctorError, UnknownRunError
from shared.kinds import TURNS
from shared.ledger.bounds import HOUR_MS
from shared.names import Outcome
from shared.runs import RunInfo
from shared.runs.info import window_info
from shared.runs.served import LAST, PREFIX, Window

LOOPBACK: Final = "127.0.0.1"
STATIC: Final[Mapping[str, tuple[str, str]]] = {
    "viewer.css": ("report/html/viewer.css", "text/css"),
    "view.css": ("view/view.css", "text/css"),
    "cases.css": ("cases/report/page.css", "text/css"),
    "queries.css": ("queries/report/page.css", "text/css"),
    "view.js": ("view/view.js", "text/javascript"),
    "review.js": ("view/review.js", "text/javascript"),
}
"""Static files of pages: their paths below `producer`, and their content types."""
BEAT_S: Final = 15.0
"""A stream without news sends something this often, so that one whose reader has gone is noticed."""
RETRY_MS: Final = 1_000
"""How long a browser waits before it asks again for a stream that was cut."""
SHUTDOWN_S: Final = 0.5
_CONTROLS: Final = {"pause": "pause", "resume": "resume", "cancel": "cancelled"}
"""Actions, and what the ledger calls them."""


class Pages:
    """Answers requests.

    Args:
        access: access to Redis, connected.
        links: the addresses of pages.
    """

    def __init__(self, access: Access, links: Links) -> None:
        self._access, self._links = access, links
        self.hub = Hub(Following(access, links))
        self._kept, self._finder = KeptReports(), RowFinder()
        self._comparisons = ComparisonPages(access, links, self._kept, self._finder)
        self._prepared: asyncio.Task[None] | None = None

    def routes(self) -> list[web.RouteDef]:
        """Returns what is served."""
        return [
            web.route(hdrs.METH_GET, "/", self.runs),
            web.route(hdrs.METH_GET, "/live", self.live),
            web.route(hdrs.METH_GET, "/static/{name}", self.static),
            web.route(hdrs.METH_GET, "/run/{run}", self.run),
            web.route(hdrs.METH_GET, "/run/{run}/report", self.report),
            web.route(hdrs.METH_GET, "/run/{run}/item/{item}", self.item),
            web.route(hdrs.METH_POST, "/run/{run}/{action}", self.act),
            web.route(hdrs.METH_POST, "/run/{run}/item/{item}/{action}", self.ask_again),
            *self._comparisons.routes(),
        ]

    async def runs(self, request: web.Request) -> web.Response:
        """Writes the page of all runs."""
        return _html(await asyncio.to_thread(self._runs, typed(request.query, QueryParams)))

    def _runs(self, asked: QueryParams) -> bytes:
        given = GivenFilter.of(asked.where, RUNS)
        words = asked.q.strip(), asked.kind, asked.standing, asked.name, given.text
        query = RunsQuery(*words, max(1, asked.page))
        found = desk.look(self._access)
        now = now_ms()
        cards = [
            card_of(info, desk.pace_now(self._access, info, int(info.kind in found.worked_on)), now)
            for info in found.runs[: desk.WATCHED]
            if not info.is_final
        ]
        table = table_of(desk.run_lines(found), query, given.wanted)
        named = [info for info in found.runs if query.name and info.title == query.name]
        named = [info for info in named if info.kind is named[0].kind]
        course = history_of(query.name, named, settings_of) if named else None
        streams = list(map(stream_line, found.streams))
        view = html_pages.RunsView(table, query, cards, desk.fleet_box(found), course, streams, given)
        return html_pages.runs_page(view, self._links)

    async def run(self, request: web.Request) -> web.Response:
        """Writes the page of a run; what filters look at is read meanwhile."""
        path, asked = _path(request), typed(request.query, QueryParams)
        page = _html(await asyncio.to_thread(self._run, path.run, asked))
        self._prepared = asyncio.create_task(asyncio.to_thread(self._prepare, path.run))
        return page

    def _prepare(self, run: str) -> None:
        store = self._access.impatient_store
        with suppress(ProctorError):  # a search says what is wrong
            self._finder.prepare(RowReader(store, store.info(run)))

    def _stream(self, name: str, asked: QueryParams) -> bytes:
        namespace, now = namespace_of(name), now_ms()
        found = desk.stream_look(self._access, namespace)
        given = GivenFilter.of(asked.where)
        page = turns_page(self._access.impatient_store.stream(namespace), asked.before or LAST, given.wanted)
        last_hour = Window(namespace, now - HOUR_MS, now)
        shown = shown_of(window_info(last_hour))
        turns = turns_list(page, shown, found.state, is_newest=not asked.before)
        return html_pages.stream_page(found.card, turns, given, last_hour.name, self._links)

    def _run(self, run: str, asked: QueryParams) -> bytes:
        if is_stream(run):
            return self._stream(run, asked)
        store = self._access.impatient_store
        info = counted(store, store.info(run))
        earlier = next(runs_before(store.list(limit=SEARCHED, kind=info.kind), info), None)
        rows, search = self._rows(info, asked)
        view = html_pages.RunView(
            card=self._card(info),
            rows=rows,
            words=[*info.kind.outcomes, Outcome.SKIPPED],
            search=search,
            before=earlier.run if earlier else "",
            items=plural(info.total, info.kind.noun),
        )
        return html_pages.run_page(view, self._links)

    def _rows(self, info: RunInfo, asked: QueryParams) -> tuple[RowsPage, html_pages.Search]:
        """Reads a page of rows, of those that meet the filter if there is one."""
        reader, first = RowReader(self._access.impatient_store, info), asked.number - 1
        given = GivenFilter.of(asked.where)
        if given.wanted is None:
            return reader.page(first), html_pages.Search(given)
        found = self._finder.find(reader, given.wanted)
        searched = 100 * found.searched // max(1, info.total)
        search = html_pages.Search(given, len(found.positions), searched)
        return reader.chosen(found.positions, first), search

    def _card(self, info: RunInfo) -> Card:
        pace = desk.pace_now(self._access, info, self._access.count_workers(info.kind))
        return card_of(info, pace, now_ms())

    async def item(self, request: web.Request) -> web.Response:
        """Writes an item: alone on a page, or for the panel beside the rows."""
        path, is_part = _path(request), typed(request.query, QueryParams).part
        return _html(await asyncio.to_thread(self._item, path.run, path.item, is_part=is_part))

    def _item(self, run: str, item: str, *, is_part: bool) -> bytes:
        store = self._access.impatient_store
        info, row = self._stream_row(run, item) if is_stream(run) else self._run_row(run, item)
        if row is None:
            raise UnknownRunError(f"{run} has no item {item}", run=run)
        write = kinds.of(info.kind).item_html(info, partial(store.file, run))
        view = html_pages.ItemView(
            id=item_id(info.kind, row.index),
            item=shown_of(info)(row),
            body=write(row) if write is not None and row.code else None,
            info=info,
            actions=[("again", "Ask this again")] if info.is_final and not is_stream(run) else [],
            labels=[label for label in read_labels(store, run) if label.position == row.index],
        )
        return (html_pages.item_html if is_part else html_pages.item_page)(view, self._links)

    def _run_row(self, run: str, item: str) -> tuple[RunInfo, Any]:
        """Reads an item of a run; None if there is none."""
        info = self._access.impatient_store.info(run)
        position = position_of(item, info.kind)
        return info, None if position is None else RowReader(self._access.impatient_store, info).row(position)

    def _stream_row(self, name: str, item: str) -> tuple[RunInfo, Any]:
        """Reads a turn of a stream, which is described as a run; None if there is none."""
        window, position = Window(namespace_of(name), 0, now_ms()), position_of(item, TURNS)
        info = replace(window_info(window), run=PREFIX + window.namespace, snapshot={"name": name})
        stream = self._access.impatient_store.stream(window.namespace)
        found = None if position is None else stream.row(position)
        return info, found and found.row

    async def report(self, request: web.Request) -> web.StreamResponse:
        """Sends the report of a run, as `proctor report RUN -o FILE.html` writes it."""
        return written_page(await asyncio.to_thread(self._report, _path(request).run))

    def _report(self, run: str) -> Path:
        info = self._access.store.info(run)

        def write(out: BinaryIO) -> None:
            crumbs = [("Runs", self._links.to()), (info.title, self._links.to("run", run))]
            with leading_back(crumbs):
                api.report(self._access, run, [ReportStream("html", out)])

        return self._kept.path(state_of(info), write)

    async def act(self, request: web.Request) -> web.Response:
        """Cancels, pauses, resumes or retries a run."""
        path = _path(request)
        if path.action not in ACTIONS:
            raise web.HTTPNotFound
        return _said(await asyncio.to_thread(self._act, path.run, path.action))

    def _act(self, run: str, action: str) -> str:
        if action == "retry":
            retried = api.retry(self._access, run)
            return f"{plural(retried.items, 'item')} of {run} put back to work"
        return f"{run} is {api.control(self._access, run, _CONTROLS[action])}"

    async def ask_again(self, request: web.Request) -> web.Response:
        """Runs one item again, without answers from the cache."""
        path = _path(request)
        if path.action != "again":
            raise web.HTTPNotFound
        await asyncio.to_thread(self._ask_again, path.run, path.item)
        return _said("asked again; a worker answers")

    def _ask_again(self, run: str, item: str) -> None:
        position = position_of(item, self._access.impatient_store.info(run).kind)
        if position is None:
            raise UnknownRunError(f"{run} has no item {item}", run=run)
        api.retry(self._access, run, indexes=[position], is_anew=True)

    async def live(self, request: web.Request) -> web.StreamResponse:
        """Sends what changes on a page, as long as it is open."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(f"retry: {RETRY_MS}\n\n".encode())
        news = self.hub.listen(typed(request.query, QueryParams).topic)
        waiting: asyncio.Task[str] | None = None
        try:
            while True:
                waiting = waiting or asyncio.ensure_future(anext(news))
                done, _ = await asyncio.wait([waiting], timeout=BEAT_S)
                if not done:
                    await response.write(b": still here\n\n")
                    continue
                shown, waiting = waiting.result(), None
                await response.write(f"data: {shown}\n\n".encode())
        except (StopAsyncIteration, ConnectionResetError):
            return response
        finally:
            if waiting is not None:
                waiting.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await waiting
            await news.aclose()

    async def close(self) -> None:
        """Ends all followers and deletes the kept reports."""
        self._finder.close()
        await self.hub.close()
        await asyncio.to_thread(self._comparisons.close)
        self._kept.close()

    async def static(self, request: web.Request) -> web.Response:
        """Sends a style or a script."""
        name = _path(request).name
        if name not in STATIC:
            raise web.HTTPNotFound
        path, content = STATIC[name]
        return web.Response(text=file_text(path), content_type=content, charset="utf-8")


class ActionReply(msgspec.Struct, frozen=True):
    """Reply to an action."""

    said: str
    hint: str = ""


def _said(said: str, hint: str = "", *, status: int = 200) -> web.Response:
    body = msgspec.json.encode(ActionReply(said, hint))
    return web.Response(body=body, status=status, content_type="application/json")


def _path(request: web.Request) -> PathParams:
    return typed(request.match_info, PathParams)


def _html(page: bytes) -> web.Response:
    return web.Response(body=page, content_type="text/html", charset="utf-8")


def explained(links: Links) -> Callable[[web.Request, Callable[..., object]], object]:
    """Returns middleware that answers a `ProctorError` with a page, or with JSON where a script asked."""

    @web.middleware
    async def explain(request: web.Request, handler: Callable[..., object]) -> web.StreamResponse:
        """Answers with what went wrong."""
        try:
            return await handler(request)  # type: ignore[misc, no-any-return] # aiohttp's own signature
        except ProctorError as error:
            status = status_of(error)
            if request.method == hdrs.METH_POST:
                return _said(error.message, error.hint, status=status)
            page = message_page("This page cannot be shown", error.message, error.hint, links)
            return web.Response(body=page, status=status, content_type="text/html", charset="utf-8")

    return explain


_WARMING: Final = web.AppKey("_WARMING", asyncio.Task[bytes])


def create_app(access: Access, token: str) -> web.Application:
    """Builds the application.

    Args:
        access: access to Redis, connected.
        token: the token that a request must have.
    """
    links = Links(token)
    answering = Pages(access, links)
    app = web.Application(middlewares=[guard(token), explained(links)])  # type: ignore[list-item] # same
    app.add_routes(ReviewPages(access, links).routes())
    app.add_routes(answering.routes())
    app.on_response_prepare.append(dress)

    async def close(_app: web.Application) -> None:
        """Ends what the pages still read."""
        await answering.close()

    async def warm(_app: web.Application) -> None:
        """Reads what the first page needs."""
        # The templates are compiled while the address is printed, so that the first page is not delayed.
        app[_WARMING] = asyncio.create_task(asyncio.to_thread(message_page, "", "", "", links))

    app.on_startup.append(warm)
    app.on_shutdown.append(close)
    return app


@asynccontextmanager
async def running(access: Access, token: str, port: int) -> AsyncIterator[str]:
    """Serves while the block runs; yields the address of the first page.

    Args:
        access: access to Redis, connected.
        token: the token that a request must have.
        port: where to listen; 0 takes a free one.

    Raises:
        InfrastructureError: the port cannot be opened.
    """
    runner = web.AppRunner(
        create_app(access, token), access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_S
    )
    async with listening(runner, LOOPBACK, port) as url:
        yield f"{url}{Links(token).to()}"


@contextmanager
def watched(access: Access, say: Callable[[str], object]) -> Iterator[Callable[[str], None]]:
    """Serves from a thread while the block runs; yields a function that opens the page of a run.

    Args:
        access: access to Redis, connected.
        say: called with the address of that page.
    """
    token = kept_token(access.settings.data_dir)
    with in_thread(lambda: running(access, token, 0), "view") as first:
        base = first.partition("/?")[0]

        def show(run: str) -> None:
            address = f"{base}{Links(token).to('run', run)}"
            say(address)
            open_browser(address)

        yield show


def serve(access: Access, port: int, on_ready: Callable[[str], None], *, with_browser: bool) -> None:
    """Serves until SIGINT or SIGTERM.

    Args:
        access: access to Redis, connected.
        port: where to listen; 0 takes a free one.
        on_ready: called with the address of the first page once requests are accepted.
        with_browser: whether a browser is opened then.

    Raises:
        InfrastructureError: the port cannot be opened.
    """

    async def until_signalled() -> None:
        """Serves until SIGINT or SIGTERM."""
        stop = stop_signal()
        async with running(access, kept_token(access.settings.data_dir), port) as address:
            on_ready(address)
            if with_browser:
                await asyncio.to_thread(open_browser, address)
            await stop.wait()

    asyncio.run(until_signalled())
