"""Opens a page of generated rows in a browser: filters, search, keys, panel, address and paper."""

from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from producer.report.html.viewer import FIRST
from tests.support.browser import Browser
from tests.support.eventually import eventually
from tests.support.report_reading import current, is_clean, opened, press, says
from tests.support.viewer_pages import write_rows

pytestmark = pytest.mark.browser

ROW: Final = "[data-rows] > [data-row]"
SHOWN: Final = "[data-shown]"
NUMBER: Final = 2_000
HELD: Final = """
window.isHeld = true;
const text = Response.prototype.text;
Response.prototype.text = async function () {
  while (window.isHeld) await new Promise((done) => setTimeout(done, 5));
  return text.call(this);
};
"""
"""Nothing is unpacked as long as `isHeld` is set."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a page of two thousand rows."""
    return write_rows(tmp_path_factory.mktemp("pages") / "rows.html", NUMBER).as_uri()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a page of twenty rows."""
    return write_rows(tmp_path_factory.mktemp("pages") / "rows.html", 20).as_uri()


def test_rows_in_sight_are_elements_and_the_scroll_bar_is_true(browser: Browser, page: str) -> None:
    """Of thousands of rows few are elements; the end is reached by scrolling, and has the last row."""
    opened(browser, page)
    says(browser, SHOWN, "2,000 cases")
    assert len(browser.texts(ROW)) < 100
    assert browser.texts(".group") == ["400 cases with a failure"]
    browser.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    eventually(lambda: _holds(browser.contents(f"{ROW} .lead b"), "case-1999"))
    assert len(browser.texts(ROW)) < 100
    bottom = browser.evaluate("document.querySelector('#c1999').getBoundingClientRect().bottom")
    assert 0 < bottom < 900
    is_clean(browser)


def test_chips_count_what_they_show(browser: Browser, page: str) -> None:
    """A pressed chip shows as many rows as it says, and the others count what is left beside it."""
    opened(browser, page)
    assert browser.texts(".chip") == [
        "Failed 400",
        "Errors 200",
        "Models differ 400",
        "even 1,000",
        "odd 1,000",
    ]
    assert browser.texts(".reason") == ["✗ /window/days is …, expected 14 400", "✗ no answer after 60 s 200"]
    browser.click(".chip[data-value=errors]")
    says(browser, SHOWN, "200 of 2,000 cases")
    assert browser.texts(".chip")[3:] == ["even 200", "odd 0"]
    browser.click(".reason:nth-of-type(1)")
    says(browser, SHOWN, "200 of 2,000 cases")
    browser.click(".chip[data-value=odd]")
    says(browser, SHOWN, "0 of 2,000 cases")
    browser.click("[data-act=clear]")
    says(browser, SHOWN, "2,000 cases")
    is_clean(browser)


def test_search_finds_what_is_not_drawn_and_no_markup(browser: Browser, page: str) -> None:
    """Words in closed cells of rows far away are found, with their signs; labels and tags are not."""
    opened(browser, page)
    for words, number in (
        ("NEEDLE-1999", "1"),
        ('"quote"', None),
        ("&#34;quote", "0"),
        ("label", "0"),
        ("other models", "0"),
        ("<pre", "0"),
        ("class", "0"),
        (".*", "0"),
        ("ANSWER 13", f"{number_with('answer 13')}"),
        ("34", f"{number_with('34')}"),  # also in each `&#34;`
        ("7?", f"{number_with('7?')}"),
    ):
        browser.type("[data-q]", words)
        shown = "2,000 cases" if number is None else f"{number} of 2,000 cases"
        eventually(partial(_has_found, browser, words, shown))
    opened(browser, page)
    browser.type("[data-q]", "needle-1999")
    eventually(partial(says, browser, SHOWN, "1 of 2,000 cases"))
    assert browser.contents(f"{ROW} .lead b") == ["case-1999"]
    is_clean(browser)


def test_a_search_has_conditions(browser: Browser, page: str) -> None:
    """Bounds of numbers, with units, and values of facets hold together with words; others are words."""
    opened(browser, page)
    slow = sum(at * 7 % 101 > 50 for at in range(NUMBER))
    for query, number in (
        ("latency>50", slow),
        ("latency>0.05s", slow),
        ("latency<=50ms", NUMBER - slow),
        ("tag:ODD", NUMBER // 2),
        ("tag = odd and latency > 0.05s", sum(at % 2 and at * 7 % 101 > 50 for at in range(NUMBER))),
        ("tag = od", 0),
        ('tag ~ "od"', NUMBER // 2),
        ("tag:odd case-13 latency>=0", sum("13" in f"{at}"[:2] and at % 2 for at in range(NUMBER))),
        ("reason:14", NUMBER // 5),
        ("case>1998", 1),
        ("price>1", 0),
        ("outcome:5", 0),
    ):
        browser.type("[data-q]", query)
        eventually(partial(_has_found, browser, query, f"{number:,} of 2,000 cases"))
    opened(browser, page)
    press(browser, "?")
    assert "search for words; also latency > 2s, show = failed, tag = even" in browser.texts("dialog")[0]
    is_clean(browser)


def test_many_columns_scroll_with_their_head(browser: Browser, tmp_path: Path) -> None:
    """Beside the leads of rows the columns scroll sideways, at any width, each below its own head."""
    opened(browser, write_rows(tmp_path / "wide.html", 60, cells=8).as_uri())
    for width in (1440, 390):
        browser.look(width=width, height=900)
        browser.evaluate("document.querySelector('[data-rows]').scrollTo(0, 0)")
        press(browser, "j")
        for _ in range(7):
            press(browser, "l")
        eventually(partial(_has_reached, browser, 8))
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        press(browser, "Escape")
    is_clean(browser)


def _has_reached(browser: Browser, columns: int) -> None:
    """Asserts that the last cell stands in sight below its head, and the lead of its row before it."""
    at = "document.querySelector('{}').getBoundingClientRect().{}"
    left = browser.evaluate(at.format("[data-row] .cell[data-current]", "left"))
    head = browser.evaluate(at.format(f".headcell:nth-child({columns + 1})", "left"))
    lead = browser.evaluate(at.format("[data-row][data-current] .lead", "right"))
    assert abs(left - head) < 1
    assert left >= lead - 1


def _has_found(browser: Browser, words: str, shown: str) -> None:
    """Asserts that the page has searched for these words, and what it then shows."""
    assert browser.evaluate("new URLSearchParams(location.hash.slice(1)).get('q')") == words
    says(browser, SHOWN, shown)


def number_with(words: str) -> int:
    """How many of the rows have these words in their texts."""
    return sum(words in f"case-{at} What is {at}? answer {at} of model" for at in range(NUMBER))


def test_the_address_brings_everything_back(browser: Browser, page: str) -> None:
    """Search, chips, order and the open cell are in the address; Back closes the panel."""
    opened(browser, page)
    browser.type("[data-q]", "case-1")
    browser.click(".chip[data-value=failed]")
    browser.click("[data-order] option[value='-latency']")
    eventually(partial(says, browser, SHOWN, "222 of 2,000 cases"))
    before = browser.contents(f"{ROW} .lead b")[:10]
    browser.click(f"{ROW} .cell:nth-of-type(1) > summary")
    eventually(lambda: _holds(browser.evaluate("location.hash"), "open="))
    where = browser.evaluate("location.hash")
    eventually(partial(says, browser, ".panel .outcome", f"outcome {current(browser)[1:]}"))
    opened(browser, f"{page}{where}")
    eventually(partial(says, browser, SHOWN, "222 of 2,000 cases"))
    eventually(lambda: _is(browser.contents(f"{ROW} .lead b")[:10], before))
    eventually(partial(says, browser, ".panel .outcome", f"outcome {current(browser)[1:]}"))
    opened(browser, page)
    press(browser, "j")
    assert browser.evaluate("document.querySelector('#panel').checkVisibility()")
    browser.evaluate("history.back()")
    eventually(lambda: _is(browser.texts("#panel h2"), []))
    assert current(browser) is None
    is_clean(browser)


def test_words_typed_just_before_a_click_are_kept(browser: Browser, page: str) -> None:
    """A chip that is clicked before the search begins does not empty the field."""
    opened(browser, page)
    browser.evaluate(
        "(() => { const field = document.querySelector('[data-q]'); field.value = 'case-1';"
        " field.dispatchEvent(new Event('input'));"
        " document.querySelector('.chip[data-value=failed]').click(); })()"
    )
    eventually(partial(says, browser, SHOWN, "222 of 2,000 cases"))
    assert browser.evaluate("document.querySelector('[data-q]').value") == "case-1"


def test_the_address_opens_a_row_far_below(browser: Browser, page: str) -> None:
    """A row that was compressed is in sight beside its panel, and so is the one that a key leads to."""
    opened(browser, f"{page}#open=c1555.1")
    for key, at, cell in (("", 1555, 1), ("f", 1560, 0), ("k", 1555, 0), ("j", 1560, 0)):
        press(browser, *key)
        eventually(partial(says, browser, ".panel .outcome", f"outcome {at}.{cell}"))
        eventually(partial(_is_in_sight, browser, f"#c{at}[data-current]"))
    is_clean(browser)


def _is_in_sight(browser: Browser, selector: str) -> None:
    """Asserts that an element stands within the window."""
    top = browser.evaluate(f"document.querySelector('{selector}').getBoundingClientRect().top")
    assert 0 <= top < 900


def test_a_search_shows_how_far_it_is(browser: Browser, page: str) -> None:
    """What was found so far is shown with the share that was searched; other words begin anew."""
    opened(browser, "about:blank")
    script = browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=HELD)
    try:
        browser.open(page)
        browser.type("[data-q]", "even")
        eventually(lambda: _holds(browser.texts(SHOWN)[0], "0% searched"))
        browser.type("[data-q]", "needle-5")
        eventually(partial(says, browser, SHOWN, "3 of 2,000 cases, 0% searched"))  # 5, 50 and 55 failed
        browser.evaluate("window.isHeld = false")
        found = sum(f"{at}".startswith("5") for at in range(NUMBER))
        eventually(partial(says, browser, SHOWN, f"{found} of 2,000 cases"))
    finally:
        browser.devtools("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])
    is_clean(browser)


def test_a_browser_that_cannot_unpack_says_so(browser: Browser, page: str) -> None:
    """The first rows are filtered and searched, and a note says what the others need."""
    opened(browser, "about:blank")
    script = browser.devtools(
        "Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream"
    )
    try:
        browser.open(page)
        says(browser, SHOWN, "100 cases")
        assert "1,900 further rows are compressed" in browser.texts("[data-packed]")[0]
        browser.type("[data-q]", "needle-495")
        eventually(partial(says, browser, SHOWN, "1 of 100 cases"))
    finally:
        browser.devtools("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])
    is_clean(browser)


def test_keys_move_between_rows_cells_and_failures(browser: Browser, page: str) -> None:
    """`j k h l f F` move, `Esc` closes and gives the focus back, `/` searches, `?` shows the keys."""
    opened(browser, page)
    steps = [
        ("j", "c0.0"),
        ("j", "c5.0"),
        ("l", "c5.1"),
        ("h", "c5.0"),
        ("k", "c0.0"),
        ("f", "c0.2"),
        ("f", "c5.0"),
    ]
    steps += [("F", "c0.2"), ("l", "c0.2")]
    for key, wanted in steps:
        press(browser, key)
        assert current(browser) == wanted, key
    press(browser, "Escape")
    eventually(lambda: _is(current(browser), None))
    assert browser.evaluate("document.activeElement.closest('.cell').dataset.name") == "model-2"
    press(browser, "/")
    assert browser.evaluate("document.activeElement.matches('[data-q]')")
    press(browser, "Escape", "?")
    assert "next, previous case" in browser.texts("dialog")[0]
    is_clean(browser)


def test_the_panel_shows_everything_about_a_cell(browser: Browser, small: str) -> None:
    """Its body, what the cells of a row share, the row's other cells, and copy buttons."""
    opened(browser, f"{small}#open=c10.0")
    assert browser.texts(".panel h2") == ["case-10 model-0"]
    assert browser.texts(".panel .askedtext") == ["asked 10"]
    assert [text.split()[1] for text in browser.texts(".panel .other")] == ["model-1", "model-2"]
    browser.click(".panel .other")
    assert current(browser) == "c10.1"
    browser.click(".panel .cmd .copy")
    eventually(lambda: _holds(["Copied", "Selected"], browser.texts(".panel .cmd .copy")[0]))
    for width in (1280, 1000, 390):
        browser.look(width=width)
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert browser.evaluate(
            "document.querySelector('#panel').getBoundingClientRect().right <= innerWidth"
        )
    is_clean(browser)


