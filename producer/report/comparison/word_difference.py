r"""Marks the words in which two texts differ, in bounded time; pure.

>>> difference = compare_words("Open until 10.", "Open until 12.")
>>> [part.text for part in difference.before if part.is_changed], difference.sort
(['10'], 'words')
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, pairwise
from typing import Final, Literal, NamedTuple

LEAST_SHARED: Final = 1 / 3
"""Texts that share less of their words are shown without marks: very many marks cannot be read."""
MOST_STEPS: Final = 5_000_000
"""Pairs of equal words that may be looked at for two texts, about half a second."""

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


class Part(NamedTuple):
    """A stretch of a text."""

    text: str
    is_changed: bool
    """Whether the other text does not have it here."""


class Difference(NamedTuple):
    """Two texts in parts."""

    before: Sequence[Part]
    after: Sequence[Part]
    sort: Sort
    """How they differ. `spaces`: in white space only; `lines`: whole lines are marked, because the texts are
    long; `long`: all between their common beginning and end is; `rewritten`: nothing is, they share too
    little."""


def compare_words(before: str, after: str, *, most_steps: int = MOST_STEPS) -> Difference:
    """Compares two texts word by word; long ones line by line.

    Args:
        before: the text in A.
        after: the text in B.
        most_steps: what comparing may cost; beyond, larger parts are compared.

    >>> compare_words("a b", " a  b").sort, compare_words("one two three", "four five six").sort
    ('spaces', 'rewritten')
    >>> [part.text for part in compare_words('{"to": "gift card"}', '{"to": "gift money"}').after]
    ['{"to": "gift ', 'money', '"}']
    """
    if before == after:
        return _plain(before, after, "same")
    ours, theirs = _tokens(before), _tokens(after)
    ours_keys, theirs_keys = [text.rstrip() for text in ours], [text.rstrip() for text in theirs]
    if [*filter(None, ours_keys)] == [*filter(None, theirs_keys)]:  # white space at the beginning has no word
        return _plain(before, after, "spaces")
    if _shared(ours_keys, theirs_keys) < LEAST_SHARED:
        return _plain(before, after, "rewritten")
    found = _changes(ours_keys, theirs_keys, most_steps)
    if found is not None:
        return Difference(_parts(ours, found[0]), _parts(theirs, found[1]), "words")
    lines = _LINE.findall(before), _LINE.findall(after)
    found = _changes(*lines, most_steps)
    if found is not None and not all(found[0]):
        return Difference(_parts(lines[0], found[0]), _parts(lines[1], found[1]), "lines")
    found = _changed_middles(ours_keys, theirs_keys)
    return Difference(_parts(ours, found[0]), _parts(theirs, found[1]), "long")


def count_changed_lines(before: str, after: str) -> tuple[int, int]:
    r"""Counts lines that are only in the one text, and only in the other.

    >>> count_changed_lines("a\nb\nc", "a\nx\nc\nd")
    (1, 2)
    """
    lines = compare_lines(before, after)
    return sum(mark == "-" for mark, _ in lines), sum(mark == "+" for mark, _ in lines)


def compare_lines(before: str, after: str) -> list[tuple[str, str]]:
    r"""Returns the lines of both texts in order, each with `-` (only before), `+` (only after) or a blank.

    >>> compare_lines("a\nb", "a\nc")
    [(' ', 'a'), ('-', 'b'), ('+', 'c')]
    """
    ours, theirs = before.split("\n"), after.split("\n")
    found = _changes(ours, theirs, MOST_STEPS) or _changed_middles(ours, theirs)
    rest, lines = iter(zip(theirs, found[1], strict=True)), list[tuple[str, str]]()
    for line, is_changed in zip(ours, found[0], strict=True):
        if is_changed:
            lines.append(("-", line))
            continue
        for other, is_new in rest:
            lines.append(("+" if is_new else " ", other))
            if not is_new:
                break
    return lines + [("+", other) for other, _ in rest]


def _plain(before: str, after: str, sort: Sort) -> Difference:
    """Returns both texts without a mark."""
    return Difference([Part(before, is_changed=False)], [Part(after, is_changed=False)], sort)


def _tokens(text: str) -> list[str]:
    """Cuts a text into words and signs, each with the white space behind it.

    >>> _tokens(" naïve: ก日本 x1")
    [' ', 'naïve', ': ', 'ก', '日', '本 ', 'x1']
    """
    return _TOKEN.findall(text)


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
    head, tail = _common_ends(before, after)
    ours, theirs = before[head : len(before) - tail], after[head : len(after) - tail]
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    times = Counter(theirs)
    costs = [0, *accumulate(1 + times[key] for key in ours)]
    changed = _changed_middles(before, after)
    ranges = [(0, len(ours), 0, len(theirs))]
    while ranges:
        first, last, start, end = ranges.pop()
        most_steps -= costs[last] - costs[first]
        if most_steps < 0:
            return None
        at, other, size = matcher.find_longest_match(first, last, start, end)
        if size:
            changed[0][head + at : head + at + size] = [False] * size
            changed[1][head + other : head + other + size] = [False] * size
            beside = ((first, at, start, other), (at + size, last, other + size, end))
            ranges += [each for each in beside if each[0] < each[1] and each[2] < each[3]]
    return changed


def _changed_middles(before: Sequence[str], after: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """Calls all changed between the common beginning and the common end."""
    head, tail = _common_ends(before, after)
    one, other = ([head <= at < len(side) - tail for at in range(len(side))] for side in (before, after))
    return one, other


def _common_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Counts the tokens that two texts begin with, and those that they end with.

    >>> _common_ends("abcde", "abXde"), _common_ends("aa", "aaa")
    ((2, 2), (2, 0))
    """
    least = min(len(before), len(after))
    head = next((at for at in range(least) if before[at] != after[at]), least)
    tail = next((at for at in range(least - head) if before[-1 - at] != after[-1 - at]), least - head)
    return head, tail


def _parts(tokens: Sequence[str], changed: Sequence[bool]) -> list[Part]:
    """Joins tokens to stretches; signs between two changed words are changed with them."""
    marks = list(changed)
    places = [at for at, mark in enumerate(marks) if mark]
    for left, right in pairwise(places):
        if right - left > 1 and not any(_is_word(token) for token in tokens[left + 1 : right]):
            marks[left + 1 : right] = [True] * (right - left - 1)
    return list(_stretches(tokens, marks))


def _stretches(tokens: Sequence[str], marks: Sequence[bool]) -> Iterator[Part]:
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
            yield Part(shown, is_changed=marks[start])
        text, start = text[len(shown) :], at
    if text:
        yield Part(text, is_changed=False)
