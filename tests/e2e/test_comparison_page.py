"""Opens the page of a comparison in a browser, from a file, as whoever gets one by mail does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from producer.report.comparison.to_html import MOST_TEXTS, comparison_page
from tests.support.browser import Browser
from tests.support.comparisons import case_line, comparison
from tests.support.report_reading import counted, is_clean, opened
from tests.support.viewer_pages import unpacked

pytestmark = pytest.mark.browser

ASKED: Final = [{"role": "user", "content": "How long?"}]
HOSTILE: Final = (
    "</noscript></template></style></script><script>window.pwned = 1</script>"
    "<img src=x onerror='window.pwned = 2'><a href='javascript:window.pwned = 3'>x</a>{{ 7 * 7 }}"
)


def written(path: Path, before: list[dict[str, Any]], after: list[dict[str, Any]], **options: Any) -> str:
    """Writes a page and returns its address."""
    with comparison(before, after, **options) as contents, path.open("wb") as out:
        out.writelines(comparison_page(contents))
    return path.as_uri()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a comparison of 42 answers by two models, with something of everything."""
    long = " ".join(f"word {number}" for number in range(200))
    before = [case_line(number, "yes", model=model) for number in range(18) for model in ("m", "n")]
    after = [case_line(number, "yes", model=model) for number in range(18) for model in ("m", "n")]
    before += [
        case_line(30, "within 14 days", messages=ASKED, tags=["returns"]),
        case_line(31, f"{HOSTILE} yes", message=HOSTILE),
        case_line(32, "one two three", is_good=False),
        case_line(33, f"{long} ends in 14 days"),
        case_line(34, "Open from ten."),
        case_line(35, None),
    ]
    after += [
        case_line(
            30,
            "within 30 days",
            is_good=False,
            messages=ASKED,
            tags=["returns"],
        ),
        case_line(31, None),
        case_line(32, "four five six"),
        case_line(33, f"{long} ends in 30 days", is_good=False),
        case_line(34, "Open from eleven."),
        case_line(35, "no", is_good=False),
    ]
    settings = ({"system prompt": "a\nb"}, {"system prompt": f"a\n{HOSTILE}"})
    path = tmp_path_factory.mktemp("pages") / "compare.html"
    return written(path, before, after, configurations=settings)


def is_harmless(browser: Browser) -> None:
    """Asserts that nothing was complained of, nothing ran and nothing but files was asked for."""
    is_clean(browser)
    assert browser.strangers() == []
    assert browser.evaluate("window.pwned") is None


def test_the_first_screen_says_what_changed(browser: Browser, page: str) -> None:
    """The verdict, both sides, counts, then broken before fixed before changed, both answers marked."""
    opened(browser, page)
    assert browser.texts("h1") == [
        "No significant difference: 3 of 42 answers broken, 1 fixed, 1 answer changed"
    ]
    [why] = browser.texts(".verdict .why")
    assert "(McNemar's mid-p test" in why
    assert "1 of the 3 broken ended in an error in B: that may be the API and not the change." in why
    assert [text.split()[0] for text in browser.texts(".side h3")] == ["A,", "B,"]
    assert browser.texts(".settings > summary") == [
        "One thing differs: system prompt (1 line removed, 1 added)."
    ]
    assert browser.texts(".legend b") == ["✗ 3 broken", "✓ 1 fixed"]
    assert browser.texts(".group") == [
        "3 broken answers",
        "1 fixed answer",
        "1 changed answer",
        "1 answer with the same outcome, but another text",
    ]
    assert browser.texts("#p1 del") == ["14"]
    assert browser.texts("#p1 ins") == ["30"]
    assert "fully rewritten" in browser.texts("#p4 .lead")[0]
    assert browser.texts("#p4 del") == []
    assert "may be the API and not the change" in browser.texts("#p2 .lead")[0]
    assert browser.texts(".left") == ["36 answers not shown: the same in both runs."]
    is_harmless(browser)


def test_rows_are_filtered_and_opened(browser: Browser, page: str) -> None:
    """Chips, search and reasons; the panel has what was asked and both answers in full."""
    opened(browser, page)
    counted(browser, "6 answers")
    browser.click(".chip[data-value=broken]")
    counted(browser, "3 of 6 answers")
    browser.type("[data-q]", "how long")
    counted(browser, "1 of 6 answers")
    assert "became=broken" in browser.evaluate("location.hash")
    opened(browser, page)
    browser.click("#p3 .cell:last-of-type summary")
    [panel] = browser.texts("#panel")
    assert "word 199 ends in 30 days" in panel
    assert "word 3 word 4" in panel
    folded = "getComputedStyle(document.querySelector('#p3 .far')).display"
    assert browser.evaluate(folded) == "none", "what is the same in both is folded in the row"
    browser.click("#p1 .cell summary")
    assert "How long?" in browser.texts("#panel")[0]
    is_harmless(browser)


def test_it_is_read_without_a_script_and_printed(browser: Browser, page: str) -> None:
    """All pairs are there; nothing that would do nothing is; paper has answers whole."""
    browser.run_scripts(allowed=False)
    try:
        opened(browser, page)
        text = " ".join(browser.contents("main"))
    finally:
        browser.run_scripts(allowed=True)
    assert all(f"case-{number}" in text for number in range(30, 36))
    assert "{{ 7 * 7 }}" in text


@pytest.mark.parametrize("width", [1440, 1024, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_every_width(browser: Browser, page: str, tmp_path: Path, width: int, theme: str) -> None:
    """Nothing scrolls sideways."""
    opened(browser, page)
    browser.look(width=width, height=2000, theme=theme)
    browser.screenshot(tmp_path / f"compare-{theme}-{width}.png")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_answers_without_end_are_counted_not_written(tmp_path: Path) -> None:
    """Of very many answers that only read differently, the first are shown; equal ones never are."""
    number = MOST_TEXTS + 700
    before = [case_line(each, "one two three") for each in range(number)]
    after = [case_line(each, "one two four" if each >= 200 else "one two three") for each in range(number)]
    text = Path(written(tmp_path / "c.html", before, after).removeprefix("file://")).read_text("utf-8")
    assert unpacked(text).count("data-row ") == MOST_TEXTS
    assert "500 cases more with another text and the same outcome: not shown." in text
    assert "200 cases not shown: the same in both runs." in text


@pytest.mark.parametrize("changed", [lambda line: line, lambda line: line | {"outcome": "failed"}])
def test_pages_of_nothing_and_of_everything(
    browser: Browser, tmp_path: Path, changed: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Runs that are the same have a page too, and so have runs of which nothing is."""
    lines = [case_line(number, "yes") for number in range(150)]
    opened(browser, written(tmp_path / "c.html", lines, [changed(line) for line in lines]))
    [head] = browser.texts("h1")
    same = changed(lines[0]) is lines[0]
    assert head.endswith(
        "all 150 cases ended as before" if same else "B is worse: 150 of 150 cases broken, nothing fixed"
    )
    is_harmless(browser)
