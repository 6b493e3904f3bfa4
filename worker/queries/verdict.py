"""From a baseline and a reply to the result of the query: nine keys, one verdict, one outcome."""

from typing import Any

from shared.contracts.query_vocabulary import failed
from shared.names import Outcome
from worker.queries.checks import CheckResult, Fold, run_checks
from worker.queries.reply import Reply


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
