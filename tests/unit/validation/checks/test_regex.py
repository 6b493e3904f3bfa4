"""The check `regex`: a pattern in the text."""

import pytest

from tests.support.checking import passes, reason
from tests.support.sandbox_box import Box, StoppedError


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"regex": "^b"}, "a\nb"),
        ({"regex": "(?i)PAR.S"}, "paris"),
        ({"regex": "{{ not a template }}|a"}, "a"),
        ({"not": {"regex": "a"}}, "b"),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"regex": "^a$"}, "b"),
        ({"not": {"regex": "a"}}, "a"),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert (
        reason({"regex": "Par.s"}, "Rome") == 'pattern "Par.s" is nowhere in the output, which begins: Rome'
    )


def test_the_sandbox_searches() -> None:
    """What it cannot search in time is no match."""
    assert passes({"regex": "a+"}, "b", sandbox=Box(found="b")) is True
    stopped = reason({"regex": "a+"}, "b", sandbox=Box(found=StoppedError("timeout")))
    assert stopped == 'pattern "a+" timed out: stopped: timeout'
