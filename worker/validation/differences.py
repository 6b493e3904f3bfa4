"""Explains how a JSON value differs from the expected one: changed, missing, unexpected, repeated.

DeepDiff looks first. Its pairing of similar list items, which finds the one changed field of an item that
moved, costs the square of a list's length and more, so that it is given short lists only and a number of
steps; longer lists it compares without pairing, and what is larger still is left to a walk of our own.
The result names which of the three was used. Counting steps instead of time keeps the explanation the same on
every machine.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from shared.contracts.case_vocabulary import MAX_DEPTH, pointer
from worker.validation.display import show, show_pair
from worker.validation.interning import Interning

MAX_SHOWN_ENTRIES: Final = 5
"""Differences that a message names."""
MAX_VALUE_CHARS: Final = 2_000
"""A longer value is kept as the beginning of its JSON."""

Path = tuple[str | int, ...]
DifferenceKind = Literal["changed", "missing", "unexpected", "repeated"]
DIFFERENCE_KINDS: Final[tuple[DifferenceKind, ...]] = ("changed", "missing", "unexpected", "repeated")
"""In the order in which they are shown."""
Method = Literal["paired", "unpaired", "walk"]

NOTES: Final[dict[Method, str]] = {
    "paired": "",
    "unpaired": "some lists are long: their items were compared as wholes",
    "walk": "the documents are large: similar list items were not looked for",
}
"""A note on how the differences were found."""

MAX_PAIRED_ITEMS: Final = 20
"""Lists up to this length have their similar items paired."""
MAX_DEEPDIFF_NODES: Final = 2_000
"""Values in both documents together that DeepDiff looks at; more are left to our own walk."""
MAX_DEEPDIFF_STEPS: Final = 5_000
"""Steps of DeepDiff, each about 40 microseconds, before the next quicker way is taken."""
MAX_DEEPDIFF_DEPTH: Final = 30
"""DeepDiff recurses, with several calls a level."""
MAX_ENTRIES: Final = 50
"""Differences that are kept; the others are counted."""

OPTIONS: Final[dict[str, Any]] = {
    "ignore_order": True,
    "report_repetition": True,
    "ignore_private_variables": False,
    "verbose_level": 2,
    "view": "tree",
    "threshold_to_diff_deeper": 0,  # objects with few common keys are compared key by key all the same
}
"""What makes DeepDiff mean by equal what we mean."""
BOUNDS: Final[dict[Method, dict[str, Any]]] = {
    "paired": {"cutoff_intersection_for_pairs": 1},
    "unpaired": {"max_passes": 0, "cutoff_intersection_for_pairs": 0},
}
"""DeepDiff's limits, by method; the options above fix what equal means."""
CATEGORIES: Final[dict[str, DifferenceKind]] = {
    "values_changed": "changed",
    "type_changes": "changed",
    "dictionary_item_removed": "missing",
    "iterable_item_removed": "missing",
    "dictionary_item_added": "unexpected",
    "iterable_item_added": "unexpected",
    "repetition_change": "repeated",
}
"""DeepDiff's categories, and ours."""


class Difference(NamedTuple):
    """One difference."""

    kind: DifferenceKind
    """The sort of difference."""
    path: Path
    """Its place in the expected document; of an unexpected value, in the actual one."""
    expected: Any = None
    """The value that should be there."""
    actual: Any = None
    """The value that is there."""
    times: tuple[int, int] = (1, 1)
    """How often the item is expected, and is there."""

    @property
    def is_type_change(self) -> bool:
        """Whether the two are of different types, such as 4 and "4"."""
        return self.kind == "changed" and type(self.expected) is not type(self.actual)

    def __str__(self) -> str:
        where = pointer(self.path) or "the whole"
        if self.kind == "changed":
            note = " (another type)" if self.is_type_change else ""
            expected, actual = show_pair(self.expected, self.actual)
            return f"{where}: expected {expected}, found {actual}{note}"
        if self.kind == "missing":
            return f"{where}: missing, expected {show(self.expected)}"
        if self.kind == "unexpected":
            return f"{where}: unexpected, found {show(self.actual)}"
        expected, found = (_often(number) for number in self.times)
        return f"{where}: {show(self.expected)} expected {expected}, found {found}"

    def as_document(self) -> dict[str, Any]:
        """As it is stored; a long value is kept as text."""
        path = pointer(self.path)
        expected, actual = _kept(self.expected), _kept(self.actual)
        if self.kind == "changed":
            return {"path": path, "expected": expected, "actual": actual, "type_changed": self.is_type_change}
        if self.kind == "missing":
            return {"path": path, "expected": expected}
        if self.kind == "unexpected":
            return {"path": path, "actual": actual}
        return {
            "path": path,
            "value": expected,
            "expected_times": self.times[0],
            "actual_times": self.times[1],
        }


