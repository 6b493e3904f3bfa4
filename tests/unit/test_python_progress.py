"""How far a run is, as terminals, logs and notebooks show it."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from proctor import Event
from proctor.progress import progress

MOVED = {"run_id": "run-1", "done": 6, "total": 24, "tally": {"failed": 2, "error": 1}, "rate_s": 3.0}
COUNTS = {"total": 24, "passed": 21, "failed": 2, "error": 1, "skipped": 0, "decided": 0}
EVENTS = (
    Event("loading", {"source": "b", "items": 3}),
    Event("progress", {**MOVED, "state": "running", "cost_usd": 1.5, "left_s": 6.0}),
    Event("finished", {"run_id": "run-1", "counts": COUNTS}),
)


def shown(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, **environment: str) -> str:
    """What the events write."""
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.delenv("CI", raising=False)
    for name, value in {"TERM": "xterm", "COLUMNS": "100", **environment}.items():
        monkeypatch.setenv(name, value)
    show = progress()
    for event in EVENTS:
        show(event)
    return stderr.getvalue()


def test_a_terminal_has_one_line_that_ends_with_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bar, counts, failures, rate, cost and time left; the end of the run replaces it."""
    assert shown(monkeypatch, is_terminal=True).split("\r") == [
        "",
        f"run-1 {'█' * 6}{'░' * 18} 6 of 24 · 2 failed · 1 in error · 3.0/s · $1.50 · 0:06 left\x1b[K",
        "run-1: 21 of 24 passed, 2 failed, 1 error\x1b[K\n",
    ]
    text = "6 of 24 · 2 failed · 1 in error · 3.0/s · $1.50 · 0:06 left"
    for columns, line in (("80", f"run-1 {'█' * 3}{'░' * 10} {text}"), ("20", "run-1 6 of 24 · 2 f")):
        narrow = shown(monkeypatch, is_terminal=True, COLUMNS=columns).split("\r")[1]
        assert narrow == f"{line}\x1b[K"


@pytest.mark.parametrize(
    "place", [{"is_terminal": False}, {"is_terminal": True, "CI": "1"}, {"is_terminal": True, "TERM": "dumb"}]
)
def test_nothing_is_redrawn_elsewhere(monkeypatch: pytest.MonkeyPatch, place: Any) -> None:
    """A short run writes nothing to files, pipes and logs."""
    assert not shown(monkeypatch, **place)


def test_long_runs_show_in_logs_that_they_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line now and then, without control characters."""
    monkeypatch.setattr("proctor.progress.PLAIN_EVERY_S", 0.0)
    line = "run-1: 6 of 24 · 2 failed · 1 in error · 3.0/s · $1.50 · 0:06 left\n"
    assert shown(monkeypatch, is_terminal=False) == line


def test_ipython_without_a_kernel_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a notebook has bars of HTML."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert shown(monkeypatch, is_terminal=True).endswith("1 error\x1b[K\n")
