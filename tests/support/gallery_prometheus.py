"""Makes the picture of docs/operations.md: queries of the dashboard, drawn by Prometheus after a real run.

Part of `make gallery`.
"""

import os
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from tests.support.browser import Browser
from tests.support.cli import Cli
from tests.support.eventually import eventually
from tests.support.processes import Processes, kill_all, mark_this_session, marked_processes
from tests.support.prometheus import Prometheus, keep_busy, queries, start_fleet, wait_for_answers
from tests.support.tree import ROOT

PANELS: Final = ("Calls a second", "Backlog by kind")
CASES: Final = 70
ALPHA_RPM: Final = 200
WIDTH: Final = 1100
HEIGHT: Final = 1588


def draw(target: Path) -> None:
    """Runs a fleet under Prometheus, and photographs what its page draws of it."""
    mark_this_session()
    with tempfile.TemporaryDirectory(prefix="gallery-") as name:
        folder = Path(name)
        (folder / "profile").mkdir()
        environment = {
            **os.environ,
            "PROCTOR_DATA_DIR": name,
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }
        processes = Processes(folder, environment)
        cli = Cli(processes)
        try:
            fleet = start_fleet(cli)
            prometheus = Prometheus(processes, folder / "prometheus", fleet)
            keep_busy(cli, folder, cases=CASES, alpha_rpm=ALPHA_RPM)
            wait_for_answers(prometheus, fleet)
            with closing(Browser(processes, folder / "profile")) as browser:
                browser.look(width=WIDTH, height=HEIGHT)
                browser.open(f"{prometheus.url}/graph?{urlencode(_graphs())}")
                eventually(lambda: _is_drawn(browser), 40)
                browser.evaluate("document.documentElement.style.overflow = 'hidden'")
                browser.screenshot(target)
            fleet.up.terminate()
            fleet.up.wait(20)
        finally:
            processes.close()
            kill_all(marked_processes())


def _is_drawn(browser: Browser) -> None:
    """Asserts that each graph has lines of many points."""
    lines = "Array.from(each.querySelectorAll('path'))"
    is_long = "(path) => path.getAttribute('d').split(/[LC]/).length > 10"
    graphs = f"Array.from(document.querySelectorAll('svg')).filter((each) => {lines}.some({is_long}))"
    drawn = browser.evaluate(f"{graphs}.length")
    assert drawn >= len(PANELS), drawn


def _graphs() -> dict[str, str]:
    """The page's parameters: one graph for each panel."""
    first = {query.panel: query.expr for query in reversed(list(queries()))}
    found: dict[str, str] = {}
    for at, panel in enumerate(PANELS):
        found |= {
            f"g{at}.expr": first[panel],
            f"g{at}.tab": "0",
            f"g{at}.range_input": "1m",
            f"g{at}.step_input": "1",
        }
    return found
