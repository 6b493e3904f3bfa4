"""What pages of `proctor view` say of runs: rates, changes, filters, history, what may be done with them."""

from dataclasses import replace
from typing import Any

import pytest

from producer.fleet_state import Overview
from producer.view.cards import RunPace, card_of
from producer.view.desk import RunsLook, fleet_box
from producer.view.history import history_of
from producer.view.html_pages import RunsView, runs_page
from producer.view.links import Links
from producer.view.run_lines import PAGE, RunsQuery, lines_of, table_of
from shared.kinds import CASES
from shared.names import RunState
from shared.runs import RunInfo
from tests.support.case_pages import run_info

HOSTILE = "</title><script>window.pwned = 1</script>\x1b\u202e"


def run(number: int, passed: int, failed: int = 0, *, name: str = "desk", **changes: Any) -> RunInfo:
    """A run of cases; higher numbers are newer."""
    made = run_info(["m"], passed + failed)
    snapshot = {**made.snapshot, "name": name}
    tally = {"passed": passed, "failed": failed}
    changed = {"run": f"run-{number}", "created_ms": 1_000 * number, "tally": tally, "snapshot": snapshot}
    return replace(made, **{**changed, **changes})


def test_a_change_is_that_since_the_run_before_of_the_name() -> None:
    """Runs of other names stand between; only what is more than chance has a tone."""
    runs = [run(4, 90, 10), run(3, 1, 1, name="other"), run(2, 50, 50), run(1, 52, 48)]
    changes = [line.change and line.change[:2] for line in lines_of(runs, [], 9_000)]
    assert changes == [("▲ 40.0 points", "p"), None, ("▼ 2.0 points", ""), None]


def test_cases_count_where_answers_count_together() -> None:
    """Mark and rate are those of the cases, in the table and on the page; unread, there is no rate."""
    answers = run(1, 2, 2)
    snapshot = {**answers.snapshot, "cases": {**answers.snapshot["cases"], "has_quorums": True}}
    unread = replace(answers, snapshot=snapshot)
    read = replace(unread, verdicts={"passed": 1})
    table = lines_of([read, unread, answers], [], 0)
    assert [(line.letter, line.rate_text) for line in table] == [("p", "100.0%"), ("f", ""), ("f", "50.0%")]
    card = card_of(read, RunPace(), 5_000)
    assert (card.letter, card.facts[0]) == ("p", ("Passed", "100.0%, 95%: 21 to 100"))


def test_filters_count_what_they_would_show() -> None:
    """A chip's number is that beside what else is chosen; a page has so many runs and no more."""
    lines = lines_of([run(at, 1, at % 2, name=f"bench {at % 3}") for at in range(250)], [], 0)
    table = table_of(lines, RunsQuery(q="BENCH", name="bench 0", page=9))
    assert (table.found, table.total, table.pages, len(table.lines)) == (84, 250, 1, 84)
    assert [(chip.value, chip.number) for chip in table.chips] == [("good", 42), ("bad", 42)]
    assert len(table_of(lines, RunsQuery()).lines) == PAGE


def test_history_names_what_changed() -> None:
    """A point for each run with a rate, and the settings that differ from those of the run before."""
    runs = [run(3, 8, 2), run(2, 5, 5), run(1, 0, 0)]
    found = history_of("desk", runs, lambda info: {"temperature": 0.1 if info.run == "run-2" else 0.7})
    assert found
    assert [(point.run, point.changed) for point in found.points] == [
        ("run-2", ""),
        ("run-3", "temperature 0.1 → 0.7"),
    ]
    assert history_of("desk", runs[1:], lambda _info: {}) is None


@pytest.mark.parametrize(
    ("state", "tally", "actions"),
    [
        (RunState.RUNNING, {}, ["pause", "cancel"]),
        (RunState.PAUSED, {}, ["resume", "cancel"]),
        (RunState.CANCELLING, {}, []),
        (RunState.FINISHED, {"passed": 2}, []),
        (RunState.FINISHED, {"passed": 1, "error": 1}, ["retry"]),
    ],
)
def test_a_card_offers_what_the_state_allows(
    state: RunState, tally: dict[str, int], actions: list[str]
) -> None:
    """What a button would be refused for is not offered."""
    card = card_of(run(1, 2, state=state, tally=tally), RunPace(), 5_000)
    assert [name for name, _ in card.actions] == actions


def test_names_are_only_text() -> None:
    """A hostile name is shown as it is written, in the table, the card and the fleet."""
    info = run(1, 1, 1, name=HOSTILE, state=RunState.RUNNING, kind=CASES)
    look = RunsLook([info], Overview((), (), 0), ())
    card = card_of(info, RunPace(why=HOSTILE), 5_000)
    table = table_of(lines_of([info], [], 5_000), RunsQuery(name=HOSTILE))
    page = runs_page(RunsView(table, RunsQuery(name=HOSTILE), [card], fleet_box(look)), Links("t")).decode()
    assert page.count("&lt;script&gt;window.pwned") >= 3
    assert "<script>" not in page
