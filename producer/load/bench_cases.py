"""A case of a bench with everything that it takes from the bench: defaults, rendered checks, images."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from producer.load.places import Place
from shared.contracts.case_config import CaseEntry
from shared.contracts.cases import can_fail
from shared.contracts.checks import Check
from shared.ledger.bounds import FIRST_LAYOUT

CHECKS_LAYOUT: Final = 2
"""The layout of runs with checks, prompts, conversations and options of calls."""
SHARED_VARS_LAYOUT: Final = 3
"""The layout of runs that store the variables of the bench once."""
KEYS_OF_LAYOUT: Final[Mapping[int, frozenset[str]]] = {
    FIRST_LAYOUT: frozenset({
        "id", "input", "expected", "reference", "regex_pattern", "validator", "label", "outputs"
    }),
    CHECKS_LAYOUT: frozenset({
        "checks", "at_least", "paid_checks", "default_checks", "messages", "system_prompt", "vars", "expand",
        "images", "tags", "metadata", "weight",
    }),
}  # fmt: skip
"""The keys of a case by the layout that came with them.

Workers that do not know a layout leave its runs alone; they would otherwise pass cases unchecked. So a new
key needs a new layout: raise `LAYOUT` in `shared/ledger/bounds.py` and list the key under that number.
"""


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


def layout_of(case: BenchCase) -> int:
    """Returns the layout of a run with this case: the newest that came with one of its keys.

    >>> from shared.contracts.case_config import CaseEntry
    >>> place = Place("bench.yaml")
    >>> layout_of(BenchCase(CaseEntry(input="Hi", regex_pattern="^A"), place))
    1
    >>> layout_of(BenchCase(CaseEntry(input="Hi", tags=("a",)), place))
    2
    """
    entry = case.entry
    given = {name for name in entry.model_fields_set if getattr(entry, name) not in (None, (), [], {})}
    inherited = {"vars"} if case.vars else set()
    used = given | inherited | case.criteria.keys()
    return max(layout for layout, keys in KEYS_OF_LAYOUT.items() if layout == FIRST_LAYOUT or keys & used)
