"""Compares the settings of two runs leaf by leaf, and writes those that differ."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from producer.report.cells import plain
from producer.report.comparison.word_difference import common_ends, compare_lines
from producer.text import plural

SHORT: Final = 48
"""Characters of a setting that is written whole."""
NOTHING: Final = "none"
MOST_PLACES: Final = 3
"""Models or prompts that are named."""

Place = tuple[str, str]
"""Model and prompt that a setting is for; empty for all of them."""
Settings = Mapping[str, Any]
"""Settings by the names that people read; of some, each model or prompt has its own (`Placed`)."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A value that is compared and not shown: it may be a secret."""

    digest: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A setting that each model, each prompt, or each of both has for itself."""

    values: Mapping[Place, Mapping[str, Any]]
    """By place and name; an empty name is the setting itself."""
    names_place: bool = False
    """Whether the place is always named."""

    def at(self, by: str, name: str = "") -> "Placed":
        """Returns the values of one model or prompt, else those of all, which are left out of the places."""
        at = 0 if by == "model" else 1
        kept = [place for place in self.values if not name or place[at] in ("", name)]
        return Placed(
            {(("", place[1]), (place[0], ""))[at]: self.values[place] for place in kept}, self.names_place
        )


def settings_at(settings: Settings, by: str, name: str = "") -> dict[str, Any]:
    """Returns settings without the distinction of models, or of prompts; with a name, only those of it.

    >>> whole = {"models": ["m", "n"], "params": Placed({("m", ""): {"seed": 1}, ("n", ""): {"seed": 2}})}
    >>> settings_at(whole, "model", "n")["params"].values
    {('', ''): {'seed': 2}}
    """
    return {
        setting: value.at(by, name) if isinstance(value, Placed) else value
        for setting, value in settings.items()
    }


class Setting(NamedTuple):
    """A setting that differs."""

    name: str
    before: str
    after: str
    is_text: bool = False
    """Whether it is prose, which gets quotation marks."""

    @property
    def is_long(self) -> bool:
        """Whether it is shown line by line."""
        return any(len(text) > SHORT or "\n" in text for text in (self.before, self.after))

    def __str__(self) -> str:
        r"""Writes it in a few words.

        >>> str(Setting("temperature", "0.1", "0.7")), str(Setting("system prompt", "a\nb", "a\nc\nd"))
        ('temperature 0.1 → 0.7', 'system prompt (1 line removed, 2 added)')
        >>> words = "You help travellers who write from abroad. Answer with one"
        >>> str(Setting("system prompt", f"{words} word.", f"{words} polite sentence.", is_text=True))
        'system prompt "…one word." → "…one polite sentence."'
        """
        if not self.before and not self.after:
            return f"{self.name} (another value)"
        short = self
        if self.is_long:
            short = self._replace(before=_cut(self.before, self.after), after=_cut(self.after, self.before))
        if not short.is_long:
            return f"{self.name} {self._quoted(short.before)} → {self._quoted(short.after)}"
        marks = [mark for mark, _ in compare_lines(self.before, self.after)]
        removed, added = marks.count("-"), marks.count("+")
        if not removed:
            return f"{self.name} ({plural(added, 'line')} added)"
        return f"{self.name} ({plural(removed, 'line')} removed{f', {added:,} added' if added else ''})"

    def _quoted(self, text: str) -> str:
        """Writes a value within a sentence; one that is a sentence itself gets quotation marks."""
        shown = plain(text)
        is_sentence = shown.endswith((".", "!", "?", ";", ":")) or (self.is_text and text != NOTHING)
        return f'"{shown}"' if is_sentence else shown


def differing(before: Settings, after: Settings) -> list[Setting]:
    """Returns the settings that differ, of those that both runs name; options one by one.

    >>> a = {"params": Placed({("m", ""): {"max_tokens": 150}, ("n", ""): {"max_tokens": 150}})}
    >>> b = {"params": Placed({("m", ""): {"max_tokens": 150}, ("n", ""): {"max_tokens": 50}})}
    >>> [str(each) for each in differing(a, b)]
    ['params.max_tokens of n 150 → 50']
    """
    found = list[Setting]()
    for name in before:
        one, other = before[name], after.get(name)
        if isinstance(one, Placed) and isinstance(other, Placed):
            found += _placed(name, one, other)
        elif one != other and name in after:
            found.append(_setting(name, one, other))
    return found


def _placed(name: str, before: Placed, after: Placed) -> Iterator[Setting]:
    """Yields the values that differ, each with the models and prompts for which it does so alike."""
    shared = [place for place in before.values if place in after.values]
    changes = dict[str, list[tuple[Place, Any, Any]]]()
    for place in shared:
        for path, was, now in _leaves("", before.values[place], after.values[place]):
            changes.setdefault(path, []).append((place, was, now))
    for leaf, left in changes.items():
        while left:
            _, was, now = left[0]
            alike = [place for place, *values in left if values == [was, now]]
            left[:] = [each for each in left if each[0] not in alike]
            places = [] if len(alike) == len(shared) and not before.names_place else _widened(alike, shared)
            yield _setting(_named(name, leaf, places, names_place=before.names_place), was, now)


def _widened(places: Sequence[Place], shared: Sequence[Place]) -> list[Place]:
    """Leaves out the prompt where a model has all of its prompts among them, else the model likewise.

    >>> _widened([("m", "a"), ("m", "b")], [("m", "a"), ("m", "b"), ("n", "a"), ("n", "b")])
    [('m', '')]
    """
    for at in (0, 1):
        names = dict.fromkeys(place[at] for place in places)
        if [place for place in shared if place[at] in names] == list(places):
            return [(name, "") if at == 0 else ("", name) for name in names]
    return list(places)


def _named(name: str, leaf: str, places: Sequence[Place], *, names_place: bool) -> str:
    """Names a setting and the models or prompts that have it.

    >>> _named("params", "seed", [("m", "short")], names_place=False)
    'params.seed of m short'
    >>> _named("prompt", "system", [("", "short")], names_place=True)
    'prompt short: system'
    """
    shown = list(dict.fromkeys(" ".join(filter(None, place)) for place in places))
    if len(shown) > MOST_PLACES:
        shown = [*shown[:MOST_PLACES], f"{len(shown) - MOST_PLACES:,} more"]
    listed = ", ".join(filter(None, shown))
    if names_place:
        return ": ".join(filter(None, [f"{name} {listed}" if listed else "", leaf]))
    full = ".".join(filter(None, [name, leaf]))
    return f"{full} of {listed}" if listed else full


def _leaves(name: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields what differs within a value, by its path."""
    if before == after:
        return
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        yield name, before, after
        return
    for key in dict.fromkeys([*before, *after]):
        yield from _leaves(f"{name}.{key}" if name else str(key), before.get(key), after.get(key))


def _setting(name: str, before: Any, after: Any) -> Setting:
    """Writes a setting that differs."""
    if isinstance(before, Hidden) and isinstance(after, Hidden):
        return Setting(name, "", "")
    is_text = any(isinstance(value, str) and value.count(" ") > 1 for value in (before, after))
    return Setting(name, written(before), written(after), is_text)


def _cut(text: str, other: str) -> str:
    """Cuts what a long line begins and ends with as another one does, but for a word.

    >>> _cut("one two three four", "one two six four")
    '…two three four'
    """
    if "\n" in text + other:
        return text
    words = text.split(" ")
    head, tail = (max(0, same - 1) for same in common_ends(words, other.split(" ")))
    return f"{'…' if head else ''}{' '.join(words[head : len(words) - tail])}{'…' if tail else ''}"


def written(value: Any) -> str:
    """Writes a value.

    >>> written(["a", "b"]), written(None), written(0.1), written({})
    ('a, b', 'none', '0.1', 'none')
    """
    if isinstance(value, Hidden):
        return "a value"
    if value is None or value in ("", [], {}):
        return NOTHING
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
