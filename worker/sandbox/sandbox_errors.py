"""Why the sandbox has no answer, as a code for programs and a sentence for people."""

from enum import StrEnum

from shared.errors import CheckUnusableError, ProctorError


class SandboxReason(StrEnum):
    """Why there is no answer."""

    TIMEOUT = "timeout"
    """It took longer than it may."""
    MEMORY = "memory"
    """It needed more memory than it may have."""
    CRASH = "crash"
    """Its process ended."""
    EXCEPTION = "exception"
    """It raised."""
    FORGED = "forged"
    """It wrote something that is no answer where answers are written."""
    TOO_LARGE = "too_large"
    """It wrote more than an answer may hold."""
    UNKNOWN_VALIDATOR = "unknown_validator"
    """The validators file has nothing of this name that can be called."""
    BAD_PATTERN = "bad_pattern"
    """The pattern is no regular expression."""
    NO_JAVASCRIPT = "no_javascript"
    """What runs JavaScript is not installed here."""
    UNAVAILABLE = "unavailable"
    """Nothing was run: processes cannot be locked here, or the sandbox is closed."""


class SandboxError(ProctorError):
    """What ran in the sandbox gave no answer.

    Args:
        reason: in a word.
        message: in a sentence.
        hint: how to mend it.
    """

    code = "sandbox"

    def __init__(self, reason: SandboxReason, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.reason, self.message, self.hint)


class UnusableError(SandboxError, CheckUnusableError):
    """The pattern or the validators file cannot be run at all, whatever the output is."""

    code = CheckUnusableError.code


def _rebuild(kind: type[SandboxError], reason: SandboxReason, message: str, hint: str) -> SandboxError:
    return kind(reason, message, hint=hint)
