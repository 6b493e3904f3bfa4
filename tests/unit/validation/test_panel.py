"""Tests how a panel of judges decides, and that a single judge is a panel of one."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import pytest

from shared.contracts.checks import Check
from tests.support.checking import judged_by, vote
from worker.validation.case_verdict import StageOutcome, ValidationResult
from worker.validation.checks.equivalent import EQUIVALENT
from worker.validation.panel import Vote, decide
from worker.validation.pipeline import before_judge, validate

CASE: Final = {"expected": {"n": 1}}
WRONG: Final = '{"n": 2}'
WAITING: Final = before_judge(CASE, WRONG)
CALL: Final[dict[str, Any]] = {
    "token_usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    "cost_usd": 0.25,
    "latency_ms": 30,
    "cached": False,
}
GONE: Final = None


def late(*_: Any) -> str:
    """A judge that cannot be asked."""
    raise ConnectionError("late")


def panel(*replies: str | None, call: dict[str, Any] = CALL) -> ValidationResult:
    """What judges called a, b, c say together; None cannot be asked."""
    return judged_by(WAITING, *votes_of(replies, call))


def votes_of(replies: Sequence[str | None], call: dict[str, Any] = CALL) -> list[Vote]:
    """Makes the votes of judges."""
    return [vote(name, reply, call) for name, reply in zip("abcdefghi", replies, strict=False)]


@pytest.mark.parametrize(
    ("replies", "status", "message"),
    [
        (("PASS", "FAIL", "PASS"), "passed", "2 of 3 judges find the two objects equivalent"),
        (("FAIL", "PASS", "FAIL"), "failed_fuzzy", "2 of 3 judges do not find the two objects equivalent"),
        (("PASS", "FAIL"), "failed_fuzzy", "no majority of the 2 judges: 1 said PASS, 1 said FAIL"),
        (("PASS", "well", "I cannot"), "failed_fuzzy", "1 said PASS, 2 said neither"),
        (("", "", ""), "failed_fuzzy", "no majority of the 3 judges: 3 said neither"),
        (("PASS", GONE, "PASS"), "passed", "2 of 3 judges find"),
        (("FAIL", "FAIL", GONE), "failed_fuzzy", "2 of 3 judges do not find"),
        (("FAIL", "hm", GONE), "failed_fuzzy", "1 said FAIL, 1 said neither, 1 said nothing"),
        (("PASS", "FAIL", GONE), "failed_equality", "1 of 3 judges could not be asked"),
        (("PASS", GONE, GONE), "failed_equality", "b: no route to b; c: no route to c"),
        ((GONE, GONE), "failed_equality", "2 of 2 judges could not be asked"),
    ],
)
def test_more_than_half_of_the_whole_panel_decides(
    replies: tuple[str | None, ...], status: str, message: str
) -> None:
    """A tie, too few votes and replies without a verdict pass nothing; too few judges leave it open."""
    result = panel(*replies)
    assert (result.status, result.passed) == (status, status == "passed")
    assert message in result.message
    assert "1 difference: /n" in result.message
    assert result.awaits_judge is False
    if status == "failed_equality":
        assert result.decided_by == "equality"
        assert result.stages[5].outcome is StageOutcome.SKIPPED
        assert result.stages[5].detail["unreachable"] is True


def test_a_missing_judge_never_changes_what_is_decided() -> None:
    """Whatever the votes of the missing ones, a panel that decided without them decides the same."""
    words = ("PASS", "FAIL", "hm", GONE)
    for replies in product(words, repeat=3):
        if GONE not in replies or not (early := decide(votes_of(replies))).is_certain:
            continue
        for complete in product(words[:3], repeat=3):
            whole = [complete[at] if reply is None else reply for at, reply in enumerate(replies)]
            assert decide(votes_of(whole)).score == early.score, (replies, whole)


def test_every_vote_is_kept_beside_the_sums() -> None:
    """Judge, verdict, first words, tokens and cost of each vote; tokens and costs are added up."""
    long = "FAIL: " + "x" * 5_000
    detail = panel("PASS", long, GONE, "pass", "PASS").stages[5].detail
    assert (detail["model"], detail["verdict"], detail["cost_usd"]) == ("a, b, c, d, e", "pass", 1.0)
    assert detail["token_usage"] == {"prompt_tokens": 40, "completion_tokens": 4, "total_tokens": 44}
    assert (detail["latency_ms"], detail["cached"]) == (30, False)
    assert detail["reply"].startswith("a: PASS; b: FAIL: xxx")
    assert [(vote["model"], vote["verdict"]) for vote in detail["votes"]] == [
        ("a", "pass"),
        ("b", "fail"),
        ("c", None),
        ("d", "pass"),
        ("e", "pass"),
    ]
    assert detail["votes"][0] == {"model": "a", **CALL, "reply": "PASS", "verdict": "pass"}
    assert len(detail["votes"][1]["reply"]) == 200
    assert detail["votes"][2]["unreachable"] == "no route to c"


def test_a_cost_that_nobody_knows_is_no_zero() -> None:
    """One vote without a price leaves the sum unknown; without any reply nothing was paid."""
    votes = [vote("a", "PASS", CALL), vote("b", "PASS", {**CALL, "cost_usd": None})]
    assert judged_by(WAITING, *votes).stages[5].detail["cost_usd"] is None
    assert panel(GONE, GONE).stages[5].detail["cost_usd"] == 0


@pytest.mark.parametrize("reply", ["PASS", "FAIL: no", "hm", "", "\ud800"])
def test_a_single_judge_is_a_panel_of_one(reply: str) -> None:
    """The same words, status and details as ever, whichever way it is asked."""
    asked = validate(CASE, WRONG, judge=lambda *_: reply)
    assert judged_by(WAITING, vote("a", reply)) == asked
    assert "votes" not in asked.stages[5].detail
    assert judged_by(WAITING, Vote("a", unreachable="late")) == validate(CASE, WRONG, judge=late)


def test_what_is_settled_stays_settled() -> None:
    """A result that awaits no judge is returned as it is."""
    settled = panel("PASS")
    assert judged_by(settled, *votes_of(["FAIL"])) is settled


def test_an_even_panel_needs_more_than_half() -> None:
    """Of four judges three must agree."""
    panels = [votes_of(["PASS"] * passed + ["FAIL"] * (4 - passed)) for passed in range(5)]
    assert [EQUIVALENT.score(Check("equivalent"), votes).detail["verdict"] for votes in panels] == [
        "fail", "fail", "unclear", "pass", "pass"
    ]  # fmt: skip
