"""Every failure has a code, a message, a hint and an exit code; none has a traceback."""

import json

import click
import pytest
import redis

from producer.cli.error_exit import Failure, InterruptedByUserError, TerminatedError, describe, report
from producer.cli.options.global_options import GlobalOptions
from shared import errors as shared_errors
from shared.errors import IncompleteError, InputError, ProctorError, RedisUnreachableError


@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (InputError("f:3: wrong", hint="mend"), "input", 2),
        (RedisUnreachableError("away"), "redis_unreachable", 3),
        (IncompleteError("late"), "incomplete", 4),
        (ProctorError("bug"), "internal", 70),
        (InterruptedByUserError("stop"), "interrupted", 130),
        (KeyboardInterrupt(), "interrupted", 130),
        (TerminatedError(), "interrupted", 130),
        (click.Abort(), "interrupted", 130),
        (click.UsageError("Missing argument 'FILE'."), "usage", 2),
        (click.FileError("x", "gone"), "usage", 2),
        (redis.ConnectionError("Error 111"), "redis_unreachable", 3),
        (redis.TimeoutError("Timeout"), "redis_unreachable", 3),
        (redis.ResponseError("NOPERM"), "redis_unsuitable", 3),
        (PermissionError(13, "Permission denied", "out.md"), "usage", 2),
        (OSError(28, "No space left on device"), "infrastructure", 3),
    ],
)
def test_failure(error: BaseException, code: str, exit_code: int) -> None:
    """Each kind of failure ends the process with the code that the table of exit codes gives it."""
    failure = describe(error)
    assert failure is not None
    assert (failure.code, failure.exit) == (code, exit_code)
    assert failure.message


def test_a_list_of_choices_stays_in_its_line() -> None:
    """What click spreads over several lines is one line, as all messages are."""
    choice = click.Argument(["shell"], type=click.Choice(["bash", "zsh"]))
    failure = describe(click.MissingParameter(param=choice))
    assert failure is not None
    assert failure.message.endswith("Choose from: bash, zsh")


def test_bug_is_not_foreseen() -> None:
    """An error that is none of ours is not given a polite name."""
    assert describe(ZeroDivisionError("x")) is None


def test_exit_codes_of_all_our_errors() -> None:
    """No error of ours has an exit code outside the documented ones."""
    ours = [
        each
        for each in vars(shared_errors).values()
        if isinstance(each, type) and issubclass(each, ProctorError)
    ]
    assert {each.exit_code for each in ours} <= {1, 2, 3, 4, 70}


def test_json_and_words_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON document and the lines for people carry the same message and hint."""
    error = InputError("f.jsonl:3: message: is empty", hint="write something")
    assert report(error, GlobalOptions(json=True), []) == 2
    document = json.loads(capsys.readouterr().out)
    expected = Failure("input", "f.jsonl:3: message: is empty", "write something", 2)
    assert document["error"] == {"code": expected.code, "message": expected.message, "hint": expected.hint}
    assert report(error, GlobalOptions(), []) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"error: {expected.message}\nhint: {expected.hint}\n"


def test_interruption_is_not_called_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """After Ctrl-C the person reads what became of the run, not that something went wrong."""
    error = InterruptedByUserError("interrupted; r1 is kept", hint="`proctor resume r1` continues it")
    assert report(error, GlobalOptions(), []) == 130
    assert capsys.readouterr().err == "interrupted; r1 is kept\nhint: `proctor resume r1` continues it\n"
