"""What is written down of a case that waits for its judge, so that no crash forgets it."""

from typing import Final

from worker.upstream.retry import History

JUDGE: Final = "judge "
"""What such a note begins with; then attempts and history of the judge."""


def judge_note(history: History) -> str:
    """Writes down what a judge has been through.

    >>> judge_note(History(2, 0, 350, "upstream_timeout"))
    'judge 2 upstream_timeout 0 350'
    """
    return f"{JUDGE}{history.attempts} {history.pack()}"


def waits_for_judge(note: str) -> bool:
    """Tells whether a note is about the judge, and not about the model under test.

    >>> waits_for_judge("judge 2 upstream_timeout 0 350"), waits_for_judge("upstream_timeout 0 350")
    (True, False)
    """
    return note.startswith(JUDGE)


def judge_history(note: str) -> History:
    """Reads what a judge has been through; nothing where the note is about something else.

    >>> judge_history("judge 2 upstream_timeout 0 350").attempts, judge_history("").attempts
    (2, 0)
    """
    attempts, _, history = note.removeprefix(JUDGE).partition(" ")
    known = waits_for_judge(note) and attempts.isdecimal()
    return History.unpack(int(attempts), history) if known else History()
