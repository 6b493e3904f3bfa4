"""The pages of `proctor view` in a browser: live, filtered, marked, opened, acted on, with hostile text."""

import asyncio
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import pytest

from producer.access import Access
from tests.support.browser import Browser
from tests.support.case_pages import rows_of
from tests.support.cli import Cli
from tests.support.eventually import eventually
from tests.support.turn_files import turn_lines, write_turns
from tests.support.viewed_runs import OUTPUTS, access_to, answer, cases_run, get, served

if TYPE_CHECKING:
    import redis

pytestmark = pytest.mark.browser

HOSTILE: Final = (
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"
    "\"'><svg onload=window.pwned=3>{{ 7 * 7 }}\x1b[2J\u202e"
)
MODEL: Final = ["acme/quick"]


@pytest.fixture
def access(redis_url: str, tmp_path: Path) -> Iterator[Access]:
    """The way to the session's server."""
    with access_to(redis_url, tmp_path) as opened:
        yield opened


def shows(browser: Browser, selector: str, expected: list[str]) -> None:
    """Waits until elements have these texts."""

    def found() -> None:
        assert browser.texts(selector) == expected

    eventually(found, 10.0)


def press(browser: Browser, *keys: str) -> None:
    """Presses keys on the page."""
    for key in keys:
        event = f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})"
        browser.evaluate(f"document.body.dispatchEvent({event})")


def test_runs_are_searched_marked_and_compared(
    browser: Browser, access: Access, redis_client: "redis.Redis", artifacts: Path
) -> None:
    """Search and chips change the address and not the page; two marked runs are compared; nothing leaves."""
    cases_run(redis_client, "run-a", name="desk")
    cases_run(redis_client, "run-b", name="desk", outputs=[OUTPUTS[0]])
    cases_run(redis_client, "run-c", name=f"other {HOSTILE}")
    with served(access) as address:
        browser.open(address)
        shows(browser, "[data-link]", ["live"])
        assert len(browser.texts("tr[data-row]")) == 3
        assert browser.texts("tr[data-id=run-b] .ivtd + td") == ["▲ 50.0 points"]
        browser.screenshot(artifacts / "runs.png")
        browser.type("[data-search] input[type=search]", "desk")
        shows(browser, "tr[data-row] .mono", ["run-b", "run-a"])
        assert "q=desk" in browser.evaluate("location.search")
        browser.type("[data-search] .where", "failed")
        shows(browser, "tr[data-row] .mono", ["run-a"])
        assert "where=failed" in browser.evaluate("location.search")
        assert browser.evaluate("document.activeElement.name") == "where"
        browser.type("[data-search] .where", "failed and")
        shows(
            browser,
            "#problem",
            ["filter, column 11: a condition is missing; such as: failed, age < 2d, rate < 90%"],
        )
        browser.evaluate("document.querySelector('.where').value = ''")
        browser.type("[data-search] .where", "\ue007")
        shows(browser, "tr[data-row] .mono", ["run-b", "run-a"])
        browser.evaluate("document.activeElement.blur()")
        browser.click(".chip[href*='standing=bad']")
        shows(browser, "tr[data-row] .mono", ["run-a"])
        assert browser.evaluate("document.activeElement !== document.querySelector('.search')")
        browser.click(".chip[aria-current]")
        shows(browser, "tr[data-row] .mono", ["run-b", "run-a"])
        press(browser, *"jxjxc")
        shows(browser, ".verdict h1", ["No significant difference: 4 of 8 cases fixed, nothing broken"])
        browser.type(".filterform .where", "failed\ue007")
        shows(browser, ".pair .lead > b", ["ticket-2", "ticket-6"])
        assert browser.evaluate("window.pwned") is None
        assert browser.complaints() == []
        assert browser.strangers() == []
        browser.open("about:blank")  # before its server ends


def test_marks_are_there_when_the_browser_goes_back(
    browser: Browser, access: Access, redis_client: "redis.Redis"
) -> None:
    """The button counts the boxes that the browser has marked again."""
    for run in ("run-a", "run-b"):
        cases_run(redis_client, run)
    with served(access) as address:
        browser.open(address)
        press(browser, *"jxjxc")
        eventually(lambda: at_path(browser, "/compare"), 10.0)
        browser.evaluate("history.back()")
        shows(browser, "[data-compare]", ["Compare 2 marked"])
        browser.open("about:blank")


