"""What the reports of a comparison are made from: two sides, their pairs, and what differs between them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from producer import kinds
from producer.aggregate.compared_items import Items, label
from producer.aggregate.comparison import Comparison, Pair
from producer.aggregate.comparison_groups import (
    Group,
    SideFacts,
    different_inputs,
    facts_of,
    groups_of,
)
from producer.report.cells import plain
from producer.report.comparison.item_texts import ItemTexts, TextStore
from producer.report.comparison.word_difference import count_changed_lines
from producer.text import plural
from shared.kinds import TURNS, Kind

SHORT: Final = 48
"""Characters of a setting that is written whole."""
NOTHING: Final = "none"


class Side(NamedTuple):
    """One side of a comparison."""

    name: str
    """The run's id, or the file."""
    source: str
    """Its input; empty if a report file does not name it."""
    kind: Kind
    items: Items
    is_final: bool
    """Whether it is complete."""
    texts: TextStore
    """Texts of its items."""
    began: str = ""
    """When it was submitted, or its first item began, as ISO text; empty where a report does not say."""
    configuration: Mapping[str, Any] | None = None
    """Settings by their names; None where a report does not contain them."""
    is_whole: bool = False
    """Whether these are all settings that make results differ."""
    systems: Mapping[str, str | None] = {}
    """System prompts by prompt id, if known; None for one that differs by case."""
    by: str = ""
    """`model` or `prompt` where this is a part of a run."""
    part: str = ""
    """Name of that model or prompt."""

    @property
    def run(self) -> str:
        """The run's id, or the file, without the part of it that is compared."""
        return self.name.removesuffix(f" {self.by} {self.part}") if self.by else self.name

    @property
    def title(self) -> str:
        """What it is called where its letter stands before it."""
        return self.part or self.name

    def as_document(self) -> dict[str, str]:
        """Returns it for `--json`."""
        return {"name": self.name, "source": self.source}


class Setting(NamedTuple):
    """A setting that differs."""

    name: str
    before: str
    after: str

    @property
    def is_long(self) -> bool:
        """Whether it is shown line by line."""
        return any(len(text) > SHORT or "\n" in text for text in (self.before, self.after))

    def __str__(self) -> str:
        r"""Writes it in a few words.

        >>> str(Setting("temperature", "0.1", "0.7")), str(Setting("system prompt", "a\nb", "a\nc\nd"))
        ('temperature 0.1 → 0.7', 'system prompt (1 line removed, 2 added)')
        """
        if not self.is_long:
            return f"{self.name} {_quoted(self.before)} → {_quoted(self.after)}"
        removed, added = count_changed_lines(self.before, self.after)
        parts = [f"{plural(removed, 'line')} removed"] * bool(removed)
        parts += [f"{added:,} added" if removed else f"{plural(added, 'line')} added"] * bool(added)
        return f"{self.name} ({', '.join(parts)})"


class Shown(NamedTuple):
    """A pair as it is shown."""

    sort: str
    """`broken`, `fixed`, `changed`, or `text` where only the answer is another."""
    pair: Pair
    before: ItemTexts
    after: ItemTexts

    @property
    def name(self) -> str:
        """The item that both answered, as people read it."""
        return label(self.pair[1].key)


@dataclass(frozen=True)
class Contents:
    """All that a report of a comparison is made from."""

    document: Mapping[str, Any]
    """As `--json` prints it."""
    found: Comparison
    sides: tuple[Side, Side]
    command: str
    """Compares the same again."""

    @cached_property
    def facts(self) -> tuple[SideFacts, SideFacts]:
        """Figures of A and of B: outcomes, latency, cost."""
        one, other = (facts_of(side.items) for side in self.sides)
        return one, other

    @cached_property
    def groups(self) -> Mapping[str, Sequence[Group]]:
        """Pairs by model, prompt and tag."""
        return groups_of(self.found)

    @cached_property
    def settings(self) -> list[Setting] | None:
        """Settings that differ; None where a report does not contain them."""
        before, after = (side.configuration for side in self.sides)
        if before is None or after is None:
            return None
        shared = [name for name in before if name in after]
        return [
            Setting(name, _written(before[name]), _written(after[name]))
            for name in shared
            if before[name] != after[name]
        ]

    def differences(self) -> str:
        """Returns a sentence on what differs between the two runs, beside their results."""
        if self.settings is None:
            return "The reports do not say how the runs were configured; compare runs by their ids to see it."
        unit = kinds.of(self.found.kind).comparing.get().unit
        parts = [str(setting) for setting in self.settings]
        asked, expected = different_inputs(self.found)
        parts += [f"input of {plural(asked, unit)}"] * bool(asked)
        parts += [f"criteria of {plural(expected, unit)}"] * bool(expected)
        if not parts:
            changes = self.document["counts"]["pairs"] - self.document["counts"]["unchanged"]
            return self._nothing_differs() if changes else "No setting differs."
        number = "One thing differs" if len(parts) == 1 else f"{len(parts)} things differ"
        return f"{number}: {'; '.join(parts)}."

    def _nothing_differs(self) -> str:
        """Returns what is left to explain the differences."""
        if not all(side.is_whole for side in self.sides):
            return "Of the settings in the reports, none differs; compare runs by their ids to see all."
        if all((side.configuration or {}).get("recorded outputs") for side in self.sides):
            return "No setting differs: other recorded outputs were judged."
        if self.found.kind is TURNS and not any(
            (side.configuration or {}).get("model") for side in self.sides
        ):
            return "No setting differs: decisions follow from messages and signals, so other ones were given."
        return "No setting differs: what changed is chance, or happened behind the API."

    def pairs(self) -> Iterator[Shown]:
        """Yields pairs that differ: broken ones, fixed ones, changed ones, then those with another answer."""
        for sort in ("broken", "fixed", "changed"):
            for change in getattr(self.found, sort):
                yield self.shown(sort, change.pair)
        for pair in self.found.same:
            shown = self.shown("text", pair)
            if shown.before.answer != shown.after.answer:
                yield shown

    def shown(self, sort: str, pair: Pair) -> Shown:
        """Reads the texts of a pair."""
        texts = (side.texts.read(item.place) for side, item in zip(self.sides, pair, strict=True))
        return Shown(sort, pair, *texts)


def _quoted(text: str) -> str:
    """Writes a value within a sentence; one that is a sentence itself gets quotation marks.

    >>> _quoted("gpt-4o"), _quoted("Answer with one word.")
    ('gpt-4o', '"Answer with one word."')
    """
    shown = plain(text)
    return f'"{shown}"' if shown.endswith((".", "!", "?", ";", ":")) else shown


def _written(value: Any) -> str:
    """Writes a setting.

    >>> _written(["a", "b"]), _written(None), _written(0.1), _written({})
    ('a, b', 'none', '0.1', 'none')
    """
    if value is None or value in ("", [], {}):
        return NOTHING
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
