"""The checks `levenshtein` and `edit_distance`: how few characters make the output the expected text."""

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from shared.contracts.checks import Check
from worker.validation.checks.kind import Label, Score, Subject, no, titled, yes
from worker.validation.checks.texts import Text, comparable

MAX_CHARS: Final = 10_000
"""Characters of either text that are compared, about 60 ms; the score says when there were more."""


def levenshtein(check: Check, subject: Subject) -> Score:
    """Scores 1 for equal texts, less a share for each character to insert, delete or replace.

    >>> levenshtein(Check("levenshtein", "kitten"), Subject("sitting")).reason
    'edit distance 3 of 7 characters: similarity 0.571'
    """
    expected, found = comparable(check.argument, check), comparable(subject.text, check)
    is_cut = max(len(expected), len(found)) > MAX_CHARS
    expected, found = expected[:MAX_CHARS], found[:MAX_CHARS]
    most = max(len(expected), len(found))
    distance = edit_distance(expected, found)
    similarity = 1 - distance / most if most else 1.0
    note = f", of the first {MAX_CHARS:,} characters" if is_cut else ""
    what = f"edit distance {distance:,} of {most:,} characters: similarity {similarity:.3f}{note}"
    return Score(similarity, what, {"distance": distance})


class Edits(TypedDict):
    """A text, and how far the output may be from it."""

    text: Text
    max: Annotated[int, Field(strict=True, ge=0)]


def few_edits(check: Check, subject: Subject) -> Score:
    """Counts the characters to insert, delete or replace.

    >>> few_edits(Check("edit_distance", {"text": "kitten", "max": 2}), Subject("sitting")).reason
    '3 edits, expected at most 2'
    """
    expected, found = comparable(check.argument["text"], check), comparable(subject.text, check)
    most = check.argument["max"]
    least = abs(len(expected) - len(found))
    distance = least if least > most else edit_distance(expected[:MAX_CHARS], found[:MAX_CHARS])
    score = yes if distance <= most else no
    return score(f"{distance:,} edits, expected at most {most:,}", distance=distance)


def edits_title(check: Check, _: Label) -> str:
    """Names a check after its text."""
    return titled(check, check.argument["text"])


def edit_distance(first: str, second: str) -> int:
    """Counts the characters to insert, delete or replace (Myers' bit-parallel way, with whole rows as bits).

    >>> edit_distance("kitten", "sitting"), edit_distance("", "abc"), edit_distance("same", "same")
    (3, 3, 0)
    """
    if first == second or not first or not second:
        return 0 if first == second else len(first) + len(second)
    places: dict[str, int] = {}
    for index, char in enumerate(first):
        places[char] = places.get(char, 0) | 1 << index
    last, everything = 1 << (len(first) - 1), (1 << len(first)) - 1
    up, down, distance = everything, 0, len(first)
    for char in second:
        equal = places.get(char, 0)
        diagonal = (((equal & up) + up) ^ up) | equal | down
        plus, minus = down | (everything & ~(diagonal | up)), up & diagonal
        distance += bool(plus & last) - bool(minus & last)
        plus, minus = (plus << 1 | 1) & everything, (minus << 1) & everything
        up, down = minus | (everything & ~(diagonal | plus)), plus & diagonal
    return distance
