"""Lends children to the threads of a worker: one validators file a child, one thread at a time.

A call of a validator leaves nothing behind for the next, whatever it does: it runs in a process of its own,
which the child of its file forks and which is gone before its answer is read (template.py). The child itself
executes nothing of the file. So the static policy is a courtesy, which finds mistakes early; no verdict rests
on it.

Patterns are searched in children of their own, where no validator ever ran. A search leaves nothing behind
but compiled patterns. JavaScript runs in others, each call in an interpreter of its own (scripting.py). What
goes wrong in a child that answered before is tried again in a new one.
"""

import atexit
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, NamedTuple

from shared.contracts.checks import Snippet
from shared.errors import ValidatorSecurityError
from shared.settings import Settings
from worker.sandbox import protocol
from worker.sandbox.child import RETURNED, ChildAnswer, SandboxChild, failure_of
from worker.sandbox.sandbox_errors import SandboxError, SandboxReason, UnusableError
from worker.sandbox.zygote_client import ChildLimits, Zygote, ZygoteLostError
from worker.validation.case_verdict import Returned
from worker.validation.policy import check_validator_source

CALL_S: Final = 5.0
"""How long a validator may take."""
SEARCH_S: Final = 1.0
"""How long the search for a pattern may take."""
MAX_USES: Final = 1_000
"""Requests that one child answers; then a new one takes its place."""
MOST_IDLE: Final = 8
"""Children that are kept for the next batch."""
NO_QUICKJS: Final = "JavaScript is not run here: quickjs-ng is not installed"
QUICKJS_HINT: Final = "pip install 'proctor[js]' where workers run"
UNSAFE_HINT: Final = (
    "run workers on Linux 4.14 or later, or, for files that you trust, with "
    "--allow-unsandboxed-validators or PROCTOR_UNSAFE_VALIDATORS=1"
)
LOAD_HINT: Final = (
    "it is run from its top for each call, with the modules that the documentation lists and without "
    "files or network"
)

Check = Callable[[str], None]


class Work(NamedTuple):
    """What a child is for; any of the same work will do."""

    order: bytes
    """The order by which it is forked."""
    source: str = ""
    """The validators file's text."""


PATTERNS: Final = Work(protocol.SEARCHER)
SCRIPTS: Final = Work(protocol.SCRIPTER)


class Sandboxes:
    """All sandboxes of one worker process; made cheaply, started when first needed, ended with the process.

    Args:
        check: refuses what validators may not do; None checks nothing.
        call_s: how long a validator may take.
        search_s: how long the search for a pattern may take.
        limits: what a child may use.
        is_unsafe_allowed: whether validators run where no process can be locked; None: see the environment.
    """

    def __init__(
        self,
        *,
        check: Check | None = check_validator_source,
        call_s: float = CALL_S,
        search_s: float = SEARCH_S,
        limits: ChildLimits = ChildLimits(),  # noqa: B008 - it cannot be changed
        is_unsafe_allowed: bool | None = None,
    ) -> None:
        self.call_s, self.search_s = call_s, search_s
        self._check = None if check is None else lru_cache(MOST_IDLE)(_problem_of(check))
        self._limits = limits
        self._is_unsafe_allowed = is_unsafe_allowed
        self._lock = threading.Lock()
        self._zygote: Zygote | None = None
        self._is_closed = False
        self._idle: OrderedDict[SandboxChild, Work] = OrderedDict()

    @contextmanager
    def batch(self, source: str | None) -> Iterator["Sandbox"]:
        """Opens a sandbox for the calls of one thread.

        Args:
            source: the validators file's text; None when only patterns are searched.

        Raises:
            ValidatorSecurityError: the file does what validators may not.
        """
        if source is not None:
            self._refuse(source)
        sandbox = Sandbox(self, source)
        try:
            yield sandbox
        finally:
            sandbox.close()

    @property
    def why_unlocked(self) -> str:
        """Why processes cannot be locked on this machine; empty when they can. Starts the zygote."""
        return self._started().why_unlocked

    def acquire(self, work: Work, *, is_new: bool = False) -> SandboxChild:
        """Gives a child for some work, a used one if there is one.

        Raises:
            UnusableError: there is none to be had, or the validators file does not load.
            SandboxError: there is none to be had any more, the sandbox is closed.
            ZygoteLostError: the zygote ended at this moment; a second try will start another.
        """
        while not is_new:
            with self._lock:
                found = next((child for child, its in self._idle.items() if its == work), None)
                if found is None:
                    break
                del self._idle[found]
            if not found.is_stale:
                return found
            found.end()
        zygote = self._started()
        if work is not PATTERNS and zygote.why_unlocked and not self._may_be_unsafe():
            what = f"validators and JavaScript are not run here: {zygote.why_unlocked}"
            raise UnusableError(SandboxReason.UNAVAILABLE, what, hint=UNSAFE_HINT)
        if work is SCRIPTS and not zygote.quickjs:
            raise UnusableError(SandboxReason.NO_JAVASCRIPT, NO_QUICKJS, hint=QUICKJS_HINT)
        child = SandboxChild(zygote.fork(work.order, is_locked=not zygote.why_unlocked))
        if work.order == protocol.TEMPLATE:
            _load(child, work.source, self.call_s)
        return child

    def release(self, child: SandboxChild, work: Work) -> None:
        """Takes back a child: keeps it for the next batch, or ends it."""
        spare: list[SandboxChild] = []
        with self._lock:
            if not self._is_closed and not child.is_ended and child.uses < MAX_USES:
                self._idle[child] = work
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
                raise SandboxError(SandboxReason.UNAVAILABLE, "the sandbox is closed")
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

    def _refuse(self, source: str) -> None:
        """Refuses a file that does what validators may not; each is read once."""
        problem = None if self._check is None else self._check(source)
        if problem is not None:
            raise ValidatorSecurityError(problem.message, hint=problem.hint)


