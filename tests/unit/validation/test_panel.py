"""Tests how a panel of judges decides, and that a single judge is a panel of one."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import pytest

from worker.validation.case_verdict import JudgeReply, StageOutcome, ValidationResult
from worker.validation.panel import Tally, Vote, tally_of, with_votes
from worker.validation.pipeline import before_judge, with_reply, without_reply

WAITING: Final = before_judge({"expected": {"n": 1}}, '{"n": 2}')
CALL: Final[dict[str, Any]] = {
    "token_usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    "cost_usd": 0.25,
    "latency_ms": 30,
    "cached": False,
}
GONE: Final = None


def panel(*replies: str | None, call: dict[str, Any] = CALL) -> ValidationResult:
    """What judges called a, b, c say together; None cannot be asked."""
    return with_votes(WAITING, votes_of(replies, call))


def votes_of(replies: Sequence[str | None], call: dict[str, Any] = CALL) -> list[Vote]:
    """Makes the votes of judges."""
    return [
        Vote(name, None, f"no route to {name}") if reply is None else Vote(name, JudgeReply(reply, call))
        for name, reply in zip("abcdefghi", replies, strict=False)
    ]


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
        if GONE not in replies or (early := tally_of(votes_of(replies)).verdict) is None:
            continue
        for complete in product(words[:3], repeat=3):
            whole = [complete[at] if reply is None else reply for at, reply in enumerate(replies)]
            late = tally_of(votes_of(whole)).verdict
            assert (early == "pass") == (late == "pass"), (replies, whole)


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
    votes = [Vote("a", JudgeReply("PASS", CALL)), Vote("b", JudgeReply("PASS", {**CALL, "cost_usd": None}))]
    assert with_votes(WAITING, votes).stages[5].detail["cost_usd"] is None
    assert panel(GONE, GONE).stages[5].detail["cost_usd"] == 0


@pytest.mark.parametrize("reply", ["PASS", "FAIL: no", "hm", "", "\ud800"])
def test_a_single_judge_is_a_panel_of_one(reply: str) -> None:
    """The same words, status and details as ever, whichever way it is asked."""
    assert with_votes(WAITING, [Vote("a", JudgeReply(reply))]) == with_reply(WAITING, reply)
    assert "votes" not in with_reply(WAITING, reply).stages[5].detail
    assert with_votes(WAITING, [Vote("a", None, "late")]) == without_reply(WAITING, "late")


def test_what_is_settled_stays_settled() -> None:
    """A result that awaits no judge is returned as it is."""
    settled = panel("PASS")
    assert with_votes(settled, votes_of(["FAIL"])) is settled


def test_an_even_panel_needs_more_than_half() -> None:
    """Of four judges three must agree."""
    assert [Tally(passed, 4 - passed).verdict for passed in range(5)] == [
        "fail", "fail", "unclear", "pass", "pass"
    ]  # fmt: skip
