"""Opens HTML reports of cases in a browser, from files, as whoever gets one by mail does."""

import re
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from shared.contracts.case_run import CasePayload
from tests.support.browser import Browser
from tests.support.case_pages import GOOD, NO_JSON, WRONG, item_row, rows_of, run_info, write_page
from tests.support.eventually import eventually
from tests.support.report_reading import CARD, count_of, counts, is_clean, opened, shown

pytestmark = pytest.mark.browser

MODELS: Final = ("acme/quick", "acme/careful", "house/unpriced")
OUTPUTS: Final = (GOOD, WRONG, GOOD, GOOD, NO_JSON, GOOD, None)
HOSTILE: Final = (
    "</noscript></template></style></script><script>window.pwned = 1</script>"
    "<img src=x onerror='window.pwned = 2'><a href='javascript:window.pwned = 3'>x</a>"
    "{{ 7 * 7 }}{% raw %}\x00\x1b[2J\u202e\u2028\"'`&lt;b&gt;"
)
OPEN_BUDGET_S: Final = 20.0
"""For 20,000 cases; a quiet machine takes less than two seconds."""
FILTER_BUDGET_S: Final = 5.0
"""For one search among them; a quiet machine takes a quarter of a second."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report on three models and forty cases each."""
    path = tmp_path_factory.mktemp("pages") / "report.html"
    return write_page(path, run_info(MODELS, 40), list(rows_of(MODELS, 40, OUTPUTS))).as_uri()


def test_verdict_and_models_are_on_the_first_screen(browser: Browser, page: str, artifacts: Path) -> None:
    """Without scrolling: how many passed, the tiles, and the models, the best first."""
    opened(browser, page)
    assert browser.texts(".verdict") == ["✗ 69 of 120 passed, 34 failed, 17 errors"]
    rates = [float(text.rstrip("%")) for text in browser.texts("#models tbody td:nth-child(2)")]
    assert rates == sorted(rates, reverse=True)
    assert browser.evaluate("document.querySelector('#models').getBoundingClientRect().bottom") < 900
    headings = browser.texts("h2")
    assert headings[:4] == [
        "Models by pass rate",
        "Latency vs. Accuracy",
        "Speed vs. Price",
        "Cost breakdown",
    ]
    for theme in ("light", "dark"):
        for width in (1280, 480):
            browser.look(width=width, height=2400, theme=theme)
            browser.screenshot(artifacts / f"cases-{theme}-{width}.png")
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    is_clean(browser)


def test_failures_stand_first(browser: Browser, page: str) -> None:
    """Every case that did not pass stands before every case that did."""
    opened(browser, page)
    marks = [text[0] for text in shown(browser)]
    assert len(marks) == 120
    assert marks == sorted(marks, reverse=True)
    assert {"✗", "✓"} == set(marks)


def test_tables_are_sorted_by_a_click_and_stay_so(browser: Browser, page: str) -> None:
    """A click on a heading sorts by numbers, a second one turns it round; unknown values stay last."""
    opened(browser, page)
    heading = "#costs thead th:nth-child(2) button"
    browser.click(heading)
    assert browser.texts("#costs tbody th") == ["acme/careful", "acme/quick", "house/unpriced"]
    browser.click(heading)
    assert browser.texts("#costs tbody th") == ["acme/quick", "acme/careful", "house/unpriced"]
    opened(browser, f"{page}{browser.evaluate('location.hash')}")
    assert browser.texts("#costs tbody th") == ["acme/quick", "acme/careful", "house/unpriced"]
    is_clean(browser)


