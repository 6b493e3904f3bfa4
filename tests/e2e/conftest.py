"""What end-to-end tests share: a browser."""

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.browser import Browser
from tests.support.processes import Processes
from tests.support.tools import require_tool


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory, _runtime_folder: None) -> Iterator[Browser]:
    """One browser for all pages of a session."""
    require_tool("chromium", "google-chrome")
    folder = tmp_path_factory.mktemp("browser")
    processes = Processes(folder, os.environ)
    try:
        with closing(Browser(processes, folder / "profile")) as found:
            yield found
    finally:
        processes.close()


@pytest.fixture(autouse=True)
def _fresh_page(request: pytest.FixtureRequest) -> None:
    """A test with the browser begins on an empty page: an old one may still ask for things."""
    if "browser" in request.fixturenames:
        request.getfixturevalue("browser").forgive()
