"""Opens HTML reports of turns in a browser, from files, as whoever gets one by mail does."""

from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from tests.support.browser import Browser
from tests.support.conversations import felt, shape, signals
from tests.support.eventually import eventually
from tests.support.report_reading import counted, current, is_clean, opened, press
from tests.support.run_pages import conversation, thread_rows, turns_run, with_messages, write_page

pytestmark = pytest.mark.browser

HOSTILE: Final = (
    "</noscript></template></style></script><script>window.pwned = 1</script>"
    "<img src=x onerror='window.pwned = 2'><a href='javascript:window.pwned = 3'>x</a>{{ 7 * 7 }}"
)
OPEN_BUDGET_S: Final = 20.0
"""For 20,000 turns; a quiet machine takes a second."""
FILTER_BUDGET_S: Final = 5.0
"""For one search among them; a quiet machine takes a quarter of a second."""


@pytest.fixture(scope="module")
def turns(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report on six threads of eight turns each, and a calm one."""
    rows = [
        row for at in range(6) for row in with_messages(conversation(f"thread-{at}", 8 * at), f"thread-{at}")
    ]
    rows += with_messages(thread_rows("calm", [{}, {"message": "ok"}], 48), "calm")
    path = tmp_path_factory.mktemp("pages") / "turns.html"
    return write_page(path, turns_run(len(rows), threads=7), rows).as_uri()


def rows(browser: Browser) -> list[str]:
    """Ids of the rows that are shown, in their order."""
    found: list[str] = browser.evaluate(
        "Array.from(document.querySelectorAll('[data-row]'), (row) => row.id)"
    )
    return found


def test_turns_are_filtered_and_sorted(browser: Browser, turns: str) -> None:
    """A chip shows what it counts, search narrows it, an order sorts it, and the address keeps it."""
    opened(browser, turns)
    head = browser.texts(".verdict h1")[0]
    assert "38 of 50 turns decided (6 must, 19 should, 13 skip)" in head
    assert "✗" in head
    browser.click("button[data-value='frozen']")
    counted(browser, "18 of 50 turns")
    browser.click("button[data-value='skip']")
    counted(browser, "6 of 50 turns")
    browser.type("[data-q]", "THREAD-3")
    counted(browser, "1 of 50 turns")
    assert rows(browser) == ["turn-29"]
    kept = browser.evaluate("location.hash")
    opened(browser, f"{turns}{kept}")
    counted(browser, "1 of 50 turns")
    opened(browser, f"{turns}#order=rule")
    found = browser.contents("[data-row] .dec > summary")
    rules = [int(text.split("rule ")[1][0]) for text in found if "rule " in text]
    assert rules == sorted(rules)
    assert len(rules) == 38
    is_clean(browser)


@pytest.mark.parametrize("width", [1440, 1024, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(
    browser: Browser, turns: str, artifacts: Path, theme: str, width: int
) -> None:
    """On a desk, on half of one and on a phone, with a turn open beside the rows or over them."""
    opened(browser, turns, width=width, height=1000, theme=theme)
    browser.screenshot(artifacts / f"turns-{theme}-{width}.png")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened(browser, f"{turns}#open=turn-3.0", width=width, height=1000, theme=theme)
    browser.screenshot(artifacts / f"turns-open-{theme}-{width}.png")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    browser.look()


def test_threads_are_listed_and_chosen(browser: Browser, turns: str) -> None:
    """Threads with failed turns come first; one is shown alone, then the next one, then all of them again."""
    opened(browser, turns)
    assert browser.texts("[data-threads] h3") == ["7 threads, failed first, most freezes first"]
    assert browser.contents("[data-threads] .name") == [*(f"thread-{at}" for at in range(6)), "calm"]
    browser.click("[data-threads] a[data-thread='t3']")
    counted(browser, "8 of 50 turns")
    assert browser.texts(".group") == ["thread-2 8 turns"]
    assert browser.contents("[data-threads] a[aria-current]")[0].startswith("thread-2")
    press(browser, "]")
    assert browser.texts(".group") == ["thread-3 8 turns"]
    press(browser, "[", "[")
    assert browser.texts(".group") == ["thread-1 8 turns"]
    browser.click("[data-threads] a[data-thread='t2']")
    counted(browser, "50 turns")
    opened(browser, f"{turns}#open=turn-8.0")  # of all threads, that of the open turn is marked
    [marked] = browser.texts("[data-threads] a[aria-current] .name")
    assert browser.texts("#panel h2")[0].startswith(f"{marked} ·")
    is_clean(browser)


def test_keys_go_to_freezes_and_decisions(browser: Browser, turns: str) -> None:
    """`f` finds what was frozen, `m` what had to update, `e` what failed, and each stands in the address."""
    opened(browser, f"{turns}#open=turn-0.0")
    found = []
    for key in ("f", "f", "F", "m", "M", "e", "j", "k"):
        press(browser, key)
        found.append(current(browser))
    assert found == [
        "turn-3.0", "turn-5.0", "turn-3.0", "turn-8.0", "turn-0.0", "turn-4.0", "turn-5.0", "turn-4.0",
    ]  # fmt: skip
    press(browser, "?")
    keys = browser.texts("dialog.keys dl")[0]
    assert "next, previous freeze" in keys
    assert "next, previous failure" not in keys
    press(browser, "Escape")
    is_clean(browser)


def test_a_turn_opens_with_its_memento(browser: Browser, turns: str) -> None:
    """Decision and memento in the panel, the trace folded; an unchanged turn shows the memento before it."""
    opened(browser, turns)
    browser.click("#turn-0")
    panel = browser.texts("#panel")[0]
    assert panel.startswith("thread-0 · turn 1 thread-0#0")
    assert "must rule 2: MUST signal pivot" in panel
    assert "Breakpoint decision: MUST" not in panel
    browser.click("#panel .technical summary")
    assert "Breakpoint decision: MUST" in browser.texts("#panel .technical")[0]
    assert browser.texts("#panel .fields ins") == ["boats"]
    browser.click("#turn-3")
    assert browser.texts("#panel .fields dt") == ["arc", "active", "parked", "decisions", "next"]
    assert browser.texts("#panel .fields .c") == ["❄︎ storm (discarded)"]
    browser.click("#turn-6")
    assert browser.texts("#panel .fields dd")[:2] == ["boats", "none"]
    assert browser.texts("#panel ins, #panel del, #panel .fields .c") == []
    assert "peak guardrail was active" in browser.texts("#panel .memento")[0]
    press(browser, "Escape")
    assert browser.evaluate("document.querySelector('#panel').hidden")
    is_clean(browser)


def test_a_wide_screen_opens_with_the_first_freeze(browser: Browser, turns: str) -> None:
    """The memento stands beside what is to be looked at first, and no step was added to the history."""
    opened(browser, turns, width=1440)
    assert current(browser) == "turn-3.0"
    assert "frozen" in browser.texts("#panel")[0]
    opened(browser, turns, width=1200)
    assert current(browser) is None
    browser.look()


def test_the_page_is_read_without_its_script(browser: Browser, turns: str) -> None:
    """With scripts forbidden, verdict, messages and details are there, and no search that does nothing."""
    browser.run_scripts(allowed=False)
    try:
        opened(browser, turns)
        assert "38 of 50" in browser.texts(".verdict")[0]
        assert len(rows(browser)) == 50
        assert browser.texts("#turn-9 .text") == ["What about 9?"]
        browser.click("#turn-0 details > summary")
        browser.click("#turn-0 .technical summary")
        assert "Breakpoint decision: MUST" in browser.texts("#turn-0 .body")[0]
        assert not browser.evaluate("document.querySelector('.tools').checkVisibility()")
    finally:
        browser.run_scripts(allowed=True)


def test_paper_has_conversations_without_controls(browser: Browser, turns: str) -> None:
    """Messages and decisions are printed, failed turns with their details, and neither list nor panel."""
    opened(browser, f"{turns}#thread=t1")
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    try:
        browser.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert len(rows(browser)) == 8
        assert browser.evaluate("document.querySelector('#turn-4 details').open")
        found = "Array.from(document.querySelectorAll('.tools, .threads, #panel'))"
        assert not browser.evaluate(f"{found}.some((each) => each.checkVisibility())")
        browser.evaluate("dispatchEvent(new Event('afterprint'))")
    finally:
        browser.devtools("Emulation.setEmulatedMedia", media="")


def test_hostile_text_is_inert(browser: Browser, tmp_path: Path) -> None:
    """Markup, script addresses and template braces are shown, and nothing runs."""
    sent = {
        "messageId": HOSTILE,
        "signals": signals("pivot"),
        "modelShape": shape(HOSTILE, active=[HOSTILE]),
        "affectSignal": felt(0.9, HOSTILE),
    }
    found = [
        each._replace(payload=each.payload.replace(b"What about", b"</p><img src=x>"))
        for at in range(120)
        for each in with_messages(thread_rows(f"{at} {HOSTILE}", [sent], at), f"{at} {HOSTILE}")
    ]
    path = write_page(tmp_path / "hostile.html", turns_run(120, threads=120), found)
    opened(browser, path.as_uri())
    browser.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    browser.evaluate("document.querySelector('.threads').scrollTo(0, 1e6)")
    eventually(lambda: _are(browser.evaluate("document.querySelectorAll('.threads li').length"), 120))
    browser.click("[data-row]:last-of-type .dec")
    for shown in ("<script>window.pwned = 1</script>", "{{ 7 * 7 }}", "</p><img src=x>"):
        assert shown in browser.evaluate("document.body.textContent")
    assert browser.evaluate("typeof window.pwned") == "undefined"
    assert browser.evaluate("document.querySelectorAll('img, iframe, object, [onerror]').length") == 0
    links = browser.evaluate("Array.from(document.links, (each) => each.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)
    is_clean(browser)


@pytest.mark.slow
def test_twenty_thousand_turns_open_and_filter(browser: Browser, tmp_path: Path) -> None:
    """A large report opens and is searched in a time that nobody minds, and few of its rows are drawn."""
    found = [
        row
        for at in range(2_500)
        for row in with_messages(conversation(f"thread-{at}", 8 * at), f"thread-{at}")
    ]
    path = write_page(tmp_path / "large.html", turns_run(len(found), threads=2_500), found)
    assert path.stat().st_size < 10_000_000
    began = monotonic()
    opened(browser, path.as_uri())
    counted(browser, "20,000 turns")
    assert monotonic() - began < OPEN_BUDGET_S
    assert len(rows(browser)) < 100
    browser.type("[data-q]", "thread-777")
    counted(browser, "8 of 20,000 turns", FILTER_BUDGET_S)
    opened(browser, f"{path.as_uri()}#thread=t2500")
    counted(browser, "8 of 20,000 turns", OPEN_BUDGET_S)
    assert browser.texts(".group") == ["thread-2499 8 turns"]
    is_clean(browser)


def _are(found: object, wanted: object) -> None:
    """Asserts that something is so by now."""
    assert found == wanted
