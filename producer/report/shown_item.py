"""One item as people read it in a terminal: question, answer, why it did not pass, what was checked."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from producer.report.transcript import Spoken
from shared.names import Outcome

MARKS: Final = {
    Outcome.PASSED: "✓",
    Outcome.DECIDED: "✓",
    Outcome.FAILED: "✗",
    Outcome.ERROR: "!",
    Outcome.SKIPPED: "·",
}
"""Marks of outcomes."""
_QUOTES: Final = re.compile(r"[,;]?\s*\b(which|it) begins: .*", re.DOTALL)
"""The beginning of an answer at the end of a reason."""


class ShownItem(NamedTuple):
    """An item of a run with its result."""

    position: int
    """In the input, from 0."""
    name: str
    """Its name, as commands take it."""
    group: str
    """The same for items of one case or query: the beginning of their names."""
    outcome: Outcome
    """How it ended."""
    word: str
    """The same in a word, such as `failed` or `not checked`."""
    asked: Sequence[Spoken] = ()
    """What was sent."""
    answered: Sequence[Spoken] = ()
    """What came back; empty where nothing did."""
    reason: str = ""
    """Why it did not pass; empty where it did."""
    checks: Sequence[str] = ()
    """What each stage and check found, a line each, with its mark."""
    wanted: Sequence[Spoken] = ()
    """What a good answer looks like, or what followed from it, by its label."""
    figures: Sequence[str] = ()
    """Latency, cost, attempts."""

    @property
    def mark(self) -> str:
        """Its outcome as a sign."""
        return "·" if self.word == "not checked" else MARKS[self.outcome]

    @property
    def answer(self) -> str:
        """All of the answer in one text."""
        return "\n".join(spoken.text for spoken in self.answered)


def without_quote(reason: str) -> str:
    """Takes the beginning of the answer out of a reason beside which the answer stands.

    >>> without_quote('"Brasilia" is nowhere in the output, which begins: Brasília')
    '"Brasilia" is nowhere in the output'
    """
    return _QUOTES.sub("", reason)
