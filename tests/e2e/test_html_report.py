"""Opens HTML reports of cases in a browser, from files, as whoever gets one by mail does."""

from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from producer.report.html.viewer import FIRST
from shared.contracts.case_run import CasePayload
from tests.support.browser import Browser
from tests.support.case_pages import GOOD, NO_JSON, WRONG, item_row, rows_of, run_info, write_page
from tests.support.eventually import eventually
from tests.support.report_reading import is_clean, opened, says

pytestmark = pytest.mark.browser

MODELS: Final = ("acme/quick", "acme/careful", "house/unpriced")
OUTPUTS: Final = (GOOD, WRONG, GOOD, GOOD, NO_JSON, GOOD, None)
HOSTILE: Final = (
    "</noscript></template></style></script><script>window.pwned = 1</script>"
    "<img src=x onerror='window.pwned = 2'><a href='javascript:window.pwned = 3'>x</a>"
    "{{ 7 * 7 }}{% raw %}<!--row-->\x00\x1b[2J\u202e\u2028\"'`&lt;b&gt;"
)
OPEN_BUDGET_S: Final = 20.0
"""For 20,000 answers; a quiet machine takes less than two seconds."""
FILTER_BUDGET_S: Final = 5.0
"""For one search among them; a quiet machine takes a quarter of a second."""
ROW: Final = "[data-rows] > [data-row]"
SHOWN: Final = "[data-shown]"
DRAWN_TEXTS: Final = """Array.from(
    document.querySelectorAll("svg.chart text"),
    (each) => parseFloat(getComputedStyle(each).fontSize) * each.getScreenCTM().a
)"""
"""Sizes of the texts of charts as they are on the screen, in pixels."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report on three models and forty cases each."""
    path = tmp_path_factory.mktemp("pages") / "report.html"
    return write_page(path, run_info(MODELS, 40), list(rows_of(MODELS, 40, OUTPUTS))).as_uri()


def test_verdict_models_and_failures_are_on_the_first_screen(
    browser: Browser, page: str, artifacts: Path
) -> None:
    """Without scrolling: how many passed, the models, the best first, the reasons, and the first failures."""
    opened(browser, page)
    assert browser.texts(".verdict h1") == ["✗ failed 69 of 120 passed, 34 failed, 17 errors"]
    rates = [float(text.rstrip("%")) for text in browser.texts(".heads .rate")]
    assert rates == sorted(rates, reverse=True)
    bottoms = (
        "Array.from(document.querySelectorAll('.cell.is-f'), (each) => each.getBoundingClientRect().bottom)"
    )
    assert sum(bottom < 900 for bottom in browser.evaluate(bottoms)) >= 3
    assert browser.texts(".reasons > .small") == ["34 failed answers, 17 errors:"]
    browser.click(".heads .opener")
    assert browser.texts(".popover:popover-open h2") == ["acme/careful"]
    assert "temperature 0.1" in browser.texts(".popover:popover-open")[0]
    browser.click(".verdict h1")
    headings = browser.texts(".more h2")
    for wanted in ("Models by pass rate", "Latency vs. accuracy", "Speed vs. Price", "Cost breakdown"):
        assert wanted in headings
    for theme in ("light", "dark"):
        for width in (1440, 1024, 390):
            browser.look(width=width, height=2400, theme=theme)
            browser.screenshot(artifacts / f"cases-{theme}-{width}.png")
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert browser.evaluate(f"Math.min(...{DRAWN_TEXTS})") >= 8
    is_clean(browser)


def test_failures_stand_first(browser: Browser, page: str) -> None:
    """Every case that some model did not pass stands before every case that all did."""
    opened(browser, page)
    marks = browser.evaluate(
        "Array.from(document.querySelectorAll('[data-row]'), (row) => !row.querySelector('.is-f, .is-e'))"
    )
    assert len(marks) == 40
    assert marks == sorted(marks)
    assert set(marks) == {False, True}
    assert len(browser.texts(".group")) == 2


def test_tables_are_sorted_by_a_click_and_stay_so(browser: Browser, page: str) -> None:
    """A click on a heading sorts by numbers, a second one turns it round; unknown values stay last."""
    opened(browser, page)
    heading = "#cost thead th:nth-child(2) button"
    browser.click(heading)
    assert browser.texts("#cost tbody th") == ["acme/careful", "acme/quick", "house/unpriced"]
    browser.click(heading)
    assert browser.texts("#cost tbody th") == ["acme/quick", "acme/careful", "house/unpriced"]
    opened(browser, f"{page}{browser.evaluate('location.hash')}")
    assert browser.texts("#cost tbody th") == ["acme/quick", "acme/careful", "house/unpriced"]
    is_clean(browser)


