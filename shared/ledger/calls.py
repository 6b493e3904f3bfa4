"""Runs scripts on the server with retries while Redis is unavailable, and reloads scripts after a restart.

Every script is idempotent, because a reply can be lost after the script ran; a call without an answer is
simply sent again. Errors of the server are classified in this file as well.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from random import uniform
from re import compile as compile_pattern
from threading import Event
from time import monotonic
from typing import Any, Final, TypeVar

import redis
from redis import exceptions

from shared import keys
from shared.errors import (
    DENIED_HINT,
    REFUSING_HINTS,
    ProctorError,
    RedisDeniedError,
    RedisRefusingError,
    RedisUnreachableError,
)
from shared.ledger.memory import full
from shared.ledger.scripts import Script
from shared.server.sockets import close_idle

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0
PASSING: Final = (
    exceptions.ConnectionError,  # with it BusyLoadingError: the server reads its data
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,  # a fail-over is under way
    exceptions.MasterDownError,  # the same, seen from a replica
    exceptions.OutOfMemoryError,  # results expire, runs are removed
)
PASSING_WORDS: Final = ("BUSY ", "TRYAGAIN ")
"""Prefixes of other transient errors: a long script is running, keys are being moved."""
REFUSING: Final = compile_pattern(r"(?:^|-)(OOM|MISCONF|NOREPLICAS|READONLY) ")
"""Errors of a server that refuses writes; before Redis 7 the word is in the middle of a script's error."""
WAITED_FOR: Final = frozenset({"MISCONF", "NOREPLICAS"})
"""Refusals that may end without any change to Proctor."""
IN_SCRIPT: Final = compile_pattern(
    r"^Error running script.*?-(?=[A-Z])| script: ([0-9a-f]+, )?on @user_script.*$"
)
"""What a server adds to an error because it was raised in a script."""
REFUSED_AGAIN_S: Final = 60.0
"""A refusal is logged again when the last one that was logged is longer ago than this."""
DENIED_WORDS: Final = ("ACL failure in script", "The user executing the script can't")
"""In errors of a script that lacks a right; the second ones are those before Redis 7.2."""
REFUSED: Final = (
    exceptions.AuthenticationError,
    exceptions.AuthorizationError,
)
"""Connection errors that waiting does not resolve."""
AWAY: Final = (exceptions.RedisError, OSError)
"""Errors of the Redis client and of the system, after which the same may be tried again."""
FORESEEN: Final = (ProctorError, *AWAY)
"""These, and errors of our tree."""

T = TypeVar("T")

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # commands report it themselves; workers have a handler


class Outage:
    """Logs once that the server is unavailable and once that it is back, for all threads together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.since_s = 0.0
        """Start of the outage, by the monotonic clock; 0 while the server is available."""

    def begin(self, error: Exception) -> None:
        """Records a call without an answer."""
        with self._lock:
            if self.since_s:
                return
            self.since_s = monotonic()
        logger.warning("redis away", extra={"reason": str(error)})

    def end(self) -> None:
        """Records an answer."""
        with self._lock:
            since_s, self.since_s = self.since_s, 0.0
        if since_s:
            logger.info("redis back", extra={"away_s": round(monotonic() - since_s, 1)})


class Refusals:
    """Logs that the server refuses writes, once a minute at most, and once that it accepts them again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logged_s = -REFUSED_AGAIN_S
        self._by = ""
        self.since_s = 0.0
        """Start of the refusals, by the monotonic clock; 0 while the server takes writes."""

    def begin(self, error: Exception) -> None:
        """Records a refusal."""
        now_s = monotonic()
        with self._lock:
            self.since_s, self._by = self.since_s or now_s, refusal_of(error)
            if now_s - self._logged_s < REFUSED_AGAIN_S:
                return
            self._logged_s = now_s
        logger.warning("redis refuses writes", extra={"reason": plain(error)})

    def end(self, *, was_refused: bool) -> None:
        """Records a successful write.

        Args:
            was_refused: whether the same call was refused before. A full server accepts writes that need no
                memory, so that such a success does not prove that there is room again.
        """
        with self._lock:
            if not was_refused and self._by == "OOM":
                return
            since_s, self.since_s = self.since_s, 0.0
        if since_s:
            logger.info("redis takes writes", extra={"refused_s": round(monotonic() - since_s, 1)})


