"""Runs scripts on the server, patiently: sends again while Redis is away, loads what a restart forgot.

Every script may run twice with the same arguments, because a reply can be lost after the script ran; so a
call that got no answer is simply sent again.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from random import uniform
from threading import Event
from time import monotonic
from typing import Any, Final, TypeVar

import redis
from redis import exceptions

from shared.errors import DENIED_HINT, RedisDeniedError, RedisUnreachableError
from shared.ledger.scripts import Script
from shared.sockets import close_idle

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0
PASSING: Final = (
    exceptions.ConnectionError,  # with it BusyLoadingError: the server reads its data
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,  # a fail-over is under way
    exceptions.MasterDownError,  # the same, seen from a replica
    exceptions.OutOfMemoryError,  # results expire, runs are removed
)
PASSING_WORDS: Final = ("BUSY ", "MISCONF ", "NOREPLICAS ", "TRYAGAIN ")
"""Beginnings of other answers that pass: a long script runs, the disk is full, replicas are away."""
DENIED_WORDS: Final = ("ACL failure in script", "The user executing the script can't")
"""In answers to a script that may not do what it does; the second ones are those before Redis 7.2."""
REFUSED: Final = (
    exceptions.AuthenticationError,
    exceptions.AuthorizationError,
)
"""Connection errors that no waiting mends."""

T = TypeVar("T")

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # commands say it in their own way; workers have a handler


class Outage:
    """Logs once that the server is away and once that it is back, whichever thread notices."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.since_s = 0.0
        """When it began, by the monotonic clock; 0 while the server answers."""

    def begin(self, error: Exception) -> None:
        """Notes a call that got no answer."""
        with self._lock:
            if self.since_s:
                return
            self.since_s = monotonic()
        logger.warning("redis away", extra={"reason": str(error)})

    def end(self) -> None:
        """Notes an answer."""
        with self._lock:
            since_s, self.since_s = self.since_s, 0.0
        if since_s:
            logger.info("redis back", extra={"away_s": round(monotonic() - since_s, 1)})


_outage = Outage()


class ScriptCaller:
    """The scripts of the ledger on one server; each thread takes a connection of its own."""

    def __init__(self, client: "redis.Redis", *, patience_s: float, scripts: Mapping[str, Script]) -> None:
        self.client: Any = client  # redis-py's own annotations mix sync and async answers
        self.patience_s = patience_s
        self._scripts = scripts
        self._pause = Event()
        self._loaded: set[str] = set()
        """Scripts that were loaded once; a restarted server has forgotten them."""

    def run(self, name: str, *args: str | bytes | float) -> Any:
        """Runs a script and returns its answer as redis-py gives it: lists, bytes, numbers.

        Raises:
            RedisUnreachableError: no answer within the patience.
        """
        script = self._scripts[name]

        def once() -> Any:
            try:
                return self.client.evalsha(script.sha, 0, *args)
            except exceptions.NoScriptError:
                return self.client.eval(script.text, 0, *args)

        return self.patiently(once)

    def run_many(self, calls: Sequence[tuple[str, Sequence[str | bytes | float]]]) -> list[Any]:
        """Runs scripts one after the other in one round trip.

        Args:
            calls: script names with their arguments. All are sent again when a reply is lost.

        Returns:
            What `run` would return for each; for a script that failed, its exception.

        Raises:
            RedisUnreachableError: no answer within the patience.
        """
        if len(calls) == 1:  # a pipeline for one costs twice as much
            try:
                return [self.run(calls[0][0], *calls[0][1])]
            except exceptions.ResponseError as error:
                return [error]  # no denial: `run` has raised that as an error of ours

        def once() -> list[Any]:
            new = {name for name, _ in calls} - self._loaded
            with self.client.pipeline(transaction=False) as pipeline:
                for name in new:  # or the first of its kind would run after all others
                    pipeline.script_load(self._scripts[name].text)
                for name, args in calls:
                    pipeline.evalsha(self._scripts[name].sha, 0, *args)
                answers: list[Any] = pipeline.execute(raise_on_error=False)[len(new) :]
            self._loaded |= new
            for place, answer in enumerate(answers):
                if isinstance(answer, exceptions.NoScriptError):
                    name, args = calls[place]
                    answers[place] = self.client.eval(self._scripts[name].text, 0, *args)
                elif isinstance(answer, Exception) and (passes(answer) or is_denial(answer)):
                    raise answer
            return answers

        return self.patiently(once)

    def patiently(self, call: Callable[[], T]) -> T:
        """Calls until there is an answer.

        Raises:
            RedisUnreachableError: no answer within the patience.
            RedisDeniedError: access rules refuse a command of it.
        """
        deadline, pause_s = 0.0, FIRST_PAUSE_S
        while True:
            try:
                answer = call()
            except exceptions.RedisError as error:
                if is_denial(error):
                    raise denied(error) from error
                if not passes(error):
                    raise
                _outage.begin(error)
                if isinstance(error, exceptions.TimeoutError):
                    close_idle(self.client)
                deadline = deadline or monotonic() + self.patience_s
                if isinstance(error, REFUSED) or monotonic() + pause_s > deadline:
                    raise unreachable(error) from error
            else:
                if _outage.since_s:
                    _outage.end()
                return answer
            self._pause.wait(uniform(pause_s / 2, pause_s))  # noqa: S311 - spreads the load, guards nothing
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def passes(error: Exception) -> bool:
    """Tells whether an error may pass by itself.

    >>> passes(exceptions.ResponseError("BUSY Redis is busy running a script.")), passes(ValueError())
    (True, False)
    """
    return isinstance(error, PASSING) or str(error).startswith(PASSING_WORDS)


def is_denial(error: Exception) -> bool:
    """Whether the server's access rules (ACL) refused a command, also one inside a script or a batch.

    >>> is_denial(exceptions.NoPermissionError("User a has no permissions to run the 'ping' command"))
    True
    """
    return _denial_in(error) is not None


def _denial_in(error: BaseException | None) -> BaseException | None:
    """Finds what the server said among an error and its causes."""
    while error is not None:
        if isinstance(error, exceptions.NoPermissionError) or any(w in str(error) for w in DENIED_WORDS):
            return error
        error = error.__cause__
    return None


def denied(error: Exception) -> RedisDeniedError:
    """Says for people that access rules refuse a command; no waiting mends that.

    >>> denied(exceptions.NoPermissionError("No permissions to access a key")).message
    'Redis denies our user a right: No permissions to access a key'
    """
    return RedisDeniedError(f"Redis denies our user a right: {_denial_in(error) or error}", hint=DENIED_HINT)


def unreachable(error: Exception) -> RedisUnreachableError:
    """Says for people why Redis cannot be used.

    >>> unreachable(TimeoutError("Timeout reading from socket")).message
    'Redis does not answer: Timeout reading from socket'
    """
    return RedisUnreachableError(
        f"Redis does not answer: {error}",
        hint="check that the server runs and that the URL is right: `proctor doctor`",
    )
