"""Answers are reviewed in a browser: blind, with keys, by two people, against a server of the test's own."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from producer.access import Access
from producer.review.answer_labels import AnswerLabel, Judgement
from producer.review.label_store import read_labels, write_labels
from tests.support.browser import Browser
from tests.support.eventually import eventually
from tests.support.viewed_runs import access_to, cases_run, get, served

if TYPE_CHECKING:
    import redis

pytestmark = pytest.mark.browser


@pytest.fixture
def access(redis_url: str, tmp_path: Path) -> Iterator[Access]:
    """The way to the session's server."""
    with access_to(redis_url, tmp_path) as opened:
        yield opened


def press(browser: Browser, key: str) -> None:
    """Presses a key on the page."""
    event = f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})"
    browser.evaluate(f"document.body.dispatchEvent({event})")


def test_a_label_is_taken_back_with_a_key(
    browser: Browser, access: Access, redis_client: "redis.Redis"
) -> None:
    """`u` shows the answer before with its label, which another key replaces; the review goes on after it."""
    run = cases_run(redis_client, "run-a", cases=8, name="desk")
    with served(access) as address:
        browser.open(address.replace("/?", f"/run/{run}/review?by=ann&sample=3&"))
        seen = list[str]()
        for done in (1, 2):
            seen += browser.texts(".detail h2")
            press(browser, "1")
            eventually(partial(shows, browser, "[data-progress]", f"{done} of 3"), 10)
        for name in reversed(seen):
            press(browser, "u")
            eventually(partial(shows, browser, ".detail h2", name), 10)
            assert browser.texts(".reviewhint") == ["You labelled it “pass”."]
        press(browser, "2")
        eventually(lambda: shows(browser, "[data-progress]", "2 of 3"), 10)
        eventually(lambda: refute(browser, ".detail h2", seen), 10)
        assert sorted(label.verdict.value for label in read_labels(access.store, run)) == ["fail", "pass"]
        press(browser, "?")
        assert browser.texts("dialog.keys dt") == ["1 2 3", "n", "u", "Esc"]
        press(browser, "3")
        assert len(read_labels(access.store, run)) == 2
        assert browser.complaints() == []


def shows(browser: Browser, selector: str, text: str) -> None:
    """Asserts the text of an element."""
    assert browser.texts(selector) == [text]


def refute(browser: Browser, selector: str, texts: list[str]) -> None:
    """Asserts that an element has none of these texts."""
    assert browser.texts(selector)[0] not in texts


def test_a_name_that_cannot_be_stored_is_refused_by_the_form(
    access: Access, redis_client: "redis.Redis"
) -> None:
    """The form says it with what was typed, before anything is labelled; a filter likewise."""
    run = cases_run(redis_client, "run-a", cases=8, name="desk")
    with served(access) as address:
        page = address.replace("/?", f"/run/{run}/review?by=ann%20lee&where=failed&")
        status, text = asyncio.run(get(page))
        assert (status, "without spaces and slashes" in text) == (400, True)
        assert ('value="ann lee"' in text, 'value="failed"' in text, "labelform" in text) == (
            True,
            True,
            False,
        )
        status, text = asyncio.run(get(page.replace("%20lee", "").replace("failed", "faild")))
        assert (status, "did you mean" in text, 'value="ann"' in text) == (400, True, True)


def test_a_blind_review_hides_what_others_said(access: Access, redis_client: "redis.Redis") -> None:
    """Labels of others on answers that a reviewer has not labelled are counted in an open review only."""
    run = cases_run(redis_client, "run-a", cases=8, name="desk")
    write_labels(redis_client, run, [AnswerLabel(position=0, reviewer="ann", verdict=Judgement.PASS)])
    with served(access) as address:
        for more, is_shown in (("", False), ("&open=1", True)):
            page = asyncio.run(get(address.replace("/?", f"/run/{run}/review?by=bob&reviewers=2{more}&")))[1]
            assert ("pass 1" in page) == is_shown


def test_answers_are_labelled_with_keys(
    browser: Browser, access: Access, redis_client: "redis.Redis", artifacts: Path
) -> None:
    """Verdicts are hidden until the label is given; the next answer follows; another person reviews."""
    run = cases_run(redis_client, "run-a", cases=8, name="desk")
    with served(access) as address:
        browser.open(address.replace("/?", f"/run/{run}/review?"))
        browser.type("input[name=by]", "ann")
        browser.type("input[name=sample]", "3")
        browser.type("input[name=reviewers]", "")
        browser.evaluate("document.querySelector('input[name=reviewers]').value = '2'")
        browser.click(".reviewform button")

        def at(done: str) -> None:
            assert browser.texts("[data-progress]") == [done]

        eventually(lambda: at("0 of 3"), 10)
        assert browser.texts(".detail .checks") == []
        assert "failed" not in " ".join(browser.texts(".detail .outcome"))
        browser.type("textarea[name=note]", "a note </script>")
        browser.type("input[name=tags]", "tone, facts")
        browser.screenshot(artifacts / "review.png")
        browser.evaluate("document.activeElement.blur()")
        for key, done in (("1", "1 of 3"), ("2", "2 of 3"), ("3", "3 of 3")):
            press(browser, key)
            eventually(partial(at, done), 10)
        assert browser.texts("[data-agreement]") == ["pass 1 · fail 1 · by ann"]
        assert "All answers" in browser.texts(".none")[0]
        found = read_labels(access.store, run)
        assert sorted(label.verdict.value for label in found) == ["defer", "fail", "pass"]
        first = next(label for label in found if label.verdict == "pass")
        assert (first.note, first.tags) == ("a note </script>", ["tone", "facts"])
        browser.open(
            address.replace("/?", f"/run/{run}/review?by=bob&sample=3&reviewers=2&position={first.position}&")
        )
        browser.click(".labelform button[value=fail]")
        eventually(lambda: at("1 of 3"), 10)
        assert "ann and bob agree with kappa" in browser.texts("[data-agreement]")[0]
        assert browser.complaints() == []
        assert browser.strangers() == []
        item = asyncio.run(get(address.replace("/?", f"/run/{run}/item/case-{first.position}?")))[1]
        assert "a note &lt;/script&gt;" in item
        wrong = asyncio.run(get(address.replace("/?", f"/run/{run}/review?by=x&where=nope%3D1&")))
        assert (wrong[0], "column 1" in wrong[1]) == (400, True)
