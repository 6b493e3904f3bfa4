"""Evaluates one check on one output, for tests of checks."""

from collections.abc import Mapping
from typing import Any, Final

from shared.contracts.checks import Check
from worker.validation.case_verdict import CheckResult, ValidationResult
from worker.validation.checks import AsksJudges, Subject, parse_checks
from worker.validation.checks.equivalent import EQUIVALENT
from worker.validation.panel import Vote
from worker.validation.pipeline import with_judge
from worker.validation.scoring import run_deterministic

JUDGE: Final = Check("equivalent")
"""What stage 4 asks, as a check."""


def outcome(check: Any, output: str = "", **subject: Any) -> CheckResult:
    """The row of a check, as it is written in a bench file."""
    [row] = run_deterministic(parse_checks([check]), Subject(output, **subject))
    assert row.reason
    assert len(row.reason) < 20_000
    return row


def passes(check: Any, output: str = "", **subject: Any) -> bool | None:
    """Whether an output passes a check."""
    return outcome(check, output, **subject).passed


def reason(check: Any, output: str = "", **subject: Any) -> str:
    """Why an output passes a check, or not."""
    return outcome(check, output, **subject).reason


def call(name: str, arguments: str = "{}") -> dict[str, Any]:
    """A tool call in OpenAI's shape."""
    return {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


def vote(
    judge: str,
    reply: str | None,
    call: Mapping[str, Any] | None = None,
    *,
    check: Check = JUDGE,
    asks: AsksJudges = EQUIVALENT,
) -> Vote:
    """The vote of a judge that gave a reply; None could not be asked."""
    if reply is None:
        return Vote(judge, unreachable=f"no route to {judge}" if judge else "late")
    return Vote(judge, asks.read(check, reply), reply, call or {})


def judged_by(result: ValidationResult, *replies: str | Vote | None) -> ValidationResult:
    """What stage 4 makes of votes, or of the replies of judges without a name."""
    votes = [each if isinstance(each, Vote) else vote("", each) for each in replies]
    return with_judge(result, EQUIVALENT.score(JUDGE, votes))
