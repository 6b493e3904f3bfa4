"""What one command works with: its options, its output, and the way to Redis."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec

import click

from producer.access import CANNOT_WRITE, Access
from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import Output
from shared.errors import RedisUnreachableError, RunLostError, UnknownRunError, UsageError
from shared.settings import Settings

P = ParamSpec("P")


class Session:
    """The options, the output and the way to Redis of one command."""

    def __init__(self, options: GlobalOptions, settings: Settings | None = None) -> None:
        self.options = options
        self.output = Output(options)
        self.seen = set[str]()
        """Runs that this command has found: if one is unknown later, it was lost meanwhile."""
        self._has_warned_of_refusal = False
        if settings is not None:
            self.settings = settings

    @cached_property
    def settings(self) -> Settings:
        """The settings of the environment, with the server that `--redis` names."""
        settings = Settings.from_environment(origins=self.options.from_file)
        if self.options.redis:
            settings = settings.override("--redis", redis_url=self.options.redis, broker_url=None)
        if self.options.allow_code:
            settings = settings.override("--allow-code", allow_code=True)
        return settings

    @cached_property
    def access(self) -> Access:
        """The way to Redis; nothing connects before it is used."""
        return Access(self.settings, redis_flag=self.options.redis, on_refusal=self._warn_of_refusal)

    def _warn_of_refusal(self, why: str) -> None:
        """Warns once that the command waits for a Redis that refuses writes."""
        if not self._has_warned_of_refusal:
            self._has_warned_of_refusal = True
            self.output.warn(f"Redis takes no writes; waiting up to {self.settings.patience_s:g} s: {why}")
            if CANNOT_WRITE in why:
                self.output.hint(f"make room on {self.access.disk}, and this command goes on")

    def warn_if_unwritable(self) -> None:
        """Warns that the server cannot write its data, for commands that only read it."""
        if unwritable := self.access.unwritable():
            self.output.warn(unwritable)

    def command(self, *words: str) -> str:
        """Formats a follow-up command that uses the same Redis."""
        options = ["--redis", self.access.connection.target.display] if self.options.redis else []
        return shlex.join(["proctor", *words, *options])

    def confirm(self, question: str) -> None:
        """Asks for confirmation before something is deleted.

        Raises:
            UsageError: the answer was no, or stdin is no terminal and `--yes` was not given.
        """
        if self.options.yes:
            return
        if not sys.stdin.isatty() or self.options.json:
            raise UsageError(f"asked to {question.rstrip('?')}", hint="add --yes to do it without a question")
        if not click.confirm(question, err=True):
            raise UsageError("nothing was changed")

    def close(self) -> None:
        """Closes the way to Redis."""
        if "access" in self.__dict__:
            self.access.close()


def _lost(error: UnknownRunError) -> RunLostError:
    """Builds the error for a run that existed before."""
    return RunLostError(
        f"run {error.run} is gone: somebody removed it, it expired, or Redis lost its data",
        hint="the input is where it was: run it again",
    )


def pass_session(handler: Callable[Concatenate[Session, P], int | None]) -> Callable[P, Any]:
    """Passes a session to a command's handler and closes it afterwards."""

    @wraps(handler)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> int | None:
        options = click.get_current_context().ensure_object(GlobalOptions)
        if options.json and options.jsonl:
            raise UsageError("--json and --jsonl are two forms of the same", hint="keep one of them")
        session = Session(options)
        try:
            return handler(session, *args, **kwargs)
        except RedisUnreachableError as error:
            raise session.access.with_disk_hint(error) from error.__cause__
        except UnknownRunError as error:
            raise (_lost(error) if error.run in session.seen else error) from error
        finally:
            session.close()

    return wrapper
