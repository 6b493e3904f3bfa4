"""Renders templates in a process of its own, which may use 2 s of processor time for each and 256 MB.

The process is started when such a template is met, and ends when none follows. A template that takes too long
ends it; the next one is rendered by a new process.

    python -m shared.templates.template_process    reads requests from stdin, and answers each on stdout
"""

import atexit
import json
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import IO, Any, Final, NamedTuple

from jinja2 import Template

from shared.errors import WrongInput
from shared.processes.own_modules import module_command, module_environment
from shared.templates.template_engine import compiled, parsed, rendered
from shared.templates.template_texts import MissingValue

RENDER_S: Final = 2.0
"""Processor time of one template."""
MEMORY_BYTES: Final = 256 << 20
"""Memory of all that templates make."""
TEMPLATES: Final = 64
"""Compiled templates that are kept."""
IDLE_S: Final = 1.0
"""Time without a request after which the process ends."""
PATIENCE_S: Final = 60.0
"""Time until a process is taken for stuck: its processor time on a machine that is very busy."""
_MODULE: Final = "shared.templates.template_process"
END_S: Final = 1.0
"""Time between the end of its output and its end."""
TRIES: Final = 2
"""A process may end because it is idle, just when it is asked."""
_LENGTH: Final = struct.Struct("<Q")
_TOO_LONG: Final = f"the template takes longer than {RENDER_S:g} s"
_TOO_LARGE: Final = f"the template takes more than {MEMORY_BYTES >> 20} MB of memory"
_KILLED: Final = "the process that renders the template was killed, or did not answer"
_HINT: Final = "make its loops and texts shorter"


class _Request(NamedTuple):
    """What is asked of the process."""

    text: str
    """The template."""
    values: Mapping[str, Any] | None
    """Its variables; None: it is only compiled."""


class _Answer(NamedTuple):
    """What the process answers: a text, the name of a missing value, or what is wrong with the template."""

    text: str = ""
    missing: str = ""
    what: str = ""
    hint: str = ""
    line: int = 1


class TemplateProcess:
    """A process that renders templates; one at a time, from any thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._refused = dict[str, _Answer]()

    def render(self, text: str, values: Mapping[str, Any] | None) -> str:
        """Renders a template; without values it is only compiled.

        Raises:
            MissingValue: a variable, or a key of one, is not there.
            WrongInput: it cannot be rendered within the limits.
        """
        with self._lock:
            # Of a template that went beyond the limits once, thousands of cases must not wait for each.
            answer = self._refused.get(text) or self._answer(_Request(text, values))
            if answer.hint == _HINT:
                self._refused[text] = answer
        if answer.missing:
            raise MissingValue(answer.missing)
        if answer.what:
            raise WrongInput(answer.what, answer.hint, line=answer.line)
        return answer.text

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _answer(self, request: _Request) -> _Answer:
        """Asks the process, or a new one if it has ended."""
        for _ in range(TRIES):
            try:
                if self._process is None:
                    self._process = _started()
                answer = _exchanged(self._process, request)
            except OSError as error:
                what = f"the process that renders templates cannot be started: {error.strerror}"
                return _Answer(what=what, hint="see `proctor doctor`")
            if answer is not None:
                return answer
            if self._ended() == -signal.SIGPROF:
                return _Answer(what=_TOO_LONG, hint=_HINT)
        return _Answer(what=_KILLED, hint=_HINT)

    def _ended(self) -> int | None:
        """Ends the process; returns the exit code with which it ended by itself."""
        assert self._process is not None  # noqa: S101 - it was asked
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        code = self._process.returncode
        self.close()
        return code


def _started() -> "subprocess.Popen[bytes]":
    """Starts a process."""
    return subprocess.Popen(
        module_command(_MODULE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=module_environment(os.environ),
    )


def _exchanged(process: "subprocess.Popen[bytes]", request: _Request) -> _Answer | None:
    """Sends a request and reads the answer; None when there is none."""
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101 - same
    with suppress(BrokenPipeError):
        _write(process.stdin, pickle.dumps(tuple(request)))
    if not select.select([process.stdout], [], [], PATIENCE_S)[0]:
        return None
    body = _read(process.stdout)
    return _Answer(*json.loads(body)) if body else None


def _write(stream: IO[bytes], body: bytes) -> None:
    """Writes a length and what has it."""
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes:
    """Reads what `_write` has written; empty at the end of the stream."""
    head = stream.read(_LENGTH.size)
    return stream.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""


def serve() -> None:
    """Answers requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks decides when this one ends
    compiled(parsed("{{ ready }}"))  # what the first template would load, before memory is limited
    _limit_memory()
    while select.select([sys.stdin], [], [], IDLE_S)[0] and (body := _read(sys.stdin.buffer)):
        # A handler in Python would wait for the end of a long operation; the default ends the process.
        signal.setitimer(signal.ITIMER_PROF, RENDER_S)
        answer = _answer(_Request(*pickle.loads(body)))  # noqa: S301 - of the parent
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(sys.stdout.buffer, json.dumps(answer).encode())


def _answer(request: _Request) -> _Answer:
    """Renders one template."""
    try:
        template = _compiled(request.text)
        return _Answer("" if request.values is None else rendered(template, request.values))
    except MissingValue as error:
        return _Answer(missing=str(error))
    except WrongInput as problem:
        return _Answer(what=problem.what, hint=problem.hint, line=problem.line)
    except MemoryError:
        return _Answer(what=_TOO_LARGE, hint=_HINT)


@lru_cache(TEMPLATES)
def _compiled(text: str) -> Template:
    """Compiles a template, the same one only once."""
    return compiled(parsed(text))


def _limit_memory() -> None:
    """Bounds the memory beyond that in use; where a system has no such limit, time alone counts."""
    import resource  # noqa: PLC0415 - only the process itself needs it

    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


PROCESS: Final = TemplateProcess()
"""The process of this process."""
atexit.register(PROCESS.close)

if __name__ == "__main__":
    serve()
