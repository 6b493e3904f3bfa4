"""What end-to-end tests share: the command line with a data folder of its own, and a browser."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.support.cli import Cli
from tests.support.processes import Processes
from tests.support.tools import require_tool


@pytest.fixture
def cli(tmp_path: Path, bare_env: dict[str, str]) -> Iterator[Cli]:
    """Runs `proctor` as a process; everything it starts is gone when the test ends."""
    folder = tmp_path / "cli"
    folder.mkdir()
    processes = Processes(folder, bare_env)
    yield Cli(processes)
    processes.close()


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
