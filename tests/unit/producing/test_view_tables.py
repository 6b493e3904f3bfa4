"""What pages of `proctor view` say of runs: rates, changes, filters, history, what may be done with them."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from proctor.app import served
from producer.fleet_state import Bounds, Overview
from producer.report.comparison.configurations import case_configuration
from producer.view.cards import RunPace, card_of
from producer.view.desk import RunsLook, fleet_box
from producer.view.history import history_of
from producer.view.html_pages import RunsView, message_page, runs_page
from producer.view.links import Links
from producer.view.run_lines import PAGE, RunsQuery, lines_of, table_of
from shared.kinds import CASES
from shared.names import RunState
from shared.runs import RunInfo
from shared.upstream.limits import Limits, ScopeState
from shared.upstream.model_target import ModelTarget
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


def test_a_function_that_was_served_is_no_other_setting() -> None:
    """Its port differs each time: a history draws no line, and the fleet has no line of it after the run."""
    with served(str.upper) as one, served(str.upper) as other:
        assert one != other
        settings = [case_configuration(called(place)) for place in (one, other, "http://127.0.0.1:1/v1")]
    assert (settings[0] == settings[1], settings[1] == settings[2]) == (True, False)
    states = [
        ScopeState("f", "", flying, None, 0, "closed", 0, 0, None, place=place)
        for flying, place in ((0, one), (1, one), (0, "http://127.0.0.1:1/v1"))
    ]
    bounds = [Bounds(state.key, Limits(), state) for state in states]
    lines = fleet_box(RunsLook([], Overview((), (), 0), bounds)).limits
    assert [line.text for line in lines] == ["1 in flight", "0 in flight"]


def called(place: str) -> RunInfo:
    """A run whose model is called at a place."""
    made = run(1, 1)
    models = {"f": msgspec.to_builtins(ModelTarget("f", place))}
    return replace(made, snapshot={**made.snapshot, "cases": {**made.snapshot["cases"], "models": models}})


def test_what_went_wrong_leads_back() -> None:
    """Commands are shown as such, and a button leads to the runs."""
    page = message_page("No", "no run is called <x>", "`proctor runs` lists them", Links("t")).decode()
    assert "<code>proctor runs</code> lists them" in page
    assert '<a class="btn" href="/?token=t">All runs</a>' in page
    assert "&lt;x&gt;" in page


def test_names_are_only_text() -> None:
    """A hostile name is shown as it is written, in the table, the card and the fleet."""
    info = run(1, 1, 1, name=HOSTILE, state=RunState.RUNNING, kind=CASES)
    look = RunsLook([info], Overview((), (), 0), ())
    card = card_of(info, RunPace(why=HOSTILE), 5_000)
    table = table_of(lines_of([info], [], 5_000), RunsQuery(name=HOSTILE))
    page = runs_page(RunsView(table, RunsQuery(name=HOSTILE), [card], fleet_box(look)), Links("t")).decode()
    assert page.count("&lt;script&gt;window.pwned") >= 3
    assert "<script>" not in page