_outage = Outage()
_refusals = Refusals()


class ScriptCaller:
    """The scripts of the ledger on one server; each thread uses its own connection.

    Args:
        client: of the server.
        patience_s: how long a call waits for a server that is away.
        scripts: by name.
        refused_s: how long it waits for a server that refuses writes; None: as for one that is away.
        full_s: the same if memory is the reason, which rarely resolves by itself; None: as `refused_s`.
        on_refusal: called with the reason when a call begins to wait because of it.
    """

    def __init__(
        self,
        client: "redis.Redis",
        *,
        patience_s: float,
        scripts: Mapping[str, Script],
        refused_s: float | None = None,
        full_s: float | None = None,
        on_refusal: Callable[[str], object] = str,
    ) -> None:
        self.client: Any = client  # redis-py's own annotations mix sync and async answers
        self.patience_s = patience_s
        self.refused_s = patience_s if refused_s is None else refused_s
        self.full_s = self.refused_s if full_s is None else full_s
        self._on_refusal = on_refusal
        self._scripts = scripts
        self._pause = Event()
        self._loaded: set[str] = set()
        """Scripts that were loaded; a restarted server has to load them again."""

    def sharing(self, scripts: Mapping[str, Script]) -> "ScriptCaller":
        """Makes a caller of other scripts on the same server, with the same patience."""
        return ScriptCaller(
            self.client,
            patience_s=self.patience_s,
            scripts=scripts,
            refused_s=self.refused_s,
            full_s=self.full_s,
            on_refusal=self._on_refusal,
        )

    def run(self, name: str, *args: str | bytes | float, is_patient: bool = True) -> Any:
        """Runs a script and returns its answer as redis-py gives it: lists, bytes, numbers.

        Args:
            name: of the script.
            args: its arguments.
            is_patient: False for periodic calls, which need not wait for a server that takes no writes.

        Raises:
            RedisUnreachableError: no answer within the patience.
            RedisRefusingError: it takes no writes, for longer than the patience for that.
        """
        script = self._scripts[name]

        def once() -> Any:
            try:
                return self.client.evalsha(script.sha, 0, *args)
            except exceptions.NoScriptError:
                return self.client.eval(script.text, 0, *args)

        return self.patiently(once, is_patient=is_patient)

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

    def patiently(self, call: Callable[[], T], *, is_patient: bool = True) -> T:
        """Calls until there is an answer.

        Args:
            call: what to do.
            is_patient: whether to wait for a server that takes no writes.

        Raises:
            RedisUnreachableError: no answer within the patience.
            RedisRefusingError: the server takes no writes, for longer than the patience for that.
            RedisDeniedError: access rules refuse a command of it.
        """
        began_s, pause_s, refused_for = 0.0, FIRST_PAUSE_S, ""
        while True:
            try:
                answer = call()
            except exceptions.RedisError as error:
                refused_by = self._note(error)
                if not began_s or bool(refused_by) != bool(refused_for):
                    began_s = monotonic()  # unavailability and refusals have separate time limits
                    if refused_by in WAITED_FOR and is_patient:
                        self._on_refusal(plain(error))
                refused_for = refused_by
                left_s = began_s + self._patience_for(refused_by) - monotonic()
                if isinstance(error, REFUSED) or pause_s > left_s or (refused_by and not is_patient):
                    raise self._over(error, refused_by) from error
            else:
                if _refusals.since_s and (refused_for or not is_patient):
                    _refusals.end(was_refused=bool(refused_for))
                if _outage.since_s:
                    _outage.end()
                return answer
            self._pause.wait(uniform(pause_s / 2, pause_s))  # noqa: S311 - spreads the load, guards nothing
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _note(self, error: exceptions.RedisError) -> str:
        """Logs a transient error and returns its word if it is a refusal; raises any other error."""
        refused_by = refusal_of(error)
        if is_denial(error):
            raise denied(error) from error
        if refused_by:
            _refusals.begin(error)
            let_go(self.client, refused_by)
        elif passes(error):
            _outage.begin(error)
            if isinstance(error, exceptions.TimeoutError):
                close_idle(self.client)
        else:
            raise error
        return refused_by

    def _patience_for(self, refused_by: str) -> float:
        if refused_by == "OOM":
            return self.full_s
        return self.refused_s if refused_by in WAITED_FOR else self.patience_s

    def _over(self, error: Exception, refused_by: str) -> RedisUnreachableError:
        """Builds the error raised when the time limit has passed."""
        if not refused_by:
            return unreachable(error)
        if refused_by == "OOM":
            return full(self.client)
        return RedisRefusingError(f"Redis takes no writes: {plain(error)}", hint=REFUSING_HINTS[refused_by])


