"""Answers are reviewed in a browser: blind, with keys, by two people, against a server of the test's own."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from producer.access import Access
from producer.review.label_store import read_labels
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
