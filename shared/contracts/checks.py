"""The form in which a check of a test case travels: read from YAML at submit, evaluated by workers.

`worker.validation.checks` makes it of what people write, and has the table of what `check` can be. What a
check needs is all in it: its argument is rendered, schemas are inlined, paths and patterns are verified.
"""

from typing import Any, Final, NamedTuple

import msgspec

MAX_NAME_CHARS: Final = 80
"""Characters of a check's name; a longer default name is cut."""
PLACE: Final = " at "
"""Between a kind of check and its `json_path`."""


class Snippet(NamedTuple):
    """JavaScript that is run in the sandbox."""

    source: str
    """Its text: an expression, the body of a function of `output` and `context`, or a module."""
    is_module: bool = False
    """Whether it exports the function that is called, as files do."""
    function: str = ""
    """The name of what it exports; empty: the module itself, or its default."""


class Transform(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How an answer is changed before it is checked: one of the four ways is given."""

    json_pointer: str | None = None
    """The part of the JSON in it at this pointer."""
    template: str | None = None
    """A template over it."""
    python: str | None = None
    """What this function of the validators file returns."""
    javascript: Any = None
    """What this code returns, or this file; with its text."""

    @property
    def runs_code(self) -> bool:
        """Whether it runs what people wrote, in the sandbox."""
        return self.python is not None or self.javascript is not None


class Check(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One check with its options."""

    check: str
    """Its row in the table of checks, such as `contains`."""
    argument: Any = None
    """Value that the output is compared with; None for a bare word."""
    name: str = ""
    """What people call it; empty: `label` makes one."""
    at_least: float | None = None
    """The score from which it passes; None: what the kind of check says."""
    weight: float = 1.0
    """How much its score counts in the mean of a case; 0: it is shown and decides nothing."""
    json_path: str = ""
    """Which part of the JSON in the output is checked (RFC 9535); empty: the output."""
    options: dict[str, Any] = {}
    """Those that only this kind of check has, as they were written; absent means the default."""
    checks: tuple["Check", ...] = ()
    """The inner checks of `all`, `any`, `not`, and those of a tool call's arguments."""
    transform: Transform | None = None
    """How what is checked is changed before."""
    written: str = ""
    """The name made of it before its templates were rendered; empty without templates."""

    @property
    def models(self) -> list[str]:
        """The models that it asks itself: `models`, a panel, or `model`.

        >>> Check("rubric", options={"models": ["a", "b"]}).models, Check("contains", "Paris").models
        (['a', 'b'], [])
        """
        if not self.options:
            return []
        model = self.options.get("model")
        return list(self.options.get("models") or ([] if model is None else [model]))


def finding(name: str, reason: str, score: float | None, at_least: float | None = None) -> str:
    """Writes what a check found: its name, a score between 0 and 1, and the reason.

    Args:
        name: of the check.
        reason: what was expected, and what was found.
        score: the score; None without one.
        at_least: the score that was needed and not reached; None says nothing of it.

    >>> finding("contains: Paris", "it is not in the output", 0.0)
    'contains: Paris: it is not in the output'
    >>> finding("rubric: Is polite.", "It is curt.", 0.6996, 0.7)
    'rubric: Is polite: 0.6996, at least 0.7000 needed; It is curt.'
    """
    graded = f" ({score:.2f})" if at_least is None and score is not None and 0 < score < 1 else ""
    return f"{name.rstrip('.')}{graded}: {_found(reason, score, at_least)}".removesuffix(": ")


def example_finding(name: str, reason: str, score: float | None, at_least: float | None = None) -> str:
    """Writes what a check found in one of many answers, for a line about all of them.

    >>> example_finding("contains: Paris", "it is not in the output", 0.0)
    'contains: Paris, e.g. it is not in the output'
    >>> example_finding("rubric: Is polite.", "It is curt.", 0.4)
    'rubric: Is polite, e.g. 0.40; It is curt.'
    """
    graded = f"{score:.2f}; " if at_least is None and score is not None and 0 < score < 1 else ""
    found = f"{graded}{_found(reason, score, at_least)}".removesuffix("; ")
    return f"{name.rstrip('.')}, e.g. {found}".removesuffix(", e.g. ")


def _found(reason: str, score: float | None, at_least: float | None) -> str:
    """Writes a reason, after the score that was too low where one was needed."""
    if score is None or at_least is None:
        return reason
    digits = 2 if f"{score:.2f}" != f"{at_least:.2f}" else 4  # as many as show that the one is less
    found = f"{score:.{digits}f}, at least {at_least:.{digits}f} needed"
    return f"{found}; {reason}".removesuffix("; ")
