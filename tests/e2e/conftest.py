"""What end-to-end tests share: the command line with a data folder, and so a Redis, of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.processes import Processes


@pytest.fixture
def cli(tmp_path: Path, bare_env: dict[str, str]) -> Iterator[Cli]:
    """Runs `proctor` as a process; everything it starts is gone when the test ends."""
    folder = tmp_path / "cli"
    folder.mkdir()
    processes = Processes(folder, bare_env)
    yield Cli(processes)
    processes.close()
