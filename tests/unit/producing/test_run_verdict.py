"""The verdict on a run: a mark, a sentence and the next command, for every kind and state."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from producer.document import document_of, report_of, totals_of
from producer.documents import AnyRun, JudgedGate, WrittenFile
from producer.report.run_verdict import next_command
from shared.kinds import CASES, Kind, all_kinds
from shared.names import RunState
from tests.support.documents import with_summary
from tests.unit.cases.test_case_reports import run_info, standard
from tests.unit.producing.test_github import run_of


def document(kind: Kind, **changes: Any) -> AnyRun:
    """The document of a finished run with failures of every sort, changed."""
    info, rows = run_of(kind)
    totals = totals_of(kind)
    totals.add(rows)
    return structs.replace(document_of(info, totals), **changes)


@pytest.mark.parametrize("kind", all_kinds(), ids=str)
def test_each_kind_has_a_verdict_and_a_next_command(kind: Kind) -> None:
    """A failure is a cross in red, and the command that lists failures has the run's id."""
    found = document(kind)
    verdict = report_of(found).verdict
    assert (verdict.mark, verdict.style) == ("✗", "red")
    assert "1 error" in verdict.sentence or "errors" in verdict.sentence
    assert next_command(found) == ("results", found.run_id, "--failed")


@pytest.mark.parametrize(
    ("changes", "mark", "command"),
    [
        ({"state": RunState.RUNNING, "exit": 0}, "●", ("watch", "r")),
        ({"state": RunState.PAUSED, "exit": 0}, "●", ("resume", "r")),
        ({"state": RunState.CANCELLED, "exit": 4}, "!", ("resume", "r")),
        ({"state": RunState.INCOMPLETE, "exit": 4}, "!", ("resume", "r")),
        ({"state": RunState.INCOMPLETE, "exit": 1}, "✗", ("results", "r", "--failed")),
        ({"state": RunState.ABORTED, "exit": 3}, "✗", ("retry", "r")),
        ({"state": "interrupted", "exit": 4}, "!", ("resume", "r")),
    ],
)
def test_states_have_marks_of_their_own(
    changes: Mapping[str, Any], mark: str, command: tuple[str, ...]
) -> None:
    """What goes on, what was cut short and what failed differ without colours."""
    found = document(CASES, run_id="r", **changes)
    assert report_of(found).verdict.mark == mark
    assert next_command(found) == command


def test_an_aborted_run_is_retried_where_items_ended_in_errors() -> None:
    """`resume` asks what was not asked; items that ended in an error are asked again by `retry`."""
    aborted = document(CASES, run_id="r", state=RunState.ABORTED, exit=3)
    assert next_command(aborted) == ("retry", "r")
    without_errors = structs.replace(aborted, counts=structs.replace(aborted.counts, error=0))
    assert next_command(without_errors) == ("resume", "r")


def test_a_good_run_is_reported_next() -> None:
    """Without failures the next step is a report, unless one was written."""
    info, totals = run_info(), totals_of(CASES)
    totals.add(standard()[2:])
    good = document_of(replace(info, total=2), totals)
    assert str(report_of(good).verdict) == "✓ 2 of 2 passed (100.0%, 95% interval 34.2-100.0%)"
    assert next_command(good) == ("report", good.run_id, "-o", "report.html")
    assert next_command(structs.replace(good, files=(WrittenFile("html", "a.html"),))) == ()


def test_what_has_no_verdict_has_no_rate() -> None:
    """Errors alone are no 0%, an unchecked answer is not missing, and beside answers both rates are given."""
    totals = totals_of(CASES)
    totals.add(standard()[1:2])
    nothing = document_of(replace(run_info(), total=1), totals)
    assert report_of(nothing).verdict.sentence == "No answers, 1 error"
    unchecked = with_summary(nothing, errors={"check_unavailable": 1})
    assert report_of(unchecked).verdict.sentence == "No verdicts, 1 error"
    gates = tuple(
        JudgedGate("pass_rate<0.9", "pass_rate", 0.5, "<", 0.9, met=met, text="gate …")
        for met in (False, True)
    )
    sentence = report_of(document(CASES, gates=gates)).verdict.sentence
    assert sentence.startswith("2 of 4 passed (50.0% of all, 66.7% of 3 answered), 1 failed, 1 error")
    assert sentence.endswith(", 1 gate failed")


def test_freeform_outputs_are_not_checked() -> None:
    """Where nothing was checked nothing has passed."""
    totals = totals_of(CASES)
    totals.add(standard()[2:])
    found = document_of(replace(run_info("freeform"), total=2), totals)
    assert str(report_of(found).verdict) == "✓ 2 outputs, not checked: the bench has no criteria"
