"""Holds the six checks against the harness document, key by key."""

from typing import Any

import pytest

from shared.contracts.query_vocabulary import CHECKS
from worker.queries.checks import (
    check_citation_present,
    check_expected_docs,
    check_latency,
    check_must_contain,
    check_must_not_contain,
    check_oos_handling,
    run_checks,
)

BASELINE: dict[str, Any] = {
    "id": "Q-01",
    "category": "sla",
    "query": "How fast?",
    "is_oos": False,
    "expected_docs": ["SL-01"],
    "must_contain": ["2 working hours"],
    "must_not_contain": ["at once"],
}
RESPONSE: dict[str, Any] = {
    "answer": "Within 2 WORKING hours [1]",
    "sources": [{"title": "Service levels"}],
    "citations": [{"raw": "[1]"}],
    "relatedDocs": [{"docId": "sl-01-service-levels"}],
    "metadata": {"chunksRetrieved": 3, "latencyMs": 120},
}


def reply(**changes: Any) -> dict[str, Any]:
    """What `send_query` returns for a good answer, with changes to the response."""
    response = {**RESPONSE, **changes}
    return {"response": response, "latency_ms": 150, "status_code": 200, "error": None}


def test_all_required_keywords_must_be_there_whatever_their_case() -> None:
    """One missing keyword fails the check and is named as the baseline spells it."""
    assert check_must_contain("Send the VGM 24 Hours before", ["vgm", "24 hours", "SOLAS"]) == {
        "pass": False,
        "total": 3,
        "matched": 2,
        "missing": ["SOLAS"],
    }


def test_case_is_folded_beyond_ascii() -> None:
    """Straße and STRASSE are the same word."""
    assert check_must_contain("Lange STRASSE 4", ["straße"])["pass"] is True


def test_no_required_keyword_passes() -> None:
    """An empty list asks for nothing."""
    assert check_must_contain("", []) == {"pass": True, "total": 0, "matched": 0, "missing": []}


def test_forbidden_keywords_are_literal_parts_of_the_text() -> None:
    """The keyword counts inside a longer word, and signs of a pattern mean themselves."""
    assert check_must_not_contain("unguaranteed a.b", ["guaranteed", "a.b", "a+b"]) == {
        "pass": False,
        "found": ["guaranteed", "a.b"],
    }


def test_one_expected_document_is_enough() -> None:
    """Patterns are parts of document ids in any case; what was found is named once, in the order asked."""
    docs = [{"docId": "BK-02-lcl"}, {"docId": "CU-01"}]
    assert check_expected_docs(docs, ["zz", "cu-", "bk-02", "cu-"]) == {
        "pass": True,
        "expected": ["zz", "cu-", "bk-02", "cu-"],
        "found": ["cu-", "bk-02"],
    }
    assert check_expected_docs(docs, ["zz"])["pass"] is False


def test_no_expected_document_passes() -> None:
    """An empty list asks for nothing, also when nothing came."""
    assert check_expected_docs([], []) == {"pass": True, "expected": [], "found": []}


@pytest.mark.parametrize(
    ("sources", "citations", "passed"), [([], [], False), (["s"], [], True), ([], ["c"], True)]
)
def test_a_source_or_a_citation_is_enough(sources: list[str], citations: list[str], passed: bool) -> None:  # noqa: FBT001 - a table's column
    """Either counts; by default the number of chunks is unknown and the check applies."""
    assert check_citation_present(sources, citations) == {
        "pass": passed,
        "applicable": True,
        "source_count": len(sources),
        "citation_count": len(citations),
    }


def test_without_chunks_there_is_nothing_to_cite() -> None:
    """Zero chunks make the check inapplicable and passed, with the document's reason."""
    assert check_citation_present([], [], 0) == {
        "pass": True,
        "applicable": False,
        "source_count": 0,
        "citation_count": 0,
        "reason": "No chunks retrieved — citation N/A",
    }


@pytest.mark.parametrize("chunks", [None, "0", False, [], -1, 3, float("nan")])
def test_only_the_number_zero_is_zero_chunks(chunks: Any) -> None:
    """Null, text and truth values leave the number unknown."""
    assert check_citation_present([], [], chunks)["applicable"] is True