def test_search_filters_and_order_survive_a_reload(browser: Browser, page: str) -> None:
    """The address alone brings back what was searched, chosen, put in order and opened."""
    opened(browser, page)
    assert count_of(browser) == "120 of 120 shown"
    browser.type("[data-key=q]", "LYON")

    eventually(partial(counts, browser, "17 of 120 shown"))
    browser.click("[data-key=model] option[value='acme/quick']")
    browser.click("[data-key=order] option[value='-latency']")
    browser.click(f"{CARD}:not([hidden]) > summary")
    eventually(lambda: _is_in_hash(browser, "open="))
    before, hash_now = shown(browser), browser.evaluate("location.hash")
    assert 0 < len(before) < 17
    times = [float(found[1]) for text in before if (found := re.search(r"([\d.]+)s ·", text))]
    assert times == sorted(times, reverse=True)
    opened(browser, f"{page}{hash_now}")
    assert shown(browser) == before
    assert len(browser.texts("details[open] .diff")) == 1
    browser.click(".reset")
    assert count_of(browser) == "120 of 120 shown"
    is_clean(browser)


def test_closed_details_are_searched_as_text(browser: Browser, page: str) -> None:
    """What stands in details is found while they are closed, with its signs; their markup is not."""
    for words, number in (
        ('"LATE"', 120),
        ('"city": "lyon"', 17),
        ('<div class="said">', 0),
        ("&#34;late", 0),
    ):
        opened(browser, page)
        browser.type("[data-key=q]", words)
        eventually(partial(counts, browser, f"{number} of 120 shown"))
    assert [text for text in browser.texts("[data-none]") if text] == ["None of these is shown."] * 2


def test_an_open_case_shows_where_it_parts(browser: Browser, page: str, artifacts: Path) -> None:
    """Details hold the differences with path and both sides, all six stages, and texts that are copied."""
    opened(browser, f"{page}#status=failed_equality")
    browser.click(f"{CARD}:not([hidden]) > summary")
    rows = eventually(lambda: _filled(browser.texts("details[open] .diff tr")))
    assert rows[1:] == ['/city "Paris" "Lyon"', '/note "The box was broken." "The lid was broken."']
    assert browser.texts("details[open] .diff .found mark") == ["Lyon", "lid"]
    stages = browser.texts("details[open] .trace li")
    assert [stage.split()[2] for stage in stages] == [
        "skipped",
        "skipped",
        "pass",
        "skipped",
        "fail",
        "skipped",
    ]
    browser.click("details[open] button.copy")
    eventually(lambda: _has(browser.texts("details[open] button.copy")[0], "Copied", "Selected"))
    browser.look(height=1600)
    browser.screenshot(artifacts / "case-open.png")
    is_clean(browser)


def test_a_status_in_the_table_leads_to_its_cases(browser: Browser, page: str) -> None:
    """The link on a status filters by it."""
    opened(browser, page)
    browser.click("a[href='#status=upstream_timeout']")
    eventually(partial(counts, browser, "17 of 120 shown"))
    assert all("no answer within 120 s" in text for text in shown(browser))


def test_a_verdict_in_the_table_leads_to_its_case(browser: Browser, page: str) -> None:
    """A mark in the table of cases and models opens the case that it stands for."""
    opened(browser, page)
    place = browser.evaluate("document.querySelector('#matrix a').hash")
    browser.click("#matrix a")
    texts = eventually(lambda: _filled(browser.contents(f"{place}[open] .said pre")))
    assert texts[0].startswith("Read ticket")
    assert browser.evaluate(f"Math.abs(document.querySelector('{place}').getBoundingClientRect().top)") < 900
    is_clean(browser)


def test_the_page_is_read_without_its_script(browser: Browser, page: str) -> None:
    """With scripts forbidden, everything is there: verdict, tables, and the details of each case."""
    browser.run_scripts(allowed=False)
    try:
        opened(browser, page)
        assert "69 of 120 passed" in browser.texts(".verdict")[0]
        browser.click(f"{CARD} > summary")
        assert '/city "Paris" "Lyon"' in browser.texts("details[open] .diff tr")
        assert browser.texts("details[open] .said pre")[0].startswith("Read ticket")
        assert not browser.evaluate("document.querySelector('.tools').checkVisibility()")
    finally:
        browser.run_scripts(allowed=True)


