"""Measures `proctor view`: the list of 1,000 runs, how far a page is behind, filters, and runs side by side.

The server is in this process; pages are loaded by a headless Chromium. A result counts as shown when the text
of the page has changed, and clocks of page and program are those of one machine. The reference is what the
reader may have to wait.
"""

import asyncio
import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, time
from typing import Any, Final

from producer.__main__ import COLLECT_AFTER
from producer.row_filter import parse_filter
from producer.row_reader import RowReader
from producer.view.row_finder import RowFinder
from shared.runs import RunStore
from tests.benchmarks.results import Figure, sized
from tests.support.browser import Browser
from tests.support.case_pages import GOOD, WRONG, rows_of
from tests.support.eventually import eventually
from tests.support.processes import Processes
from tests.support.redis_server import RedisServer
from tests.support.viewed_runs import CHUNK, access_to, answer, cases_run, get, served

RUNS: Final = 1_000
ROWS: Final = 100_000
BESIDE: Final = 8
RUNS_WATCHED: Final = 5
PARTS: Final = 4
MODELS: Final = ("acme/quick",)
OUTPUTS: Final = ((GOOD, GOOD, WRONG, None), (GOOD, WRONG, GOOD), (GOOD,), (GOOD, GOOD, WRONG))
AT_ONCE: Final = ("failed and latency > 500ms", "score < 0.5", "metadata.x = 1")
"""Of what stands before the JSON of a row, of what is in it, and of what is not kept."""
FILTERS: Final = ("failed", "latency > 500ms", "doubt > 0.4")
WAIT_S: Final = 600.0
PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime / 1000 || null"
WATCH: Final = """(() => {
  window.seen = {};
  new MutationObserver(() => {
    const told = document.querySelector(".quad b").textContent, row = document.querySelector(".item.is-p");
    for (const text of [told, row && "row"]) window.seen[text] ??= Date.now() / 1000;
  }).observe(document.body, { childList: true, subtree: true });
})()"""
"""Keeps when a number of results was shown first, and when a row had one."""


def measured(scale: float) -> Iterator[Figure]:
    """Fills a server, and looks at it."""
    gc.set_threshold(*COLLECT_AFTER)  # as the command does
    runs, rows = sized(RUNS, scale, least=10), sized(ROWS, scale, least=2 * CHUNK)

    def figure(parameter: str, value: float, bound: str, goal: str, goal_s: float) -> Figure:
        made = Figure(
            workload="view", parameter=parameter, measure="time", value=value, unit="s", bound=bound
        )
        return made.beside(goal, goal_s)

    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="proctor-view-")))
        server = stack.enter_context(RedisServer("--appendonly", "no"))
        client = stack.enter_context(closing(server.client()))
        access = stack.enter_context(access_to(server.url, folder))
        address = stack.enter_context(served(access))
        processes = stack.enter_context(closing(Processes(folder, os.environ)))
        browser = stack.enter_context(closing(Browser(processes, folder / "profile")))
        for number in range(runs):
            cases_run(client, f"run-{number:05}", cases=2, name=f"bench {number % 20}")
        browser.open(address)
        paint_s = eventually(partial(_moment, browser, PAINT), WAIT_S)
        yield figure(f"{runs:,} runs: first screen", paint_s, "reading all runs", "half a second", 0.5)
        told, shown = delays(client, browser, address)
        yield figure("a result: on the page of its run", told, "polls of 0.2 s", "a second", 1.0)
        yield figure("a result: in the row of its item", shown, "another request", "a second", 1.0)
        sides = [f"side-{at}" for at in range(BESIDE)]
        for at, run in enumerate(sides):
            cases_run(client, run, cases=rows, outputs=OUTPUTS[at % len(OUTPUTS)])
        for name, took_s in searches(access.connect().store, sides[0]):
            yield figure(f"{rows:,} rows: {name}", took_s, "CPU of one core", "0.3 s", 0.3)
        whole_s, slowest_s = grid(address, sides)
        cells = f"{BESIDE} runs of {rows:,} rows"
        yield figure(f"{cells}: until all are read", whole_s, "CPU of one core", "1 ms a row", rows / 1_000)
        yield figure(f"{cells}: slowest request", slowest_s, "the thread that reads", "half a second", 0.5)


def delays(client: Any, browser: Browser, address: str) -> tuple[float, float]:
    """The usual delays from the end of a commit to the counts of a page, and to a row of it."""
    told, shown = list[float](), list[float]()
    for number in range(RUNS_WATCHED):
        run = cases_run(client, f"live-{number}", cases=PARTS * CHUNK, outputs=[GOOD], done=0)
        rows = list(rows_of(MODELS, PARTS * CHUNK, [GOOD]))
        browser.open(address.replace("/?", f"/run/{run}?"))
        eventually(partial(_is_live, browser), WAIT_S)
        browser.evaluate(WATCH)
        for at in range(0, len(rows), CHUNK):
            answer(client, run, rows[at : at + CHUNK])
            ended_s = time()
            told.append(_seen(browser, f"{at + CHUNK:,}") - ended_s)
            if not at:
                shown.append(_seen(browser, "row") - ended_s)
    browser.open("about:blank")
    return median(told), median(shown)


def _is_live(browser: Browser) -> None:
    assert browser.texts("[data-link]") == ["live"]


def _seen(browser: Browser, text: str) -> float:
    return eventually(partial(_moment, browser, f"window.seen['{text}']"), WAIT_S)


def _moment(browser: Browser, expression: str) -> float:
    found: Any = browser.evaluate(expression)
    assert found is not None
    return float(found)


def searches(store: RunStore, run: str) -> Iterator[tuple[str, float]]:
    """Seconds of filters: at once, and after the page of the run has been open for a while."""
    reader = RowReader(store, store.info(run))
    for where in AT_ONCE:
        yield f"`{where}` at once", _search(RowFinder(), reader, where)
    finder, began = RowFinder(), perf_counter()
    finder.prepare(reader)
    yield "reading them ahead", perf_counter() - began
    for where in FILTERS:
        yield f"`{where}`", _search(finder, reader, where)


def _search(finder: RowFinder, reader: RowReader, where: str) -> float:
    began = perf_counter()
    while finder.find(reader, parse_filter(where)).searched < reader.info.total:
        pass
    return perf_counter() - began


def grid(address: str, runs: Sequence[str]) -> tuple[float, float]:
    """Seconds until the cases of runs stand beside each other, and of the slowest request for them."""
    words = "".join(f"run={run}&" for run in runs)
    place, slowest_s, began = address.replace("/?", f"/compare?{words}"), 0.0, perf_counter()
    while True:
        asked = perf_counter()
        page = asyncio.run(get(place))[1]
        slowest_s = max(slowest_s, perf_counter() - asked)
        if "data-unfinished" not in page:
            return perf_counter() - began, slowest_s
