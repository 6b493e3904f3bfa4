"""Writes what the six checks of a query found, in a line each, and counts their verdicts over a run."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from producer.aggregate.related import ByCase
from producer.aggregate.statistics import wilson
from producer.documents import Rate
from producer.queries.results import AskedQuery, CheckFindings
from producer.report.cells import Size, plain
from producer.text import latency, plural
from shared.codecs.json_pointers import at
from shared.contracts.query_vocabulary import CHECKS
from worker.queries.fields import DOCUMENT_FIELDS

PASSED: Final = "pass"
FAILED: Final = "fail"
NOT_APPLICABLE: Final = "N/A"
REASON_OF_CHECK: Final[Mapping[str, str]] = {
    "must_contain": "required keywords missing",
    "must_not_contain": "forbidden keyword found",
    "expected_docs": "expected document not retrieved",
    "citation_present": "nothing cited",
    "oos_handling": "out of scope, but not declined",
    "latency": "too slow",
}
"""The kind of a failure, by which failed queries are grouped."""
NO_CHECK: Final = "no check is applicable"
"""The kind of a failure that no check found."""


class CountedCheck(NamedTuple):
    """The verdicts of one check."""

    name: str
    passed: int
    failed: int
    not_applicable: int
    rate: Rate
    """Of those that passed or failed."""
    reason: str
    """The kind of its failures."""


class CheckCounts:
    """Counts the verdicts of the checks on queries with an answer.

    >>> counts = CheckCounts()
    >>> counts.add(AskedQuery({"checks": {"latency": {"pass": True}}}))
    >>> [(row.passed, row.failed) for row in counts.rows()][-1]
    (1, 0)
    """

    def __init__(self) -> None:
        self._words = Counter[tuple[str, str]]()
        self._by_query = {name: ByCase() for name in CHECKS}

    def add(self, query: AskedQuery) -> None:
        """Takes one result."""
        if query.is_failed:
            return
        for name in CHECKS:
            word = word_of(query.check(name))
            self._words[name, word] += 1
            self._by_query[name].add(query.id, (int(word == PASSED), int(word == FAILED)))

    def rows(self) -> list[CountedCheck]:
        """Returns what a table shows of each check."""
        return [self._row(name) for name in CHECKS]

    def _row(self, name: str) -> CountedCheck:
        """What a table shows of one check."""
        passed, failures = self._words[name, PASSED], self._words[name, FAILED]
        rate = wilson(passed, passed + failures, effect=self._by_query[name].effect([0], [0, 1])).rounded()
        not_applicable = self._words[name, NOT_APPLICABLE]
        return CountedCheck(name, passed, failures, not_applicable, rate, REASON_OF_CHECK[name])


def word_of(check: CheckFindings) -> str:
    """Returns the verdict of a check.

    >>> [word_of(CheckFindings(keys)) for keys in ({"pass": True}, {"pass": True, "applicable": False}, {})]
    ['pass', 'N/A', 'fail']
    """
    if not check.is_applicable:
        return NOT_APPLICABLE
    return PASSED if check.passed else FAILED


class FoundByCheck(NamedTuple):
    """What one check found."""

    name: str
    """As in the document."""
    word: str
    """`PASSED`, `FAILED` or `NOT_APPLICABLE`."""
    reason: str


def found_by_checks(query: AskedQuery) -> list[FoundByCheck]:
    """Returns the six checks of a result, each with its verdict and what it found."""
    found = list[FoundByCheck]()
    for name in CHECKS:
        check = query.check(name)
        word, reason = word_of(check), _REASONS[name](check)
        if name == "expected_docs" and word == FAILED:
            reason += _without_ids(query)
        found.append(FoundByCheck(name, word, plain(reason, Size.REASON)))
    return found


def failures(query: AskedQuery) -> list[str]:
    """Returns the failed checks, each with what it found.

    >>> slow = {"latency_ms": 7_000, "threshold_ms": 5_000}
    >>> failures(AskedQuery({"checks": dict.fromkeys(CHECKS, {"pass": True}) | {"latency": slow}}))
    ['latency: 7,000 ms, limit 5,000 ms']
    """
    return [f"{check.name}: {check.reason}" for check in found_by_checks(query) if check.word == FAILED]


def _keywords(check: CheckFindings) -> str:
    """What `must_contain` found."""
    total = check.number("total")
    if not total:
        return "no keyword required"
    missing = _quoted(check.texts("missing"))
    if not missing:
        return f"{total} of {plural(total, 'keyword')} found"
    return f"lacks {missing} ({check.number('matched')} of {plural(total, 'keyword')} found)"


def _forbidden(check: CheckFindings) -> str:
    """What `must_not_contain` found."""
    found = _quoted(check.texts("found"))
    return f"contains {found}" if found else "no forbidden keyword"


def _documents(check: CheckFindings) -> str:
    """What `expected_docs` found."""
    expected, found = ", ".join(check.texts("expected")), ", ".join(check.texts("found"))
    if not expected:
        return "no document expected"
    if not found:
        return f"did not retrieve {expected}"
    return f"retrieved {found}" if found == expected else f"retrieved {found}, of {expected}"


def _without_ids(query: AskedQuery) -> str:
    """Explains that no document of a reply has an id, and what helps; empty where one has, or there is none.

    >>> _without_ids(AskedQuery({"response": {"relatedDocs": [{"docId": "d1"}]}}))
    ''
    """
    related = at(query.response, DOCUMENT_FIELDS.related_docs)
    if not isinstance(related, list) or not related:
        return ""
    if any(isinstance(at(entry, DOCUMENT_FIELDS.doc_id), str) for entry in related):
        return ""
    return (
        f"; {plural(len(related), 'related document')} in the reply, but no id as text at the pointer"
        " doc_id (default /docId): set it, such as --field doc_id=/id"
    )


def _citations(check: CheckFindings) -> str:
    """What `citation_present` found."""
    counts = {noun: check.number(f"{noun}_count") for noun in ("source", "citation")}
    if check.reason:
        return check.reason
    if not any(counts.values()):
        return "cites nothing"
    return ", ".join(plural(number, noun) for noun, number in counts.items())


def _declined(check: CheckFindings) -> str:
    """What `oos_handling` found."""
    if not check.is_applicable:
        return "in scope"
    found = _quoted(check.texts("signals_found"))
    return f"declined with {found}" if found else "out of scope, but not declined"


def _latency(check: CheckFindings) -> str:
    """What `latency` found."""
    return f"{latency(check.number('latency_ms'))}, limit {latency(check.number('threshold_ms'))}"


def _quoted(texts: Sequence[str]) -> str:
    """Joins texts of people's own choice, each in quotation marks."""
    return ", ".join(f'"{text}"' for text in texts)


_REASONS: Final[Mapping[str, Callable[[CheckFindings], str]]] = {
    "must_contain": _keywords,
    "must_not_contain": _forbidden,
    "expected_docs": _documents,
    "citation_present": _citations,
    "oos_handling": _declined,
    "latency": _latency,
}