def test_tables_below_are_sorted_by_a_click_and_stay_so(browser: Browser, small: str) -> None:
    """A click sorts by numbers from the highest, a second one turns it round; unknown values stay last."""
    opened(browser, small)
    for wanted in (["c", "a", "b"], ["a", "c", "b"]):
        browser.click("#costs thead th:nth-child(2) button")
        assert browser.texts("#costs tbody th") == wanted
    opened(browser, f"{small}{browser.evaluate('location.hash')}")
    assert browser.texts("#costs tbody th") == ["a", "c", "b"]


def test_rows_are_read_without_a_script(browser: Browser, page: str) -> None:
    """With scripts forbidden the first rows are there and open, and nothing useless is offered."""
    browser.run_scripts(allowed=False)
    try:
        opened(browser, page)
        assert len(browser.contents("[data-row]")) == FIRST
        assert browser.contents(".group") == ["400 cases with a failure"]
        assert "1,900 further rows are compressed in this file" in browser.texts("[data-packed]")[0]
        browser.click("#c0 .cell > summary")
        assert "needle-0" in browser.texts("#c0 .cell[open] .body pre")[0]
        assert not browser.evaluate("document.querySelector('.tools').checkVisibility()")
        assert not browser.evaluate("document.querySelector('.reasons').checkVisibility()")
    finally:
        browser.run_scripts(allowed=True)


