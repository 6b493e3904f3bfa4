"""Reads an HTML report that is open in a browser."""

from typing import Final

from tests.support.browser import Browser

CARD: Final = "details[data-item]"


def opened(browser: Browser, address: str) -> None:
    """Loads a page anew: a new hash alone would load nothing."""
    browser.open("about:blank")
    browser.look()
    browser.open(address)


def count_of(browser: Browser) -> str:
    """What the page says about how many cases are shown."""
    return browser.texts("[data-count]")[0]


def shown(browser: Browser) -> list[str]:
    """The cases that are not filtered away, by what stands on their lines."""
    return browser.contents(f"{CARD}:not([hidden]) > summary")


def is_clean(browser: Browser) -> None:
    """Asserts that nothing was complained of and nothing but files was asked for."""
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "about:"))] == []


def counts(browser: Browser, wanted: str) -> None:
    """Asserts what the page says about how many cases are shown."""
    assert count_of(browser) == wanted
