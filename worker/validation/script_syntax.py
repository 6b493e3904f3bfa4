"""Compiles scripts before a run, in the sandbox and without running them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shared.contracts.checks import Snippet
from worker.sandbox import SandboxError, Sandboxes, SandboxReason, UnusableError


class ScriptProblem(NamedTuple):
    """What is wrong with a script."""

    script: Snippet
    what: str
    hint: str
    is_certain: bool = True
    """Whether it can never run; otherwise it is only not known, or probably not meant."""
    is_lacking: bool = False
    """Whether nothing that runs JavaScript is installed here."""


def script_problems(scripts: Iterable[Snippet]) -> Iterator[ScriptProblem]:
    """Yields what is wrong with scripts; where JavaScript cannot be run, that alone."""
    sandboxes = Sandboxes()
    try:
        with sandboxes.batch(None) as sandbox:
            for script in scripts:
                try:
                    sandbox.compile(script)
                except UnusableError as error:
                    is_lacking, what = error.reason is SandboxReason.NO_JAVASCRIPT, error.message
                    yield ScriptProblem(script, what, error.hint, is_certain=False, is_lacking=is_lacking)
                    return
                except SandboxError as error:
                    is_long = script.is_module or "\n" in script.source.strip()
                    hint = "correct it" if is_long else "one line is an expression, without return"
                    yield ScriptProblem(script, f"not JavaScript: {error.message}", hint)
                if not script.is_module and "\n" in script.source.rstrip() and "return" not in script.source:
                    what = "several lines without return, which return nothing"
                    yield ScriptProblem(script, what, "write return before the result", is_certain=False)
    finally:
        sandboxes.close()
