r"""Marks the words in which two texts differ, in bounded time; pure.

>>> difference = compare_words("Open until 10.", "Open until 12.")
>>> [part.text for part in difference.before if part.is_changed], difference.sort
(['10'], 'words')
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, Literal, NamedTuple

LEAST_SHARED: Final = 1 / 3
"""Texts that share less of their words are shown without marks: very many marks cannot be read."""
MOST_STEPS: Final = 500_000
"""Pairs of equal words in two texts up to which these are compared: half a second at most, as a rule."""

Sort = Literal["same", "spaces", "words", "lines", "long", "rewritten"]

# A word also holds the marks that follow its letters (vowel signs, accents). Scripts without spaces between
# words, such as Chinese, Japanese and Thai, count character by character.
_TOKEN: Final = re.compile(
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]\s*"
    r"|\w(?:(?![\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])"
    r"(?:\w|[^\w\s\x00-\xbf\u2000-\u2bff\u3000-\u303f\uff00-\uffef]))*\s*"
    r"|[^\w\s]\s*"
    r"|^\s+"
)
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


class Stretch(NamedTuple):
    """A stretch of a text."""

    text: str
    is_changed: bool
    """Whether the other text does not have it here."""


class TextDifference(NamedTuple):
    """Two texts in parts."""

    before: Sequence[Stretch]
    after: Sequence[Stretch]
    sort: Sort
    """How they differ. `spaces`: in white space only; `lines`: whole lines are marked, because the texts are
    long; `long`: all between their common beginning and end is; `rewritten`: nothing is, they share too
    little."""


def compare_words(before: str, after: str, *, most_steps: int = MOST_STEPS) -> TextDifference:
    """Compares two texts word by word; long ones line by line.

    Args:
        before: the text in A.
        after: the text in B.
        most_steps: pairs of equal words; beyond, larger parts are compared.

    >>> compare_words("a b", " a  b").sort, compare_words("one two three", "four five six").sort
    ('spaces', 'rewritten')
    >>> [part.text for part in compare_words('{"to": "gift card"}', '{"to": "gift money"}').after]
    ['{"to": "gift ', 'money', '"}']
    """
    if before == after:
        return _plain(before, after, "same")
    ours, theirs = _TOKEN.findall(before), _TOKEN.findall(after)
    ours_keys, theirs_keys = [text.rstrip() for text in ours], [text.rstrip() for text in theirs]
    if [*filter(None, ours_keys)] == [*filter(None, theirs_keys)]:  # white space at the beginning has no word
        return _plain(before, after, "spaces")
    if _shared(ours_keys, theirs_keys) < LEAST_SHARED:
        return _plain(before, after, "rewritten")
    if found := _changes(ours_keys, theirs_keys, most_steps):
        return TextDifference(_parts(ours, found[0]), _parts(theirs, found[1]), "words")
    lines = _LINE.findall(before), _LINE.findall(after)
    if (found := _changes(*lines, most_steps)) and not all(found[0]):
        return TextDifference(_parts(lines[0], found[0]), _parts(lines[1], found[1]), "lines")
    found = _changed_middles(ours_keys, theirs_keys)
    return TextDifference(_parts(ours, found[0]), _parts(theirs, found[1]), "long")


def compare_lines(before: str, after: str) -> list[tuple[str, str]]:
    r"""Returns the lines of both texts in order, each with `-` (only before), `+` (only after) or a blank.

    >>> compare_lines("a\nb", "a\nc")
    [(' ', 'a'), ('-', 'b'), ('+', 'c')]
    """
    ours, theirs = before.split("\n"), after.split("\n")
    found = _changes(ours, theirs, MOST_STEPS) or _changed_middles(ours, theirs)
    lines, at = list[tuple[str, str]](), 0
    for line, is_gone in zip(ours, found[0], strict=True):
        if is_gone:
            lines.append(("-", line))
            continue
        while found[1][at]:
            lines.append(("+", theirs[at]))
            at += 1
        lines.append((" ", line))
        at += 1
    return lines + [("+", other) for other in theirs[at:]]


def _plain(before: str, after: str, sort: Sort) -> TextDifference:
    """Returns both texts without a mark."""
    return TextDifference([Stretch(before, is_changed=False)], [Stretch(after, is_changed=False)], sort)


def _shared(before: Sequence[str], after: Sequence[str]) -> float:
    """Returns the share of words that two texts have in common, whatever their order; signs do not count."""
    ours, theirs = (Counter(filter(_is_word, keys)) or Counter(keys) for keys in (before, after))
    return 2 * (ours & theirs).total() / ((ours.total() + theirs.total()) or 1)


def _is_word(key: str) -> bool:
    return key[:1].isalnum()


def _changes(
    before: Sequence[str], after: Sequence[str], most_steps: int
) -> tuple[list[bool], list[bool]] | None:
    """Returns which tokens of both sides have no partner; None where finding that out takes too long."""
    changed = _changed_middles(before, after)
    head = next((at for at, mark in enumerate(changed[0]) if mark), len(before))
    ours, theirs = (
        [token for token, mark in zip(side, marks, strict=True) if mark]
        for side, marks in ((before, changed[0]), (after, changed[1]))
    )
    times = Counter(theirs)
    if sum(1 + times[token] for token in ours) > most_steps:
        return None
    for at, other, size in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        changed[0][head + at : head + at + size] = [False] * size
        changed[1][head + other : head + other + size] = [False] * size
    return changed


def _changed_middles(before: Sequence[str], after: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """Calls all changed between the common beginning and the common end."""
    head, tail = common_ends(before, after)
    one, other = ([head <= at < len(side) - tail for at in range(len(side))] for side in (before, after))
    return one, other


def common_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Counts the tokens that two texts begin with, and those that they end with.

    >>> common_ends("abcde", "abXde"), common_ends("aa", "aaa")
    ((2, 2), (2, 0))
    """
    least = min(len(before), len(after))
    head = next((at for at in range(least) if before[at] != after[at]), least)
    tail = next((at for at in range(least - head) if before[-1 - at] != after[-1 - at]), least - head)
    return head, tail


def _parts(tokens: Sequence[str], changed: Sequence[bool]) -> list[Stretch]:
    """Joins tokens to stretches; signs between two changed words are changed with them."""
    marks = list(changed)
    places = [at for at, mark in enumerate(marks) if mark]
    for left, right in pairwise(places):
        if right - left > 1 and not any(_is_word(token) for token in tokens[left + 1 : right]):
            marks[left + 1 : right] = [True] * (right - left - 1)
    return list(_stretches(tokens, marks))


def _stretches(tokens: Sequence[str], marks: Sequence[bool]) -> Iterator[Stretch]:
    """Yields stretches of equal marks; white space at the end of a changed one belongs to what follows."""
    start, text = 0, ""
    for at in range(len(tokens) + 1):
        if at < len(tokens) and marks[at] == marks[start]:
            continue
        if at == start:
            break
        text += "".join(tokens[start:at])
        shown = text.rstrip() if marks[start] and at < len(tokens) else text
        if shown:
            yield Stretch(shown, is_changed=marks[start])
        text, start = text[len(shown) :], at
    if text:
        yield Stretch(text, is_changed=False)
