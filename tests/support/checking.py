"""Evaluates one check on one output, for tests of checks."""

from typing import Any

from worker.validation.case_verdict import CheckResult
from worker.validation.checks import Subject, parse_checks
from worker.validation.scoring import run_deterministic


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
