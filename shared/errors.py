"""The error tree: every failure that is shown to users, with its exit code and whether a retry can help.

A message contains what happened, the value and the place; `hint` is how to fix it.
"""

import errno
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

DENIED_HINT: Final = "`proctor doctor --acl` prints the rights that Proctor's user needs"
"""How to fix a `RedisDeniedError`."""
DISK_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""System errors of a full disk, which are no usage errors."""
FULL_HINT: Final = (
    "make room: `proctor runs rm RUN` (a running one: `proctor cancel RUN` first), `proctor cache clear`, "
    "or raise maxmemory"
)
"""How to fix a `RedisFullError`."""
REFUSING_HINTS: Final[Mapping[str, str]] = {
    "OOM": FULL_HINT,
    "MISCONF": "make room on the disk of the server, or mend its rights there; `proctor doctor` looks at it",
    "NOREPLICAS": "its min-replicas-to-write asks for a replica that is in step: start one",
    "READONLY": "it is a replica: name the primary server in the URL, or its sentinels",
}
"""How to fix a server that refuses writes, by the first word of its error."""


class ProctorError(Exception):
    """Something went wrong inside Proctor itself."""

    code: ClassVar[str] = "internal"
    """Stable word for programs, printed in `--json` errors and stored in results."""
    exit_code: ClassVar[int] = 70
    """Exit code of a command that this error ends."""
    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later without any change."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(ProctorError):
    """The command line or the environment requests something that is not possible."""

    code = "usage"
    exit_code = 2
    problems: "Sequence[UsageError]" = ()
    """Every problem of an input, the first one included, where several were found; see `Problems`."""


class ConfigError(UsageError):
    """A setting or a configuration file holds a value that cannot be used."""

    code = "config"


class InputError(UsageError):
    """An input file breaks its contract; the message names file, line or path, and the value."""

    code = "input"


class WrongInput(ValueError):  # noqa: N818 - it is what is wrong in a file, and read as that
    """Something is wrong in a part of an input; whoever knows its place makes an `InputError` of it.

    Args:
        what: what is wrong.
        hint: how to mend it; may be empty.
        path: where in the part: keys and positions.
        line: where in its text, from 1.

    >>> str(WrongInput("unknown check", "did you mean 'contains'?", path=(0, "any", 1)))
    "/0/any/1: unknown check (did you mean 'contains'?)"
    """

    def __init__(self, what: str, hint: str = "", *, path: Sequence[str | int] = (), line: int = 1) -> None:
        place = "".join(f"/{part}" for part in path)
        super().__init__(": ".join(filter(None, (place, what))) + (f" ({hint})" if hint else ""))
        self.what, self.hint, self.path, self.line = what, hint, tuple(path), line


class ValidatorSecurityError(InputError):
    """A validators file violates the policy; the message names line, column, construct and rule."""

    code = "validator_security"


class CheckUnusableError(ProctorError):
    """A pattern or validator cannot be run for any output, so that nothing follows for the model."""

    code = "check_unusable"


class UnknownRunError(UsageError):
    """No run has this id: mistyped, expired or removed."""

    code = "unknown_run"

    def __init__(self, message: str, *, hint: str = "", run: str = "") -> None:
        super().__init__(message, hint=hint)
        self.run = run
        """The id."""


class AmbiguousRunError(UsageError):
    """The beginning of an id that several runs share."""

    code = "ambiguous_run"


class UnknownItemError(UsageError):
    """A run has no item of this name, or several."""

    code = "unknown_item"


class RunStateError(UsageError):
    """The run's state does not allow the requested action."""

    code = "run_state"


class IdempotencyConflictError(UsageError):
    """The idempotency key belongs to a run with other content."""

    code = "idempotency_conflict"


class InfrastructureError(ProctorError):
    """A dependency is missing or does not answer."""

    code = "infrastructure"
    exit_code = 3
    retryable = True


class RedisUnreachableError(InfrastructureError):
    """Redis does not answer within its time limit."""

    code = "redis_unreachable"


class RedisDeniedError(RedisUnreachableError):
    """The access rules (ACL) of Redis deny our user a command, key or channel."""

    code = "redis_denied"
    retryable = False


class RedisRefusingError(RedisUnreachableError):
    """Redis answers but refuses writes: its disk is full, or its replicas are away."""

    code = "redis_refuses"


class RedisFullError(RedisRefusingError):
    """Redis has reached its memory limit, and accepts only writes that free memory."""

    code = "redis_full"


class RedisUnsuitableError(InfrastructureError):
    """The server answers but cannot carry the ledger: too old, a cluster, or it evicts keys."""

    code = "redis_unsuitable"
    retryable = False


class NoServerError(InfrastructureError):
    """There is no Redis or Valkey server program on this machine."""

    code = "no_server"
    retryable = False


class NoRoomError(InfrastructureError):
    """The ledger already holds as much unfinished work as it may; the loading run was removed."""

    code = "no_room"


class RunLostError(InfrastructureError):
    """A run that was there a moment ago is gone, with all of its data."""

    code = "run_lost"
    retryable = False


class LoadLostError(InfrastructureError):
    """This loader no longer owns the loading run: its lease expired, or the server lost confirmed writes."""

    code = "load_lost"


class IncompleteError(ProctorError):
    """The run ended before all its items had results; existing results are kept."""

    code = "incomplete"
    exit_code = 4
