"""Another kind is one declaration of the worker: its slots, its task and its executor follow from it."""

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from shared.kinds import Kind, Storage
from worker import kinds
from worker.kinds import MOST_THREADS, executed_kinds, make_executor, register, slots_for
from worker.tasks.execute_chunk import register_tasks

LETTERS = Kind("letters", "letter", task="proctor.letters.count", storage=Storage.LIST, outcomes=())


class TaskNames:
    """An app that takes names only: a second Celery app would share its tasks with the first."""

    def __init__(self) -> None:
        self.names = list[str]()

    def task(self, *, name: str) -> Callable[[object], object]:
        """Adds a task."""
        self.names.append(name)
        return lambda function: function


@pytest.fixture(autouse=True)
def _unregistered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(kinds, "_registry", dict(vars(kinds)["_registry"]))


class LetterWork:
    """How letters are executed."""

    kind: ClassVar = LETTERS
    slots: ClassVar[int | None] = None

    def make_executor(self, process: Any, store: Any, /) -> Any:
        return process, store

    def preload(self) -> None:
        raise AssertionError("no process was forked")


def test_a_registered_kind_gets_slots_and_a_task() -> None:
    """The pool has threads for its chunks, and the app a task of its name."""
    assert slots_for([LETTERS], 100) == {}
    register(LetterWork())
    assert slots_for([LETTERS], 100) == {LETTERS: MOST_THREADS}
    assert executed_kinds()[-1] == LETTERS
    app: Any = TaskNames()
    register_tasks(app)
    assert app.names[-1] == "proctor.letters.count"


def test_executor_is_made_by_the_kind() -> None:
    """It gets the process and the store."""
    made: Any = make_executor
    register(LetterWork())
    assert made(LETTERS, "process", "store") == ("process", "store")


def test_a_kind_has_one_executor() -> None:
    """The same class changes nothing, another one is refused."""
    register(LetterWork())
    register(LetterWork())

    class Another(LetterWork):
        """Letters once more."""

    with pytest.raises(ValueError, match="another executor"):
        register(Another())
