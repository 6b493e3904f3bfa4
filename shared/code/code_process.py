"""The process of a file of code, as its owner sees it: started once, called often, ended with all it began.

It is no sandbox: the code may use network and files as its user does. What it does not have is the
environment of its owner, which holds keys, and a way to outlive it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import IO, Any, Final, Literal

from shared.code.code_file import CodeFile

MEMORY_BYTES: Final = 2 << 30
"""Memory of each process of code."""
CALLS: Final = 64
"""Calls of a process that may be under way at a time; its owner keeps to it."""
MOST_REPLY_BYTES: Final = 8 << 20
"""A longer answer is none."""
MOST_CASES_BYTES: Final = 256 << 20
"""The same of a list of cases."""
USUAL_VARIABLES: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that all code has; none is a secret."""
_LOAD: Final = 0
"""The number of the call that loads the file; `host.py` and `host.mjs` answer it first."""
_FOLDER: Final = Path(__file__).parent
_LAST_WORDS: Final = 40
"""Lines of what it prints that are kept, for the reason of its end."""
_END_S: Final = 0.5
_REAP_S: Final = 5.0
_TYPESCRIPT: Final = frozenset({".ts", ".mts", ".cts"})
_STRIPS_TYPES: Final = (22, 18)
"""The first version of node that runs TypeScript by itself."""

Role = Literal["model", "prompt", "cases", "check"]
Failure = Literal["raised", "lost", "lost_together", "invalid", "unusable"]
"""The function raised; a connection or the process was lost, so that the same call may succeed; the process
was lost with other calls, one of which may have ended it; what came is no answer; the file cannot be run."""
_NUMBER: Final = re.compile(rb'\{"id": ?(\d{1,18}),')
"""How each answer begins."""
_REST_BYTES: Final = 1 << 16
_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
"""What is probably a variable of the environment."""


class CodeFailedError(Exception):
    """Code did not answer.

    Args:
        message: for people.
        failure: why.
        status: HTTP status that its client met, if it says so.
        wait_s: how long the reply with this status asks to wait.
    """

    def __init__(
        self, message: str, failure: Failure = "raised", *, status: int = 0, wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.failure, self.status, self.wait_s = failure, status, wait_s


class CodeProcess:
    """A process with one file of code.

    Args:
        file: it and what it imports; they are written to a folder of their own, unless `beside` has them.
        role: what the function is for.
        environment: the owner's, of which only the listed variables are passed on.
        options: what a model of a class is made with.
        beside: the folder that has the file, in which the code then runs.
        memory_bytes: that it may have.
    """

    def __init__(
        self,
        file: CodeFile,
        role: Role,
        environment: Mapping[str, str],
        *,
        options: Mapping[str, Any] | None = None,
        beside: Path | None = None,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._name = file.name
        self._withheld = environment.keys() - listed_variables(file, environment).keys()
        self._most = MOST_CASES_BYTES if role == "cases" else MOST_REPLY_BYTES
        self._own = ExitStack()
        if beside is None:
            own = TemporaryDirectory(prefix="proctor-code-", ignore_cleanup_errors=True)
            folder = Path(self._own.enter_context(own))
            file.write(folder)
        else:
            folder = beside
        self.ready: Future[Any] = Future()
        """Ends when the file is loaded; with `CodeFailedError` if it cannot be."""
        self._waiting = {_LOAD: self.ready}
        self._last_words = deque[bytes](maxlen=_LAST_WORDS)
        self._lock, self._numbers = Lock(), count(_LOAD + 1)
        self.has_ended = False
        """Whether no further call can be made."""
        try:
            self._process, self._life = _started(file, folder, environment, memory_bytes)
        except CodeFailedError:
            self._own.close()
            raise
        start = {"path": str(folder / file.name), "function": file.function, "role": role}
        Thread(target=self._listen, name=f"code {file.name}", daemon=True).start()
        Thread(target=self._keep_words, name=f"code {file.name} words", daemon=True).start()
        self._send(start | {"options": options or {}})

    def call(self, arguments: Sequence[Any]) -> "Future[Any]":
        """Calls the function with JSON values; the result is what it returns, or a `CodeFailedError`."""
        number, found = next(self._numbers), Future[Any]()
        with self._lock:
            self._waiting[number] = found
        if self.has_ended or not self._send({"id": number, "arguments": list(arguments)}):
            self._fail(CodeFailedError(f"{self._name}: its process has ended", "lost"))
        return found

    def close(self) -> None:
        """Ends it with all that it has started; calls under way fail."""
        with self._lock:
            life, self._life = self._life, -1
        if life >= 0:
            os.close(life)

    def _send(self, message: Mapping[str, Any]) -> bool:
        line = json.dumps(message).encode() + b"\n"
        try:
            with self._lock:
                pipe: IO[bytes] = _pipe(self._process.stdin)
                pipe.write(line)
                pipe.flush()
        except (OSError, ValueError):
            return False
        return True

    def _listen(self) -> None:
        """Takes answers until there are no more; in a thread."""
        why = ""
        try:
            why = self._take_replies(_pipe(self._process.stdout))
        except (ValueError, KeyError, TypeError, AttributeError):
            why = "wrote what is no answer to where answers go"
        finally:
            self.has_ended = True
            with suppress(subprocess.TimeoutExpired):  # of one that has ended by itself, to know how
                self._process.wait(0 if why else _END_S)
            self.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAP_S)
            self._fail(self._end(why))
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    _pipe(pipe).close()
            self._own.close()

    def _take_replies(self, pipe: IO[bytes]) -> str:
        """Hands answers over; returns what is wrong with the last one, nothing at the end."""
        while line := pipe.readline(self._most):
            if line.endswith(b"\n"):
                reply = json.loads(line)
            elif len(line) < self._most or not (begun := _NUMBER.match(line)):
                return ""
            else:
                reply = {"id": int(begun[1]), "error": f"answered with more than {self._most >> 20} MiB"}
                reply["is_invalid"] = True
                while (rest := pipe.readline(_REST_BYTES)) and not rest.endswith(b"\n"):
                    pass
            number = reply["id"]
            with self._lock:
                found = self._waiting.pop(number, None)
            if found is None or found.done() or not found.set_running_or_notify_cancel():
                continue  # given up by its caller
            if "error" in reply:
                found.set_exception(_failure(self._name, reply, self._withheld, is_unusable=number == _LOAD))
            else:
                found.set_result(reply["value"])
        return ""

    def _end(self, why: str) -> CodeFailedError:
        """Says why there are no more answers; which of several calls is to blame is not known."""
        code = self._process.returncode
        ended = why or ("was ended" if code is None else f"ended with exit code {code}")
        words = b"".join(self._last_words).decode(errors="replace").strip().splitlines()
        last = next((f": {line}" for line in reversed(words) if "error" in line.lower()), "")
        with self._lock:
            are_several = sum(not each.done() for each in self._waiting.values()) > 1
        failure: Failure = "lost_together" if are_several else "invalid" if why else "lost"
        return CodeFailedError(f"{self._name}: its process {ended}{last}", failure)

    def _fail(self, error: CodeFailedError) -> None:
        """Ends all calls under way."""
        with self._lock:
            left, self._waiting = self._waiting, {}
        for each in left.values():
            if not each.done() and each.set_running_or_notify_cancel():
                each.set_exception(error)

    def _keep_words(self) -> None:
        """Reads what it prints, and keeps the end; in a thread."""
        with _pipe(self._process.stderr) as pipe, suppress(OSError, ValueError):
            while line := pipe.readline(1 << 12):
                self._last_words.append(line)


def _failure(
    name: str, reply: Mapping[str, Any], withheld: Collection[str], *, is_unusable: bool
) -> CodeFailedError:
    """Makes the error that a reply says; it also names a variable in it that the code is not given."""
    said = str(reply["error"])
    where = f" (line {reply['line']})" if reply.get("line") else ""
    lacked = next((each for each in _VARIABLE.findall(said) if each in withheld), "")
    how = f"; {lacked} is set, but code gets it only with env: [{lacked}]" if lacked else ""
    failure: Failure = (
        "lost" if reply.get("is_connection") else "invalid" if reply.get("is_invalid") else "raised"
    )
    failure = "unusable" if is_unusable else failure
    status = reply.get("status")
    return CodeFailedError(
        f"{name}: {said}{where}{how}",
        failure,
        status=status if isinstance(status, int) else 0,
        wait_s=reply.get("wait_s"),
    )


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise AssertionError("all three are pipes")
    return pipe


def _started(
    file: CodeFile, folder: Path, environment: Mapping[str, str], memory_bytes: int
) -> "tuple[subprocess.Popen[bytes], int]":
    """Starts the keeper with the program; also returns the end of the pipe that keeps both alive."""
    ends, life = os.pipe()
    try:
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(_FOLDER / "keeper.py"), str(ends), str(memory_bytes)),
                *_program(file, folder, environment, memory_bytes),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(ends,),
            env=listed_variables(file, environment),
            cwd=folder,
            start_new_session=True,  # Ctrl-C is for its owner, who then ends it
        )
    except BaseException:
        os.close(life)
        raise
    finally:
        os.close(ends)
    return process, life


