"""`proctor decide` on every rule, in words and as JSON."""

import io
import json

import pytest

from producer.cli.main import run

RULES = [
    (["ok", "--summary-changed"], "must", 1),
    (["ok thanks", "--signal", "pivot", "--signal", "ack_only"], "must", 2),
    (["ok", "--signal", "open_loop_created"], "should", 3),
    (["ok", "--pressure"], "should", 4),
    (["ok", "--drift"], "should", 4),
    (["Sounds good!"], "skip", 5),
    (["tell me more", "--signal", "ack_only"], "skip", 5),
    (["tell me more"], "should", 6),
]


@pytest.mark.parametrize(("arguments", "decision", "rule"), RULES)
def test_each_rule(
    arguments: list[str], decision: str, rule: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each rule decides as the document says, and is named."""
    assert run(["decide", *arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["decision"], document["rule"], document["exit"]) == (decision, rule, 0)
    assert run(["decide", *arguments]) == 0
    assert capsys.readouterr().out.startswith(f"{decision}  rule {rule}: ")


@pytest.mark.parametrize(("extra", "freeze"), [([], True), (["--signal", "pivot"], False)])
def test_guardrail(extra: list[str], freeze: bool, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: FBT001 - a column of the table
    """At a peak the summary freezes, unless the decision is a must."""
    assert run(["decide", "and then?", "--phase", "peak", *extra, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["peakGuardrailActive"] is freeze
    assert run(["decide", "and then?", "--intensity", "high", *extra]) == 0
    assert ("the summary is frozen" in capsys.readouterr().out) is freeze


def test_text_from_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads the message from stdin."""
    monkeypatch.setattr("sys.stdin", io.StringIO("ok thanks\n"))
    assert run(["decide", "-"]) == 0
    assert capsys.readouterr().out.startswith("skip")


def test_too_long_message_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A message of 20,001 characters is an input error, as in a file."""
    assert run(["decide", "x" * 20_001]) == 2
    assert "20,001 characters" in capsys.readouterr().err


def test_unknown_signal_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the eight kinds of the contract are taken."""
    assert run(["decide", "ok", "--signal", "shout"]) == 2
    assert "'shout' is not one of" in capsys.readouterr().err
