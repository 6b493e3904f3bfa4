"""Hands out children to the threads of a worker: one validators file a child, one thread at a time.

What a call can leave behind for the next, and why it does not:

    names of the file       the file runs from its top for each call, in names of its own
    the rest of the child   files that the static policy accepts have no way to change it; a file that was not
                            checked gets a new child for each call
    bytes in the pipe       an answer carries the random word of its request; with anything else, or more,
                            the child is ended
    a child used up         what goes wrong in a child that answered before is tried again in a new one

Patterns are searched in children of their own, where no validator ever ran.
"""

import atexit
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

from shared.errors import ValidatorSecurityError
from shared.settings import Settings
from worker.sandbox import wire
from worker.sandbox.answers import RETURNED, failure_of
from worker.sandbox.child import Answer, Child
from worker.sandbox.failures import Reason, SandboxError
from worker.sandbox.keeper import Limits, Zygote, ZygoteLostError
from worker.validation.policy import check_validator_source

CALL_S: Final = 5.0
"""How long a validator may take."""
SEARCH_S: Final = 1.0
"""How long the search for a pattern may take."""
MAX_USES: Final = 1_000
"""Requests that one child answers; then a new one takes its place."""
MOST_IDLE: Final = 8
"""Children that are kept for the next batch."""
PATTERNS: Final = None
"""The source of children that only search."""
UNSAFE_HINT: Final = (
    "run workers on Linux 4.14 or later, or, for files that you trust, with "
    "--allow-unsandboxed-validators or PROCTOR_UNSAFE_VALIDATORS=1"
)

Check = Callable[[str], None]


class Sandboxes:
    """All sandboxes of one worker process; made cheaply, started when first needed, ended with the process.

    Args:
        check: refuses what validators may not do; None checks nothing, and each call gets its own child.
        call_s: how long a validator may take.
        search_s: how long the search for a pattern may take.
        limits: what a child may use.
        is_unsafe_allowed: whether validators run where no process can be locked; None: the environment says.
    """

    def __init__(
        self,
        *,
        check: Check | None = check_validator_source,
        call_s: float = CALL_S,
        search_s: float = SEARCH_S,
        limits: Limits = Limits(),  # noqa: B008 - it cannot be changed
        is_unsafe_allowed: bool | None = None,
    ) -> None:
        self.call_s, self.search_s = call_s, search_s
        self._check = None if check is None else lru_cache(MOST_IDLE)(_problem_of(check))
        self._limits = limits
        self._is_unsafe_allowed = is_unsafe_allowed
        self._lock = threading.Lock()
        self._zygote: Zygote | None = None
        self._is_closed = False
        self._idle: OrderedDict[Child, str | None] = OrderedDict()

    @contextmanager
    def batch(self, source: str | None) -> Iterator["Sandbox"]:
        """Opens a sandbox for the calls of one thread.

        Args:
            source: the validators file's text; None when only patterns are searched.

        Raises:
            ValidatorSecurityError: the file does what validators may not.
        """
        is_shared = source is None or self._is_shared(source)
        sandbox = Sandbox(self, source, is_shared=is_shared)
        try:
            yield sandbox
        finally:
            sandbox.close()

    @property
    def why_unlocked(self) -> str:
        """Why processes cannot be locked on this machine; empty when they can. Starts the zygote."""
        return self._started().why_unlocked

    def take(self, source: str | None, *, is_new: bool = False) -> Child:
        """Gives a child that has loaded a source, a used one if there is one.

        Raises:
            SandboxError: there is none to be had, or the source does not load.
            ZygoteLostError: the zygote ended at this moment; a second try will start another.
        """
        while not is_new:
            with self._lock:
                found = next((child for child, its in self._idle.items() if its == source), None)
                if found is None:
                    break
                del self._idle[found]
            if not found.is_stale:
                return found
            found.end()
        zygote_now = self._started()
        if source is not None and zygote_now.why_unlocked and not self._may_be_unsafe():
            what = f"validators are not run here: {zygote_now.why_unlocked}"
            raise SandboxError(Reason.UNAVAILABLE, what, hint=UNSAFE_HINT)
        child = Child(zygote_now.fork(is_locked=not zygote_now.why_unlocked))
        if source is not None:
            _loaded(child.ask(wire.LOAD, source, "", self.call_s), child)
            child.uses = 0
        return child

    def give_back(self, child: Child, source: str | None, *, is_shared: bool) -> None:
        """Takes back a child: keeps it for the next batch, or ends it."""
        spare: list[Child] = []
        with self._lock:
            if is_shared and not self._is_closed and not child.is_over and child.uses < MAX_USES:
                self._idle[child] = source
                if len(self._idle) > MOST_IDLE:
                    spare.append(self._idle.popitem(last=False)[0])
            else:
                spare.append(child)
        for each in spare:
            each.end()

    def close(self) -> None:
        """Ends all children and the zygote; nothing can be run any more."""
        with self._lock:
            idle, self._idle = [*self._idle], OrderedDict()
            last, self._zygote, self._is_closed = self._zygote, None, True
        for child in idle:
            child.end()
        if last is not None:
            last.close()
            atexit.unregister(self.close)

    def _started(self) -> Zygote:
        with self._lock:
            if self._is_closed:
                raise SandboxError(Reason.UNAVAILABLE, "the sandbox is closed")
            if self._zygote is not None and self._zygote.is_lost:
                self._zygote.close()
                self._zygote = None
            if self._zygote is None:
                atexit.unregister(self.close)
                atexit.register(self.close)
                self._zygote = Zygote(self._limits)
            return self._zygote

    def _may_be_unsafe(self) -> bool:
        if self._is_unsafe_allowed is None:
            self._is_unsafe_allowed = Settings.from_environment().unsafe_validators
        return self._is_unsafe_allowed

    def _is_shared(self, source: str) -> bool:
        """Whether calls of this file may share a child."""
        if self._check is None:
            return False
        problem = self._check(source)
        if problem is not None:
            raise ValidatorSecurityError(problem.message, hint=problem.hint)
        return True


