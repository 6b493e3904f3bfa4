"""The cases of a bench, ready to be rendered, with what each takes from the bench."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product
from math import prod
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from producer.load.kept_values import KeptValues
from producer.load.problems import MOST_CASES, Place
from producer.text import shown
from shared.contracts.case_config import CaseEntry
from shared.contracts.case_hashes import CaseHashes, hashes_of_case
from shared.contracts.case_run import Quorum
from shared.contracts.cases import MAX_ID_CHARS, can_fail
from shared.contracts.checks import Check

SHOWN_VALUE_CHARS: Final = 40
"""Characters of a value in an id."""


class BenchCase(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One case."""

    place: Place
    """Where it is written."""
    id: str | None = None
    """Its own name."""
    input: str | None = None
    """What is sent, where neither prompts nor messages say it."""
    messages: list[dict[str, Any]] | None = None
    """Its conversation."""
    system_prompt: str | None = None
    """Its own system message."""
    vars: dict[str, Any] = {}
    """Its own variables, without those of the bench."""
    checks: tuple[Check, ...] = ()
    """The bench's default checks and its own, rendered."""
    paid_checks: str | None = None
    """Its own word, else the bench's."""
    stages: dict[str, Any] = {}
    """Its criteria but for the checks."""
    images: tuple[str, ...] = ()
    """The hashes of its images."""
    tags: tuple[str, ...] = ()
    """What it belongs to."""
    metadata: dict[str, Any] = {}
    """Facts about it."""
    weight: float = 1.0
    """How much it counts in means."""
    outputs: dict[str, str] | None = None
    """Recorded outputs by model."""
    times: int = 1
    """How often it is asked at most."""
    quorum: Quorum | None = None
    """How many of these answers must pass; None: each counts by itself."""
    only_models: tuple[str, ...] = ()
    """The models that it is put to; empty: all."""
    only_prompts: tuple[str, ...] = ()
    """The prompts; likewise."""

    def values(self, of_bench: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what templates are rendered with.

        Args:
            of_bench: the variables of the bench, which its own go before.
        """
        given = {} if self.input is None else {"input": self.input}
        return {**of_bench, **self.vars, **given}

    @property
    def criteria(self) -> dict[str, Any]:
        """What a good answer looks like, as it travels."""
        if not self.checks:
            return self.stages
        paid = {"paid_checks": self.paid_checks} if self.paid_checks else {}
        return {**self.stages, "checks": [msgspec.to_builtins(check) for check in self.checks], **paid}

    def hashes(self, only_checked: AbstractSet[str], of_bench: Mapping[str, Any]) -> CaseHashes:
        """Returns what another version of it is compared by.

        Args:
            only_checked: variables that checks alone name.
            of_bench: the variables of the bench.
        """
        values = {**of_bench, **self.vars}
        sent = {name: value for name, value in values.items() if name not in only_checked}
        asked = (self.input, self.messages or [], self.system_prompt, sent, self.images)
        paid = {"paid_checks": self.paid_checks} if self.checks and self.paid_checks else {}
        return hashes_of_case(asked, {**self.stages, **paid}, self.checks)

    @property
    def is_freeform(self) -> bool:
        """Whether nothing at all is required of the answer."""
        return not self.checks and not can_fail(self.stages) and "reference" not in self.stages


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(BenchCase).decode


class BenchCases:
    """The cases of a bench in their order, however many.

    Args:
        root: the configuration; its text is kept once.
    """

    def __init__(self, root: Place) -> None:
        self._root = root
        self._kept = KeptValues(self._packed, self._unpacked)
        self.asked: dict[str, Place | None] = {}
        """The models that checks ask, with the place of the first case that names each."""
        self.named_in_checks = frozenset[str]()
        """Words in the templates of checks that stand with cases."""

    def add(self, case: BenchCase) -> None:
        """Adds a case.

        Raises:
            InputError: another has its id.
        """
        before = self._kept.add(case, key=case.id)
        if before is not None:
            what = f"{shown(case.id or '')} is the id of another case, at {self[before].place}"
            here = Place(case.place.file, path=("id",), line=case.place.found_line)
            raise here.error(what, "give each case its own id")

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[BenchCase]:
        return iter(self._kept)

    def __getitem__(self, at: int) -> BenchCase:
        return self._kept[at]

    def position(self, name: str) -> int | None:
        """Returns where the case with an id is."""
        return self._kept.position(name)

    def ids(self) -> Iterator[str]:
        """Yields the ids of all that have one."""
        return self._kept.keys()

    def _packed(self, case: BenchCase) -> bytes:
        return _encode(replace(case, place=replace(case.place, text="")) if case.place.text else case)

    def _unpacked(self, packed: bytes) -> BenchCase:
        case = _decode(packed)
        if case.place.line:
            return case
        return replace(case, place=replace(case.place, text=self._root.text))


def expanded(entry: CaseEntry, place: Place, number: int) -> Sequence[CaseEntry]:
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
        return (entry,)
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
