"""Holds result keys, overall verdict and outcome against the document."""

from typing import Any

from shared.contracts.queries import QueryResult
from shared.names import Outcome
from tests.support.query_results import timed_out
from worker.queries.checks import outcome, overall_pass, query_result
from worker.queries.reply import Reply

BASELINE: dict[str, Any] = {
    "id": "Q-41",
    "category": "edge_case",
    "query": "Weather?",
    "is_oos": True,
    "expected_docs": [],
    "must_contain": [],
    "must_not_contain": ["sunny"],
    "oos_decline_signals": ["cannot help"],
    "notes": "kept, not judged",
}


def test_a_result_has_the_documents_nine_keys() -> None:
    """Keys, order and types are those of the contract."""
    result = query_result(BASELINE, Reply({"answer": "I cannot help."}, 7, 200))
    assert list(result) == [
        "id",
        "category",
        "query",
        "is_oos",
        "response",
        "checks",
        "overall_pass",
        "client_latency_ms",
        "error",
    ]
    QueryResult.model_validate(result)


def test_declining_with_chunks_and_no_citation_fails() -> None:
    """The citation check applies to out-of-scope queries too, when there was something to cite."""
    answer = {"answer": "I cannot help.", "metadata": {"chunksRetrieved": 2}}
    result = query_result(BASELINE, Reply(answer, 7, 200))
    assert not result["overall_pass"]
    answer["metadata"] = {"chunksRetrieved": 0}
    assert query_result(BASELINE, Reply(answer, 7, 200))["overall_pass"]


def test_a_slow_answer_fails_as_a_whole() -> None:
    """Latency is one of the checks that count."""
    answer = {"answer": "I cannot help.", "metadata": {"chunksRetrieved": 0, "latencyMs": 5000}}
    assert not query_result(BASELINE, Reply(answer, 7, 200))["overall_pass"]


def test_checks_that_do_not_apply_do_not_count() -> None:
    """Only applicable checks decide; without any there is no pass."""
    assert overall_pass({"a": {"pass": True}, "b": {"pass": False, "applicable": False}})
    assert not overall_pass({"a": {"pass": True}, "b": {"pass": False, "applicable": True}})
    assert not overall_pass({"b": {"pass": False, "applicable": False}})


def test_outcomes_tell_verdicts_from_failures() -> None:
    """Passed, failed, and error for what could not be judged."""
    good = query_result(BASELINE, Reply({"answer": "I cannot help.", "sources": [1]}, 7, 200))
    bad = query_result(BASELINE, Reply({"answer": "sunny"}, 7, 200))
    none = query_result(BASELINE, timed_out(30_000))
    assert [outcome(result) for result in (good, bad, none)] == [
        Outcome.PASSED,
        Outcome.FAILED,
        Outcome.ERROR,
    ]
    assert none["overall_pass"] is False
