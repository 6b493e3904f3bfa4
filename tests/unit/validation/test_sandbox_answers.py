"""What a child of the sandbox writes is read without trust: the code that it runs may have written it."""

import pytest

from worker.sandbox import protocol
from worker.sandbox.child import ChildAnswer, ending, failure_of
from worker.sandbox.sandbox_errors import SandboxReason


@pytest.mark.parametrize("text", ["", "abc", "-1", "1" * 5_000, "99999999999999999999", "٣"])
def test_a_forged_wait_status_is_a_forgery(text: str) -> None:
    """It fails the check as forged, and not with an error of the worker."""
    assert failure_of(ChildAnswer(protocol.CRASHED, text), "the check").reason is SandboxReason.FORGED


def test_every_wait_status_has_words() -> None:
    """Also those of signals without a name, and of stopped processes."""
    assert ending(35) == "crashed (signal 35)"
    for status in range(65_536):
        assert ending(status)
