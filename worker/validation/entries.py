"""One difference between two JSON values, and all of them together, as people and programs read them."""

from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from shared.contracts.case_vocabulary import pointer
from worker.validation.words import shown, shown_apart

MAX_SHOWN_ENTRIES: Final = 5
"""Differences that a message names."""
MAX_VALUE_CHARS: Final = 2_000
"""A longer value is kept as the beginning of its JSON."""

Path = tuple[str | int, ...]
Kind = Literal["changed", "missing", "unexpected", "repeated"]
KINDS: Final[tuple[Kind, ...]] = ("changed", "missing", "unexpected", "repeated")
"""In the order in which they are shown."""
Method = Literal["paired", "unpaired", "walk"]

NOTES: Final[dict[Method, str]] = {
    "paired": "",
    "unpaired": "some lists are long: their items were compared as wholes",
    "walk": "the documents are large: similar list items were not looked for",
}
"""What is said about how the differences were found."""


class Entry(NamedTuple):
    """One difference."""

    kind: Kind
    """What happened to the value."""
    path: Path
    """Where: in the expected document, and for an unexpected value in the actual one."""
    expected: Any = None
    """What should be there."""
    actual: Any = None
    """What is there."""
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
            expected, actual = shown_apart(self.expected, self.actual)
            return f"{where}: expected {expected}, found {actual}{note}"
        if self.kind == "missing":
            return f"{where}: missing, expected {shown(self.expected)}"
        if self.kind == "unexpected":
            return f"{where}: unexpected, found {shown(self.actual)}"
        expected, found = (_often(number) for number in self.times)
        return f"{where}: {shown(self.expected)} expected {expected}, found {found}"

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
    text = shown(value, MAX_VALUE_CHARS)
    return text if len(text) > MAX_VALUE_CHARS else value


@dataclass(frozen=True, slots=True)
class Differences:
    """All differences of two documents, bounded."""

    entries: tuple[Entry, ...]
    """The first ones, in the order of the expected document."""
    method: Method
    """Who found them."""
    omitted: int = 0
    """How many more there are."""

    @property
    def changed(self) -> tuple[Entry, ...]:
        """Values that are there with another value."""
        return self._of("changed")

    @property
    def missing(self) -> tuple[Entry, ...]:
        """Expected values that are not there."""
        return self._of("missing")

    @property
    def unexpected(self) -> tuple[Entry, ...]:
        """Values that nobody expects."""
        return self._of("unexpected")

    @property
    def repetitions(self) -> tuple[Entry, ...]:
        """List items that are there, but more or less often than expected."""
        return self._of("repeated")

    @property
    def note(self) -> str:
        """How they were found, where that matters to who reads them."""
        return NOTES[self.method]

    def _of(self, kind: Kind) -> tuple[Entry, ...]:
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
