"""Measures an HTML report of 100,000 cases in Chromium: time to its first screen, and of a search.

Run as `python -m tests.benchmarks.bench_pages`. The report is made of real rows by the real writer; the
browser loads it from disk with an empty profile. A search is timed from the last key to the frame that shows
all that was found, with the pause that waits for further keys; the first one begins when the page has loaded,
and unpacks all rows.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from tests.support.browser import Browser
from tests.support.case_pages import GOOD, NO_JSON, WRONG, rows_of, run_info, write_page
from tests.support.eventually import eventually
from tests.support.processes import MARK_NAME, Processes

CASES: Final = 100_000
MODELS: Final = ("acme/quick", "acme/careful")
OUTPUTS: Final = (GOOD, GOOD, WRONG, GOOD, GOOD, GOOD, NO_JSON, GOOD, GOOD)
FIRST_SCREEN_GOAL_S: Final = 1.5
FIRST_SEARCH_GOAL_S: Final = 5.0
SEARCH_GOAL_S: Final = 0.3
SEARCH_S: Final = 60.0
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
PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
LOADED: Final = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the times; the exit code says whether the goals were met."""
    options = argparse.ArgumentParser(prog="bench_pages", description="Measure a large HTML report.")
    options.add_argument("--cases", type=int, default=CASES, help="cases of the report")
    options.add_argument("--models", type=int, default=1, choices=(1, 2), help="models that answered them")
    given = options.parse_args(arguments)
    models = MODELS[: given.models]
    with tempfile.TemporaryDirectory(prefix="proctor-pages-") as name:
        folder, began = Path(name), perf_counter()
        path = write_page(
            folder / "report.html",
            run_info(models, given.cases),
            list(rows_of(models, given.cases, OUTPUTS)),
        )
        size, took = path.stat().st_size / 1e6, perf_counter() - began
        print(f"{given.cases:,} cases by {len(models)}: {size:,.0f} MB, written in {took:.1f} s")
        return measured(path, folder)


def measured(path: Path, folder: Path) -> int:
    """Opens the report and searches it; returns the exit code."""
    os.environ.setdefault(MARK_NAME, "bench_pages")
    browser = Browser(Processes(folder, os.environ), folder / "profile")
    try:
        browser.look(width=1440)
        browser.open(path.as_uri())
        paint, loaded = (float(browser.evaluate(each)) / 1000 for each in (PAINT, LOADED))
        print(f"  first screen   {paint:6.2f} s (goal {FIRST_SCREEN_GOAL_S:g} s)")
        print(f"  chips and keys {loaded:6.2f} s")
        cold = search(browser, "zebra")
        print(f"  first search   {cold:6.2f} s (goal {FIRST_SEARCH_GOAL_S:g} s)")
        times = {words: search(browser, words) for words in SEARCHES}
        for words, took in times.items():
            print(f"  search         {took:6.2f} s (goal {SEARCH_GOAL_S:g} s): {words}")
    finally:
        browser.close()
    has_lost = paint > FIRST_SCREEN_GOAL_S or cold > FIRST_SEARCH_GOAL_S
    return int(has_lost or max(times.values()) > SEARCH_GOAL_S)


def search(browser: Browser, words: str) -> float:
    """Seconds from the last key to the frame that shows what was found."""
    browser.evaluate(TIMED % words)

    def timed() -> float:
        found: Any = browser.evaluate("window.timed")
        assert found is not None
        return float(found) / 1000

    return eventually(timed, SEARCH_S)


if __name__ == "__main__":
    sys.exit(main())