def test_paper_has_a_thousand_rows(browser: Browser, page: str) -> None:
    """Those that were compressed are printed too, in the order that was chosen."""
    opened(browser, f"{page}#order=case")
    eventually(partial(_prints, browser, [f"case-{at}" for at in range(1_000)]))
    is_clean(browser)


def _prints(browser: Browser, names: list[str]) -> None:
    """Asserts which rows are printed."""
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    found = browser.contents(f"{ROW} .lead b")
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    assert found == names


def test_paper_shows_failures_whole(browser: Browser, small: str) -> None:
    """Before printing, failed cells are open and passed ones are not; afterwards all is as before."""
    opened(browser, small)
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(browser.contents(".cell.is-f[open], .cell.is-e[open]")) == 6
    assert browser.contents(".cell.is-p[open]") == []
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    for selector in (".tools", ".reasons", ".top .end", ".copy"):
        assert not any(
            browser.evaluate(
                f"Array.from(document.querySelectorAll('{selector}'), (e) => e.checkVisibility())"
            )
        )
    ends = "Array.from(document.querySelectorAll('.cell[open]'), (e) => [e, e.querySelector('.body')]"
    ends += ".map((each) => each.getBoundingClientRect().bottom))"
    assert all(cell >= body for cell, body in browser.evaluate(ends))
    browser.devtools("Emulation.setEmulatedMedia", media="")
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    assert browser.contents(".cell[open]") == []
    is_clean(browser)


def _holds(texts: Any, wanted: str) -> None:
    """Asserts that a text is among others."""
    assert wanted in texts


def _is(found: object, wanted: object) -> None:
    """Asserts that two are equal."""
    assert found == wanted