def test_search_filters_and_order_survive_a_reload(browser: Browser, page: str) -> None:
    """The address alone brings back what was searched, chosen, put in order and opened."""
    opened(browser, page)
    says(browser, SHOWN, "40 cases")
    browser.type("[data-q]", "LYON")
    eventually(partial(says, browser, SHOWN, "17 of 40 cases"))
    browser.click(".chip[data-value=errors]")
    browser.click("[data-order] option[value='-latency']")
    count = eventually(lambda: _fewer(browser.texts(SHOWN)[0], 17))
    browser.click(f"{ROW} .cell > summary")
    eventually(lambda: _holds(browser.evaluate("location.hash"), "open="))
    before, hash_now = browser.contents(f"{ROW} .lead"), browser.evaluate("location.hash")
    panel = browser.texts(".panel .outcome")
    opened(browser, f"{page}{hash_now}")
    assert browser.contents(f"{ROW} .lead") == before
    assert len(before) == count
    assert browser.texts(".panel .outcome") == panel
    is_clean(browser)


def test_closed_cells_are_searched_as_text(browser: Browser, page: str) -> None:
    """What stands in closed cells is found, with its signs; their markup is not."""
    for words, number in (
        ('"LATE"', 40),
        ('"city": "lyon"', 17),
        ('<div class="quote">', 0),
        ("&#34;late", 0),
    ):
        opened(browser, page)
        browser.type("[data-q]", words)
        shown = "40 cases" if number == 40 else f"{number} of 40 cases"
        eventually(partial(says, browser, SHOWN, shown))
    assert browser.texts("[data-rows] > .none") == ["No case matches. Clear filters"]


def test_the_panel_shows_where_an_answer_parts(browser: Browser, page: str, artifacts: Path) -> None:
    """Differences line by line and with path and both sides, what ran before what was skipped, transcript."""
    opened(browser, f"{page}#status=failed_equality")
    browser.click(".cell.is-f > summary")
    eventually(lambda: _filled(browser.texts(".panel .diff")))
    browser.click(".panel section > details > summary")
    rows = eventually(lambda: _filled(browser.texts(".panel .paths tr")))
    assert rows[1:] == ['/city "Paris" "Lyon"', '/note "The box was broken." "The lid was broken."']
    assert browser.texts(".panel .found mark") == ["Lyon", "lid"]
    assert browser.texts(".panel .diff .del")[0].endswith('"city": "Paris",')
    assert browser.texts(".panel .diff .add")[0].endswith('"city": "Lyon",')
    assert [text.split()[1:3] for text in browser.texts(".panel .checks li")] == [
        ["failed", "equality"],
        ["passed", "JSON"],
    ]
    assert browser.texts(".panel section > h3 > span")[1] == "decided by equality"
    assert browser.texts(".panel .transcript .who") == ["system", "user", "answer"]
    assert browser.contents(".panel .transcript .text")[1].startswith("Read ticket")
    assert len(browser.texts(".panel .other")) == 2
    assert "proctor retry run-1 --item 'ticket-" in browser.texts(".panel .cmd pre")[0]
    browser.click(".panel .cmd .copy")
    eventually(lambda: _holds(["Copied", "Selected"], browser.texts(".panel .cmd .copy")[0]))
    assert "ed: proctor retry run-1 --item 'ticket-" in browser.texts(".toast")[0]
    browser.look(width=1440, height=1600)
    browser.screenshot(artifacts / "case-open.png")
    is_clean(browser)


def test_a_status_in_the_table_leads_to_its_cases(browser: Browser, page: str) -> None:
    """The link on a status filters by it, and the filter says so."""
    opened(browser, page)
    browser.click("a[href='#status=upstream_timeout']")
    eventually(partial(says, browser, SHOWN, "17 of 40 cases"))
    assert browser.evaluate("document.querySelector('select[data-facet=status]').value") == "upstream_timeout"
    assert len(browser.contents(f"{ROW} .is-e .reasontext")) == 17


def test_the_page_is_read_without_its_script(browser: Browser, page: str) -> None:
    """With scripts forbidden, everything is there: verdict, tables, what was asked, each answer's details."""
    browser.run_scripts(allowed=False)
    try:
        opened(browser, page)
        assert "69 of 120 passed" in browser.texts(".verdict")[0]
        browser.click(".cell.is-f > summary")
        browser.click(".cell[open] section > details > summary")
        assert '/city "Paris" "Lyon"' in browser.texts(".cell[open] .paths tr")
        browser.click(".asked > summary")
        assert any("Read ticket" in text for text in browser.texts(".asked[open] .text"))
        assert not browser.evaluate("document.querySelector('.tools').checkVisibility()")
    finally:
        browser.run_scripts(allowed=True)