def _often(number: int) -> str:
    """How often, in words."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def _kept(value: Any) -> Any:
    """The value as it is stored beside a verdict: itself, or the beginning of its JSON."""
    text = show(value, MAX_VALUE_CHARS)
    return text if len(text) > MAX_VALUE_CHARS else value


@dataclass(frozen=True, slots=True)
class Differences:
    """All differences of two documents, bounded."""

    entries: tuple[Difference, ...]
    """The first ones, in the order of the expected document."""
    method: Method
    """How the differences were found."""
    omitted: int = 0
    """How many more there are."""

    @property
    def changed(self) -> tuple[Difference, ...]:
        """Values that are there with another value."""
        return self._of("changed")

    @property
    def missing(self) -> tuple[Difference, ...]:
        """Expected values that are not there."""
        return self._of("missing")

    @property
    def unexpected(self) -> tuple[Difference, ...]:
        """Values that are not expected."""
        return self._of("unexpected")

    @property
    def repetitions(self) -> tuple[Difference, ...]:
        """List items that are there, but more or less often than expected."""
        return self._of("repeated")

    @property
    def note(self) -> str:
        """How they were found, where that matters to who reads them."""
        return NOTES[self.method]

    def _of(self, kind: DifferenceKind) -> tuple[Difference, ...]:
        """Those of one kind."""
        return tuple(entry for entry in self.entries if entry.kind == kind)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __str__(self) -> str:
        total = len(self.entries) + self.omitted
        if not total:
            return "no difference"
        lines = [str(entry) for entry in self.entries[:MAX_SHOWN_ENTRIES]]
        if total > len(lines):
            lines.append(f"and {total - len(lines):,} more")
        text = f"{total:,} {'difference' if total == 1 else 'differences'}: " + "; ".join(lines)
        return f"{text} ({self.note})" if self.note else text

    def as_document(self) -> dict[str, Any]:
        """As it is stored and printed."""
        return {
            "changed": [entry.as_document() for entry in self.changed],
            "missing": [entry.as_document() for entry in self.missing],
            "unexpected": [entry.as_document() for entry in self.unexpected],
            "repetitions": [entry.as_document() for entry in self.repetitions],
            "omitted": self.omitted,
            "method": self.method,
            "note": self.note,
        }


class _StepsUsedUpError(Exception):
    """DeepDiff has looked at enough."""


class _Steps:
    """Counts what DeepDiff does, as one of its operators: it asks each one about everything it looks at."""

    def __init__(self, left: int) -> None:
        self.left = left

    def match(self, _level: Any) -> bool:
        """Counts a comparison; it is always left to DeepDiff."""
        return self._count()

    def give_up_diffing(self, _level: Any, _diff: Any) -> bool:
        """Never asked, since nothing matches."""
        return False

    def normalize_value_for_hashing(self, _parent: Any, value: Any) -> Any:
        """Counts a hash."""
        self._count()
        return value

    def _count(self) -> bool:
        """One step less."""
        self.left -= 1
        if self.left < 0:
            raise _StepsUsedUpError
        return False


def explain(expected: Any, actual: Any) -> Differences:
    """Describes how a JSON value differs from the expected one; empty when it does not.

    >>> print(explain({"city": "Paris", "tags": ["a", "a"]}, {"city": "Rome", "tags": ["a"]}))
    2 differences: /city: expected "Paris", found "Rome"; /tags/0: "a" expected twice, found once
    """
    same = Interning()
    if same.number(expected) == same.number(actual):
        return Differences((), "paired")
    for method in _methods(expected, actual):
        entries = _ask_deepdiff(expected, actual, method)
        if entries:  # none at all is a collision of its hashes
            return _bounded(entries, method)
    return _bounded(list(_walk(expected, actual, same)), "walk")


def _bounded(entries: list[Difference], method: Method) -> Differences:
    """The first of them, in an order that people can follow."""
    ordered = sorted(entries, key=lambda entry: (DIFFERENCE_KINDS.index(entry.kind), _place(entry.path)))
    return Differences(tuple(ordered[:MAX_ENTRIES]), method, max(0, len(entries) - MAX_ENTRIES))


def _place(path: Path) -> list[tuple[int, str]]:
    """Sorts paths by name, and indexes by number."""
    return [(part, "") if isinstance(part, int) else (-1, part) for part in path]


def _methods(expected: Any, actual: Any) -> tuple[Method, ...]:
    """Which ways of asking DeepDiff the sizes allow, the most telling first."""
    nodes = longest = 0
    level = [expected, actual]
    for _ in range(MAX_DEEPDIFF_DEPTH):
        nodes += len(level)
        if nodes > MAX_DEEPDIFF_NODES:
            return ()
        containers = [value for value in level if isinstance(value, dict | list)]
        if not containers:
            return ("paired", "unpaired") if longest <= MAX_PAIRED_ITEMS else ("unpaired",)
        longest = max([longest, *(len(value) for value in containers if isinstance(value, list))])
        level = [
            child for value in containers for child in (value.values() if isinstance(value, dict) else value)
        ]
    return ()


def _ask_deepdiff(expected: Any, actual: Any, method: Method) -> list[Difference]:
    """What DeepDiff finds; nothing when it would take too long, or fails on the values.

    It raises all sorts of errors on texts that look like numbers, halves of surrogate pairs and such; none
    of them may cost a verdict that is already known.
    """
    from deepdiff import DeepDiff  # noqa: PLC0415 - half a second; most outputs are right or fail before

    steps = _Steps(MAX_DEEPDIFF_STEPS)
    try:
        tree = DeepDiff(expected, actual, custom_operators=[steps], **OPTIONS, **BOUNDS[method])
        return [
            _entry(kind, level) for category, kind in CATEGORIES.items() for level in tree.get(category, ())
        ]
    except Exception:  # noqa: BLE001 - see above; our own walk explains instead
        return []


def _entry(kind: DifferenceKind, level: Any) -> Difference:
    """One difference in our words."""
    path = tuple(level.path(output_format="list"))
    if kind == "repeated":
        often = level.additional["repetition"]
        return Difference(kind, path, level.t1, level.t1, (often["old_repeat"], often["new_repeat"]))
    return Difference(
        kind,
        path,
        None if kind == "unexpected" else level.t1,
        None if kind == "missing" else level.t2,
    )


def _walk(expected: Any, actual: Any, same: Interning) -> Iterator[Difference]:
    """Finds the differences in time linear in the documents, with a stack of its own."""
    stack: list[tuple[Any, Any, Path]] = [(expected, actual, ())]
    while stack:
        old, new, path = stack.pop()
        if same.number(old) == same.number(new):
            continue
        if len(path) > MAX_DEPTH:
            yield Difference("changed", path, old, new)
            continue
        if type(old) is dict and type(new) is dict:
            yield from (Difference("missing", (*path, key), old[key]) for key in old if key not in new)
            yield from (
                Difference("unexpected", (*path, key), None, new[key]) for key in new if key not in old
            )
            stack.extend((value, new[key], (*path, key)) for key, value in old.items() if key in new)
        elif type(old) is list and type(new) is list:
            missing, unexpected, repeated = _compare_lists(old, new, path, same)
            yield from repeated
            if len(missing) == len(unexpected) == 1:
                stack.append((missing[0].expected, unexpected[0].actual, missing[0].path))
            else:
                yield from missing
                yield from unexpected
        else:
            yield Difference("changed", path, old, new)


def _compare_lists(
    old: list[Any], new: list[Any], path: Path, same: Interning
) -> tuple[list[Difference], list[Difference], list[Difference]]:
    """Items of one list only, either way, and those of both that differ in number."""
    before, after = [same.number(item) for item in old], [same.number(item) for item in new]
    expected, found = Counter(before), Counter(after)
    missing = [
        Difference("missing", (*path, index), old[index])
        for index, number in enumerate(before)
        if not found[number]
    ]
    unexpected = [
        Difference("unexpected", (*path, index), None, new[index])
        for index, number in enumerate(after)
        if not expected[number]
    ]
    repeated = [
        Difference("repeated", (*path, index), old[index], old[index], (expected[number], found[number]))
        for number, index in {number: index for index, number in reversed(list(enumerate(before)))}.items()
        if found[number] and found[number] != expected[number]
    ]
    return missing, unexpected, repeated
