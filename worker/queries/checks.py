"""The six automated checks of the harness specification, on answers that may hold anything; what they decide.

Answer and reply are hostile text: a field that is null or of another type counts as empty and no check ever
raises. Keywords are compared as literal parts of the text, case folded; with `fold_apostrophes` all forms of
the apostrophe count as one.

>>> check_must_contain("Book 14 days ahead.", ["14 DAYS", "reefer"])
{'pass': False, 'total': 2, 'matched': 1, 'missing': ['reefer']}
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from shared.contracts.query_vocabulary import (
    LATENCY_THRESHOLD_MS,
    MAX_LATENCY_MS,
    failed,
    json_object,
    latency_of,
    server_latency_ms,
)
from shared.names import Outcome
from worker.queries.reply import Reply

CheckResult = dict[str, Any]
"""The result of one check; its keys are those of the specification."""

Fold: TypeAlias = Callable[[str], str]
"""Makes texts alike that count as equal."""
APOSTROPHES: Final = str.maketrans(dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032\uff07`\u00b4", "'"))
"""What keyboards and models write for an apostrophe."""
NO_CHUNKS_REASON: Final = "No chunks retrieved — citation N/A"
QUERY_FAILED: Final = "(query failed)"
CHUNKS_UNKNOWN: Final = -1


def fold_apostrophes(text: str) -> str:
    """Folds case, and every apostrophe into the plain one.

    >>> fold_apostrophes("I don\u2019t") == fold_apostrophes("I DON'T")
    True
    """
    return text.casefold().translate(APOSTROPHES)


def check_must_contain(answer: str, keywords: Sequence[str], *, fold: Fold = str.casefold) -> CheckResult:
    """Checks that the answer holds every required keyword; none required passes.

    Args:
        answer: the answer's text.
        keywords: parts of text that must be in it.
        fold: makes texts alike that count as equal.

    Returns:
        pass, total, matched, missing.
    """
    wanted = _texts(keywords)
    missing = _absent(answer, wanted, fold)
    return {
        "pass": not missing,
        "total": len(wanted),
        "matched": len(wanted) - len(missing),
        "missing": missing,
    }


def check_must_not_contain(answer: str, keywords: Sequence[str], *, fold: Fold = str.casefold) -> CheckResult:
    """Checks that the answer holds none of the signs of invention.

    Args:
        answer: the answer's text.
        keywords: parts of text that must not be in it.
        fold: makes texts alike that count as equal.

    Returns:
        pass, found.

    >>> check_must_not_contain("Guaranteed by tomorrow", ["guaranteed"])
    {'pass': False, 'found': ['guaranteed']}
    """
    found = _present(answer, _texts(keywords), fold)
    return {"pass": not found, "found": found}


def check_expected_docs(related_docs: Sequence[dict[str, Any]], expected: Sequence[str]) -> CheckResult:
    """Checks that at least one expected document is among the related ones; none expected passes.

    Args:
        related_docs: the reply's `relatedDocs`; each entry names its document in `docId`.
        expected: parts of document ids.

    Returns:
        pass, expected, found; `found` in the order of `expected`, each once.

    >>> check_expected_docs([{"docId": "BK-02-lcl"}], ["bk-02", "bk-09"])
    {'pass': True, 'expected': ['bk-02', 'bk-09'], 'found': ['bk-02']}
    """
    patterns = _texts(expected)
    ids = [_text(json_object(entry).get("docId")).casefold() for entry in _items(related_docs)]
    met = [pattern for pattern in patterns if any(pattern.casefold() in name for name in ids)]
    found = list(dict.fromkeys(met))
    return {"pass": bool(found) or not patterns, "expected": patterns, "found": found}


def check_citation_present(
    sources: Sequence[Any], citations: Sequence[Any], chunks_retrieved: int = CHUNKS_UNKNOWN
) -> CheckResult:
    """Checks that the reply names a source or a citation, where there was anything to cite.

    Args:
        sources: the reply's `sources`.
        citations: the reply's `citations`.
        chunks_retrieved: how many chunks the retrieval found; 0 makes the check inapplicable, and passed.

    Returns:
        pass, applicable, source_count, citation_count, and reason when not applicable.

    >>> check_citation_present([], [], 0)["reason"]
    'No chunks retrieved — citation N/A'
    """
    counts = {"source_count": _count(sources), "citation_count": _count(citations)}
    if _chunks(chunks_retrieved) == 0:
        return {"pass": True, "applicable": False, **counts, "reason": NO_CHUNKS_REASON}
    return {"pass": any(counts.values()), "applicable": True, **counts}


def check_oos_handling(
    answer: str,
    is_oos: bool,  # noqa: FBT001 - the specification calls it by position
    decline_signals: Sequence[str],
    *,
    fold: Fold = str.casefold,
) -> CheckResult:
    """Checks that the answer to an out-of-scope query declines; other queries pass, not applicable.

    Args:
        answer: the answer's text.
        is_oos: whether the query is out of scope.
        decline_signals: phrases of which one must be in the answer; without any, no answer can pass.
        fold: makes texts alike that count as equal.

    Returns:
        pass, applicable, signals_found.

    >>> check_oos_handling("I can't help with that.", True, ["can't help"])
    {'pass': True, 'applicable': True, 'signals_found': ["can't help"]}
    """
    if not is_oos:
        return {"pass": True, "applicable": False, "signals_found": []}
    found = _present(answer, _texts(decline_signals), fold)
    return {"pass": bool(found), "applicable": True, "signals_found": found}


def check_latency(latency_ms: int) -> CheckResult:
    """Checks that the answer took less than the threshold; what is no believable number did not.

    Args:
        latency_ms: the server's latency in milliseconds.

    Returns:
        pass, latency_ms, threshold_ms.

    >>> check_latency(5000)
    {'pass': False, 'latency_ms': 5000, 'threshold_ms': 5000}
    """
    latency = latency_of(latency_ms, MAX_LATENCY_MS)
    return {
        "pass": latency < LATENCY_THRESHOLD_MS,
        "latency_ms": latency,
        "threshold_ms": LATENCY_THRESHOLD_MS,
    }


def run_checks(
    baseline: dict[str, Any], result: dict[str, Any], *, fold: Fold = str.casefold
) -> dict[str, CheckResult]:
    """Runs all six checks on what became of one query.

    Args:
        baseline: the query and what a good answer looks like.
        result: response, latency_ms, status_code and error, as `send_query` returns them.
        fold: makes texts alike that count as equal.

    Returns:
        must_contain, must_not_contain, expected_docs, citation_present, oos_handling, latency; all of them
        failed when the query itself failed.
    """
    measured = latency_of(result.get("latency_ms"), 0)
    if failed(result):
        return _all_failed(baseline, measured)
    response = json_object(result.get("response"))
    answer = _text(response.get("answer"))
    metadata = json_object(response.get("metadata"))
    return {
        "must_contain": check_must_contain(answer, baseline.get("must_contain", ()), fold=fold),
        "must_not_contain": check_must_not_contain(answer, baseline.get("must_not_contain", ()), fold=fold),
        "expected_docs": check_expected_docs(
            response.get("relatedDocs", ()), baseline.get("expected_docs", ())
        ),
        "citation_present": check_citation_present(
            response.get("sources", ()),
            response.get("citations", ()),
            metadata.get("chunksRetrieved", CHUNKS_UNKNOWN),
        ),
        "oos_handling": check_oos_handling(
            answer, bool(baseline.get("is_oos")), baseline.get("oos_decline_signals", ()), fold=fold
        ),
        "latency": check_latency(server_latency_ms(response, measured)),
    }


def _all_failed(baseline: dict[str, Any], latency_ms: int) -> dict[str, CheckResult]:
    """Fails all checks of a query without an answer; the metrics do not count it as a hallucination."""
    wanted = _texts(baseline.get("must_contain"))
    return {
        "must_contain": {"pass": False, "total": len(wanted), "matched": 0, "missing": wanted},
        "must_not_contain": {"pass": False, "found": [QUERY_FAILED]},
        "expected_docs": {"pass": False, "expected": _texts(baseline.get("expected_docs")), "found": []},
        "citation_present": {"pass": False, "applicable": True, "source_count": 0, "citation_count": 0},
        "oos_handling": {"pass": False, "applicable": bool(baseline.get("is_oos")), "signals_found": []},
        "latency": {"pass": False, "latency_ms": latency_ms, "threshold_ms": LATENCY_THRESHOLD_MS},
    }


def _text(value: Any) -> str:
    """Returns text as it is; anything else is empty."""
    return value if isinstance(value, str) else ""


def _items(value: Any) -> list[Any]:
    """Returns the entries of a list; anything else has none, text least of all."""
    return list(value) if isinstance(value, list | tuple) else []


def _texts(value: Any) -> list[str]:
    """Returns the entries of a list that are text."""
    return [entry for entry in _items(value) if isinstance(entry, str)]


def _present(answer: Any, keywords: list[str], fold: Fold) -> list[str]:
    """Returns the keywords that are in the answer."""
    text = fold(_text(answer))
    return [keyword for keyword in keywords if fold(keyword) in text]


def _absent(answer: Any, keywords: list[str], fold: Fold) -> list[str]:
    """Returns the keywords that are not in the answer."""
    text = fold(_text(answer))
    return [keyword for keyword in keywords if fold(keyword) not in text]


def _count(value: Any) -> int:
    """Counts the entries of a list that are not empty; null counts as empty."""
    return sum(entry is not None for entry in _items(value))


def _chunks(value: Any) -> int:
    """Reads a number of chunks; what is no whole number is unknown."""
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole and not isinstance(value, bool) else CHUNKS_UNKNOWN


def overall_pass(checks: dict[str, CheckResult]) -> bool:
    """Returns whether every applicable check passed; a check that does not say so is applicable.

    >>> overall_pass({"a": {"pass": True}, "b": {"pass": False, "applicable": False}})
    True
    >>> overall_pass({"a": {"pass": False}}), overall_pass({})
    (False, False)
    """
    applicable = [check for check in checks.values() if check.get("applicable", True)]
    return bool(applicable) and all(check["pass"] for check in applicable)


def query_result(baseline: dict[str, Any], reply: Reply, *, fold: Fold = str.casefold) -> dict[str, Any]:
    """Judges one reply; the returned keys are those of the specification, in its order.

    Args:
        baseline: the query and what a good answer looks like.
        reply: of the API.
        fold: makes texts alike that count as equal.

    >>> baseline = {"id": "Q-1", "category": "sla", "query": "?", "is_oos": False}
    >>> query_result(baseline, Reply({"answer": "Yes", "sources": ["s"]}, 9, 200))["overall_pass"]
    True
    """
    checks = run_checks(baseline, reply.as_document(), fold=fold)
    return {
        "id": baseline["id"],
        "category": baseline["category"],
        "query": baseline["query"],
        "is_oos": baseline["is_oos"],
        "response": reply.response,
        "checks": checks,
        "overall_pass": overall_pass(checks),
        "client_latency_ms": reply.latency_ms,
        "error": reply.error,
    }


def outcome(result: dict[str, Any]) -> Outcome:
    """Returns how the item ended: without an answer there is nothing to judge.

    >>> outcome({"error": "Timeout after 30s", "overall_pass": False})
    <Outcome.ERROR: 'error'>
    """
    if failed(result):
        return Outcome.ERROR
    return Outcome.PASSED if result["overall_pass"] else Outcome.FAILED