@pytest.mark.parametrize("mode", ["standard", "freeform"])
def test_hostile_text_is_inert(browser: Browser, tmp_path: Path, mode: str) -> None:
    """Markup, script addresses, template braces and control characters are shown, and nothing runs."""
    is_freeform = mode == "freeform"
    item = CasePayload(
        0, HOSTILE, HOSTILE, id=HOSTILE, criteria={} if is_freeform else {"expected": {"a": HOSTILE}}
    )
    info = run_info((HOSTILE,), 1, mode="freeform" if is_freeform else "standard")
    path = write_page(tmp_path / "hostile.html", info, [item_row(0, item, HOSTILE, ms=5, cost=None)])
    opened(browser, path.as_uri())
    browser.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    texts = eventually(lambda: _filled(browser.contents(".said pre")))
    assert "<script>window.pwned = 1</script>" in texts[0]
    assert "{{ 7 * 7 }}{% raw %}\u2400\u241b[2J" in texts[0]
    assert browser.evaluate("typeof window.pwned") == "undefined"
    assert browser.evaluate("document.querySelectorAll('img, iframe, object, [onerror]').length") == 0
    assert browser.evaluate("document.querySelectorAll('main script').length") == 0
    links = browser.evaluate("Array.from(document.links, (each) => each.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)
    is_clean(browser)


def test_outputs_stand_side_by_side(browser: Browser, tmp_path: Path, artifacts: Path) -> None:
    """A freeform page has its badge, models by latency, and for each prompt the outputs of all in a row."""
    rows = [
        item_row(
            place * 5 + case,
            CasePayload(case, model, f"Question {case + 1}"),
            f"{model} says {case + 1}",
            ms=900 - 300 * place,
            cost=0.001,
        )
        for place, model in enumerate(MODELS)
        for case in range(5)
    ]
    info = run_info(MODELS, 5, mode="freeform")
    opened(browser, write_page(tmp_path / "freeform.html", info, rows).as_uri())
    assert browser.texts(".badge") == ["Freeform Mode"]
    assert "Model Outputs by Prompt" in browser.texts("h2")
    assert browser.texts("#models tbody th") == list(reversed(MODELS))
    assert browser.contents("#p2 .outputs pre") == [f"{model} says 2" for model in MODELS]
    places = (
        "Array.from(document.querySelectorAll('#p2 .outputs pre'), (each) => each.getBoundingClientRect())"
    )
    assert len({place["top"] for place in browser.evaluate(places)}) == 1
    browser.click("[data-key=model] option[value='acme/quick']")
    eventually(lambda: _has(str(browser.texts("#p2 section:not([hidden]) pre")), "['acme/quick says 2']"))
    for theme in ("light", "dark"):
        browser.look(height=1600, theme=theme)
        browser.screenshot(artifacts / f"freeform-{theme}.png")
    is_clean(browser)


@pytest.mark.slow
def test_twenty_thousand_cases_open_and_filter(browser: Browser, tmp_path: Path) -> None:
    """A large report opens, is searched and is put in order in a time that nobody minds."""
    info = run_info(MODELS[:2], 10_000)
    path = write_page(tmp_path / "large.html", info, list(rows_of(MODELS[:2], 10_000, OUTPUTS)))
    assert path.stat().st_size < 60_000_000
    began = monotonic()
    opened(browser, path.as_uri())
    assert count_of(browser) == "20,000 of 20,000 shown"
    assert monotonic() - began < OPEN_BUDGET_S
    browser.type("[data-key=q]", "ticket-777")
    began = monotonic()
    eventually(partial(counts, browser, "22 of 20,000 shown"), FILTER_BUDGET_S)
    browser.click("[data-key=order] option[value='-latency']")
    assert len(shown(browser)) == 22
    assert monotonic() - began < 2 * FILTER_BUDGET_S
    is_clean(browser)


def _is_in_hash(browser: Browser, text: str) -> None:
    """Asserts that the address holds a text."""
    assert text in browser.evaluate("location.hash")


def _filled(texts: list[str]) -> list[str]:
    """Asserts that there are texts, and returns them."""
    assert texts
    return texts


def _has(text: str, *wanted: str) -> None:
    """Asserts that a text is one of those wanted."""
    assert text in wanted