def test_several_runs_are_marked_and_shown_together(
    browser: Browser, access: Access, redis_client: "redis.Redis", artifacts: Path
) -> None:
    """Marks outlive a search; all cases of three runs stand beside each other, by keys too, as text only."""
    cases_run(redis_client, "run-a", name="desk")
    cases_run(redis_client, "run-b", name="desk", outputs=[OUTPUTS[0]])
    cases_run(redis_client, "run-c", name=f"other {HOSTILE}", outputs=[OUTPUTS[1]])
    with served(access) as address:
        browser.open(address)
        shows(browser, "[data-link]", ["live"])
        browser.click("tr[data-id=run-c] input")
        browser.type("[data-search] input[type=search]", "desk")
        shows(browser, "tr[data-row] .mono", ["run-b", "run-a"])
        browser.click("tr[data-id=run-a] input")
        browser.click("tr[data-id=run-b] input")
        shows(browser, "[data-compare]", ["Compare 3 marked"])
        browser.click("[data-compare]")
        shows(browser, ".grid tbody th", [f"ticket-{number}" for number in (2, 4, 6, 8, 1, 3, 5, 7)])
        for theme, width in (("light", 1440), ("dark", 420)):
            browser.look(width=width, theme=theme)
            browser.screenshot(artifacts / f"grid-{theme}.png")
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        browser.look(width=1600, height=1000)  # other tests share the browser
        browser.click(".chip[href*='show=broken']")
        shows(browser, ".grid tbody th", [f"ticket-{number}" for number in (1, 3, 5, 7)])
        assert "show=broken" in browser.evaluate("location.search")
        browser.click(".chip[aria-current]")
        shows(browser, ".grid tbody tr:first-child td", ["✗ failed", "✓ passed fixed", "✗ failed"])
        press(browser, *"jjjjj")  # past the runs to the second row
        assert browser.evaluate("document.activeElement.pathname") == "/run/run-a/item/case-3"
        press(browser, "Enter")
        shows(browser, "#main h2", ["ticket-4 · acme/quick"])
        assert browser.evaluate("window.pwned") is None
        assert browser.complaints() == []
        browser.open("about:blank")


def test_a_run_is_live_and_its_items_open(
    browser: Browser, access: Access, redis_client: "redis.Redis", artifacts: Path
) -> None:
    """Results arrive without a reload, an item opens beside its rows, and an action changes the run."""
    run = cases_run(redis_client, "run-a", cases=8, done=0, name=HOSTILE)
    with served(access) as address:
        browser.open(address.replace("/?", f"/run/{run}?"))
        shows(browser, ".quad b", ["0", "0", "0", "8"])
        answer(redis_client, run, list(rows_of(MODEL, 8, OUTPUTS)))
        shows(browser, ".quad b", ["4", "2", "2"])
        shows(browser, "a.item[data-letter=f] .what > b", [f"ticket-{at} · acme/quick" for at in (2, 6)])
        browser.click("a.item[data-letter=f]")
        shows(browser, "#panel h2", ["ticket-2 · acme/quick"])
        assert "Lyon" in browser.texts("#panel .transcript")[0]
        browser.screenshot(artifacts / "run.png")
        browser.click("#panel [data-post]")
        browser.look(width=420, theme="dark")
        browser.screenshot(artifacts / "run-dark.png")
        browser.click("#panel .closer")
        assert browser.evaluate("document.querySelector('.search').checkVisibility()")
        browser.look(width=1600, height=1000)  # other tests share the browser
        assert browser.evaluate("document.querySelector('#panel').hidden")
        browser.click("[data-part=card] [data-post*='/pause']")
        shows(browser, ".badge", ["paused 87%"])
        assert browser.evaluate("window.pwned") is None
        assert browser.complaints() == []
        browser.open("about:blank")


def test_a_page_goes_on_when_its_server_is_back(
    browser: Browser, access: Access, redis_client: "redis.Redis"
) -> None:
    """A page says that the connection is gone; on the same port it goes on by itself."""
    run = cases_run(redis_client, "run-a", cases=8, done=0)
    with ExitStack() as stack:
        address = stack.enter_context(served(access))
        browser.open(address)
        shows(browser, "[data-link]", ["live"])
        stack.close()
        shows(browser, "[data-link]", ["no connection, trying again"])
        stack.enter_context(served(access, port=urlsplit(address).port or 0))
        answer(redis_client, run, list(rows_of(MODEL, 8, OUTPUTS)))
        shows(browser, "[data-link]", ["live"])
        shows(browser, "tr[data-row] td:nth-child(6)", ["50.0%"])
        browser.forgive()


