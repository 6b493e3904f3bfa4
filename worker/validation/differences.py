"""Explains how a JSON value differs from the expected one: changed, missing, unexpected, repeated.

DeepDiff looks first. Its pairing of similar list items, which finds the one changed field of an item that
moved, costs the square of a list's length and more, so that it is given short lists only and a number of
steps; longer lists it compares without pairing, and what is larger still is left to a walk of our own.
Which of the three spoke is said. Counting steps instead of time keeps the explanation the same on every
machine.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from shared.contracts.case_vocabulary import MAX_DEPTH
from worker.validation.entries import KINDS, Differences, Entry, Kind, Method, Path
from worker.validation.interning import Interning

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
"""What DeepDiff is told beyond the options that fix what equal means."""
CATEGORIES: Final[dict[str, Kind]] = {
    "values_changed": "changed",
    "type_changes": "changed",
    "dictionary_item_removed": "missing",
    "iterable_item_removed": "missing",
    "dictionary_item_added": "unexpected",
    "iterable_item_added": "unexpected",
    "repetition_change": "repeated",
}
"""Its words, and ours."""


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
    """Says how a JSON value differs from the expected one; empty when it does not.

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


def _bounded(entries: list[Entry], method: Method) -> Differences:
    """The first of them, in an order that people can follow."""
    ordered = sorted(entries, key=lambda entry: (KINDS.index(entry.kind), _place(entry.path)))
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


def _ask_deepdiff(expected: Any, actual: Any, method: Method) -> list[Entry]:
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


def _entry(kind: Kind, level: Any) -> Entry:
    """One difference in our words."""
    path = tuple(level.path(output_format="list"))
    if kind == "repeated":
        often = level.additional["repetition"]
        return Entry(kind, path, level.t1, level.t1, (often["old_repeat"], often["new_repeat"]))
    return Entry(
        kind,
        path,
        None if kind == "unexpected" else level.t1,
        None if kind == "missing" else level.t2,
    )


def _walk(expected: Any, actual: Any, same: Interning) -> Iterator[Entry]:
    """Finds the differences in time linear in the documents, with a stack of its own."""
    stack: list[tuple[Any, Any, Path]] = [(expected, actual, ())]
    while stack:
        old, new, path = stack.pop()
        if same.number(old) == same.number(new):
            continue
        if len(path) > MAX_DEPTH:
            yield Entry("changed", path, old, new)
            continue
        if type(old) is dict and type(new) is dict:
            yield from (Entry("missing", (*path, key), old[key]) for key in old if key not in new)
            yield from (Entry("unexpected", (*path, key), None, new[key]) for key in new if key not in old)
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
            yield Entry("changed", path, old, new)


def _compare_lists(
    old: list[Any], new: list[Any], path: Path, same: Interning
) -> tuple[list[Entry], list[Entry], list[Entry]]:
    """Items of one list only, either way, and those of both that differ in number."""
    before, after = [same.number(item) for item in old], [same.number(item) for item in new]
    expected, found = Counter(before), Counter(after)
    missing = [
        Entry("missing", (*path, index), old[index])
        for index, number in enumerate(before)
        if not found[number]
    ]
    unexpected = [
        Entry("unexpected", (*path, index), None, new[index])
        for index, number in enumerate(after)
        if not expected[number]
    ]
    repeated = [
        Entry("repeated", (*path, index), old[index], old[index], (expected[number], found[number]))
        for number, index in {number: index for index, number in reversed(list(enumerate(before)))}.items()
        if found[number] and found[number] != expected[number]
    ]
    return missing, unexpected, repeated
