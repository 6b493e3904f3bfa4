"""The kinds of runs that the producer handles: each is declared once, and every table is made from these."""

from typing import Final

from producer.kinds.cases import CASE_RUNS
from producer.kinds.declaration import ITEM_FORMATS, NOT_PRINTED, REPORT_SUFFIXES, ProducerKind
from producer.kinds.queries import QUERY_RUNS
from producer.kinds.turns import TURN_RUNS
from shared.errors import UsageError
from shared.kinds import Kind
from shared.lazy import Lazy

__all__ = [
    "ITEM_FORMATS",
    "NOT_PRINTED",
    "REPORT_SUFFIXES",
    "Lazy",
    "ProducerKind",
    "declared",
    "of",
    "register",
]

# In the order in which an input that could be of several kinds is recognised.
_registry: Final[dict[Kind, ProducerKind]] = {each.kind: each for each in (TURN_RUNS, QUERY_RUNS, CASE_RUNS)}


def declared() -> tuple[ProducerKind, ...]:
    """Returns the declaration of every kind.

    >>> [str(each.kind) for each in declared()][:3]
    ['turns', 'queries', 'cases']
    """
    return tuple(_registry.values())


def of(kind: Kind) -> ProducerKind:
    """Returns the declaration of a kind.

    Raises:
        UsageError: this version does not handle it.
    """
    if kind not in _registry:
        raise UsageError(
            f"this version of Proctor does not know runs of kind {kind}",
            hint=f"this version runs: {', '.join(map(str, _registry))}",
        )
    return _registry[kind]


def register(declaration: ProducerKind) -> None:
    """Adds a kind, or replaces the declaration of one."""
    _registry[declaration.kind] = declaration
