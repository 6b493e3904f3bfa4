"""The check `max_latency_s`: the time of the call, where it is recorded."""

from tests.support.checking import outcome
from worker.validation.checks import Answer


def test_it_bounds_the_recorded_figure() -> None:
    assert outcome({"max_latency_s": 1.5}, answer=Answer(latency_s=1.5)).passed is True
    assert outcome({"max_latency_s": 1.5}, answer=Answer(latency_s=1.51)).passed is False


def test_it_is_skipped_without_a_figure() -> None:
    row = outcome({"max_latency_s": 1.5})
    assert (row.score, row.passed) == (None, None)
    assert row.reason.startswith("not recorded: the call ")
