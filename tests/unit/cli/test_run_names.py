"""Runs by name: ids, beginnings of ids, `last` and `last~N`."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from producer.cli.run_lookup import find_run
from shared.errors import AmbiguousRunError, ProctorError, UnknownRunError
from shared.runs import RunInfo
from tests.support.run_infos import info

if TYPE_CHECKING:
    from producer.cli.session import Session

NEWEST_FIRST = ("run-1kbb2", "run-1kbb1", "run-1kaa", "nightly")


class Store:
    """A store of some runs, newest first."""

    def __init__(self, runs: Sequence[str]) -> None:
        self._runs = runs

    def info(self, run: str) -> RunInfo:
        """Reads one run."""
        if run not in self._runs:
            raise UnknownRunError(f"no run is called {run!r}", run=run)
        return replace(info(), run=run)

    def ids(self) -> Sequence[str]:
        """Reads all ids."""
        return self._runs

    def list(self, *, limit: int) -> list[RunInfo]:
        """Reads the newest runs."""
        return [self.info(run) for run in self._runs[:limit]]


def found(name: str, runs: Sequence[str] = NEWEST_FIRST) -> str:
    """Returns the id of the run that is found."""
    target = SimpleNamespace(display="redis://test")
    session: Any = SimpleNamespace(
        access=SimpleNamespace(store=Store(runs), connection=SimpleNamespace(target=target)), seen=set[str]()
    )
    run = find_run(cast("Session", session), name).run
    assert session.seen == {run}, "a run that was found under another name counts as seen by its id"
    return run


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("last", "run-1kbb2"),
        ("last~0", "run-1kbb2"),
        ("last~1", "run-1kbb1"),
        ("last~3", "nightly"),
        ("run-1kbb1", "run-1kbb1"),
        ("run-1ka", "run-1kaa"),
        ("1ka", "run-1kaa"),
        ("night", "nightly"),
    ],
)
def test_names_of_runs(name: str, run: str) -> None:
    """A run is found by its age, its id, or a beginning of it that no other id has."""
    assert found(name) == run


def test_an_exact_id_wins() -> None:
    """A run that is called like another name, or like the beginning of another id, is found by its own."""
    runs = ("run-12", "run-1", "last", "last~1")
    assert [found(name, runs) for name in ("run-1", "last", "last~1")] == ["run-1", "last", "last~1"]


def test_an_ambiguous_beginning_lists_the_runs() -> None:
    """The error of a beginning that several ids have names the newest of them and how many more there are."""
    with pytest.raises(AmbiguousRunError, match=r"'1kbb' begins the ids of 2 runs: run-1kbb2, run-1kbb1$"):
        found("1kbb")
    with pytest.raises(AmbiguousRunError, match=r"'r' begins the ids of 5 runs: r5, r4, r3 and 2 more$"):
        found("r", ["r5", "r4", "r3", "r2", "r1"])


@pytest.mark.parametrize(
    "name", ["", "kaa", "last~4", "last~", "last~-1", "last~x", "run-2", "LAST", "last~9999999"]
)
def test_unknown_names(name: str) -> None:
    """What no run is called is refused, also an empty name and an age that no run has."""
    with pytest.raises(UnknownRunError):
        found(name)


def test_last_without_runs() -> None:
    """`last` where there is no run says so."""
    with pytest.raises(ProctorError, match="there is no last: 0 runs in all"):
        found("last", [])
