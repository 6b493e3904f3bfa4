"""Reports errors of commands: one line and a hint, or one JSON document, and never a traceback."""

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from typing import ClassVar, Final, NamedTuple

import click

from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import STDOUT, Output, drop_if_lost, is_lost
from shared.errors import DISK_ERRORS, FULL_HINT, InfrastructureError, ProctorError, RedisFullError
from shared.settings import Settings

EXIT_INTERRUPTED: Final = 130
EXIT_INTERNAL: Final = 70
SCHEMA_VERSION: Final = 2


class InterruptedByUserError(ProctorError):
    """Ctrl-C: started processes are stopped, stored results are kept."""

    code: ClassVar[str] = "interrupted"
    exit_code: ClassVar[int] = EXIT_INTERRUPTED


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, or the terminal was closed: as Ctrl-C, but possibly without a reader of hints.

    Its text is the name of the signal.
    """


OPTION_HABITS: Final = {
    "--prompt": "all prompts of a bench are run; `proctor compare RUN --by prompt` compares two",
}
"""Options that people try, with the way to what they do."""


class Failure(NamedTuple):
    """An error as shown to users."""

    code: str
    message: str
    hint: str
    exit: int


def _of_click(error: click.ClickException) -> Failure:
    """Reads a click error: all of them are wrong usage, whatever number click gives them."""
    hint = ""
    context = getattr(error, "ctx", None)
    if isinstance(context, click.Context):
        hint = f"see `{context.command_path} --help`"
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return Failure("usage", "name a command", hint, 2)
    possibilities = getattr(error, "possibilities", None)
    if isinstance(error, click.NoSuchOption) and error.option_name in OPTION_HABITS:
        hint = OPTION_HABITS[error.option_name]
    elif possibilities:
        hint = f"did you mean {' or '.join(sorted(possibilities))}?"
    message = (error.message if hasattr(error, "possibilities") else error.format_message()).rstrip(".")
    return Failure("usage", _in_a_line(message[:1].lower() + message[1:]), hint, 2)


def _in_a_line(message: str) -> str:
    """Rewrites a message of click as one line in plain words.

    >>> _in_a_line("missing argument. Choose from: bash,  zsh")
    'missing argument. Choose from: bash, zsh'
    >>> _in_a_line("invalid value for '--delay': '0.1' is not a valid integer range")
    "invalid value for '--delay': '0.1' is no whole number"
    """
    message = " ".join(message.split())
    for name, plain in (("integer", "whole number"), ("float", "number")):
        for ending in (f" is not a valid {name} range", f" is not a valid {name}"):
            if message.endswith(ending):
                return f"{message.removesuffix(ending)} is no {plain}"
    return message


def _of_system(error: OSError) -> Failure:
    """Describes a failed system call on a file that the user named, or a limit of the machine."""
    reason = error.strerror or type(error).__name__
    message = reason if error.filename is None else f"{error.filename}: {reason}"
    is_fault_of_machine = error.filename in (None, STDOUT) or error.errno in DISK_ERRORS
    if not is_fault_of_machine:
        return Failure("usage", message, "", 2)
    hint = "free some space, then run the command again" if error.errno in DISK_ERRORS else ""
    return Failure("infrastructure", message, hint, InfrastructureError.exit_code)


def _of_redis(error: BaseException) -> Failure | None:
    """Describes an error of the Redis client, if it is one; the client may not be loaded."""
    client = sys.modules.get("redis.exceptions")
    if client is None or not isinstance(error, client.RedisError):
        return None
    unreachable = isinstance(error, client.ConnectionError | client.TimeoutError)
    code = "redis_unreachable" if unreachable else "redis_unsuitable"
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, client.NoPermissionError):
        hint = "`proctor doctor --acl` prints the rights that Proctor's user needs"
        return Failure(
            "redis_denied", f"Redis denies our user a right: {text}", hint, InfrastructureError.exit_code
        )
    if isinstance(error, client.OutOfMemoryError):
        return Failure(RedisFullError.code, "Redis is full", FULL_HINT, InfrastructureError.exit_code)
    verb = "Redis does not answer" if unreachable else "Redis refused a command"
    return Failure(code, f"{verb}: {text}", "see `proctor doctor`", InfrastructureError.exit_code)


def describe(error: BaseException) -> Failure | None:
    """Returns an error as shown to users, or None for an unexpected one.

    >>> describe(ProctorError("no such thing", hint="try another"))
    Failure(code='internal', message='no such thing', hint='try another', exit=70)
    """
    if isinstance(error, ProctorError):
        return Failure(error.code, error.message, error.hint, error.exit_code)
    if isinstance(error, click.ClickException):
        return _of_click(error)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Failure("interrupted", "interrupted", "", EXIT_INTERRUPTED)
    redis = _of_redis(error)
    if redis is None and isinstance(error, OSError):
        return _of_system(error)
    return redis


def _write_traceback(error: BaseException) -> Path | None:
    """Writes a traceback for a bug report into the data folder, else into the temporary one."""
    text = "".join(traceback.format_exception(error))
    places = [Path(gettempdir())]
    with suppress(ProctorError):  # the settings themselves may be what is broken
        places.insert(0, Settings.from_environment().data_dir)
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            path = place / "proctor-error.log"
            with path.open("a", encoding="utf-8") as log:
                log.write(text + "\n")
        except OSError:
            continue
        return path
    return None


def _unforeseen(error: BaseException) -> Failure:
    """Describes an unexpected error: the traceback goes to a file, its type to the user."""
    path = _write_traceback(error)
    where = f"the traceback is in {path}" if path else "the traceback could not be written"
    what = " ".join(str(error).split())[:200]
    return Failure("internal", f"internal error: {type(error).__name__}: {what}", where, EXIT_INTERNAL)


def report(error: BaseException, options: GlobalOptions, arguments: Sequence[str]) -> int:
    """Prints an error in the requested form and returns the exit code."""
    failure = describe(error) or _unforeseen(error)
    output = Output(options)
    if is_lost(error):
        drop_if_lost(sys.stdout)
        output.error(failure.message)
        return failure.exit
    try:
        _print_failure(error, failure, output, arguments)
    except OSError:  # stdout cannot be written: use stderr
        drop_if_lost(sys.stdout)
        output.error(failure.message, hint=failure.hint)
    return failure.exit


def _print_failure(error: BaseException, failure: Failure, output: Output, arguments: Sequence[str]) -> None:
    """Writes a failure as a document, as an event, or for people."""
    # A usage error may occur before `--json` was parsed, so the arguments are searched too.
    is_json = output.options.json or "--json" in arguments
    if is_json or output.options.jsonl or "--jsonl" in arguments:
        from producer.service_documents import CommandError, ErrorDocument, ErrorEvent  # noqa: PLC0415 - start-up: only here

        why = CommandError(failure.code, failure.message, failure.hint)
        make = ErrorDocument if is_json else ErrorEvent
        output.document(make(error=why, exit=failure.exit))
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
    elif failure.exit == EXIT_INTERRUPTED:
        output.message(
            failure.message, hint=failure.hint
        )  # what was asked for has happened: that is no error
    else:
        output.error(failure.message, hint=failure.hint)
