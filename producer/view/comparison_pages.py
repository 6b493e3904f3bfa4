"""Pages that compare runs: two answer beside answer, several case by case, each with a filter."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final

from aiohttp import hdrs, web

from producer import kinds
from producer.access import Access
from producer.compared_runs import compared_runs
from producer.item_ids import item_id
from producer.report.comparison.setting_differences import Settings
from producer.report.comparison.to_html import PairsFilter, comparison_page
from producer.report.html.page_policy import policy_of
from producer.report.html.rendering import leading_back
from producer.row_filter import RowFilter
from producer.row_reader import RowReader, state_of
from producer.view.grid import Grid, Grids
from producer.view.grid_page import About, GridQuery, GridSearch, grid_page
from producer.view.kept_reports import KeptReports
from producer.view.links import TOKEN_KEY, Links
from producer.view.params import GivenFilter, QueryParams, typed
from producer.view.row_finder import RowFinder
from shared.clock import now_ms
from shared.errors import UsageError
from shared.runs import RunInfo

_REPORT_POLICY: Final = policy_of(
    ["cases/report", "queries/report", "turns/report", "items/report", "report/comparison"],
    has_images=True,
    has_form=True,
)
"""What reports may load: their styles and scripts are inline."""


class ComparisonPages:
    """Answers requests for comparisons.

    Args:
        access: access to Redis, connected.
        links: the addresses of pages.
        kept: keeps pages of two runs.
        finder: finds the answers that meet a filter.
    """

    def __init__(self, access: Access, links: Links, kept: KeptReports, finder: RowFinder) -> None:
        self._access, self._links = access, links
        self._kept, self._finder, self._grids = kept, finder, Grids()

    def routes(self) -> list[web.RouteDef]:
        """Returns what is served."""
        return [web.route(hdrs.METH_GET, "/compare", self.compare)]

    def close(self) -> None:
        """Ends what is being read."""
        self._grids.close()

    async def compare(self, request: web.Request) -> web.StreamResponse:
        """Sends the comparison of runs: of two, answer beside answer; of several, all of their cases."""
        asked, runs = typed(request.query, QueryParams), list(dict.fromkeys(request.query.getall("run", [])))
        if asked.view == "cases" or len(runs) > 2:  # noqa: PLR2004 - answers stand beside each other in pairs
            page = await asyncio.to_thread(self._compare_cases, runs, asked)
            return web.Response(body=page, content_type="text/html", charset="utf-8")
        if len(runs) < 2:  # noqa: PLR2004 - same
            raise UsageError("a comparison needs two runs", hint="mark them in the list of runs")
        return written_page(await asyncio.to_thread(self._compare_answers, runs, asked))

    def _item_address(self, run: str, item: str) -> str:
        return self._links.to("run", run, "item", item)

    def _sides(self, runs: Sequence[str], baseline: str) -> list[RunInfo]:
        """Returns runs in their order in time, but for the baseline, which comes first."""
        infos = map(self._access.impatient_store.info, runs)
        return sorted(infos, key=lambda info: (info.run != baseline, info.created_ms, info.run))

    def _compare_cases(self, runs: Sequence[str], asked: QueryParams) -> bytes:
        grid = self._grids.get(self._access.impatient_store, self._sides(runs, asked.baseline))
        query = GridQuery(asked.show, asked.of, asked.number, asked.q.strip())
        search = self._search_grid(grid, GivenFilter.of(asked.where), asked.of)
        return grid_page(grid, query, self._links, About(now_ms(), settings_of), search)

    def _search_grid(self, grid: Grid, given: GivenFilter, of: str) -> GridSearch:
        """Goes on with the search of cases of which an answer meets a filter, in one run or in any."""
        if given.wanted is None or not grid.is_whole:
            return GridSearch(given)
        rows, searched, total = bytearray(len(grid.names)), 0, 0
        for column in grid.columns:
            if of in ("", column.info.run):
                reader = RowReader(self._access.impatient_store, column.info)
                found = self._finder.find(reader, given.wanted)
                column.mark(rows, found.positions)
                searched, total = searched + found.searched, total + column.info.total
        return GridSearch(given, bytes(rows), 100 * searched // max(1, total))

    def _compare_answers(self, runs: Sequence[str], asked: QueryParams) -> Path:
        store, given = self._access.store, GivenFilter.of(asked.where)
        a, b = self._sides(runs, asked.baseline)
        words = {"run": [a.run, b.run], "baseline": a.run}
        links = [
            ("A", self._links.to("run", a.run)),
            ("B", self._links.to("run", b.run)),
            ("Cases by run", self._links.to("compare", **words, where=given.text, view="cases")),
        ]

        def write(out: BinaryIO) -> None:
            form = PairsFilter("/compare", {**words, TOKEN_KEY: self._links.token}, given.text, given.problem)
            if given.wanted is not None:
                form = form._replace(chosen=[self._items_found(info, given.wanted) for info in (a, b)])
            with ExitStack() as resources, leading_back([("Runs", self._links.to())]):
                contents = compared_runs(store, a, b, resources, self._item_address)
                out.writelines(comparison_page(contents, links, form))

        return self._kept.path(f"{state_of(a)} {state_of(b)} {given.text}", write)

    def _items_found(self, info: RunInfo, wanted: RowFilter) -> frozenset[str]:
        """Returns the ids of all items of a run that meet a filter."""
        reader = RowReader(self._access.impatient_store, info)
        while (found := self._finder.find(reader, wanted)).searched < info.total:
            pass
        return frozenset(item_id(info.kind, position) for position in found.positions)


def settings_of(info: RunInfo) -> Settings:
    """Returns the settings that affect results; empty if another version stored them differently."""
    try:
        return kinds.of(info.kind).compared().configuration(info)
    except (KeyError, TypeError, ValueError):
        return {}


def written_page(path: Path) -> web.FileResponse:
    """Sends a page that is a file, under the policy of reports."""
    own = {hdrs.CONTENT_TYPE: "text/html; charset=utf-8", "Content-Security-Policy": _REPORT_POLICY}
    return web.FileResponse(path, headers=own)
