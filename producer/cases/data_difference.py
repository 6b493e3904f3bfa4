"""Compares the cases of two benches, data files or runs: what was added, removed and edited; pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta

from producer.cases.bench_config import Bench
from producer.documents import SCHEMA_VERSION, Count, Exit, Part, Version
from shared.contracts.case_hashes import CaseHashes
from shared.contracts.case_run import CasePayload


class HashedCase(NamedTuple):
    """A case as another version of it is compared with it."""

    position: int
    id: str | None
    hashes: CaseHashes

    @property
    def name(self) -> str:
        """What people call it."""
        return self.id or f"case {self.position + 1}"


class ComparedCases(Part, frozen=True):
    """One of the two sides."""

    name: str
    cases: Count


class DataDifference(Part, kw_only=True, frozen=True):
    """What data diff prints with --json: names of cases."""

    schema_version: Version = SCHEMA_VERSION
    a: ComparedCases
    b: ComparedCases
    added: tuple[str, ...]
    removed: tuple[str, ...]
    input_changed: Annotated[
        tuple[str, ...], Meta(description="Another question, whatever became of the expectation.")
    ]
    expectation_changed: Annotated[
        tuple[str, ...], Meta(description="The same question, and another good answer.")
    ]
    unchanged: Count
    exit: Exit


def cases_of_bench(bench: Bench) -> list[HashedCase]:
    """Returns the cases of a bench."""
    only_checked, of_bench = bench.only_checked(), bench.config.vars
    hashed = ((case.id, case.hashes(only_checked, of_bench)) for case in bench.cases)
    return [HashedCase(at, name, hashes) for at, (name, hashes) in enumerate(hashed)]


def cases_of_items(items: Iterable[CasePayload]) -> list[HashedCase]:
    """Returns the cases of a run, each once, whatever models and prompts it was put to."""
    found = {
        item.case: HashedCase(item.case, item.id, CaseHashes(item.input_hash, item.expectation_hash))
        for item in items
    }
    return [found[at] for at in sorted(found)]


def compare_cases(a: tuple[str, Sequence[HashedCase]], b: tuple[str, Sequence[HashedCase]]) -> DataDifference:
    """Pairs cases by their ids; those without one by their input, so that a row more moves no other.

    Args:
        a: name and cases of the one before.
        b: those of the other.

    >>> def case(name: str, asked: str, expected: str) -> HashedCase:
    ...     return HashedCase(0, name, CaseHashes(asked, expected))
    >>> before = [case("fr", "1", "x"), case("es", "2", "y"), case("it", "3", "z")]
    >>> after = [case("fr", "1", "w"), case("es", "9", "y"), case("de", "4", "z")]
    >>> found = compare_cases(("a", before), ("b", after))
    >>> found.added, found.removed, found.input_changed, found.expectation_changed
    (('de',), ('it',), ('es',), ('fr',))
    """
    earlier, later = _keyed(a[1]), _keyed(b[1])
    both = [(earlier[key].hashes, case) for key, case in later.items() if key in earlier]
    asked = tuple(case.name for was, case in both if was.input != case.hashes.input)
    expected = tuple(
        case.name
        for was, case in both
        if was.input == case.hashes.input and was.expectation != case.hashes.expectation
    )
    added = tuple(case.name for key, case in later.items() if key not in earlier)
    removed = tuple(case.name for key, case in earlier.items() if key not in later)
    return DataDifference(
        a=ComparedCases(a[0], len(a[1])),
        b=ComparedCases(b[0], len(b[1])),
        added=added,
        removed=removed,
        input_changed=asked,
        expectation_changed=expected,
        unchanged=len(both) - len(asked) - len(expected),
        exit=int(bool(added or removed or asked or expected)),
    )


def _keyed(cases: Iterable[HashedCase]) -> dict[tuple[str, int], HashedCase]:
    """Returns cases by what they are found by in the other side, equal ones numbered."""
    seen, found = Counter[str](), dict[tuple[str, int], HashedCase]()
    for case in cases:
        key = f"#{case.hashes.input}" if case.id is None else f"id {case.id}"
        seen[key] += 1
        found[key, seen[key]] = case
    return found
