"""Pages of `proctor view` over a run of a million turns and a thousand runs, in bounded time and memory."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.cli import Cli
from tests.support.turn_files import turn_lines, write_turns
from tests.support.viewed_runs import access_to, at, cases_run, get, served

if TYPE_CHECKING:
    import redis

pytestmark = pytest.mark.slow

THREADS: Final = 20_000
TURNS: Final = 50
"""Of each thread: a million in all."""
PAGE_S: Final = 5.0
"""Also on a machine that does other work."""
FILTER_S: Final = 120.0
MOST_KB: Final = 400_000
RUNS: Final = 1_000
FIRST_SCREEN_S: Final = 0.5
"""Of CPU time: the server is in this process."""


def test_a_million_turns_are_read_by_the_page(cli: Cli, tmp_path: Path) -> None:
    """Pages at the beginning, in the middle and at the end cost the same; a filter is searched in parts."""
    total = THREADS * TURNS
    path = write_turns(tmp_path / "turns.jsonl", turn_lines(THREADS, TURNS))
    assert cli("run", path, "-q", within_s=1_800).code == 0
    process = cli.start("view", "--no-open", "--port", "0")
    process.wait_for("token=")
    address = process.output.splitlines()[0]
    run = re.findall(r'data-row data-id="([^"]+)"', asyncio.run(get(address))[1])[0]

    def rows(**query: object) -> tuple[list[int], str]:
        words = "".join(f"&{name}={value}" for name, value in query.items())
        began = perf_counter()
        page = asyncio.run(get(address.replace("/?", f"/run/{run}?") + words))[1]
        assert perf_counter() - began < PAGE_S, query
        return [int(number) for number in re.findall(r'<a class="item[^>]*data-id="(\d+)"', page)], page

    for first in (1, total // 2, total - 49):
        assert rows(number=first)[0] == list(range(first - 1, first + 49))
    began = perf_counter()
    while "data-unfinished" in (found := rows(where=f"thread %3D t{THREADS - 1}"))[1]:
        assert perf_counter() - began < FILTER_S
    assert found[0] == list(range(total - TURNS, total))
    memory = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    assert memory
    assert int(memory[1]) < MOST_KB


@pytest.fixture
def thousand(redis_client: "redis.Redis", redis_url: str, tmp_path: Path) -> Iterator[str]:
    """Address of a server with a thousand runs."""
    for number in range(RUNS):
        cases_run(redis_client, f"run-{number:04}", cases=2, name=f"bench {number % 20}")
    with access_to(redis_url, tmp_path) as access, served(access) as address:
        yield address


def test_a_thousand_runs_are_listed_at_once(thousand: str) -> None:
    """The list, a search, a filter and a history of fifty runs each take half a second at most."""
    asyncio.run(get(thousand))  # templates are read once
    for words, found in (({}, 1_000), ({"q": "bench"}, 1_000), ({"where": "name %3D 'bench 3'"}, 50)):
        began = process_time()
        page = asyncio.run(get(at(thousand, "/", **words)))[1]
        assert process_time() - began < FIRST_SCREEN_S
        assert f"data-shown>{found:,}" in page
        assert page.count("<tr data-row") == min(found, 100)
