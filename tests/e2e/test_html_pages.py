"""Opens HTML reports of queries in a browser, from files, as whoever gets one by mail does."""

from pathlib import Path
from typing import Final

import pytest

from tests.support.browser import Browser
from tests.support.eventually import eventually
from tests.support.query_results import answered, one_of_each
from tests.support.run_pages import (
    queries_run,
    query_rows,
    write_page,
)

pytestmark = pytest.mark.browser

HOSTILE: Final = (
    "</noscript></template></style></script><script>window.pwned = 1</script>"
    "<img src=x onerror='window.pwned = 2'><a href='javascript:window.pwned = 3'>x</a>{{ 7 * 7 }}"
)
CARD: Final = "details[data-item]:not([hidden])"


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report on one query of each kind, and two that were never sent."""
    rows = query_rows(one_of_each(), never_sent=2)
    path = tmp_path_factory.mktemp("pages") / "queries.html"
    return write_page(path, queries_run(len(rows)), rows).as_uri()


def opened(browser: Browser, address: str) -> None:
    """Loads a page anew: a new hash alone would load nothing."""
    browser.open("about:blank")
    browser.look()
    browser.open(address)


def counted(browser: Browser, told: str, within_s: float = 15.0) -> None:
    """Waits until the page says how much of it is shown."""

    def is_shown() -> None:
        assert browser.texts("[data-count]") == [told]

    eventually(is_shown, within_s)


def pictured(browser: Browser, folder: Path, name: str) -> None:
    """Keeps what a page looks like in light and dark, wide and narrow; nothing is wider than the window."""
    for theme in ("light", "dark"):
        for width in (1280, 480):
            browser.look(width=width, height=2400, theme=theme)
            browser.screenshot(folder / f"{name}-{theme}-{width}.png")
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    browser.look()


def is_clean(browser: Browser) -> None:
    """Asserts that nothing was complained of and nothing but files was asked for."""
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "about:"))] == []


def test_queries_are_filtered_and_opened(browser: Browser, queries: str, artifacts: Path) -> None:
    """A failed check leads to its queries, and a listed query to its details, filtered away or not."""
    opened(browser, queries)
    assert browser.texts("h1, h2") == [
        "Evaluation Report",
        "Aggregate Metrics",
        "Per-Category Breakdown",
        "must_contain Failures",
        "Hallucination Detections",
        "OOS Handling Failures",
        "Citation N/A",
        "Citation Missing",
        "Raw Query Results",
    ]
    pictured(browser, artifacts, "queries")
    browser.click("#checks a[href*='must_not_contain']")
    counted(browser, "1 of 11 shown")
    assert "Q-03" in browser.contents(f"{CARD} > summary")[0]
    browser.click("#s8 ~ .scroll a")
    assert eventually(lambda: _filled(browser.texts("#i7[open] .trace li")))[3].startswith(
        "citation_present fail"
    )
    assert browser.texts("#i7 .said pre")[:2] == ["What about Q-07?", "yes"]
    browser.click("#i7 button.copy")
    eventually(
        lambda: _filled([text for text in browser.texts("#i7 .copy") if text in {"Copied", "Selected"}])
    )
    browser.screenshot(artifacts / "query-open.png")
    is_clean(browser)


def test_queries_are_put_in_order_and_kept_in_the_address(browser: Browser, queries: str) -> None:
    """Outcome and order come back with the address; the table of results is sorted by its headings."""
    opened(browser, f"{queries}#outcome=failed&order=name")
    counted(browser, "4 of 11 shown")
    assert browser.evaluate("document.querySelector('[data-key=order]').value") == "name"
    browser.click("details:has(#results) > summary")
    browser.click("#results thead th:nth-child(9) button")
    verdicts = browser.texts("#results tbody td:last-child")
    assert verdicts[0] == "ERROR: Timeout after 30s"
    assert [verdict.partition(":")[0] for verdict in verdicts[1:]] == ["FAIL"] * 4 + ["PASS"] * 4
    is_clean(browser)


def test_pages_are_read_without_their_script(browser: Browser, queries: str) -> None:
    """With scripts forbidden, verdict, tables and details are there, and no search that would do nothing."""
    browser.run_scripts(allowed=False)
    try:
        opened(browser, queries)
        assert browser.texts(".verdict")[0].startswith("✗")
        browser.click(f"{CARD} > summary")
        assert len(browser.texts("details[open] .trace li")) >= 6
        assert not browser.evaluate("document.querySelector('.tools').checkVisibility()")
    finally:
        browser.run_scripts(allowed=True)


def test_hostile_text_is_inert(browser: Browser, tmp_path: Path) -> None:
    """Markup, script addresses and template braces are shown, and nothing runs."""
    path = tmp_path / "hostile.html"
    write_page(path, queries_run(1), query_rows([answered(HOSTILE, HOSTILE, query=HOSTILE)]))
    opened(browser, path.as_uri())
    browser.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    eventually(lambda: _filled(browser.contents("details[open] .trace li")))
    assert "<script>window.pwned = 1</script>" in browser.evaluate("document.body.textContent")
    assert "{{ 7 * 7 }}" in browser.evaluate("document.body.textContent")
    assert browser.evaluate("typeof window.pwned") == "undefined"
    assert browser.evaluate("document.querySelectorAll('img, iframe, object, [onerror]').length") == 0
    links = browser.evaluate("Array.from(document.links, (each) => each.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)
    is_clean(browser)


def _filled(texts: list[str]) -> list[str]:
    """Asserts that there are texts and that all are laid out, and returns them."""
    assert texts
    assert all(texts)
    return texts