def _program(file: CodeFile, folder: Path, environment: Mapping[str, str], memory_bytes: int) -> list[str]:
    """Returns the command line that runs a file.

    Raises:
        CodeFailedError: this machine has nothing that does.
    """
    if file.language == "python":
        return [sys.executable, "-I", str(_FOLDER / "host.py")]
    node = shutil.which("node", path=environment.get("PATH"))
    if node is None:
        text = f"{file.name}: JavaScript is run by node, which this machine does not have"
        raise CodeFailedError(text, "unusable")
    options = [f"--max-old-space-size={memory_bytes >> 20}", "--no-warnings", "--experimental-detect-module"]
    if Path(file.name).suffix in _TYPESCRIPT:
        options += typescript_options(file.name, folder, node)
    return [node, *options, str(_FOLDER / "host.mjs")]


def typescript_options(name: str, folder: Path, node: str) -> list[str]:
    """Returns the options with which node runs TypeScript: of `tsx`, if it is installed above a folder.

    Raises:
        CodeFailedError: nothing here does.
    """
    if any((each / "node_modules" / "tsx").is_dir() for each in (folder, *folder.parents)):
        return ["--import", "tsx"]
    if _version(node) < _STRIPS_TYPES:
        how = "node 22.18 or later, or by tsx, which `npm install tsx` puts beside it"
        raise CodeFailedError(f"{name}: TypeScript is run by {how}; this machine has neither", "unusable")
    return []


@cache
def _version(node: str) -> tuple[int, ...]:
    """Returns the version of a `node`; empty where it says none."""
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(each) for each in said.strip().removeprefix("v").split(".") if each.isdecimal())


def listed_variables(file: CodeFile, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a file's process.

    >>> file = CodeFile("python", "a.py", "", "", env=["KEY"])
    >>> listed_variables(file, {"KEY": "1", "OTHER": "2", "TZ": "UTC"})
    {'TZ': 'UTC', 'KEY': '1'}
    """
    return {name: environment[name] for name in (*USUAL_VARIABLES, *file.env) if name in environment}
