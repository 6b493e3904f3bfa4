"""What all tests stand on: a clean environment, a real Redis, processes that never outlive their test."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil
import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.support import processes as support
from tests.support.cli import Cli
from tests.support.eventually import eventually
from tests.support.fork_server import ForkServer
from tests.support.redis_server import RedisServer

if TYPE_CHECKING:
    import redis

ROOT: Final = Path(__file__).resolve().parent.parent
SCRUBBED: Final = ("PROCTOR_", "EVAL_", "CELERY_", "FLOWER_", "OTEL_", "COLUMNS", "LINES")
"""Prefixes of environment variables that could change what the programs under test do."""
WAITING: Final = {("tests", folder) for folder in ("chaos", "e2e", "golden", "integration")}
"""Folders whose tests wait for programs most of their time."""
collect_ignore: Final = ["support/fourth_kind.py"]
"""Registers a kind of work when it is imported, as looking for doctests does."""
LONGEST: Final = "test_docs_commands.py"
"""The file whose tests take up to a minute each; one that began last would keep a single process busy."""
SURVIVOR_GRACE_S: Final = 8.0
"""How long detached servers may take to notice that their last client is gone."""


def _scrub() -> None:
    for name in [name for name in os.environ if name.startswith(SCRUBBED)]:
        del os.environ[name]


# A loaded machine is slow now and then; that says nothing about the code.
settings.register_profile(
    "proctor", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("proctor"), max_examples=1000)
settings.load_profile("proctor")

# At import: modules that read the environment while they are collected see nothing of the developer's.
_scrub()
support.mark_this_session()
# A session in the background of a shell ignores Ctrl-C, and programs inherit that: it would never end them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of `make test`."""
    parser.addoption(
        "--fork-commands",
        action="store_true",
        help="fork our commands from a process that has imported them, instead of new interpreters",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest tests first, then those that wait for programs; short ones fill up the end."""
    items.sort(
        key=lambda item: (item.path.name != LONGEST, item.path.relative_to(ROOT).parts[:2] not in WAITING)
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Deals out tests to processes by the rules below."""
    config.option.loadscopereorder = False
    return Scheduling(config, log)


class Scheduling(LoadScopeScheduling):  # type: ignore[misc] # the library has no types
    """Deals out by files where tests take milliseconds or share a fixture of their own, else one by one."""

    def _split_scope(self, nodeid: str) -> str:
        path = ROOT / nodeid.split("::", maxsplit=1)[0]
        return str(path) if starts_nothing(path) or shares_fixtures(path) else nodeid


def starts_nothing(path: Path) -> bool:
    """Whether the tests of a file are pure: unit tests and doctests."""
    top, folder, *_ = path.relative_to(ROOT).parts
    return top != "tests" or folder == "unit"


@cache
def shares_fixtures(path: Path) -> bool:
    """Whether a file's tests should stay together."""
    text = path.read_text(encoding="utf-8")
    return any(sign in text for sign in ('scope="module"', 'scope="session"', "browser: Browser", "@cache"))


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives every test an environment without settings of ours, whatever the test before it set."""
    for name in [name for name in os.environ if name.startswith(SCRUBBED)]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def _runtime_folder() -> Iterator[None]:
    """Keeps sockets of embedded servers in a short folder; fails when a process outlives the session."""
    folder = tempfile.mkdtemp(prefix="rt-")
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = folder
    yield
    try:
        _check_survivors()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before


def _check_survivors() -> None:
    """Waits for detached processes to end by themselves; kills those that do not, and says which."""

    def none_left() -> None:
        left = support.marked_processes()
        assert not left, f"processes outlived the tests that started them:\n{support.describe(left)}"

    try:
        eventually(none_left, SURVIVOR_GRACE_S)
    finally:
        support.kill_all([*support.marked_processes(), *psutil.Process().children(recursive=True)])


@pytest.fixture(scope="session")
def redis_server(_runtime_folder: None) -> Iterator[RedisServer]:
    """The session's own server; tests that kill, freeze or reconfigure one take `new_redis_server`."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_client(redis_server: RedisServer) -> Iterator["redis.Redis"]:
    """A plain client (bytes in, bytes out) of the session's server, which is empty now."""
    with closing(redis_server.client()) as client:
        client.flushall()
        yield client


@pytest.fixture
def redis_url(redis_server: RedisServer, redis_client: "redis.Redis") -> str:
    """The `unix://` URL of the session's server, which is empty now."""
    assert redis_client.dbsize() == 0
    return redis_server.url


@pytest.fixture
def new_redis_server() -> Iterator[Callable[..., RedisServer]]:
    """Starts servers of the test's own, to be killed, frozen and restarted: `new_redis_server(*options)`."""
    with ExitStack() as stack:

        def start(*options: str, program: str | None = None) -> RedisServer:
            return stack.enter_context(RedisServer(*options, program=program))

        yield start


@pytest.fixture
def bare_env(tmp_path: Path) -> dict[str, str]:
    """The environment for a program under test that finds its Redis itself: an embedded server of its own."""
    return {
        **os.environ,
        "PROCTOR_DATA_DIR": str(tmp_path / "data"),
        "PROCTOR_EMBEDDED_IDLE_S": "1",
        "PROCTOR_LEASE_S": f"{support.SHORT_LEASE_S:g}",
        "PROCTOR_PROCESSES": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }


@pytest.fixture
def proctor_env(bare_env: dict[str, str], redis_url: str) -> dict[str, str]:
    """The environment for a program under test: its own data folder, and the session's Redis server."""
    return {**bare_env, "PROCTOR_REDIS_URL": redis_url}


@pytest.fixture(scope="session")
def forks(request: pytest.FixtureRequest, _runtime_folder: None) -> Iterator[ForkServer | None]:
    """Starts our commands without their imports; None unless that is asked for (`make test` does)."""
    if not request.config.getoption("--fork-commands"):
        yield None
        return
    with closing(ForkServer({**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"})) as server:
        yield server


@pytest.fixture
def processes(
    tmp_path: Path, proctor_env: dict[str, str], forks: ForkServer | None
) -> Iterator[support.Processes]:
    """Starts programs that are gone when the test ends: `processes.start(sys.executable, "-m", …)`."""
    folder = tmp_path / "processes"
    folder.mkdir()
    started = support.Processes(folder, proctor_env, forks)
    yield started
    started.close()


@pytest.fixture
def cli(tmp_path: Path, bare_env: dict[str, str], forks: ForkServer | None) -> Iterator[Cli]:
    """Runs `proctor` as a process; everything it starts is gone when the test ends."""
    folder = tmp_path / "cli"
    folder.mkdir()
    processes = support.Processes(folder, bare_env, forks)
    yield Cli(processes)
    processes.close()


@pytest.fixture
def python() -> str:
    """The interpreter to run programs under test with."""
    return sys.executable
