"""Figures of one model of a run: what its answers cost, and how fast they came."""

from typing import Any, Final

import pytest
from msgspec import to_builtins

from producer.cases.report.details import CaseFailures
from producer.cases.totals import CaseTotals
from producer.report.to_terminal import FailureText
from shared.codecs.item_rows import CACHED, ItemRow
from shared.contracts.case_run import CasePayload, encode_case
from tests.unit.cases.test_case_reports import run_info
from worker.executors.case_results import CallDetails, case_document, case_line
from worker.validation.pipeline import before_judge

USAGE: Final[dict[str, int | None]] = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def answer(index: int, *, flags: str = "p", cost: float | None = 0.5, code: str = "") -> ItemRow:
    """A row of an answer of 10 tokens in half a second."""
    item = CasePayload(index, "m", "Hi", 0, prompt_id="short", criteria={})
    document = case_document(item, before_judge({}, "Paris"), CallDetails(USAGE))
    line = case_line(document, code, "no key" if code else "")
    return ItemRow(index, flags, line, 1, 2, 1, 500, cost, encode_case(item))


def summary(*rows: ItemRow) -> dict[str, Any]:
    """The summary of a run with these rows."""
    totals = CaseTotals()
    totals.add(rows)
    found: dict[str, Any] = to_builtins(totals.summary(run_info()))
    return found


@pytest.mark.parametrize("cost", [0.5, None], ids=["priced", "unpriced"])
def test_an_answer_without_its_check_was_paid(cost: float | None) -> None:
    """An answer of which a check could not be asked counts with tokens and cost, as in its prompt's row."""
    found = summary(answer(0, flags="x", cost=cost, code="check_unavailable"))
    [model], [prompt] = found["models"], found["prompts"]
    assert found["cost_usd"] == model["cost_usd"] == prompt["cost_usd"] == cost
    assert (model["prompt_tokens"], model["completion_tokens"]) == (7, 3)


def test_an_error_without_an_answer_costs_nothing() -> None:
    """A call that was not answered has neither an unknown cost nor tokens."""
    [model] = summary(answer(0, flags="x", cost=None, code="upstream_connection"))["models"]
    assert model["cost_usd"] == 0


def test_cached_answers_do_not_raise_the_throughput() -> None:
    """Tokens per second are those of timed answers: 10 in half a second, with or without a cached one."""
    [model] = summary(answer(0), answer(1, flags=f"p{CACHED}"))["models"]
    assert model["throughput_tokens_per_s"] == 20


def test_errors_are_not_called_answers() -> None:
    """Errors with the same reason are counted as errors: there are no answers to speak of."""
    details = FailureText(CaseFailures())
    details.page([answer(index, flags="x", code="upstream_connection") for index in range(2)])
    assert "✗ 2 errors: no key" in details.text()
