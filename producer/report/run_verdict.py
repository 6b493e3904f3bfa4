"""The verdict on a run of any kind: worded once for pages, terminal, Markdown and GitHub summaries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from producer.documents import AnyRun, counted
from producer.text import bounds, percent, plural, sentence_of
from shared.names import FINAL_STATES, RunState

INTERRUPTED: Final = "interrupted"
"""The state, for people, of a run that was begun and has no worker."""
NO_ANSWERS: Final = "no answers"
"""Stands in the place of a rate."""
_CUT_SHORT: Final = frozenset({RunState.ABORTED, RunState.CANCELLED, RunState.INCOMPLETE})
_EXIT_DONE: Final = 0
_EXIT_FAILED: Final = 1
_EXIT_CUT_SHORT: Final = 4


class _Mark(NamedTuple):
    """How a mark is drawn."""

    style: str
    """Its colour on a terminal."""
    tone: str
    """Its letter on a page."""


_DONE, _FAILED, _CUT, _UNDER_WAY = "✓", "✗", "!", "●"
_MARKS: Final[Mapping[str, _Mark]] = {
    _DONE: _Mark("green", "p"),
    _FAILED: _Mark("red", "f"),
    _CUT: _Mark("yellow", "e"),
    _UNDER_WAY: _Mark("cyan", ""),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out of a run, in words that no writer changes; none of them is safe for Markdown.

    >>> str(Verdict("✗", "3 of 4 passed", "75.0%, 95% interval 30.1-95.4%", ("1 failed",), "1 target missed"))
    '✗ 3 of 4 passed (75.0%, 95% interval 30.1-95.4%), 1 failed; 1 target missed'
    """

    mark: str
    """`✓`, `✗`, `!` for a run that was cut short, or `●` while it goes on."""
    outcome: str
    """How many passed, begun by the state of a run that is not finished."""
    rate: str = ""
    """The pass rate with its interval; empty where there is none."""
    shortfalls: Sequence[str] = ()
    """What kept the run from being whole: failures, errors, skipped items, gates."""
    targets: str = ""
    """Which targets of the kind were missed, or that all are met."""
    why: Sequence[str] = ()
    """Sentences: the gates, and what is in doubt."""

    def __str__(self) -> str:
        return f"{self.mark} {self.sentence}"

    @property
    def style(self) -> str:
        """Colour of the mark on a terminal."""
        return _MARKS[self.mark].style

    @property
    def tone(self) -> str:
        """Letter of the mark on a page; empty while the run goes on."""
        return _MARKS[self.mark].tone

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        return self._joined(f"{self.outcome} ({self.rate})" if self.rate else self.outcome)

    @property
    def heading(self) -> str:
        """The sentence without its rate, which follows as the first clause."""
        return self._joined(self.outcome)

    @property
    def clauses(self) -> Sequence[str]:
        """What stands below the heading, as sentences."""
        return [f"Pass rate {self.rate}.", *self.why] if self.rate else [*self.why]

    def _joined(self, outcome: str) -> str:
        text = ", ".join([outcome, *self.shortfalls])
        return f"{text}; {self.targets}" if self.targets else text


class RunOutcome(NamedTuple):
    """What came out of a run, as its kind words it; the rest of the verdict is the same for all kinds."""

    text: str
    """How many items passed."""
    rate: str = ""
    """The pass rate with its interval; empty where there is none."""
    failed: int = 0
    """Items that failed."""
    targets: str = ""
    """Which targets were missed, or that all are met."""
    why: Sequence[str] = ()
    """Sentences on what is in doubt."""


def verdict_with(document: AnyRun, outcome: RunOutcome) -> Verdict:
    """Returns the verdict on a run.

    Args:
        document: as `producer.document` makes it; its state may also be `interrupted`.
        outcome: in the words of its kind.
    """
    failed = [f"{outcome.failed:,} failed"] if outcome.failed else []
    state = document.state
    text = outcome.text if state == RunState.FINISHED else f"{state}: {outcome.text}"
    return Verdict(
        _mark(document),
        f"{text[:1].upper()}{text[1:]}",
        outcome.rate,
        (*failed, *shortfalls(document)),
        outcome.targets,
        (*gate_sentences(document), *outcome.why),
    )


def shortfalls(document: AnyRun) -> list[str]:
    """Names what kept a run of any kind from being whole: errors, skipped items, gates."""
    counts, missed = counted(document.summary, document.counts), len(document.missed_gates)
    named = [plural(counts.error, "error")] if counts.error else []
    if counts.skipped and document.state in FINAL_STATES:  # else they may still be worked on
        named.append(f"{counts.skipped:,} skipped")
    if missed:
        named.append(f"{plural(missed, 'gate')} failed")
    return named


def gate_sentences(document: AnyRun) -> list[str]:
    """Writes the gates of a run, the failed ones first."""
    gates = sorted(document.gates or (), key=lambda gate: gate.met)
    return [sentence_of(gate.text) for gate in gates]


def rated(document: AnyRun) -> RunOutcome:
    """Writes how many items or cases passed, of all and of those with an answer, but for skipped ones."""
    counts = counted(document.summary, document.counts)
    of = "" if counts is document.counts else "cases "
    passed, failed = counts.good, counts.failed
    answers = passed + failed
    judged = answers + counts.error
    if not answers:
        return RunOutcome(NO_ANSWERS)
    if judged > answers:
        rate = f"{percent(passed / judged)} of all, {percent(passed / answers)} of {answers:,} answered"
        return RunOutcome(f"{passed:,} of {judged:,} {of}passed", rate, failed)
    found = document.summary.case_verdicts.pass_rate if of else document.summary.rates.pass_rate_of_judged
    low, high = bounds(found)
    rate = f"{percent(found.value)}, 95% interval {low}-{high}%"
    return RunOutcome(f"{passed:,} of {judged:,} {of}passed", rate, failed)


def next_command(document: AnyRun) -> tuple[str, ...]:
    """Returns the words of the command that most people need next; empty where there is none."""
    run, state, counts = document.run_id, document.state, counted(document.summary, document.counts)
    if state in {RunState.PAUSED, INTERRUPTED}:
        return ("resume", run)
    if state not in FINAL_STATES:
        return ("watch", run)
    if state == RunState.ABORTED and counts.error:
        return ("retry", run)  # resume leaves the items that ended in errors
    if state in _CUT_SHORT and document.exit != _EXIT_FAILED:
        return ("resume", run)
    if counts.failed or counts.error:
        return ("results", run, "--failed")
    return () if document.files else ("report", run, "-o", "report.html")


def _mark(document: AnyRun) -> str:
    """Returns the mark of a run: of its state while it goes on, then of its exit code."""
    if document.state == INTERRUPTED:
        return _CUT
    if document.state not in FINAL_STATES:
        return _UNDER_WAY
    return {_EXIT_DONE: _DONE, _EXIT_CUT_SHORT: _CUT}.get(document.exit, _FAILED)