class Sandbox:
    """Runs patterns and validators for one thread; made by `Sandboxes.batch`.

    Args:
        sandboxes: where children come from.
        source: the validators file's text, if there is one.
    """

    def __init__(self, sandboxes: Sandboxes, source: str | None) -> None:
        self._sandboxes, self._source = sandboxes, source
        self._children: dict[Work, SandboxChild] = {}

    def search(self, pattern: str, text: str) -> str | None:
        """Searches as `re.search` with MULTILINE does; returns the text that matched, which may be empty.

        Raises:
            SandboxError: it gave no answer, for the reason in the message.
        """
        answer = self._ask(PATTERNS, protocol.SEARCH, pattern, text, self._sandboxes.search_s)
        if answer.kind == protocol.MATCH:
            return answer.text
        if answer.kind == protocol.NO_MATCH:
            return None
        raise failure_of(answer, "the search")

    def call(self, name: str, text: str) -> object:
        """Calls a validator and returns what it returned, as far as that can be represented.

        Raises:
            UnusableError: it could give none for any output; the message has the reason.
            SandboxError: it gave no answer, for the reason in the message.
        """
        return self._called(protocol.CALL, name, text)

    def _called(self, what: bytes, name: str, text: str) -> object:
        """Has a function called, and reads its answer."""
        if self._source is None:
            raise UnusableError(SandboxReason.UNKNOWN_VALIDATOR, "there is no validators file")
        work = Work(protocol.TEMPLATE, self._source)
        answer = self._ask(work, what, name, text, self._sandboxes.call_s)
        if answer.kind in RETURNED:
            return RETURNED[answer.kind](answer.text)
        if answer.kind == protocol.VALUE and what == protocol.TRANSFORM:
            return _returned(answer.text).value
        raise failure_of(answer, name)

    def check(self, name: str, text: str, context: str) -> object:
        """Calls a function with an output, and with a context if it takes one; returns what it returned.

        Args:
            name: the function.
            text: the output.
            context: a JSON object.

        Raises:
            UnusableError: it could give no answer for any output; the message has the reason.
            SandboxError: it gave no answer, for the reason in the message.
        """
        return self._called(protocol.CHECK, name, protocol.joined(text, context))

    def transform(self, name: str, text: str, context: str) -> object:
        """Calls a function as `check` does, and returns the JSON value that it made of the output.

        Args:
            name: the function.
            text: the output.
            context: a JSON object.

        Raises:
            UnusableError, SandboxError: as `check`.
        """
        return self._called(protocol.TRANSFORM, name, protocol.joined(text, context))

    def script(self, script: Snippet, request: str) -> Returned:
        """Runs a script, in an interpreter that nothing has run in before.

        Args:
            script: the script.
            request: a JSON object: `output` and `context`, which its function is called with.

        Raises:
            UnusableError: JavaScript cannot be run here.
            SandboxError: it gave no answer, for the reason in the message.
        """
        named = json.dumps({"file": script.is_module, "name": script.function})
        asked = f"{named[:-1]}, {request[1:]}"
        answer = self._ask(SCRIPTS, protocol.SCRIPT, script.source, asked, self._sandboxes.call_s)
        if answer.kind == protocol.VALUE:
            return _returned(answer.text)
        raise failure_of(answer, "the script")

    def compile(self, script: Snippet) -> None:
        """Compiles a script without running it.

        Raises:
            UnusableError: JavaScript cannot be run here.
            SandboxError: it is none, for the reason in the message.
        """
        kind = "module" if script.is_module else ""
        answer = self._ask(SCRIPTS, protocol.LOAD, script.source, kind, self._sandboxes.call_s)
        if answer.kind != protocol.DONE:
            raise failure_of(answer, "the script")

    def close(self) -> None:
        """Gives its children back."""
        while self._children:
            work, child = self._children.popitem()
            self._sandboxes.release(child, work)

    def _ask(self, work: Work, what: bytes, first: str, second: str, limit_s: float) -> ChildAnswer:
        """Sends a request to a child; after a failure in a used child, or of its zygote, again to a new one.

        A validator or a script that is too slow is not: it began in a state of its own.
        """
        is_new = False
        for is_last in (False, False, True):
            child = self._children.get(work)
            was_used = False
            try:
                if child is None:
                    child = self._children[work] = self._sandboxes.acquire(work, is_new=is_new)
                was_used = child.uses > 0
                answer = child.request(what, first, second, limit_s)
            except ZygoteLostError as error:
                self._drop(work)
                if is_last:
                    raise SandboxError(
                        SandboxReason.CRASH, f"the sandbox ended again and again: {error}"
                    ) from error
            except SandboxError as error:
                self._drop(work)
                if not was_used or (work is not PATTERNS and error.reason is SandboxReason.TIMEOUT):
                    raise
            else:
                is_used_up = work is PATTERNS and answer.kind == protocol.MEMORY
                if is_used_up or child.uses >= MAX_USES:
                    self._drop(work)
                if not is_used_up or not was_used:
                    return answer
            is_new = True
        raise SandboxError(SandboxReason.CRASH, "the sandbox ended again and again")

    def _drop(self, work: Work) -> None:
        child = self._children.pop(work, None)
        if child is not None:
            child.end()


