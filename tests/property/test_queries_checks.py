"""Explores replies and checks with hostile answers: nothing crashes, every result obeys the contract."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.queries import QueryResult
from shared.contracts.query_vocabulary import CATEGORIES
from shared.upstream.failure_reasons import FailureReason
from worker.queries.checks import Fold, fold_apostrophes, outcome, query_result, run_checks
from worker.queries.reply import Reply, read_reply
from worker.upstream.retry import MIN_QUERY_WAIT_S, QueryRetryPolicy, query_retry_wait_s
from worker.upstream.retry_after import MAX_WAIT_S, read_retry_after

NUMBERS = st.integers() | st.floats() | st.integers(min_value=10**18, max_value=10**40)
LEAVES = st.none() | st.booleans() | NUMBERS | st.text(max_size=40)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ("answer", "sources", "citations", "relatedDocs", "confidence", "metadata")
METADATA = st.fixed_dictionaries({}, optional={"chunksRetrieved": VALUES, "latencyMs": VALUES})
DOCUMENTS = st.lists(st.fixed_dictionaries({"docId": VALUES}) | VALUES, max_size=4)
RESPONSES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(FIELDS, VALUES),
        "metadata": METADATA | VALUES,
        "relatedDocs": DOCUMENTS | VALUES,
    },
)
WORDS = st.lists(st.text(min_size=1, max_size=8), max_size=4)
BASELINES = st.fixed_dictionaries(
    {
        "id": st.text(min_size=1),
        "category": st.sampled_from(CATEGORIES),
        "query": st.text(min_size=1),
        "is_oos": st.booleans(),
        "expected_docs": WORDS,
        "must_contain": WORDS,
        "must_not_contain": WORDS,
        "oos_decline_signals": WORDS,
    }
)


@given(baseline=BASELINES, response=RESPONSES | st.none(), latency=st.integers(0, 10**6))
def test_any_answer_is_judged(
    baseline: dict[str, Any], response: dict[str, Any] | None, latency: int
) -> None:
    """Whatever the fields hold, the result obeys the contract and its verdict follows from its checks."""
    result = query_result(baseline, Reply(response, latency, 200))
    QueryResult.model_validate(result)
    applicable = [check for check in result["checks"].values() if check.get("applicable", True)]
    assert result["overall_pass"] == all(check["pass"] for check in applicable)


APOSTROPHES = "'\u2018\u2019\u201b\u02bc\u2032\uff07`\u00b4"
QUOTED = st.text(alphabet=f"aB c{APOSTROPHES}", min_size=1, max_size=6)


@given(answer=QUOTED, words=st.lists(QUOTED, max_size=3))
def test_folded_apostrophes_are_those_of_plain_texts(answer: str, words: list[str]) -> None:
    """With the option the checks are those of texts in which every apostrophe is plain."""
    plain = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))

    def judged(text: str, keywords: list[str], fold: Fold) -> list[bool]:
        baseline = {"must_contain": keywords, "must_not_contain": keywords, "is_oos": True}
        baseline["oos_decline_signals"] = keywords
        found = run_checks(baseline, {"response": {"answer": text}}, fold=fold)
        return [found[name]["pass"] for name in ("must_contain", "must_not_contain", "oos_handling")]

    folded = judged(answer, words, fold_apostrophes)
    assert folded == judged(answer.translate(plain), [word.translate(plain) for word in words], str.casefold)


@given(baseline=BASELINES, error=st.text(), latency=VALUES)
def test_a_failed_query_passes_nothing(baseline: dict[str, Any], error: str, latency: object) -> None:
    """All six checks fail, whatever else is known of it."""
    checks = run_checks(baseline, {"response": None, "error": error, "latency_ms": latency})
    assert not any(check["pass"] for check in checks.values())


@given(
    baseline=st.dictionaries(st.sampled_from([*FIELDS, "must_contain", "is_oos"]), VALUES), result=RESPONSES
)
def test_checks_survive_baselines_and_results_of_any_shape(
    baseline: dict[str, Any], result: dict[str, Any]
) -> None:
    """Called with what is no baseline and no result, the checks still answer with their six keys."""
    assert len(run_checks(baseline, {"response": result, **result})) == 6


@given(
    status=st.sampled_from([200, 200, 200, 204, 400, 429, 500]),
    body=st.binary(max_size=200)
    | RESPONSES.map(lambda response: json.dumps(response).encode())
    | RESPONSES.map(lambda response: json.dumps(response).encode()[:-3]),
)
def test_any_body_is_an_answer_or_a_failure(status: int, body: bytes) -> None:
    """Never both, never neither; an answer can be stored and read again by strict readers."""
    reply = read_reply(status_code=status, body=body, latency_ms=1)
    assert (reply.response is None) == (reply.error is not None) == (reply.failure is not None)
    if reply.response is not None:
        assert "answer" in reply.response
        assert json.loads(msgspec.json.encode(reply.response)) == reply.response
        json.dumps(reply.response, allow_nan=False, ensure_ascii=False).encode()


@given(
    delay=st.floats(0, 1e9),
    retries=st.integers(0, 10),
    errors=st.integers(0, 5),
    failure=st.sampled_from([None, *FailureReason]),
    asked=st.none() | st.floats(0, 1e300),
)
def test_waits_are_bounded(
    delay: float, retries: int, errors: int, failure: FailureReason | None, asked: float | None
) -> None:
    """A wait is from a second to a day, at least what was asked within that, and retries end."""
    policy = QueryRetryPolicy(delay_s=delay, retry_errors=errors)
    wait = query_retry_wait_s(policy, failure, retries=retries, retry_after_s=asked)
    if wait is None:
        return
    assert failure is not None
    assert retries < max(policy.max_retries, errors)
    assert MIN_QUERY_WAIT_S <= wait <= MAX_WAIT_S
    assert wait >= min(asked or 0, MAX_WAIT_S)


@given(header=st.none() | st.text(), now=st.floats(0, 4e9))
def test_any_retry_after_is_a_bounded_number_or_ignored(header: str | None, now: float) -> None:
    """No header crashes the reading."""
    seconds = read_retry_after(header, now_s=now)
    assert seconds is None or 0 <= seconds <= MAX_WAIT_S


@given(baseline=BASELINES, response=RESPONSES)
def test_the_same_answer_gives_the_same_result(baseline: dict[str, Any], response: dict[str, Any]) -> None:
    """Judging changes nothing and depends on nothing else."""
    before = repr((baseline, response))
    first = query_result(baseline, Reply(response, 1, 200))
    second = query_result(baseline, Reply(response, 1, 200))
    assert repr(first) == repr(second)
    assert repr((baseline, response)) == before
    assert outcome(first) is outcome(second)
