"""Which cases of a bench a run has, and what they have in common."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from producer.cases.bench_cases import BenchCase, BenchCases
from producer.cases.bench_config import Bench
from producer.cases.bench_prompts import texts_of
from producer.cases.checks import labels_of, models_of, plugins_of
from producer.cases.recorded import NEAREST_AMONG
from producer.load.problems import Place, nearest
from producer.load.yaml_text import lines_below
from producer.options import CaseChoice, case_key, pick_items
from producer.text import count, shown
from shared.contracts.case_run import Quorum
from shared.errors import InputError, UsageError


def choose_cases(bench: Bench, choice: CaseChoice) -> Sequence[int]:
    """The positions of the cases that the command line leaves, in their order.

    Raises:
        UsageError: a name stands for no case, or no case has a tag.
        InputError: none is left.
    """
    cases, found = bench.cases, range(len(bench.cases))
    if choice.only is None and not (choice.cases or choice.tags or choice.containing):
        left: Sequence[int] = found
    else:
        names = None if choice.only is None else {item.case for item in choice.only}
        wanted = {_position(name, cases) for name in choice.cases}
        tags, met = set(choice.tags), dict[str, None]()
        left = [
            at
            for at, case in enumerate(cases)
            if (names is None or case_key(at, case.id) in names)
            and (not wanted or at in wanted)
            and (not tags or _is_tagged(case, tags, met))
        ]
        if unknown := next((tag for tag in choice.tags if tag not in met), None):
            raise UsageError(f"--tag: no case has the tag {shown(unknown)}", hint=nearest(unknown, list(met)))
    left = pick_items(left, choice, lambda at: _text_of(cases[at], bench.config.vars))
    if not left:
        options = "--case, --tag, -k, --first, --sample or --last-failed"
        raise InputError("no case is left to run", hint=f"{options} leave none")
    return left


def _is_tagged(case: BenchCase, tags: AbstractSet[str], met: dict[str, None]) -> bool:
    """Whether a case has one of some tags; notes those that it has."""
    met |= dict.fromkeys(case.tags)
    return not tags.isdisjoint(case.tags)


def _text_of(case: BenchCase, of_bench: Mapping[str, Any]) -> str:
    """The text of a case in which `-k` looks for words."""
    texts = [case.id, case.input, *map(str, {**of_bench, **case.vars}.values())]
    texts += texts_of(case.messages or ())
    return "\n".join(each or "" for each in texts)


def _position(name: str, cases: BenchCases) -> int:
    """Finds a case by its id, else by its number as it is shown, from 1: `6` or `case 6`."""
    if (known := cases.position(name)) is not None:
        return known
    digits = name.removeprefix("case ")
    is_number = digits.isascii() and digits.isdigit()
    if is_number and 1 <= int(digits[:9]) <= len(cases):
        return int(digits[:9]) - 1
    ids = list(islice(cases.ids(), NEAREST_AMONG))
    numbers = f"cases are numbered from 1 to {count(len(cases))}"
    hints = [numbers] if is_number or not ids else []
    if ids:
        hints.append(nearest(name, ids))
    raise UsageError(f"--case: no case is called {shown(name)}", hint="; ".join(hints))


class CaseLines:
    """The places of cases by their positions, as stretches of cases that stand on neighbouring lines.

    Args:
        root: the configuration.
    """

    def __init__(self, root: Place) -> None:
        self._root = root
        self._lines: Mapping[int, int] | None = None
        self._files: dict[str, int] = {}
        self._stretches: list[tuple[int, int, int, int]] = []

    def add(self, at: int, place: Place) -> None:
        """Adds the place of a case, in the order of positions."""
        line = place.line or self._written_line(place)
        if not line:
            return
        file = self._files.setdefault(place.file, len(self._files))
        if self._stretches:
            first, of_file, from_line, length = self._stretches[-1]
            if (first + length, of_file, from_line + length) == (at, file, line):
                self._stretches[-1] = (first, of_file, from_line, length + 1)
                return
        self._stretches.append((at, file, line, 1))

    def _written_line(self, place: Place) -> int:
        """Returns the line of a case of the configuration, which is read once for all of them."""
        if self._lines is None:
            self._lines = lines_below(self._root.text, ("test_cases",))
        return next((self._lines.get(at, 0) for at in place.path[1:2] if isinstance(at, int)), 0)

    def stored(self) -> bytes:
        """Packs them; paths are absolute."""
        names = [str(Path(name).absolute()) for name in self._files]
        return msgspec.msgpack.encode((names, self._stretches))


@dataclass(slots=True)
class Facts:
    """What the chosen cases have in common, gathered while they are rendered."""

    places: CaseLines
    check_models: dict[str, None] = field(default_factory=dict)
    """The models that checks ask."""
    checks: dict[str, None] = field(default_factory=dict)
    """Names of checks."""
    plugins: set[str] = field(default_factory=set)
    """The plug-ins that checks need."""
    tags: dict[str, None] = field(default_factory=dict)
    images: set[str] = field(default_factory=set)
    """Hashes."""
    has_expected: bool = False
    has_label: bool = False
    is_freeform: bool = True
    """Whether nothing is required of any answer."""
    cases: int = 0
    answers: int = 0
    """How many are asked for of one model by one prompt."""
    repeats: set[int] = field(default_factory=set)
    """How often cases are asked, each number once."""
    quorums: dict[Quorum, None] = field(default_factory=dict)

    def add(self, at: int, case: BenchCase) -> None:
        """Notes a case."""
        self.cases += 1
        self.answers += case.times
        self.repeats.add(case.times)
        if case.quorum is not None:
            self.quorums[case.quorum] = None
        self.places.add(at, case.place)
        if case.checks:
            self.check_models |= dict.fromkeys(models_of(case.checks))
            self.checks |= dict.fromkeys(labels_of(case.checks))
            self.plugins |= plugins_of(case.checks)
        if case.tags:
            self.tags |= dict.fromkeys(case.tags)
        self.images.update(case.images)
        self.has_expected = self.has_expected or "expected" in case.stages
        self.has_label = self.has_label or "label" in case.stages
        self.is_freeform = self.is_freeform and case.is_freeform
