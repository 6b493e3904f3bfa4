"""Answers to a case that count together are one item of a comparison, with the verdict on the case."""

from typing import Any

import msgspec

from producer.aggregate.compared_items import COMPARED_CASES, CaseLine, items_of


def line(case: int, repeat: int, outcome: str, **more: Any) -> Any:
    """A line of results."""
    result = {"model": "m", "case_index": case, "repeat_index": repeat, "passed": outcome == "passed"}
    found = {"outcome": outcome, "result": {**result, "repeat": {"times": 3, "pass": 2}}, **more}
    return msgspec.convert(found, CaseLine), None


def test_answers_are_one_item_with_the_verdict_on_their_case() -> None:
    """Costs are means of what was asked; what was not needed is no skipped item; what is open is none."""
    not_needed = msgspec.convert({"outcome": "skipped", "result": None, "reason": "certain"}, CaseLine)
    lines = [
        *(line(0, repeat, "passed", cost_usd=cost) for repeat, cost in ((0, 1.0), (1, 3.0))),
        (not_needed, None),
        *(line(1, repeat, outcome) for repeat, outcome in enumerate(("passed", "failed", "failed"))),
        *(line(2, repeat, outcome) for repeat, outcome in enumerate(("passed", "error", "failed"))),
        line(3, 0, "passed"),
    ]
    found = items_of(COMPARED_CASES, lines)
    assert [(item.names, item.outcome) for item in found.items] == [
        (["case 1", "m"], "passed"),
        (["case 2", "m"], "failed"),
        (["case 3", "m"], "error"),
    ]
    assert (found.items[0].scores["cost_usd"], found.skipped) == (2.0, 0)
