"""The check `max_cost`: the price of the call, where it is recorded."""

from tests.support.checking import outcome
from worker.validation.checks import Answer


def test_it_bounds_the_recorded_figure() -> None:
    assert outcome({"max_cost": 0.01}, answer=Answer(cost_usd=0.01)).passed is True
    assert outcome({"max_cost": 0.01}, answer=Answer(cost_usd=0.0101)).passed is False


def test_it_is_skipped_without_a_figure() -> None:
    row = outcome({"max_cost": 0.01})
    assert (row.score, row.passed) == (None, None)
    assert row.reason.startswith("not recorded: the call ")