def _returned(text: str) -> Returned:
    """Reads what a script returned.

    Raises:
        SandboxError: it is nested too deep.

    >>> _returned('object {"pass":true}'), _returned("undefined undefined").value is None
    (Returned(type='object', value={'pass': True}), True)
    """
    kind, _, value = text.partition(" ")
    try:
        return Returned(kind, None if value == "undefined" else json.loads(value))
    except (ValueError, RecursionError) as error:
        raise SandboxError(SandboxReason.EXCEPTION, f"what it returned cannot be read: {error}") from None


def _load(child: SandboxChild, source: str, limit_s: float) -> None:
    """Has a child compile a validators file and run it once from its top.

    Raises:
        UnusableError: it cannot be run.
        ZygoteLostError: the child was ended together with its zygote.
    """
    try:
        answer = child.request(protocol.LOAD, source, "", limit_s)
        child.uses = 0
        if answer.kind != protocol.DONE:
            raise failure_of(answer, "the validators file")
    except SandboxError as error:
        child.end()
        what = f"the validators file cannot be loaded: {error.message}"
        raise UnusableError(error.reason, what, hint=LOAD_HINT) from error


def _problem_of(check: Check) -> Callable[[str], ValidatorSecurityError | None]:
    """Makes a function that returns what a check raises; a syntax error is left for the child to report."""

    def problem_of(source: str) -> ValidatorSecurityError | None:
        try:
            check(source)
        except ValidatorSecurityError as error:
            return error
        except SyntaxError:
            return None
        return None

    return problem_of
