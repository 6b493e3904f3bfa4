"""Measures an HTML report of 100,000 cases in Chromium: time to its first screen, and of a search.

The report is made of real rows by the real writer; the browser loads it from disk with an empty profile. A
search is timed from the last key to the frame that shows all that was found, with the pause that waits for
further keys; the first one begins when the page has loaded, and unpacks all rows. The reference is a bare
table of a tenth of the rows, since Chromium takes minutes for one of all.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final, NamedTuple

from tests.benchmarks.results import Figure, sized
from tests.support.browser import Browser
from tests.support.case_pages import GOOD, NO_JSON, WRONG, rows_of, run_info, write_page
from tests.support.eventually import eventually
from tests.support.processes import Processes

CASES: Final = 100_000
MODELS: Final = ("acme/quick",)
OUTPUTS: Final = (GOOD, GOOD, WRONG, GOOD, GOOD, GOOD, NO_JSON, GOOD, GOOD)
SEARCH_S: Final = 60.0
PART: Final = 10
BARE: Final = "a bare table of a tenth of the rows"
FIRST_SEARCH: Final = "zebra"
SEARCHES: Final = ("ticket-77777", "no such words", "lyon", "e", "34", "class")
"""Words of one row, of none, of many, of all; and what stands in markup far more often than in texts."""
TIMED: Final = """(() => {
  const field = document.querySelector("[data-q]"), shown = document.querySelector("[data-shown]");
  window.timed = null;
  const began = performance.now();
  new MutationObserver((_, observer) => {
    if (shown.textContent.endsWith("searched")) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.timed = performance.now() - began; }));
  }).observe(shown, { childList: true });
  field.value = %r;
  field.dispatchEvent(new Event("input"));
  return null;
})()"""
PAINT_S: Final = 30.0
PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
LOADED: Final = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def measured(scale: float) -> Iterator[Figure]:
    """Writes the report and a bare table, opens both, and searches the report."""
    cases = sized(CASES, scale, least=1_000)
    with TemporaryDirectory(prefix="proctor-pages-") as name:
        folder, rows = Path(name), list(rows_of(MODELS, cases, OUTPUTS))
        began = perf_counter()
        path = write_page(folder / "report.html", run_info(MODELS, cases), rows)
        written_s, began = perf_counter() - began, perf_counter()
        lines = [json.dumps(json.loads(row.line)) for row in rows]
        encoded_s = perf_counter() - began
        bare = bare_table(folder / "bare.html", lines[: cases // PART])
        with closing(Browser(Processes(folder, os.environ), folder / "profile")) as browser:
            browser.look(width=1440)
            reference, opened = times(browser, bare), times(browser, path)
            first_s = search(browser, FIRST_SEARCH)
            searches = {words: search(browser, words) for words in SEARCHES}

        def figure(what: str, measure: str, value: float, unit: str, bound: str) -> Figure:
            parameter = f"{cases:,} cases: {what}"
            return Figure(
                workload="pages", parameter=parameter, measure=measure, value=value, unit=unit, bound=bound
            )

        size, least = path.stat().st_size / 1e6, sum(map(len, lines)) / 1e6
        yield figure("the file", "size", size, "MB", "compressed texts of all rows").beside(
            "the results as JSON", least
        )
        written = figure("writing", "time", written_s, "s", "CPU of one core")
        yield written.beside("reading and writing their JSON", encoded_s)
        paint = figure("first screen", "time", opened.paint_s, "s", "the start of the file")
        yield paint.beside(BARE, reference.paint_s)
        loaded = figure("chips and keys", "time", opened.loaded_s, "s", "reading the whole file")
        yield loaded.beside(BARE, reference.loaded_s)
        unpacked = figure("the first search", "time", first_s, "s", "unpacking all rows")
        yield unpacked.beside(f"loading {BARE}", reference.loaded_s)
        for words, took_s in searches.items():
            found = figure(f"search for {words!r}", "time", took_s, "s", "texts of all rows, and drawing")
            yield found.beside(f"loading {BARE}", reference.loaded_s)


class Opened(NamedTuple):
    """How long a page took to open, in seconds."""

    paint_s: float
    """Until the first screen was drawn."""
    loaded_s: float
    """Until everything was there."""


def bare_table(path: Path, lines: Sequence[str]) -> Path:
    """Writes the least page with results: one table, each as text."""
    with path.open("w", encoding="utf-8") as out:
        out.write("<!doctype html><meta charset=utf-8><table>\n")
        out.writelines(f"<tr><td>{at}</td><td>{escape(line)}</td></tr>\n" for at, line in enumerate(lines))
    return path


def times(browser: Browser, path: Path) -> Opened:
    """Opens a page; a small one may be loaded before it is drawn."""
    browser.open(path.as_uri())

    def seconds(expression: str) -> float:
        found: Any = browser.evaluate(expression)
        assert found is not None
        return float(found) / 1000

    return Opened(*(eventually(partial(seconds, each), PAINT_S) for each in (PAINT, LOADED)))


def search(browser: Browser, words: str) -> float:
    """Seconds from the last key to the frame that shows what was found."""
    browser.evaluate(TIMED % words)

    def timed() -> float:
        found: Any = browser.evaluate("window.timed")
        assert found is not None
        return float(found) / 1000

    return eventually(timed, SEARCH_S)
