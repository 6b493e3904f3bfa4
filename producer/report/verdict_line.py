"""The verdict on a run of any kind, for terminals and Markdown: a mark, a sentence, and the next command."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from producer import kinds
from producer.aggregate.statistics import wilson
from producer.text import plural
from shared.kinds import kind_named
from shared.names import FINAL_STATES, RunState

INTERRUPTED: Final = "interrupted"
"""The state, for people, of a run that was begun and has no worker."""
NO_ANSWERS: Final = "no answers"
"""Stands in the place of a rate."""
_CUT_SHORT: Final = frozenset({RunState.ABORTED, RunState.CANCELLED, RunState.INCOMPLETE})
_EXIT_FAILED: Final = 1


class Verdict(NamedTuple):
    """What came out of a run."""

    mark: str
    """`✓`, `✗`, `!` for a run that was cut short, or `●` while it goes on."""
    style: str
    """Colour of the mark."""
    sentence: str
    """What came out; not made safe for Markdown."""

    def __str__(self) -> str:
        return f"{self.mark} {self.sentence}"


def verdict_of(document: Mapping[str, Any]) -> Verdict:
    """Returns the verdict on a run.

    Args:
        document: as `producer.document` makes it; its state may also be `interrupted`.
    """
    outcome = kinds.of(kind_named(document["kind"])).screen.load().outcome(document)
    mark, style = _mark(document)
    return Verdict(mark, style, ", ".join([outcome, *shortfalls(document)]))


def shortfalls(document: Mapping[str, Any]) -> list[str]:
    """Names what kept a run of any kind from being whole: errors, skipped items, gates.

    >>> shortfalls({"counts": {"error": 1, "skipped": 2}, "gates": [{"met": False}]})
    ['1 error', '2 skipped', '1 gate failed']
    """
    counts = document["counts"]
    missed = sum(not gate["met"] for gate in document.get("gates", ()))
    named = [plural(counts["error"], "error")] * bool(counts["error"])
    named += [f"{counts['skipped']:,} skipped"] * bool(counts["skipped"])
    return named + [f"{plural(missed, 'gate')} failed"] * bool(missed)


def rated(counts: Mapping[str, int]) -> str:
    """Returns how many items passed, of all and of those with an answer; skipped ones are in neither.

    >>> rated({"passed": 3, "failed": 1, "error": 0})
    '3 of 4 passed (75.0%, 95 % interval 30.1-95.4%), 1 failed'
    >>> rated({"passed": 3, "failed": 1, "error": 2})
    '3 of 6 passed (50.0% of all, 75.0% of 4 answered), 1 failed'
    """
    passed, failed = counts["passed"], counts["failed"]
    answers = passed + failed
    judged = answers + counts["error"]
    if not answers:
        return NO_ANSWERS
    rate = wilson(passed, judged).as_document()  # rounded as in tables, so that no line contradicts them
    shares = f"{100 * rate['value']:.1f}%, 95 % interval {100 * rate['low']:.1f}-{100 * rate['high']:.1f}%"
    if judged > answers:
        shares = f"{100 * rate['value']:.1f}% of all, {100 * passed / answers:.1f}% of {answers:,} answered"
    return f"{passed:,} of {judged:,} passed ({shares})" + f", {failed:,} failed" * bool(failed)


def next_command(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the words of the command that most people need next; empty where there is none.

    >>> next_command({"run_id": "r", "state": "finished", "exit": 1, "counts": {"failed": 1, "error": 0}})
    ('results', 'r', '--failed')
    """
    run, state, counts = document["run_id"], document["state"], document["counts"]
    if state in {RunState.PAUSED, INTERRUPTED}:
        return ("resume", run)
    if state not in FINAL_STATES:
        return ("watch", run)
    if state in _CUT_SHORT and document["exit"] != _EXIT_FAILED:
        return ("resume", run)
    if counts["failed"] or counts["error"]:
        return ("results", run, "--failed")
    return () if document["files"] else ("report", run, "-o", "report.html")


def _mark(document: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the mark of a run, and its colour."""
    if document["state"] == INTERRUPTED:
        return "!", "yellow"
    if document["state"] not in FINAL_STATES:
        return "●", "cyan"
    return {0: ("✓", "green"), 4: ("!", "yellow")}.get(int(document["exit"]), ("✗", "red"))
