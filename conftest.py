"""Turns skips into failures where nothing may be skipped: with `PROCTOR_REQUIRE_TOOLS=1`, as in `.ci/run`.

On a laptop a test whose browser or server is missing is skipped and names it. `PROCTOR_ARTIFACTS` names a
folder that keeps the screenshots of the session. With `--durations` the sum of each folder is printed too.
This file stands above the tests, because it reads its variables before tests/conftest.py clears the
environment. Only what the machine forbids may be skipped there: no installation mends that.
"""

import gc
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Final, TypeVar

import pytest
from _pytest.doctest import DoctestModule  # pytest has no public name for it

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
NOTHING_SKIPPED: Final = os.environ.get("PROCTOR_REQUIRE_TOOLS") == "1"
FORBIDDEN: Final = "Skipped: not permitted here: "
"""How the reason begins where the kernel or the user's rights forbid a test (tests/support/tools.py)."""
COLLECT_AFTER: Final = (50_000, 20, 100)
"""Thresholds of the garbage collector: with Python's own a sixth of the time of unit tests goes into it."""
ARTIFACTS: Final = os.environ.get("PROCTOR_ARTIFACTS", "")
gc.disable()  # until all tests are found: nothing of what is made until then is garbage


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept: a folder that is named from outside, or one that goes with the session."""
    folder = Path(ARTIFACTS) if ARTIFACTS else tmp_path_factory.mktemp("artifacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _unskipped(report: Report) -> Report:
    """The same report, failed if it was skipped for want of a tool; an expected failure is no skip."""
    if NOTHING_SKIPPED and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        if str(reason).startswith(FORBIDDEN):
            return report
        report.outcome = "failed"
        report.longrepr = f"{reason}\n(PROCTOR_REQUIRE_TOOLS=1: nothing may be skipped here)"
    return report


def _sendable(report: pytest.TestReport) -> pytest.TestReport:
    """The same report without halves of characters in what was captured: xdist sends reports as UTF-8."""
    report.sections = [
        (title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections
    ]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Looks for doctests only where there are some: to import all modules takes each process seconds."""
    found = yield
    if b">>> " in file_path.read_bytes():
        return found
    return [each for each in found if not isinstance(each, DoctestModule)]


def pytest_collection_finish() -> None:
    """Begins to collect garbage, rarely; nothing is frozen: Hypothesis looks for referrers of generators."""
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Looks at each test's report."""
    return _sendable(_unskipped((yield)))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Looks at each file's report: a whole file may skip itself too."""
    return _unskipped((yield))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Describes how long the tests of each folder took; those of several processes run at the same time."""
    if config.getoption("durations") is None:
        return
    seconds: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[folder_of(report.location[0])] += report.duration
    terminalreporter.section("seconds by folder, over all processes")
    for folder, total in sorted(seconds.items(), key=lambda each: -each[1]):
        terminalreporter.write_line(f"{total:8.1f} {folder}")


def folder_of(path: str) -> str:
    """The part of the suite that a test file belongs to.

    >>> folder_of("tests/e2e/test_flower.py"), folder_of("shared/clock.py")
    ('tests/e2e', 'doctests')
    """
    parts = Path(path).parts
    return "/".join(parts[:2]) if parts[0] == "tests" else "doctests"
