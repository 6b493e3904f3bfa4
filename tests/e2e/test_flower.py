"""Looks at Flower as a person does: in a browser, while real workers decide a real file."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Final

import pytest

from tests.support.browser import Browser
from tests.support.cli import Cli
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.processes import Process, Processes, is_running
from tests.support.tools import require_tool
from tests.support.tree import ROOT

pytestmark = pytest.mark.browser

TASK: Final = "proctor.turns.evaluate"
SEARCH: Final = "input[type=search]"
PAGE_BUDGET_S: Final = 20.0


@dataclass
class Shop:
    """Everything running: embedded Redis, one worker, Flower, and a browser in front of it."""

    browser: Browser
    address: str
    flower: Process
    runs: tuple[str, str]
    """Ids of two finished runs."""

    def rows(self, page: str) -> list[str]:
        """Rows of the page's table, read anew; the page fills itself by a second request.

        The table remembers its search for the next visit, which may be another test's: it is cleared first.
        """
        self.browser.open(f"{self.address}/healthcheck")
        self.browser.evaluate("localStorage.clear()")
        self.browser.open(self.address + page)
        return eventually(self._filled, PAGE_BUDGET_S)

    def has(self, run: str) -> None:
        """Asserts that the tasks page lists a run."""
        assert any(run in row for row in self.rows("/tasks"))

    def has_only(self, wanted: str, other: str) -> None:
        """Asserts that the page, as it stands, lists tasks of one run and none of another."""
        rows = self.browser.texts("table.dataTable tbody tr")
        assert rows
        assert all(wanted in row and other not in row for row in rows)

    def _filled(self) -> list[str]:
        rows = self.browser.texts("table.dataTable tbody tr")
        assert rows
        assert "No " not in rows[0]
        return rows


def status_of(address: str, method: str, path: str) -> int:
    """Status of one HTTP request."""
    with closing(HTTPConnection(address, timeout=5)) as connection:
        connection.request(method, path)
        return connection.getresponse().status


def answers(address: str) -> None:
    """Asserts that Flower serves pages."""
    assert status_of(address, "GET", "/healthcheck") == 200


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Starts all of it through the real command line, and decides the example turns twice."""
    require_tool("chromium", "google-chrome")
    folder = tmp_path_factory.mktemp("flower")
    env = {**os.environ, "PROCTOR_DATA_DIR": str(folder / "data"), "PROCTOR_EMBEDDED_IDLE_S": "1"}
    processes = Processes(folder, {**env, "PYTHONPATH": str(ROOT)})
    proctor: tuple[str, ...] = (sys.executable, "-P", "-m", "producer")
    port = free_port()
    address = f"127.0.0.1:{port}"
    try:
        processes.start(*proctor, "worker", "--processes", "1")
        flower = processes.start(*proctor, "flower", "--port", str(port))
        eventually(lambda: answers(address), PAGE_BUDGET_S)
        flower.wait_for("Connected to", PAGE_BUDGET_S)
        runs = []
        for _ in range(2):
            done = processes.run(*proctor, "submit", ROOT / "examples" / "turns.jsonl")
            assert done.popen.returncode == 0, done.output_text()
            runs.append(done.output.strip())
            watched = processes.run(*proctor, "watch", runs[-1], within_s=60)
            assert watched.popen.returncode == 0, watched.output_text()
        with closing(Browser(processes, folder / "profile")) as browser:
            yield Shop(browser, f"http://{address}", flower, (runs[0], runs[1]))
    finally:
        processes.close()


def test_tasks_page_tells_chunks_apart(shop: Shop) -> None:
    """Each row shows the task's name, its state, and which run and chunk it was."""

    def all_listed() -> None:
        rows = shop.rows("/tasks")
        assert all(TASK in row and "SUCCESS" in row and "'chunk': " in row for row in rows)
        seen = {run for run in shop.runs for row in rows if f"'run': '{run}'" in row}
        assert seen == set(shop.runs), [*rows, shop.flower.output_text()]

    eventually(all_listed, PAGE_BUDGET_S)


def test_search_by_argument_finds_one_run(shop: Shop) -> None:
    """Typing `kwargs:run=ID` leaves the rows of that run and no others."""
    wanted, other = shop.runs
    eventually(lambda: shop.has(other), PAGE_BUDGET_S)
    shop.browser.type(SEARCH, f"kwargs:run={wanted}")
    eventually(lambda: shop.has_only(wanted, other), PAGE_BUDGET_S)


def test_search_by_the_beginning_of_a_run(shop: Shop) -> None:
    """The first letters of a run's id leave the rows of runs that begin so; two runs differ at the end."""
    wanted, other = shop.runs
    apart = next(at for at, (one, two) in enumerate(zip(wanted, other, strict=True)) if one != two)
    eventually(lambda: shop.has(other), PAGE_BUDGET_S)
    shop.browser.type(SEARCH, wanted[: apart + 1])
    eventually(lambda: shop.has_only(wanted, other), PAGE_BUDGET_S)