@pytest.mark.parametrize("mode", ["standard", "freeform"])
def test_hostile_text_is_inert(browser: Browser, tmp_path: Path, mode: str) -> None:
    """Markup, script addresses, template braces and control characters are shown, and nothing runs."""
    is_freeform = mode == "freeform"
    criteria = {} if is_freeform else {"expected": {"a": HOSTILE}}
    rows = [
        item_row(
            at,
            CasePayload(at, HOSTILE, HOSTILE, id=HOSTILE, tags=[HOSTILE], criteria=criteria),
            HOSTILE,
            ms=5,
            cost=None,
        )
        for at in range(FIRST + 10)
    ]
    info = run_info((HOSTILE,), len(rows), mode="freeform" if is_freeform else "standard")
    path = write_page(tmp_path / "hostile.html", info, rows)
    for at in (1, len(rows)):  # an element from the start, and one that was compressed
        opened(browser, f"{path.as_uri()}#open=c{at}.0")
        texts = eventually(lambda: _filled(browser.contents(".panel .transcript .text")))
        assert "<script>window.pwned = 1</script>" in texts[1]
        assert "{{ 7 * 7 }}{% raw %}<!--row-->\u2400\u241b[2J" in texts[1]
        assert browser.evaluate("typeof window.pwned") == "undefined"
        assert browser.evaluate("document.querySelectorAll('img, iframe, object, [onerror]').length") == 0
        assert browser.evaluate("document.querySelectorAll('[data-row] script, .panel script').length") == 0
        links = browser.evaluate("Array.from(document.links, (each) => each.getAttribute('href'))")
        assert all(link.startswith("#") for link in links)
    is_clean(browser)


def test_outputs_stand_side_by_side(browser: Browser, tmp_path: Path, artifacts: Path) -> None:
    """A freeform page has its badge, models by latency, and for each prompt the outputs of all in a row."""
    rows = [
        item_row(
            place * 5 + case,
            CasePayload(case, model, f"Question {case + 1}"),
            f"{model} says\n{case + 1}",
            ms=900 - 300 * place,
            cost=0.001,
        )
        for place, model in enumerate(MODELS)
        for case in range(5)
    ]
    info = run_info(MODELS, 5, mode="freeform")
    opened(browser, write_page(tmp_path / "freeform.html", info, rows).as_uri())
    assert browser.texts(".badge") == ["Freeform Mode"]
    for heading in ("Model Outputs by Prompt", "Models by latency", "Speed vs. Price", "Cost breakdown"):
        assert heading in browser.texts("h2")
    assert browser.texts("#models tbody th") == list(reversed(MODELS))
    assert browser.contents("#c2 .out") == [f"{model} says 2" for model in reversed(MODELS)]
    places = "Array.from(document.querySelectorAll('#c2 .out'), (each) => each.getBoundingClientRect().top)"
    assert len(set(browser.evaluate(places))) == 1
    browser.click("#c2 .cell > summary")
    eventually(lambda: _holds(browser.texts(".panel .outcome"), "\u2013 not checked"))
    assert browser.evaluate("document.querySelector('.panel .answer .text').textContent").endswith("says\n2")
    for theme in ("light", "dark"):
        browser.look(width=1440, height=1600, theme=theme)
        browser.screenshot(artifacts / f"freeform-{theme}.png")
    is_clean(browser)


@pytest.mark.slow
def test_twenty_thousand_answers_open_and_filter(browser: Browser, tmp_path: Path) -> None:
    """A large report opens, is searched and is put in order in a time that nobody minds."""
    info = run_info(MODELS[:2], 10_000)
    path = write_page(tmp_path / "large.html", info, list(rows_of(MODELS[:2], 10_000, OUTPUTS)))
    assert path.stat().st_size < 6_000_000
    began = monotonic()
    opened(browser, path.as_uri())
    says(browser, SHOWN, "10,000 cases")
    assert monotonic() - began < OPEN_BUDGET_S
    assert len(browser.texts(ROW)) < 100
    browser.type("[data-q]", "ticket-777")
    began = monotonic()
    eventually(partial(says, browser, SHOWN, "11 of 10,000 cases"), FILTER_BUDGET_S)
    browser.click("[data-order] option[value='-latency']")
    assert len(browser.texts(ROW)) == 11
    assert monotonic() - began < 2 * FILTER_BUDGET_S
    is_clean(browser)


def _holds(texts: object, wanted: str) -> None:
    """Asserts that a text is among others, or in another."""
    assert wanted in texts  # type: ignore[operator]  # a list or a text


def _filled(texts: list[str]) -> list[str]:
    """Asserts that there are texts, and returns them."""
    assert texts
    return texts


def _fewer(text: str, most: int) -> int:
    """Asserts that fewer are shown than before, and returns their number."""
    number = int(text.split(maxsplit=1)[0])
    assert 0 < number < most
    return number
