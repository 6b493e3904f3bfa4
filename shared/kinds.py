"""Declares the kinds of work: turns, cases and queries, and registers further ones.

Everything that differs between kinds in `shared` is a field of `Kind`; there are no branches on a kind.
Worker and producer have declarations of their own (`worker/kinds.py`, `producer/kinds.py`), and so has what
reads runs (`shared/runs/upstreams.py`). Every command imports this file, so it has no heavy imports.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import Final

from shared.errors import ConfigError
from shared.names import ENVIRONMENT_PREFIX, Outcome

VARIABLE: Final = f"{ENVIRONMENT_PREFIX}KINDS"
"""Environment variable: modules that register further kinds, with commas between."""


class Storage(StrEnum):
    """How the items of a run are stored in the ledger."""

    MAILBOXES = "mailboxes"
    """In the inboxes of threads: in order within a thread, and a chunk names threads."""
    LIST = "list"
    """One by one under their index: in any order, and a chunk names indexes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of work."""

    name: str
    """Its name in documents and in the ledger, such as `turns`; also the name of its queue."""
    noun: str = field(repr=False)
    """The noun for one item, such as `turn`."""
    task: str = field(repr=False)
    """The Celery task that works on its chunks."""
    storage: Storage = field(repr=False)
    outcomes: tuple[str, ...] = field(repr=False)
    """Possible outcomes of its items, as counted by the ledger."""

    def __str__(self) -> str:
        return self.name


TURNS: Final = Kind(
    "turns",
    "turn",
    task="proctor.turns.evaluate",
    storage=Storage.MAILBOXES,
    outcomes=("must", "should", "skip", Outcome.ERROR),
)
"""Conversation turns, to be classified by the breakpoint engine."""
CASES: Final = Kind(
    "cases",
    "case",
    task="proctor.cases.validate",
    storage=Storage.LIST,
    outcomes=(Outcome.PASSED, Outcome.FAILED, Outcome.ERROR),
)
"""Model test cases, to be validated."""
QUERIES: Final = Kind(
    "queries",
    "query",
    task="proctor.queries.evaluate",
    storage=Storage.LIST,
    outcomes=(Outcome.PASSED, Outcome.FAILED, Outcome.ERROR),
)
"""Questions to a RAG API, whose answers are checked."""

_registry: Final[dict[str, Kind]] = {kind.name: kind for kind in (TURNS, CASES, QUERIES)}


def all_kinds() -> tuple[Kind, ...]:
    """Returns every registered kind; call it when needed, since more may be registered at start-up.

    >>> [kind.name for kind in all_kinds()][:3]
    ['turns', 'cases', 'queries']
    """
    return tuple(_registry.values())


def kind_named(name: str) -> Kind:
    """Returns the kind of a name.

    Raises:
        ValueError: none of this name is registered.

    >>> kind_named("turns")
    Kind(name='turns')
    """
    try:
        return _registry[name]
    except KeyError:
        raise ValueError(f"{name!r} is no kind of work: {', '.join(_registry)} are") from None


def register(kind: Kind) -> Kind:
    """Adds a kind; does nothing when an equal one is registered already.

    Returns:
        The registered one.

    Raises:
        ValueError: another kind of the same name is registered.
    """
    registered = _registry.setdefault(kind.name, kind)
    if registered != kind:
        raise ValueError(f"another kind is called {kind.name!r} already")
    return registered


def import_kinds(environment: Mapping[str, str]) -> None:
    """Imports the modules that `PROCTOR_KINDS` names; commands and workers do so before anything reads kinds.

    Raises:
        ConfigError: one of them cannot be imported.
    """
    for module in environment.get(VARIABLE, "").replace(",", " ").split():
        try:
            import_module(module)
        except ImportError as error:
            raise ConfigError(
                f"{VARIABLE}: {module!r} cannot be imported: {error}", hint=f"change or unset {VARIABLE}"
            ) from error