def test_tasks_fit_a_small_screen(shop: Shop) -> None:
    """At 1,280 pixels no column lies outside, there is no UUID, and results and times can be read."""
    shop.browser.look(width=1280)
    try:
        [first, *_] = shop.rows("/tasks")
        headings = shop.browser.texts(".dataTables_scrollHead th")
        edge = "Math.max(...[...document.querySelectorAll('#tasks-table tbody td')]"
        right = shop.browser.evaluate(f"{edge}.map(cell => cell.getBoundingClientRect().right))")
        wide = shop.browser.evaluate(
            "(body => body.scrollWidth - body.clientWidth)(document.querySelector('.dataTables_scrollBody'))"
        )
    finally:
        shop.browser.look(width=1600, height=1000)
    assert [heading.strip().lower() for heading in headings] == [
        *("name", "state", "kwargs", "result", "runtime", "worker", "received")
    ]
    assert right <= 1280
    assert wide <= 0
    assert "'must': " in first
    assert f"@{socket.gethostname()}" in first


def test_task_page_shows_all_arguments(shop: Shop) -> None:
    """One click further, the arguments stand in full: run, chunk, items and the first item's name."""
    shop.rows("/tasks")
    shop.browser.click("table.dataTable tbody td:first-child a[href^='/task/']")
    text = eventually(lambda: shop.browser.texts("main")[0], PAGE_BUDGET_S)
    assert TASK in text
    for name in ("run", "chunk", "items", "first"):
        assert f"'{name}': " in text


def test_worker_page_shows_our_worker(shop: Shop) -> None:
    """The workers page has one row: our node, online, with its successes counted."""
    rows = shop.rows("/workers")
    workers = [row for row in rows if "Online" in row]
    assert len(workers) == 1
    assert f"@{socket.gethostname()}" in workers[0]


def test_pages_are_clean_and_stay_on_this_machine(shop: Shop) -> None:
    """No page logs a warning or an error, and no page asks for anything beyond loopback."""
    shop.rows("/tasks")
    shop.browser.open(f"{shop.address}/broker")
    assert "turns" in shop.browser.texts("main")[0]
    shop.rows("/workers")
    # Not by a click: the page renews its rows all the time.
    shop.browser.open(shop.browser.evaluate("document.querySelector('a.worker-name-link').href"))
    assert "Pool" in shop.browser.texts("main")[0]
    assert shop.browser.complaints() == []
    assert shop.browser.strangers() == []
    assert any(url.startswith(shop.address) for url in shop.browser.requests())


def test_pages_cannot_control_anything(shop: Shop) -> None:
    """Flower starts read-only: shutting a worker down through it is refused."""
    node = f"turns-1@{socket.gethostname()}"
    path = f"/api/worker/shutdown/{node}"
    assert status_of(shop.address.removeprefix("http://"), "POST", path) in {401, 403}


def up_with_flower(cli: Cli, port: int) -> Process:
    """Starts `up` and waits until its Flower shows the worker; no warning was printed."""
    command = cli.start("up", "--processes", "1", "--flower-port", str(port), "--no-metrics")
    eventually(lambda: answers(f"127.0.0.1:{port}"), PAGE_BUDGET_S)
    command.wait_for("Connected to", PAGE_BUDGET_S)

    def workers_are_known() -> None:
        with closing(HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            connection.request("GET", "/workers?json=1")
            assert "@" in connection.getresponse().read().decode()

    eventually(workers_are_known, PAGE_BUDGET_S)
    assert "[W " not in command.output_text(), command.output_text()
    assert '"warning"' not in command.output_text()
    return command


def test_up_starts_without_a_warning(cli: Cli) -> None:
    """Flower asks the workers at its start, so it starts when they are there; it does not list its tasks."""
    command = up_with_flower(cli, free_port())
    assert "celery.chord" not in command.output_text()
    command.popen.send_signal(signal.SIGINT)
    assert command.wait(30) == 130


def test_nothing_of_a_killed_up_stays(cli: Cli) -> None:
    """After kill -9 of `up`, Flower ends as workers do, and its port is free for the next one."""
    port = free_port()
    command = up_with_flower(cli, port)
    children = [each.pid for each in command.tree() if each.pid != command.pid]
    assert len(children) >= 3  # the supervisor, a worker, Flower
    command.kill()

    def all_are_gone() -> None:
        assert not [pid for pid in children if is_running(pid)]

    eventually(all_are_gone, 15)
    socket.create_server(("127.0.0.1", port)).close()  # the next `up` can listen there
