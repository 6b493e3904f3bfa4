"""Makes one case of each combination of a case's variables that are lists (`expand: true`)."""

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

from producer.load.case_contract import MOST_CASES
from producer.load.places import Place
from shared.contracts.case_config import CaseEntry
from shared.contracts.cases import MAX_ID_CHARS

SHOWN_VALUE_CHARS = 40
"""Characters of a value in an id."""


def expanded(entry: CaseEntry, place: Place, number: int) -> list[CaseEntry]:
    """Returns the cases that an entry stands for: itself, or its combinations.

    Args:
        entry: as it is written.
        place: where.
        number: its position among the entries, from 1, which names one without an id.

    Raises:
        InputError: none of its variables is a list, one is empty, or there are too many combinations.

    >>> entry = CaseEntry(id="fr", expand=True, vars={"country": ["France", "Spain"]})
    >>> [(case.id, case.vars) for case in expanded(entry, Place("bench.yaml"), 1)]
    [('fr[country=France]', {'country': 'France'}), ('fr[country=Spain]', {'country': 'Spain'})]
    """
    if not entry.expand:
        return [entry]
    lists = {name: value for name, value in (entry.vars or {}).items() if isinstance(value, list)}
    if not lists:
        raise place.at("expand").error("none of the case's vars is a list", "write expand only where one is")
    empty = next((name for name, values in lists.items() if not values), None)
    if empty is not None:
        raise place.at("vars", empty).error("is empty, so that nothing is left of the case", "give it values")
    count = prod(map(len, lists.values()))
    if count > MOST_CASES:
        what = f"{count:,} combinations, at most {MOST_CASES:,} cases are allowed"
        raise place.at("expand").error(what, "split them into several runs")
    found = list[CaseEntry]()
    for values in product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        name = f"{entry.id or f'case {number}'}[{_named(chosen)}]"[:MAX_ID_CHARS]
        found.append(entry.model_copy(update={"id": name, "vars": {**(entry.vars or {}), **chosen}}))
    return found


def _named(chosen: Mapping[str, Any]) -> str:
    """Writes a combination as a part of an id.

    >>> _named({"country": "France", "n": 2})
    'country=France,n=2'
    """
    return ",".join(
        f"{name}={' '.join(str(value).split())[:SHOWN_VALUE_CHARS]}" for name, value in chosen.items()
    )
