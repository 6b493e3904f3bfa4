"""What is written down of a case that waits for its judges, so that no crash forgets it."""

from collections.abc import Sequence
from typing import Final

from worker.upstream.retry import History, is_count

JUDGE: Final = "judge "
"""What such a note begins with; then attempts and history of each judge."""
BETWEEN: Final = "|"
"""Stands between judges; no error code has it."""


def judge_note(histories: Sequence[History]) -> str:
    """Writes down what the judges have been through, in the order of the panel.

    >>> judge_note([History(2, 0, 350, "upstream_timeout"), History()])
    'judge 2 upstream_timeout 0 350|0  0 0'
    """
    return JUDGE + BETWEEN.join(f"{history.attempts} {history.pack()}" for history in histories)


def waits_for_judge(note: str) -> bool:
    """Tells whether a note is about the judge, and not about the model under test.

    >>> waits_for_judge("judge 2 upstream_timeout 0 350"), waits_for_judge("upstream_timeout 0 350")
    (True, False)
    """
    return note.startswith(JUDGE)


def judge_histories(note: str, judges: int) -> list[History]:
    """Reads what each of the judges has been through; nothing where the note is about something else.

    >>> [history.attempts for history in judge_histories("judge 2 upstream_timeout 0 350|1  0 0", 3)]
    [2, 1, 0]
    >>> judge_histories("upstream_timeout 0 350", 1) == [History()]
    True
    """
    told = note.removeprefix(JUDGE).split(BETWEEN) if waits_for_judge(note) else []
    return [_history(each) for each in (told + [""] * judges)[:judges]]


def _history(text: str) -> History:
    """Reads what one judge has been through."""
    attempts, _, packed = text.partition(" ")
    return History.unpack(int(attempts), packed) if is_count(attempts) else History()
