"""Reads a validators file and refuses it when it does what validators may not; nothing of it is executed.

The rules are those of the validation specification, and the known ways around them: other names for blocked
builtins, escapes over special attributes and frames, modules found inside modules, attribute names made at
run time. This is the friendly half of the defence, with a line and a reason; what holds when it is fooled is
the sandbox.
"""

import ast
from threading import Lock
from typing import Final, NamedTuple

from shared.errors import ValidatorSecurityError
from worker.validation.policy_rules import PolicyRules
from worker.validation.policy_vocabulary import MAX_SOURCE_CHARS, PolicyViolation

_PARSING: Final = Lock()


class PolicyProblem(NamedTuple):
    """One thing that a validators file may not do."""

    line: int
    """Counted from 1."""
    column: int
    """Counted from 1."""
    what: str
    """In words."""
    rule: str
    """Which rule it breaks."""

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.what} (rule: {self.rule})"


def check_validator_source(source: str, name: str = "validators") -> None:
    r"""Refuses a validators file that does what validators may not.

    Args:
        source: its text.
        name: what messages call it.

    Raises:
        SyntaxError: it is no Python.
        ValidatorSecurityError: it does; the message names line, column, what it is, and the rule.

    >>> check_validator_source("import re\ndef v(output): return bool(re.search('x', output))")
    >>> check_validator_source("run = eval")
    Traceback (most recent call last):
        ...
    shared.errors.ValidatorSecurityError: validators: line 1, column 7: eval is blocked (rule: blocked name)
    """
    problem = first_problem(source)
    if problem is not None:
        raise ValidatorSecurityError(
            f"{name}: {problem}",
            hint="validators work on their text alone, with the modules that the documentation lists",
        )


def first_problem(source: str) -> PolicyProblem | None:
    """Returns the first thing in a file that validators may not do, if there is one.

    Raises:
        SyntaxError: it is no Python.

    >>> first_problem("import os").rule
    'imports'
    """
    if len(source) > MAX_SOURCE_CHARS:
        what = f"{len(source):,} characters are more than {MAX_SOURCE_CHARS:,}"
        return PolicyProblem(1, 1, what, "size")
    try:
        PolicyRules(tree := _parse(source)).visit(tree)
    except PolicyViolation as violation:
        node = violation.node
        return PolicyProblem(
            getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1, violation.what, violation.rule
        )
    except (RecursionError, MemoryError):
        return PolicyProblem(1, 1, "the code is nested too deeply to be read", "size")
    except (ValueError, UnicodeError) as error:
        # A character that no source may hold, such as NUL: for the caller, no Python like any other.
        raise SyntaxError(str(error)) from None
    return None


def _parse(source: str) -> ast.Module:
    """Parses a file, in one thread at a time.

    CPython 3.11 counts how deep all threads of a process are within syntax trees in one number, and raises
    SystemError where a garbage collection lets them meet (its issue 106905).
    """
    with _PARSING:
        try:
            return ast.parse(source)
        except SystemError:  # a library parses in another thread
            return ast.parse(source)
