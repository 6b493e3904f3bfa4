"""What a terminal shows of single items of each kind: whole, as two lines, and before and after a retry."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from producer import kinds
from producer.cli.item_view import print_change, print_records, print_whole
from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import Output
from producer.report.shown_item import ShownItem
from shared.contracts.case_run import CasePayload
from shared.names import Outcome
from shared.runs import RunInfo
from tests.support.case_pages import EXPECTED, GOOD, WRONG, item_row, run_info
from tests.support.query_results import HOSTILE, answered, baseline, timed_out
from tests.support.run_infos import info as turns_info
from tests.support.run_pages import queries_run, query_rows, thread_rows, with_messages
from worker.queries.checks import query_result

CASE = CasePayload(0, "m", "Read ticket 1.", id="ticket", criteria={"expected": EXPECTED})


def shown(info: RunInfo, rows: Sequence[Any]) -> list[ShownItem]:
    """Makes items of rows."""
    return list(map(kinds.of(info.kind).shown(info), rows))


def cases(*outputs: str | None) -> list[ShownItem]:
    """Answers to one case."""
    rows = [item_row(at, CASE, output, ms=120, cost=0.001) for at, output in enumerate(outputs)]
    return shown(run_info(["m"], 1), rows)


def test_a_case_is_shown_with_all_that_was_asked_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """Question, answer, reason, stages and what was expected, in this order, each under its own name."""
    print_whole(Output(GlobalOptions()), cases(WRONG))
    text = capsys.readouterr().out
    assert text.splitlines()[:2] == [
        "✗ ticket · m  failed · 0.12s · $0.0010",
        '  /city is "Lyon", expected "Paris", and 1 more',
    ]
    found = [text.index(f"\n  {word}\n") for word in ("system", "user", "answer", "checks", "expected")]
    assert found == sorted(found)
    assert "    Read ticket 1.\n" in text
    assert "    ✗ equality: " in text


def test_a_list_has_two_lines_of_each_item(capsys: pytest.CaptureFixture[str]) -> None:
    """The second line has the reason and the answer; what has no answer has its error."""
    print_records(Output(GlobalOptions()), cases("I would rather not say.", None))
    assert capsys.readouterr().out.splitlines() == [
        "✗ ticket · m  0.12s  $0.0010",
        "  no JSON object in the output  → I would rather not say.",
        "! ticket · m  3 attempts",
        "  no answer within 120 s",
    ]


def test_a_change_has_the_question_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Both answers stand below it, with their verdicts."""
    print_change(Output(GlobalOptions()), *cases(WRONG, GOOD))
    text = capsys.readouterr().out
    assert text.startswith("✓ ticket · m  failed → passed\n")
    assert text.count("Read ticket 1.") == 1
    assert "\nbefore  ✗ failed · 0.12s · $0.0010\n" in text
    assert "\nnow  ✓ passed · 0.12s · $0.0010\n" in text


def test_hostile_text_cannot_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences of an answer are written out, in every form."""
    output = Output(GlobalOptions())
    items = cases(HOSTILE)
    print_whole(output, items)
    print_records(output, items)
    print_change(output, *items, *items)
    text = capsys.readouterr().out
    assert not {"\x1b", "\u202e", "\r"} & set(text)


def test_outputs_of_a_freeform_run_are_not_judged() -> None:
    """They have no mark, no reason and no checks."""
    info = run_info(["m"], 1, mode="freeform")
    [item] = shown(info, [item_row(0, replace_criteria(CASE), "Paris", ms=1, cost=None)])
    assert (item.mark, item.word, item.reason, item.checks) == ("·", "not checked", "", ())


def replace_criteria(case: CasePayload) -> CasePayload:
    """The case without anything to check."""
    return CasePayload(case.case, case.model, case.input, id=case.id)


def test_a_query_is_shown_with_its_checks_and_sources() -> None:
    """Its name is its id, and what does not apply is left out."""
    rows = query_rows([answered("Q-001", "I do not know")])
    [item] = shown(queries_run(1), rows)
    assert (item.name, item.asked[0].who) == ("Q-001", "query")
    assert [spoken.who for spoken in item.answered] == ["answer", "sources"]
    assert not [line for line in item.checks if "in scope" in line]


def test_a_query_without_an_answer_has_its_error_and_no_marks(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was checked: its keywords are listed as they are, and those of a wrong answer are marked."""
    asked = baseline("Q-001", must_contain=["Paris"])
    wrong = answered("Q-002", "no", must_contain=["Paris"])
    lost, failed = (
        row._replace(payload=json.dumps(asked).encode())
        for row in query_rows([query_result(asked, timed_out(30_004)), wrong])
    )
    print_whole(Output(GlobalOptions()), shown(queries_run(2), [lost, failed]))
    text, _, marked = capsys.readouterr().out.partition("✗ Q-002")
    assert "✗" not in text
    assert "\n  required\n    Paris\n" in text
    assert "\n  api_timeout: Timeout after 30s\n" in text
    assert "\n  required\n    ✗ Paris\n" in marked


def test_a_turn_is_shown_with_its_decision_and_summary() -> None:
    """Its message is what was said; the summary after it has its fields."""
    rows = with_messages(thread_rows("t", [{"message": "What about 0?"}]), "t")
    [item] = shown(turns_info(total=1), rows)
    assert (item.name, item.outcome, item.asked) == ("t#0", Outcome.DECIDED, [("user", "What about 0?")])
    assert [spoken.who for spoken in item.wanted[:2]] == ["decision", "arc"]
    assert "(rule " in item.wanted[0].text


def test_the_time_before_a_retry_is_no_part_of_a_duration() -> None:
    """Neither of one that has ended nor of one that goes on."""
    info = replace(turns_info(), idle_ms=500)
    assert (info.duration_ms, replace(info, finished_ms=None).elapsed_ms(3_000)) == (1_500, 500)