class Sandbox:
    """Runs patterns and validators for one thread; made by `Sandboxes.batch`.

    Args:
        sandboxes: where children come from.
        source: the validators file's text, if there is one.
        is_shared: whether its calls may share a child.
    """

    def __init__(self, sandboxes: Sandboxes, source: str | None, *, is_shared: bool) -> None:
        self._sandboxes, self._source, self._is_shared = sandboxes, source, is_shared
        self._children: dict[str | None, Child] = {}

    def search(self, pattern: str, text: str) -> str | None:
        """Searches as `re.search` with MULTILINE does; returns the text that matched, which may be empty.

        Raises:
            SandboxError: it gave no answer; says why.
        """
        answer = self._ask(PATTERNS, wire.SEARCH, pattern, text, self._sandboxes.search_s)
        if answer.kind == wire.MATCH:
            return answer.text
        if answer.kind == wire.NO_MATCH:
            return None
        raise failure_of(answer, "the search")

    def call(self, name: str, text: str) -> object:
        """Calls a validator and returns what it returned, as far as that can be told.

        Raises:
            SandboxError: it gave no answer; says why.
        """
        if self._source is None:
            raise SandboxError(Reason.UNKNOWN_VALIDATOR, "there is no validators file")
        answer = self._ask(self._source, wire.CALL, name, text, self._sandboxes.call_s)
        if not self._is_shared:
            self._drop(self._source)
        if answer.kind in RETURNED:
            return RETURNED[answer.kind](answer.text)
        raise failure_of(answer, name)

    def close(self) -> None:
        """Gives its children back."""
        while self._children:
            source, child = self._children.popitem()
            self._sandboxes.give_back(child, source, is_shared=source is PATTERNS or self._is_shared)

    def _ask(self, source: str | None, what: bytes, first: str, second: str, limit_s: float) -> Answer:
        """Asks a child; what goes wrong in a used one, or with its zygote, is tried again in a new one."""
        is_new = False
        for is_last in (False, False, True):
            child = self._children.get(source)
            was_used = False
            try:
                if child is None:
                    child = self._children[source] = self._sandboxes.take(source, is_new=is_new)
                was_used = child.uses > 0
                answer = child.ask(what, first, second, limit_s)
            except ZygoteLostError as error:
                self._drop(source)
                if is_last:
                    raise SandboxError(Reason.CRASH, f"the sandbox ended again and again: {error}") from error
            except SandboxError:
                self._drop(source)
                if not was_used:
                    raise
            else:
                if answer.kind == wire.MEMORY or child.uses >= MAX_USES:
                    self._drop(source)
                if answer.kind != wire.MEMORY or not was_used:
                    return answer
            is_new = True
        raise SandboxError(Reason.CRASH, "the sandbox ended again and again")

    def _drop(self, source: str | None) -> None:
        child = self._children.pop(source, None)
        if child is not None:
            child.end()


def _loaded(answer: Answer, child: Child) -> None:
    """Proves that a source was loaded."""
    if answer.kind != wire.DONE:
        child.end()
        raise failure_of(answer, "the validators file")


def _problem_of(check: Check) -> Callable[[str], ValidatorSecurityError | None]:
    """Makes a function that returns what a check raises; what is no Python is left for the child to say."""

    def problem_of(source: str) -> ValidatorSecurityError | None:
        try:
            check(source)
        except ValidatorSecurityError as error:
            return error
        except SyntaxError:
            return None
        return None

    return problem_of
