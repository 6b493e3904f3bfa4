"""The kinds of runs that the producer handles: each is one class, and every table is made from these."""

from typing import Final

from producer.cases.kind import CaseRuns
from producer.kind import ProducerKind
from producer.queries.kind import QueryRuns
from producer.turns.kind import TurnRuns
from shared.errors import UsageError
from shared.kinds import Kind

_BUILT_IN: Final[tuple[ProducerKind, ...]] = (TurnRuns(), QueryRuns(), CaseRuns())
"""In the order in which an input that could be of several kinds is recognised."""
_registry: Final[dict[Kind, ProducerKind]] = {each.kind: each for each in _BUILT_IN}


def declared() -> tuple[ProducerKind, ...]:
    """Returns every kind.

    >>> [str(each.kind) for each in declared()][:3]
    ['turns', 'queries', 'cases']
    """
    return tuple(_registry.values())


def of(kind: Kind) -> ProducerKind:
    """Returns how runs of a kind are handled.

    Raises:
        UsageError: this version does not handle it.
    """
    if kind not in _registry:
        raise UsageError(
            f"this version of Proctor does not know runs of kind {kind}",
            hint=f"this version runs: {', '.join(map(str, _registry))}",
        )
    return _registry[kind]


def register(kind: ProducerKind) -> None:
    """Adds a kind, or replaces one."""
    _registry[kind.kind] = kind
