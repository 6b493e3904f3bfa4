"""Images of cases in the HTML report, as a browser draws them: in the panel, below the rows, and in print."""

from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from shared.contracts.case_run import CasePayload
from tests.support.browser import Browser
from tests.support.case_pages import GOOD, item_row, run_info, write_page
from tests.support.case_runs import WORKERS, bench, document, echo
from tests.support.cli import Cli
from tests.support.eventually import eventually
from tests.support.images import png, stored
from tests.support.model_server import ModelServer
from tests.support.report_reading import is_clean, opened

pytestmark = pytest.mark.browser

WIDTHS: Final = "Array.from(document.querySelectorAll('{}'), (each) => each.naturalWidth)"


def widths(browser: Browser, selector: str) -> Any:
    """The widths of images as they were decoded; 0 of one that is not drawn."""
    return browser.evaluate(WIDTHS.format(selector))


def drawn(browser: Browser, selector: str, *wanted: int) -> None:
    """Waits until images are drawn."""

    def is_drawn() -> None:
        assert widths(browser, selector) == list(wanted)

    eventually(is_drawn)


def page(path: Path, cases: int, files: Mapping[str, bytes]) -> str:
    """Address of a report whose cases all have all files as their images."""
    rows = [
        item_row(at, CasePayload(at, "acme/eyes", "What is this?", images=list(files)), GOOD, ms=5, cost=None)
        for at in range(cases)
    ]
    return write_page(path, run_info(["acme/eyes"], cases), rows, files=files).as_uri()


def test_a_run_with_an_image_shows_it(browser: Browser, cli: Cli, tmp_path: Path) -> None:
    """From the file beside the bench to the panel of the page, with its name and size."""
    picture = png(60, 40)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "map <1>.png").write_bytes(picture)
    cases = [{"id": "look", "input": "Where is this?", "images": ["pictures/map <1>.png"]}]
    report = tmp_path / "report.html"
    with ModelServer(lambda _prompt, nth: echo("Paris", nth)) as server:
        done = cli("run", bench(tmp_path, server, cases, models=["alpha"]), "-o", report, *WORKERS)
    assert document(done)["counts"]["passed"] == 1, done
    opened(browser, f"{report.as_uri()}#open=c1.0")
    drawn(browser, ".panel img", 60)
    note = f"map <1>.png {len(picture)} B"
    assert browser.texts(".panel figcaption") == [note]
    assert browser.evaluate("document.querySelector('.panel img').alt") == note.replace(" 1", ", 1")
    printed = cli("report", document(done)["run_id"], "--format", "html", "-o", tmp_path / "again.html")
    assert printed.code == 0, printed
    assert "data:image/png;base64," in (tmp_path / "again.html").read_text(encoding="utf-8")
    is_clean(browser)


def test_images_of_many_rows_are_drawn_in_each_panel(
    browser: Browser, tmp_path: Path, artifacts: Path
) -> None:
    """In rows that are elements from the start, and in those that were text; in light and in dark."""
    clear = png(400, 300, (20, 20, 20, 90))
    files = dict([stored("first.png", png(60, 40)), stored("clear.png", clear), stored("x.svg", b"<svg/>")])
    address = page(tmp_path / "many.html", 60, files)
    for at in (1, 50):
        opened(browser, f"{address}#open=c{at}.0")
        drawn(browser, ".panel img", 60, 400)
        assert browser.texts(".panel .pictures > span") == ["x.svg 6 B, not shown: no PNG, JPEG, GIF or WebP"]
        assert browser.evaluate("document.querySelectorAll('.panel [id^=image]').length") == 0
    for theme in ("light", "dark"):
        for width in (1440, 390):
            browser.look(width=width, height=1000, theme=theme)
            browser.screenshot(artifacts / f"images-{theme}-{width}.png")
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    is_clean(browser)


def test_images_are_read_without_a_script_and_in_print(
    browser: Browser, tmp_path: Path, artifacts: Path
) -> None:
    """They stand below the rows, where each row links to them."""
    address = page(tmp_path / "plain.html", 3, dict([stored("first.png", png(60, 40))]))
    browser.run_scripts(allowed=False)
    try:
        opened(browser, address)
        browser.click(".asked > summary")
        browser.click(".asked[open] a")
        drawn(browser, "#images img", 60)
        assert browser.evaluate(
            "document.querySelector('#images img').getBoundingClientRect().top < innerHeight"
        )
    finally:
        browser.run_scripts(allowed=True)
    opened(browser, address)
    pdf = b64decode(browser.devtools("Page.printToPDF")["data"])
    (artifacts / "images.pdf").write_bytes(pdf)
    assert b"/Subtype /Image" in pdf
    is_clean(browser)
