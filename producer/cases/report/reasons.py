"""Describes in a sentence why a case did not pass; the kind of the reason is the same without its values."""

import json
import re
from typing import Any, Final, NamedTuple

from producer.cases.report.opened_rows import OpenedCase
from producer.cases.results import CaseResult, DifferencesFound
from producer.report.cells import Size, plain
from producer.report.shown_item import without_quote
from shared.names import Outcome

MOST_KINDS: Final = 20_000
"""Kinds of which a text is kept."""
GAP: Final = "…"
"""Stands in a kind for a value."""
NOT_ASKED: Final = "the run ended first"
_VALUES: Final = re.compile(r'"[^"]*"|\'[^\']*\'|\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|[-+]?\d[\d.,]*')
"""Quoted words, lists, objects, and numbers."""
_PLACES: Final = re.compile(r"/\d+(?=/|$)")
"""Positions in a path."""


class Reason(NamedTuple):
    """Why a case did not pass."""

    text: str
    kind: str
    """The same for all reasons that differ in values only."""
    words: str
    """What its kind is called: the name of a check, a path that differs, or the reason itself."""


class Wordings:
    """Names kinds of reasons in words: those of the first reason of a kind, which others may share.

    >>> wordings = Wordings()
    >>> for check in ("length: 20", "length: 30", "contains: Paris"):
    ...     wordings.add(Reason("too long", without_values(check), check))
    >>> wordings.of("length"), wordings.of("contains: Paris")
    ('length: 20 and similar', 'contains: Paris')
    """

    def __init__(self) -> None:
        self._firsts: dict[str, str] = {}
        self._several = set[str]()

    def add(self, reason: Reason) -> None:
        """Takes a reason; of very many kinds the first ones are known."""
        first = self._firsts.get(reason.kind)
        if first is None and len(self._firsts) < MOST_KINDS:
            self._firsts[reason.kind] = reason.words
        elif first is not None and first != reason.words:
            self._several.add(reason.kind)

    def of(self, kind: str) -> str:
        """Returns the words of a kind."""
        words = plain(self._firsts.get(kind, kind), Size.NAME)
        return f"{words} and similar" if kind in self._several else words


def reason_of(case: OpenedCase) -> Reason | None:
    """Returns why a case did not pass; None of one that did, and of an answer that was not needed."""
    if case.row.outcome is Outcome.PASSED or case.is_not_needed:
        return None
    if case.result is None or case.row.outcome is Outcome.SKIPPED:
        return Reason(NOT_ASKED, NOT_ASKED, NOT_ASKED)
    if case.code:
        return _told(case.message or case.code)
    found = _difference(case.result.differing) or _check(case.result)
    return found or _told(without_quote(case.message))


def _told(message: str) -> Reason:
    """Makes a reason of a message, which names its kind if it has values."""
    text, kind = plain(message, Size.REASON), without_values(message)
    return Reason(text, kind, text if GAP in kind else kind)


def without_values(text: str) -> str:
    """Takes numbers and quoted values out of a sentence.

    >>> without_values('46 characters, at least 100 are needed'), without_values('contains_any: ["a", "b"]')
    ('… characters, at least … are needed', 'contains_any')
    """
    bare = re.sub(r"…(\s*…)+", "…", _VALUES.sub(GAP, without_quote(plain(text, Size.REASON))))
    return plain(bare.rstrip(" …:.,;") or bare, Size.NAME)


def _difference(found: DifferencesFound) -> Reason | None:
    """Names the first difference between the output and the expected object, and counts the others."""
    entries = (*found.changed, *found.missing, *found.unexpected, *found.repetitions)
    if not entries:
        return None
    first, path = entries[0], entries[0].path or "the answer"
    if found.changed:
        text, kind = f"{path} is {_value(first.actual)}, expected {_value(first.expected)}", "differs"
    elif found.missing:
        text, kind = f"{path} is missing, expected {_value(first.expected)}", "is missing"
    elif found.unexpected:
        text, kind = f"{path} is not expected: {_value(first.actual)}", "is not expected"
    else:
        often = f"{first.actual_times} times, expected {first.expected_times}"
        text, kind = f"{path} has {_value(first.value)} {often}", "is there too often or too rarely"
    if more := len(entries) - 1 + found.omitted:
        text += f", and {more:,} more"
    kind = plain(f"{_PLACES.sub('/*', path)} {kind}", Size.NAME)
    return Reason(plain(text, Size.REASON), kind, kind)


def _check(result: CaseResult) -> Reason | None:
    """Names the first failed check, and counts the others."""
    if not (failed := result.failed_checks):
        return None
    check = failed[0]
    text = without_quote(check.reason or f"{check.name} failed")
    if check.score is not None and 0 < check.score < 1:
        text = f"{check.check} {check.score:.2f}: {text}"
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return Reason(plain(text, Size.REASON) + more, without_values(check.name), check.name)


def _value(value: Any) -> str:
    """Writes a value, cut."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= Size.CELL else f"{text[: Size.CELL]}…"
