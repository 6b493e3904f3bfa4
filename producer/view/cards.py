"""A run while it goes on: how far it came, how fast, what it waits for, what may be done with it; pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from producer.report.html.viewer import Letter
from producer.run_standing import Standing, standing_of, state_text
from producer.text import cost, count, duration, percent, rate
from producer.view.run_lines import LETTERS, rate_of
from shared.names import Outcome, RunState
from shared.runs import RunInfo

BAR: Final = 1_000
"""Width of the bar in its own units."""
ACTIONS: Final = {
    "pause": "Pause",
    "resume": "Resume",
    "cancel": "Cancel",
    "retry": "Retry errors",
}
"""What may be done with a run, as buttons call it."""
_LETTERS: Final = {
    Outcome.PASSED: Letter.PASSED,
    Outcome.FAILED: Letter.FAILED,
    Outcome.ERROR: Letter.ERROR,
}


class RunPace(NamedTuple):
    """What only following a run tells."""

    per_s: float | None = None
    why: str = ""
    """Why it makes no progress."""
    in_flight: int | None = None
    spent_usd: float | None = None
    cap_usd: float | None = None
    limits: Sequence[str] = ()
    """What is used of them, and how many items are parked."""
    workers: int = 1
    """Live ones of its kind."""


class BarPart(NamedTuple):
    """A part of the bar: items that ended in one way."""

    letter: Letter
    word: str
    number: str
    x: float
    width: float


class Card(NamedTuple):
    """What a page shows of a run that goes on, or went."""

    run: str
    title: str
    kind: str
    state: str
    is_open: bool
    letter: Letter
    done: str
    parts: Sequence[BarPart]
    waiting: str
    facts: Sequence[tuple[str, str]]
    why: str
    limits: Sequence[str]
    actions: Sequence[tuple[str, str]]


def card_of(info: RunInfo, pace: RunPace, now_ms: int) -> Card:
    """Makes the card of a run."""
    is_worked_on = pace.workers > 0
    return Card(
        run=info.run,
        title=info.title,
        kind=info.kind.name,
        state=state_text(info, is_worked_on=is_worked_on),
        is_open=not info.is_final,
        letter=LETTERS[standing_of(info, is_worked_on=is_worked_on)],
        done=f"{count(info.done)} of {count(info.total)}",
        parts=_parts(info),
        waiting=count(info.total - info.done),
        facts=_facts(info, pace, now_ms),
        why=pace.why,
        limits=pace.limits,
        actions=[(name, ACTIONS[name]) for name in actions_of(info, is_worked_on=is_worked_on)],
    )


def actions_of(info: RunInfo, *, is_worked_on: bool) -> Sequence[str]:
    """Returns what may be done with a run in its state."""
    match info.state:
        case RunState.RUNNING:
            return ("pause", "cancel")
        case RunState.PAUSED:
            return ("resume", "cancel")
        case RunState.LOADING | RunState.CANCELLING:
            return ("cancel",) if info.state == RunState.LOADING else ()
        case RunState.FINISHED | RunState.CANCELLED | RunState.ABORTED | RunState.INCOMPLETE:
            has_gaps = info.tally.get(Outcome.ERROR, 0) > 0 or info.done < info.total
            is_short = standing_of(info, is_worked_on=is_worked_on) is Standing.SHORT
            return ("retry",) if has_gaps or is_short else ()


def _parts(info: RunInfo) -> Sequence[BarPart]:
    """Divides the bar among the outcomes of a kind."""
    parts, x = list[BarPart](), 0.0
    for word in info.kind.outcomes:
        number = info.tally.get(word, 0)
        width = BAR * number / info.total if info.total else 0.0
        letter = next((letter for outcome, letter in _LETTERS.items() if outcome == word), Letter.NONE)
        parts.append(BarPart(letter, "errors" if word == Outcome.ERROR else word, count(number), x, width))
        x += width
    return parts


def _facts(info: RunInfo, pace: RunPace, now_ms: int) -> list[tuple[str, str]]:
    """Returns the figures below the bar."""
    facts = list[tuple[str, str]]()
    if (passed := rate_of(info)) is not None:
        low, high = (f"{100 * bound:.0f}" for bound in (passed.low, passed.high))
        name = "Passed" if info.is_final else "Passed so far"
        facts.append((name, f"{percent(passed.value)}, 95%: {low} to {high}"))
    if not info.is_final and pace.per_s is not None:
        facts.append(("Speed", rate(pace.per_s)))
        if pace.per_s and info.state == RunState.RUNNING:
            facts.append(("Done in about", duration((info.total - info.done) / pace.per_s)))
    if pace.in_flight is not None and not info.is_final:
        facts.append(("In flight", count(pace.in_flight)))
    spent = max((usd for usd in (pace.spent_usd, info.paid_usd) if usd), default=None)
    if spent:
        likely = spent / info.done * info.total if info.done and not info.is_final else None
        text = cost(spent) if likely is None else f"{cost(spent)} → about {cost(likely)}"
        facts.append(("Cost" if pace.cap_usd is None else f"Cost, limit {cost(pace.cap_usd)}", text))
    took_s = info.elapsed_ms(info.finished_ms or now_ms) / 1000
    facts.append(("Took" if info.is_final else "Since", duration(took_s)))
    return facts