def let_go(client: Any, refused_by: str) -> None:
    """Closes idle connections to a server that may have been replaced: new ones go to the current master.

    New connections query the sentinels and resolve names again.
    """
    if refused_by == "READONLY" or hasattr(client.connection_pool, "sentinel_manager"):
        close_idle(client)


def refused_write(client: "redis.Redis") -> str:
    """Tries a write that needs memory and changes nothing; returns why it is refused, empty when it is not.

    Raises:
        redis.RedisError: the server answers no longer, or access rules deny it.
    """
    try:
        client.zadd(keys.RUNS_KEY, {"no run": 0}, xx=True)
    except exceptions.ResponseError as error:
        if is_denial(error):
            raise
        word = refusal_of(error) or "ERR"
        return f"{word} {plain(error).removeprefix(word).strip()}"
    return ""


def plain(error: Exception) -> str:
    """Formats an error of the server without the position in a script.

    >>> plain(exceptions.ResponseError("NOREPLICAS None is good. script: 0a1f, on @user_script:9."))
    'NOREPLICAS None is good.'
    """
    return IN_SCRIPT.sub("", str(error))


def refusal_of(error: Exception) -> str:
    """Returns the error word of a server that refuses writes; empty for other errors.

    >>> refusal_of(exceptions.ResponseError("MISCONF Errors writing to the AOF file: No space left"))
    'MISCONF'
    >>> refusal_of(exceptions.ResponseError("Error running script (call to f_1): @user_script: 9: -OOM no"))
    'OOM'
    """
    if isinstance(error, exceptions.OutOfMemoryError):
        return "OOM"
    if isinstance(error, exceptions.ReadOnlyError):
        return "READONLY"
    found = REFUSING.search(str(error)) if isinstance(error, exceptions.ResponseError) else None
    return found.group(1) if found else ""


def passes(error: Exception) -> bool:
    """Returns whether an error is transient.

    >>> passes(exceptions.ResponseError("BUSY Redis is busy running a script.")), passes(ValueError())
    (True, False)
    """
    return isinstance(error, PASSING) or str(error).startswith(PASSING_WORDS) or bool(refusal_of(error))


def is_denial(error: Exception) -> bool:
    """Returns whether the server's access rules (ACL) refused a command, also inside a script or a batch.

    >>> is_denial(exceptions.NoPermissionError("User a has no permissions to run the 'ping' command"))
    True
    """
    return _denial_in(error) is not None


def _denial_in(error: BaseException | None) -> BaseException | None:
    """Finds the denial of the server among an error and its causes."""
    while error is not None:
        if isinstance(error, exceptions.NoPermissionError) or any(w in str(error) for w in DENIED_WORDS):
            return error
        error = error.__cause__
    return None


def denied(error: Exception) -> RedisDeniedError:
    """Builds the error for a command that access rules refuse, which waiting does not resolve.

    >>> denied(exceptions.NoPermissionError("No permissions to access a key")).message
    'Redis denies our user a right: No permissions to access a key'
    """
    return RedisDeniedError(f"Redis denies our user a right: {_denial_in(error) or error}", hint=DENIED_HINT)


def is_foreseen(error: BaseException) -> bool:
    """Returns whether an error is one of `FORESEEN`."""
    return isinstance(error, FORESEEN)


def is_away(error: BaseException) -> bool:
    """Returns whether an error means that Redis does not answer, which may pass."""
    return isinstance(error, RedisUnreachableError | exceptions.ConnectionError | exceptions.TimeoutError)


def unreachable(error: Exception) -> RedisUnreachableError:
    """Builds the error for a Redis that cannot be used.

    >>> unreachable(TimeoutError("Timeout reading from socket")).message
    'Redis does not answer: Timeout reading from socket'
    """
    return RedisUnreachableError(
        f"Redis does not answer: {error}",
        hint="check that the server runs and that the URL is right: `proctor doctor`",
    )
