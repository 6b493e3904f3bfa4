"""A case of a bench with everything that it takes from the bench: defaults, rendered checks, images."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from producer.load.places import Place
from shared.contracts.case_config import CaseEntry
from shared.contracts.cases import can_fail
from shared.contracts.checks import Check

FIRST_KEYS: Final = frozenset({
    "id", "input", "expected", "reference", "regex_pattern", "validator", "label", "outputs"
})  # fmt: skip
"""Keys of a case that the first workers know; they ignore all others."""


@dataclass(frozen=True, slots=True)
class BenchCase:
    """One case."""

    entry: CaseEntry
    """As it is written."""
    place: Place
    """Where."""
    vars: Mapping[str, Any] = field(default_factory=dict)
    """Its variables, with those of the bench below them."""
    checks: tuple[Check, ...] = ()
    """The bench's default checks and its own, rendered."""
    paid_checks: str | None = None
    """Its own word, else the bench's."""
    images: tuple[str, ...] = ()
    """The hashes of its images."""

    @property
    def values(self) -> dict[str, Any]:
        """What templates are rendered with."""
        given = {} if self.entry.input is None else {"input": self.entry.input}
        return {**self.vars, **given}

    @property
    def criteria(self) -> dict[str, Any]:
        """What a good answer looks like, as it travels."""
        written = {name: value for name, value in self.entry.criteria.items() if name != "checks"}
        if self.checks:
            written["checks"] = [msgspec.to_builtins(check) for check in self.checks]
            written |= {"paid_checks": self.paid_checks} if self.paid_checks else {}
        return written

    @property
    def is_freeform(self) -> bool:
        """Whether nothing at all is required of the answer."""
        return not can_fail(self.criteria) and self.entry.reference is None


def is_new_case(case: BenchCase) -> bool:
    """Whether the first workers would ignore something of a case.

    >>> from shared.contracts.case_config import CaseEntry
    >>> place = Place("bench.yaml")
    >>> is_new_case(BenchCase(CaseEntry(input="Hi", regex_pattern="^A"), place))
    False
    >>> is_new_case(BenchCase(CaseEntry(input="Hi", tags=("a",)), place))
    True
    """
    entry = case.entry
    given = {name for name in entry.model_fields_set if getattr(entry, name) not in (None, (), [], {})}
    return bool(case.vars or case.checks) or not given <= FIRST_KEYS
