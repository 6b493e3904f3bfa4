"""Talks in the browser with `examples/chat_server.py`, as the picture in the README shows it."""

from functools import partial
from typing import Final, NamedTuple

from tests.support.browser import Browser
from tests.support.eventually import eventually

ANSWERED_S: Final = 20.0


class Said(NamedTuple):
    """What a person says, and what the page shows of it."""

    message: str
    decision: str
    affect: str
    state: str
    """Of the summary."""


TALK: Final = (
    Said("Which plan is cheaper?", "should", "curiosity, settled, low", "updated"),
    Said("thanks", "skip", "curiosity, settled, low", "unchanged"),
    Said("Let's take plan B", "must", "resolve, rising, med", "updated"),
    Said("I can't keep up with all of it", "should", "overwhelm, rising, high", "updated"),
    Said("What did we say about plan C?", "should", "curiosity, downshift, low", "frozen at a peak"),
)


def talk(browser: Browser, url: str) -> None:
    """Says all of it, and waits for each answer."""
    browser.open(url)
    for number, said in enumerate(TALK, 1):
        browser.type("#text", f"{said.message}\n")
        eventually(partial(_is_shown, browser, number, said), ANSWERED_S)


def _is_shown(browser: Browser, number: int, said: Said) -> None:
    """Asserts that the page shows the decision, the answer, the affect and the summary."""
    decisions = browser.evaluate("[...document.querySelectorAll('.me')].map((each) => each.dataset.is)")
    assert decisions == [each.decision for each in TALK[:number]]
    answer = "" if said.decision == "skip" else f"You said: {said.message}"
    assert browser.texts(".it")[-1] == answer
    assert browser.texts("#affect") == [said.affect]
    assert browser.texts("#state") == [said.state]
