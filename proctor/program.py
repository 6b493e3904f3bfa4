"""Calls the `proctor` program of this environment: documents from `--json`, events from `--jsonl`."""

import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from typing import IO, Any, Final

from proctor.errors import ProctorError, ProctorWarning

ROOT: Final = Path(__file__).resolve().parents[1]
"""The folder with the program's packages, beside this one."""
STOP_S: Final = 30.0
"""Seconds that a program has to end after an interrupt."""

Option = str | int | float | bool | os.PathLike[str] | Sequence[str] | None


def arguments_of(options: Mapping[str, Option]) -> list[str]:
    """Writes keyword arguments as options of the command line.

    Raises:
        TypeError: a value is nothing that a command line can have.

    >>> arguments_of({"max_cost": 1.5, "no_cache": True, "stream": False, "model": ["a", "b"], "judge": None})
    ['--max-cost=1.5', '--no-cache', '--model=a', '--model=b']
    """
    written = list[str]()
    for name, value in options.items():
        option = name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            written.append(f"--{option}")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            written += [f"--{option}={each}" for each in value]
        elif isinstance(value, str | int | float | os.PathLike):
            written.append(f"--{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
        else:
            raise TypeError(f"{name}= is an option of the command and cannot be {value!r}")
    return written


def document(
    arguments: Sequence[str], *, accepts: Sequence[int] = (0,), text: str | None = None
) -> dict[str, Any]:
    """Returns the document that a command prints with `--json`.

    Args:
        arguments: of the command.
        accepts: exit codes with which the document is the answer.
        text: what it reads from stdin.

    Raises:
        ProctorError: the command failed.
    """
    with started([*arguments, "--json"], text=text) as program:
        printed = program.out.read()
        code = program.end()
    try:
        found = json.loads(printed)
    except ValueError:
        raise program.failure(code) from None
    if code not in accepts or "error" in found:
        raise error_of(found.get("error", {}), code)
    return dict(found)


def lines(arguments: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields the lines of a command that prints JSON Lines, one by one.

    Raises:
        ProctorError: the command failed.
    """
    with started(arguments) as program:
        for line in program.out:
            found = json.loads(line)
            if "error" in found and "exit" in found:
                raise error_of(found["error"], found["exit"])
            yield found
        if code := program.end():
            raise program.failure(code)


def error_of(error: Mapping[str, Any], code: int) -> ProctorError:
    """Makes an exception of the error in a document."""
    return ProctorError(
        _about_bench(error.get("message", f"proctor ended with {code}")),
        hint=error.get("hint", ""),
        code=error.get("code", ""),
        exit_code=code,
    )


def _about_bench(text: str) -> str:
    """Names the bench, which is what stands on the one line of stdin.

    >>> _about_bench("stdin:1: name: is missing")
    'the bench: name: is missing'
    """
    return text.replace("stdin:1: ", "the bench: ").replace("stdin: ", "the bench: ")


class Program:
    """A command that was started.

    Args:
        process: the process.
        complaints: what it writes to stderr.
    """

    def __init__(self, process: "Popen[str]", complaints: IO[str]) -> None:
        self.out: Any = process.stdout
        """What it prints."""
        self._process = process
        self._complaints = complaints

    def end(self) -> int:
        """Waits for its end, passes its warnings on, and returns the exit code."""
        code = self._process.wait()
        for line in self._stderr().splitlines():
            if line.startswith("warning: "):
                warnings.warn(_about_bench(line.removeprefix("warning: ")), ProctorWarning, stacklevel=4)
        return code

    def failure(self, code: int) -> ProctorError:
        """Makes an exception of what it wrote to stderr."""
        said = self._stderr().strip().splitlines()
        errors = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
        hints = [line.removeprefix("hint: ") for line in said if line.startswith("hint: ")]
        message = errors[0] if errors else said[-1] if said else f"proctor ended with {code}"
        return ProctorError(_about_bench(message), hint=hints[0] if hints else "", exit_code=code)

    def stop(self) -> None:
        """Interrupts it, as Ctrl-C does, and waits: it stops its workers and keeps the run."""
        if self._process.poll() is None:
            self._process.send_signal(SIGINT)
            try:
                self._process.wait(STOP_S)
            except Exception:
                self._process.kill()
                raise
        self.out.close()
        self._process.wait()

    def _stderr(self) -> str:
        self._complaints.seek(0)
        return self._complaints.read()


@contextmanager
def started(arguments: Sequence[str], *, text: str | None = None) -> Iterator[Program]:
    """Starts a command, and interrupts it if it is left before its end.

    Args:
        arguments: of the command.
        text: what it reads from stdin.
    """
    command = [sys.executable, "-P", "-m", "producer", *arguments, "--color=never"]
    with TemporaryFile("w+", encoding="utf-8") as complaints, _stdin(text) as source:
        process = Popen(
            command,
            stdin=source,
            stdout=PIPE,
            stderr=complaints,
            text=True,
            encoding="utf-8",
            env=_environment(),
            start_new_session=True,  # Ctrl-C reaches this process alone, which then interrupts the program
        )
        program = Program(process, complaints)
        try:
            yield program
        finally:
            program.stop()


@contextmanager
def _stdin(text: str | None) -> Iterator[int | IO[str]]:
    """A file, because a pipe could fill before the program reads it."""
    if text is None:
        yield DEVNULL
        return
    with TemporaryFile("w+", encoding="utf-8") as file:
        file.write(text)
        file.seek(0)
        yield file


def _environment() -> dict[str, str]:
    """Puts the program's packages first: a project may have a `shared` of its own on PYTHONPATH."""
    others = os.environ.get("PYTHONPATH")
    path = f"{ROOT}{os.pathsep}{others}" if others else str(ROOT)
    return {**os.environ, "PYTHONPATH": path}
