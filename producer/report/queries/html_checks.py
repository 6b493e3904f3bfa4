"""Says of the six checks of a query what they found, in a line each, and counts them over a run."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from producer.aggregate.queries import check_of
from producer.aggregate.statistics import wilson
from producer.report.cells import plain
from producer.text import plural
from shared.contracts.query_vocabulary import CHECKS, failed

Check = Mapping[str, Any]

REASON_CHARS: Final = 300
"""Of what a check found."""
PASSED: Final = "pass"
FAILED: Final = "fail"
NOT_APPLICABLE: Final = "N/A"
TONES: Final[Mapping[str, str]] = {PASSED: "pass", FAILED: "fail", NOT_APPLICABLE: "skipped"}
"""Classes of the page's style."""


class CheckCounts:
    """Counts what the checks said of queries with an answer.

    >>> counts = CheckCounts()
    >>> counts.add({"error": None, "checks": {"latency": {"pass": True}}})
    >>> [(row["passed"], row["failed"]) for row in counts.rows()][-1]
    (1, 0)
    """

    def __init__(self) -> None:
        self._words = Counter[tuple[str, str]]()

    def add(self, result: Mapping[str, Any]) -> None:
        """Takes one result with the nine keys of the document."""
        if not failed(result):
            self._words.update((name, word_of(check_of(result, name))) for name in CHECKS)

    def rows(self) -> list[dict[str, Any]]:
        """Returns what a table shows of each check."""
        return [self._row(name) for name in CHECKS]

    def _row(self, name: str) -> dict[str, Any]:
        """What a table shows of one check."""
        passed, failures = self._words[name, PASSED], self._words[name, FAILED]
        return {
            "name": name,
            "passed": passed,
            "failed": failures,
            "not_applicable": self._words[name, NOT_APPLICABLE],
            "rate": wilson(passed, passed + failures).as_document(),
        }


def word_of(check: Check) -> str:
    """Returns the verdict of a check.

    >>> word_of({"pass": True}), word_of({"pass": True, "applicable": False}), word_of({})
    ('pass', 'N/A', 'fail')
    """
    if not check.get("applicable", True):
        return NOT_APPLICABLE
    return PASSED if check.get("pass") else FAILED


def told(result: Mapping[str, Any]) -> list[dict[str, str]]:
    """Returns the six checks of a result, each with its verdict and what it found."""
    checks = [(name, check_of(result, name)) for name in CHECKS]
    return [
        {
            "name": name,
            "word": word_of(check),
            "tone": TONES[word_of(check)],
            "reason": plain(_REASONS[name](check), REASON_CHARS),
        }
        for name, check in checks
    ]


def failures(result: Mapping[str, Any]) -> list[str]:
    """Names the checks that failed, each with what it found.

    >>> failures({"checks": dict.fromkeys(CHECKS, {"pass": True}) | {"latency": {"latency_ms": 7_000}}})
    ['latency: 7,000 ms, less than 0 ms wanted']
    """
    return [f"{check['name']}: {check['reason']}" for check in told(result) if check["word"] == FAILED]


def _keywords(check: Check) -> str:
    """What `must_contain` found."""
    total = check.get("total") or 0
    if not total:
        return "no keyword asked for"
    missing = _listed(check.get("missing"))
    return (
        f"missing: {missing} ({check.get('matched', 0)} of {total} found)"
        if missing
        else f"all {total} found"
    )


def _forbidden(check: Check) -> str:
    """What `must_not_contain` found."""
    found = _listed(check.get("found"))
    return f"found: {found}" if found else "no sign of invention"


def _documents(check: Check) -> str:
    """What `expected_docs` found."""
    expected, found = _listed(check.get("expected")), _listed(check.get("found"))
    if not expected:
        return "no document expected"
    if not found:
        return f"not among the related documents: {expected}"
    return f"found: {found}" if found == expected else f"found: {found}, of {expected}"


def _citations(check: Check) -> str:
    """What `citation_present` found."""
    counts = [plural(int(check.get(f"{noun}_count") or 0), noun) for noun in ("source", "citation")]
    return str(check.get("reason") or ", ".join(counts))


def _declined(check: Check) -> str:
    """What `oos_handling` found."""
    if not check.get("applicable", True):
        return "in scope"
    found = _listed(check.get("signals_found"))
    return f"declined: {found}" if found else "no sign of declining"


def _latency(check: Check) -> str:
    """What `latency` found."""
    return f"{check.get('latency_ms', 0):,} ms, less than {check.get('threshold_ms', 0):,} ms wanted"


def _listed(texts: Any) -> str:
    """Joins texts."""
    return ", ".join(text for text in texts or () if isinstance(text, str))


_REASONS: Final[Mapping[str, Callable[[Check], str]]] = {
    "must_contain": _keywords,
    "must_not_contain": _forbidden,
    "expected_docs": _documents,
    "citation_present": _citations,
    "oos_handling": _declined,
    "latency": _latency,
}