def test_two_tabs_agree(browser: Browser, access: Access, redis_client: "redis.Redis") -> None:
    """What is done in one tab is shown in the other; searches and marks are each tab's own."""
    run = cases_run(redis_client, "run-a", cases=8, done=4, name="desk")
    cases_run(redis_client, "run-b", name="other")
    with served(access) as address:
        browser.open(address)
        shows(browser, ".live .quad b", ["2", "1", "1", "4"])
        browser.type("[data-search] .where", "working")
        press(browser, "Escape")
        browser.evaluate("document.activeElement.blur()")
        shows(browser, "tr[data-row] .nm", ["desk"])
        browser.click("tr[data-id=run-a] input")
        with browser.second_tab() as turn:
            browser.open(address.replace("/?", f"/run/{run}?"))
            shows(browser, "[data-link]", ["live"])
            browser.click("[data-part=card] [data-post*='/pause']")
            shows(browser, ".badge", ["paused 50%"])
            turn()
            shows(browser, "[data-compare]", ["Compare 1 marked"])
            assert "where=working" in browser.evaluate("location.search")
            eventually(lambda: paused(browser), 10.0)
            browser.click(".live [data-post*='/resume']")
            turn()
            shows(browser, "[data-part=card] [data-post]", ["Pause", "Cancel"])
        assert browser.complaints() == []
        browser.open("about:blank")


def test_the_history_of_a_bench_leads_to_its_runs(
    browser: Browser, access: Access, redis_client: "redis.Redis", artifacts: Path
) -> None:
    """A point for each run of the name, with what changed; each leads to its run, and all to their cases."""
    for at, output in enumerate((OUTPUTS[:2], OUTPUTS[:1], OUTPUTS[1:2])):
        cases_run(redis_client, f"run-{at}", name=f"desk {HOSTILE}", outputs=output)
    cases_run(redis_client, "run-x", name="other")
    with served(access) as address:
        browser.open(address.replace("/?", "/run/run-1?"))
        browser.click("nav.acts a:last-child")
        shows(browser, "tr[data-row] .mono", ["run-2", "run-1", "run-0"])
        points = browser.contents(".hist circle title")
        assert [point.split(": ")[1][:6] for point in points] == ["50.0%,", "100.0%", "0.0%, "]
        assert "The last run has 0.0%, the best one 100.0%" in browser.texts(".hist figcaption")[0]
        for theme, width in (("light", 1440), ("dark", 390)):
            browser.look(width=width, theme=theme)
            browser.screenshot(artifacts / f"history-{theme}.png")
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        browser.look(width=1600, height=1000)
        browser.evaluate(
            "document.querySelector('.hist svg a[href*=run-0]').dispatchEvent(new MouseEvent('click'))"
        )
        eventually(lambda: at_path(browser, "/run/run-0"), 10.0)
        browser.evaluate("history.back()")
        shows(browser, ".hist h2 a", ["Cases of the last 3"])
        browser.click(".hist h2 a")
        shows(browser, ".grid thead th", ["Case", "run-0", "run-1", "run-2"])
        assert browser.evaluate("window.pwned") is None
        assert browser.complaints() == []
        browser.open("about:blank")


def paused(browser: Browser) -> None:
    """Asserts that the run above the list is paused."""
    assert "cases · paused 50%" in browser.texts(".live h2")[0]


def at_path(browser: Browser, path: str) -> None:
    """Asserts where the browser is."""
    assert browser.evaluate("location.pathname") == path


def test_the_command_prints_its_address_first(cli: Cli, tmp_path: Path) -> None:
    """Line 1 is the address, which answers at once; `open` writes a page, and `run --view` serves one."""
    turns = write_turns(tmp_path / "turns.jsonl", turn_lines(2, 3))
    done = cli("run", turns, "--view")
    assert done.code == 0
    assert re.search(r"the run: http://127\.0\.0\.1:\d+/run/run-\w+\?token=\S+", done.err)
    page = cli("open", "--no-open").out.strip()
    assert Path(page).read_text(encoding="utf-8").startswith("<!doctype html>")
    process = cli.start("view", "--no-open", "--port", "0")
    process.wait_for("token=")
    address = process.output.splitlines()[0]
    status, text = asyncio.run(get(address))
    assert (status, "turns.jsonl" in text) == (200, True)
    assert asyncio.run(get(address.partition("?")[0]))[0] == 403
    process.send(signal.SIGINT)
    assert process.wait(10) == 0
