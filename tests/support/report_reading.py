"""Reads an HTML report that is open in a browser, and presses its keys."""

from typing import Any

from tests.support.browser import Browser
from tests.support.eventually import eventually


def opened(browser: Browser, address: str, **look: Any) -> None:
    """Loads a page anew: a new hash alone would load nothing."""
    browser.open("about:blank")
    browser.look(**look)
    browser.open(address)


def says(browser: Browser, selector: str, *wanted: str) -> None:
    """Asserts what elements say."""
    assert browser.texts(selector) == list(wanted)


def counted(browser: Browser, wanted: str, within_s: float = 15.0) -> None:
    """Waits until the page says how many of its rows are shown."""
    eventually(lambda: says(browser, "[data-shown]", wanted), within_s)


def press(browser: Browser, *keys: str) -> None:
    """Presses keys, wherever the focus is."""
    for key in keys:
        browser.evaluate(
            "(document.activeElement || document.body).dispatchEvent("
            f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true, cancelable: true}}))"
        )


def current(browser: Browser) -> Any:
    """The row and cell that are open, by the address."""
    return browser.evaluate("new URLSearchParams(location.hash.slice(1)).get('open')")


def is_clean(browser: Browser) -> None:
    """Asserts that nothing was complained of and nothing but files, and images within them, was asked for."""
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "about:", "data:image/"))] == []