def test_out_of_scope_needs_one_decline_signal() -> None:
    """One of the phrases is enough, and those found are named."""
    found = check_oos_handling(
        "Sorry, I CANNOT help.", is_oos=True, decline_signals=["cannot help", "no information"]
    )
    assert found == {"pass": True, "applicable": True, "signals_found": ["cannot help"]}
    assert check_oos_handling("Sure!", is_oos=True, decline_signals=["cannot help"])["pass"] is False


def test_out_of_scope_without_signals_never_passes() -> None:
    """No phrase is asked for, so none can be found."""
    assert check_oos_handling("I cannot help.", is_oos=True, decline_signals=[]) == {
        "pass": False,
        "applicable": True,
        "signals_found": [],
    }


def test_in_scope_the_decline_check_does_not_apply() -> None:
    """An in-scope query passes it, not applicable."""
    found = check_oos_handling("I cannot help.", is_oos=False, decline_signals=["cannot help"])
    assert found == {"pass": True, "applicable": False, "signals_found": []}


@pytest.mark.parametrize(("latency", "passed"), [(0, True), (4999, True), (5000, False), (10**30, False)])
def test_latency_must_be_below_the_threshold(latency: int, passed: bool) -> None:  # noqa: FBT001 - a table's column
    """Exactly 5000 ms is too slow."""
    check = check_latency(latency)
    assert (check["pass"], check["threshold_ms"]) == (passed, 5000)


def test_a_good_answer_passes_all_six() -> None:
    """The six keys stand in the document's order, and all pass."""
    checks = run_checks(BASELINE, reply())
    assert tuple(checks) == CHECKS
    assert all(check["pass"] for check in checks.values())


def test_the_servers_latency_counts_before_the_clients() -> None:
    """The check looks at metadata.latencyMs, and at the client's clock only without it."""
    slow = reply(metadata={"latencyMs": 9000})
    assert run_checks(BASELINE, slow)["latency"]["latency_ms"] == 9000
    assert run_checks(BASELINE, reply(metadata={}))["latency"]["latency_ms"] == 150


@pytest.mark.parametrize("claim", ["12", None, True, -5, float("inf"), 10**40])
def test_an_unbelievable_server_latency_gives_way_to_the_clients(claim: Any) -> None:
    """What is no number in range is not taken for one."""
    assert run_checks(BASELINE, reply(metadata={"latencyMs": claim}))["latency"]["latency_ms"] == 150


def test_null_fields_count_as_empty() -> None:
    """An answer whose every field is null fails what asks for something, without a crash."""
    checks = run_checks(BASELINE, reply(**dict.fromkeys(RESPONSE)))
    verdicts = {name: check["pass"] for name, check in checks.items()}
    assert verdicts == {
        "must_contain": False,
        "must_not_contain": True,
        "expected_docs": False,
        "citation_present": False,
        "oos_handling": True,
        "latency": True,
    }


def test_a_failed_query_fails_all_checks() -> None:
    """Without an answer each check says so in its own keys, and the client's latency stays."""
    failed = {"response": None, "latency_ms": 30004, "status_code": 0, "error": "Timeout after 30s"}
    assert run_checks(BASELINE, failed) == {
        "must_contain": {"pass": False, "total": 1, "matched": 0, "missing": ["2 working hours"]},
        "must_not_contain": {"pass": False, "found": ["(query failed)"]},
        "expected_docs": {"pass": False, "expected": ["SL-01"], "found": []},
        "citation_present": {"pass": False, "applicable": True, "source_count": 0, "citation_count": 0},
        "oos_handling": {"pass": False, "applicable": False, "signals_found": []},
        "latency": {"pass": False, "latency_ms": 30004, "threshold_ms": 5000},
    }


def test_optional_lists_may_be_absent_from_a_baseline() -> None:
    """A baseline without oos_decline_signals is checked as one with none."""
    assert run_checks({**BASELINE, "is_oos": True}, reply())["oos_handling"]["pass"] is False
