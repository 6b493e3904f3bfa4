"""Opens the HTML page of a queries run in a browser, from a file, as whoever gets one by mail does."""

import base64
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from producer.report.html.viewer import FIRST
from tests.support.browser import Browser
from tests.support.eventually import eventually
from tests.support.query_results import answered, one_of_each
from tests.support.report_reading import is_clean, opened, says
from tests.support.run_pages import queries_run, query_rows, write_page

pytestmark = pytest.mark.browser

HOSTILE: Final = (
    "</noscript></template></style></script><script>window.pwned = 1</script>"
    "<img src=x onerror='window.pwned = 2'><a href='javascript:window.pwned = 3'>x</a>{{ 7 * 7 }}<!--row-->"
)
ROW: Final = "[data-rows] > [data-row]"
SHOWN: Final = "[data-shown]"
MANY: Final = 300


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a page on one query of each kind, and two that were never sent."""
    rows = query_rows(one_of_each(), never_sent=2)
    path = tmp_path_factory.mktemp("pages") / "queries.html"
    return write_page(path, queries_run(len(rows)), rows).as_uri()


def test_queries_are_filtered_and_opened(browser: Browser, queries: str, artifacts: Path) -> None:
    """A reason, a chip and a failed check of the table show their queries; one opens into the panel."""
    opened(browser, queries)
    assert browser.texts("h1")[0].endswith("1 of 5 targets missed: OOS handling 50.0% (needs ≥ 90%)")
    for theme in ("light", "dark"):
        for width in (1440, 1024, 390):
            browser.look(width=width, height=1000, theme=theme)
            browser.screenshot(artifacts / f"queries-{theme}-{width}.png")
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    browser.look(width=1440, height=1000)
    browser.click(".heads .opener")
    assert "must (must_contain)" in browser.texts(".popover:popover-open")[0]
    browser.click("h1")
    browser.click(".chip[data-value=failed]")
    says(browser, SHOWN, "4 of 11 queries")
    browser.click(".reason[data-value='forbidden keyword found']")
    says(browser, SHOWN, "1 of 11 queries")
    browser.evaluate("(location.hash = '#')")
    browser.click("#checks a[href*='required']")
    eventually(partial(says, browser, SHOWN, "1 of 11 queries"))
    assert browser.contents(f"{ROW} .lead b") == ["Q-02"]
    browser.click(f"{ROW} .cell > summary")
    eventually(partial(says, browser, "#panel h2", "Q-02"))
    [outcome] = browser.texts("#panel .outcome")
    assert outcome.endswith('failed: lacks "yes" (0 of 1 keyword found)')
    assert browser.texts("#panel .checks code")[0] == "must_contain"
    assert browser.texts("#panel .sources b") == ["S"]
    assert browser.texts("#panel .cmd pre")[0].startswith("proctor run baselines.json --start-from Q-02")
    browser.click("#panel .cmd .copy")
    eventually(lambda: _is_in(browser.texts("#panel .cmd .copy")[0], {"Copied", "Selected"}))
    browser.screenshot(artifacts / "queries-open.png")
    is_clean(browser)


def test_queries_are_searched_ordered_and_kept_in_the_address(browser: Browser, queries: str) -> None:
    """Words of answers and sources are found; filter, order and the table's order come with the address."""
    opened(browser, f"{queries}#show=failed&order=number")
    says(browser, SHOWN, "4 of 11 queries")
    assert browser.contents(f"{ROW} .lead b") == ["Q-02", "Q-03", "Q-05", "Q-07"]
    opened(browser, queries)
    browser.type("[data-q]", "a guess")
    eventually(partial(says, browser, SHOWN, "1 of 11 queries"))
    opened(browser, queries)
    browser.click("#checks thead th:nth-child(4) button")
    assert browser.texts("#checks tbody td:nth-child(4)")[-1] == "0"
    where = browser.evaluate("location.hash")
    opened(browser, f"{queries}{where}")
    assert browser.texts("#checks tbody td:nth-child(4)")[-1] == "0"
    is_clean(browser)


def test_slowest_first_puts_what_has_no_time_last(browser: Browser, queries: str) -> None:
    """The order by latency begins with the timeout and ends with what was never sent."""
    opened(browser, f"{queries}#order=-latency")
    found = browser.contents(f"{ROW} .lead b")
    assert (found[0], found[-2:]) == ("Q-08", ["Q-90", "Q-91"])
    is_clean(browser)


def test_the_page_is_read_without_its_script(browser: Browser, tmp_path: Path) -> None:
    """With scripts forbidden the first queries are there and open in place, and nothing idle is shown."""
    rows = query_rows([answered("Q-0", "no"), *(answered(f"Q-{at}") for at in range(1, MANY))])
    path = write_page(tmp_path / "queries.html", queries_run(len(rows)), rows)
    browser.run_scripts(allowed=False)
    try:
        opened(browser, path.as_uri())
        assert browser.texts("h1")[0].endswith("answers failed; all 4 targets met")
        assert len(browser.contents(ROW)) == FIRST
        assert f"{MANY - FIRST} further rows are compressed" in browser.texts("[data-packed]")[0]
        browser.click(f"{ROW} .cell > summary")
        assert len(browser.texts("details[open] .checks li")) >= 5
        assert not browser.evaluate("document.querySelector('.tools').checkVisibility()")
    finally:
        browser.run_scripts(allowed=True)


def test_paper_has_every_failure_whole(browser: Browser, queries: str) -> None:
    """Printed, failed queries are open with their checks and sources, and controls are gone."""
    opened(browser, queries)
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(browser.texts(f"{ROW} .cell[open]")) == 5
    assert any("lacks" in text for text in browser.texts(".cell[open] .checks"))
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    pdf = browser.devtools("Page.printToPDF", printBackground=True)["data"]
    assert base64.b64decode(pdf)[:5] == b"%PDF-"
    is_clean(browser)


def test_hostile_text_is_inert(browser: Browser, tmp_path: Path) -> None:
    """Markup, script addresses and template braces are shown, and nothing runs."""
    rows = query_rows([answered(HOSTILE, HOSTILE, query=HOSTILE)] * MANY)
    path = write_page(tmp_path / "hostile.html", queries_run(len(rows)), rows)
    opened(browser, path.as_uri())
    browser.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    eventually(lambda: browser.evaluate(f"document.querySelector('#i{MANY} summary').click()"))
    eventually(lambda: _is_in("{{ 7 * 7 }}", "".join(browser.contents("#panel"))))
    assert "<script>window.pwned = 1</script>" in browser.contents("#panel")[0]
    assert browser.evaluate("typeof window.pwned") == "undefined"
    assert browser.evaluate("document.querySelectorAll('img, iframe, object, [onerror]').length") == 0
    links = browser.evaluate("Array.from(document.links, (each) => each.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)
    is_clean(browser)


def _is_in(what: str, where: object) -> None:
    """Asserts that something is there."""
    assert what in where  # type: ignore[operator] # texts and sets
