"""Filters of rows: what they mean, what is wrong with one, and what they read of the rows of each kind."""

import json
from typing import Any

import pytest

from producer import kinds
from producer.row_filter import FIELDS, FilterError, RowFacts, parse_filter
from producer.view.params import GivenFilter
from producer.view.run_lines import RUNS
from shared.codecs.item_rows import ItemRow
from shared.kinds import CASES, QUERIES, TURNS
from shared.runs import TurnRow
from tests.support.tree import ROOT

FACTS = RowFacts(
    status="failed_checks",
    outcome="failed",
    reason="does not contain Paris",
    model="openai/gpt-4o",
    tags=["slow", "de"],
    failed_checks=["contains: Paris"],
    metadata={"level": 3, "lang": "de", "is_new": True, "places": ["a", "b"]},
    score=0.5,
    latency_ms=2_500,
    cost_usd=0.002,
    disagreement=0.67,
)
RESULT: dict[str, Any] = {
    "model": "m",
    "case_id": "fr",
    "case_index": 4,
    "status": "failed_checks",
    "message": "no Paris",
    "tags": ["a"],
    "metadata": {"lang": "fr"},
    "score": 0.5,
    "raw_output": "Lyon",
    "metrics": {"first_token_ms": 40},
    "stages": [{"stage": "fuzzy", "outcome": "pass", "reason": "", "detail": {"verdict": "pass"}}],
    "checks": [
        {"name": "contains: Paris", "passed": False, "detail": {}},
        {"name": "r", "passed": True, "detail": {"votes": [{"verdict": "pass"}, {"verdict": "fail"}]}},
    ],
}


@pytest.mark.parametrize(
    "text",
    [
        "failed",
        "failed_checks and not passed",
        "status = failed_regex, failed_checks",
        "outcome != passed",
        "reason ~ PARIS and reason !~ timeout",
        "model = openai/gpt-4o",
        "tag = slow and tag != fast",
        "tag ~ slo",
        'check = "contains: Paris"',
        "metadata.lang = de and metadata.level >= 3 and metadata.is_new = true and metadata.places = b",
        "metadata.lang and not metadata.other and metadata.other != x",
        "score = 0.4..0.6 and score = 50% and score != 0.6..",
        "score < 0.6 and score <= 0.5 and score > 0.4 and score >= 0.5",
        "latency > 2s and latency < 1m and latency = 2500ms and cost <= $0.01",
        "disagreement > 0.5",
        "passed or failed and (passed or (tag = de))",
        "not (first_token < 1s) and first_token != 3s and not error and not cached and cached = no",
    ],
)
def test_a_row_meets_a_condition(text: str) -> None:
    """And does not meet its opposite."""
    assert parse_filter(text).matches(FACTS)
    assert not parse_filter(f"not ({text})").matches(FACTS)


@pytest.mark.parametrize(
    ("text", "column", "what", "hint"),
    [
        ("failed and", 11, "a condition is missing", "such as"),
        ("scor < 1", 1, "no field is called 'scor'", "did you mean 'score'?"),
        ("status = failed_regx", 10, "no value of status is called 'failed_regx'", "'failed_regex'"),
        ("faild", 1, "no field or status is called 'faild'", "'failed'"),
        ("failed tag = x", 8, "`and` or `or` is missing", "and tag"),
        ("(failed", 8, "a closing parenthesis is missing", "`)`"),
        ("latency > 200", 11, "latency is compared with '200'", "350ms or 2s"),
        ("score < 0.1, 0.2", 14, "several values", "< takes one"),
        ("score ~ 3", 1, "score is a number", "compare it with ="),
        ("tag < 3", 1, "tag is a text", "compare it with ="),
        ("metadata.x > y", 14, "'y' is no number", "one number"),
        ("tag =", 6, "a value is missing", "quote"),
        ("tag = 'x", 7, "a quote is not closed", "quote"),
        ("(" * 60, 51, "nested too deeply", "at most 50"),
        ("x" * 3_000, 2_000, "longer than 2,000 characters", "shorter"),
    ],
)
def test_what_is_wrong_is_said_with_its_column(text: str, column: int, what: str, hint: str) -> None:
    """In one line, with how to mend it."""
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert (caught.value.column, caught.value.exit_code) == (column, 2)
    assert what in caught.value.message
    assert hint in caught.value.hint


def selected(kind: Any, row: Any, text: str) -> bool:
    """Whether a row of a kind meets a condition."""
    condition = parse_filter(text)
    return condition.matches(kinds.of(kind).facts(condition.fields)(row))


@pytest.mark.parametrize(
    "text",
    [
        "id = fr and model = m and tag = a and score = 0.5 and reason ~ paris",
        "metadata.lang = fr",
        'check = "contains: Paris"',
        "disagreement = 1",
        "output = Lyon and first_token = 40ms",
        "failed and latency = 7ms and cost = 0.1 and attempts = 2 and cached",
    ],
)
def test_a_case_is_read_as_far_as_a_filter_needs(text: str) -> None:
    """Also one whose line is an error around its result."""
    row = ItemRow(4, "fc", json.dumps(RESULT).encode(), attempts=2, latency_ms=7, cost_usd=0.1)
    assert selected(CASES, row, text)
    error = {"error": {"code": "check_unavailable", "message": "no judge for paris"}, "result": RESULT}
    assert selected(
        CASES, row._replace(code="xc", line=json.dumps(error).encode()), text.replace("failed", "error")
    )


def test_rows_without_a_result_are_read_by_their_input() -> None:
    """Poisoned and skipped cases, queries and turns."""
    case = b'{"case":4,"model":"m","input":"Hi","tags":["a"]}'
    assert selected(CASES, ItemRow(4, "", case), "skipped and id = 5 and tag = a")
    assert selected(CASES, ItemRow(4, "xp", case), "error = poison and model = m")
    query = b'{"id":"Q-1","category":"sla","query":"?"}'
    assert selected(QUERIES, ItemRow(0, "", query), "skipped and category = sla")
    error = b'{"error":{"code":"api_timeout","message":"Timeout"},"result":{"id":"Q-1"}}'
    assert selected(QUERIES, ItemRow(0, "x", error), "error = api_timeout and id = Q-1")
    assert selected(TURNS, TurnRow(0, "", b"", 0, 0, 0), "skipped and not status")


def test_the_document_lists_every_field() -> None:
    """In the words of the table here."""
    document = (ROOT / "docs" / "exports.md").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {field.about} |" for name, field in FIELDS.items()]
    assert "\n".join(rows) in document


def test_runs_have_fields_of_their_own() -> None:
    """As docs/view.md lists them; a field of answers is an error with the fields that there are."""
    document = (ROOT / "docs" / "view.md").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {field.about} |" for name, field in RUNS.fields.items()]
    assert "\n".join(rows) in document
    with pytest.raises(FilterError, match="no field is called 'latency'") as caught:
        parse_filter("latency > 2s", RUNS)
    assert "there are: status, state, kind, name" in caught.value.hint
    assert "a time such as 30m, 2h or 3d" in GivenFilter.of("age < 5", RUNS).problem
