"""Counts the cases, queries or threads that were asked or judged otherwise than in the other run; pure."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from producer.aggregate.compared_items import KEY_PARTS, ComparedItem, Inputs
from producer.aggregate.comparison import Comparison
from producer.report.cells import Size, plain
from producer.report.comparison.setting_differences import Placed
from producer.text import many, plural
from shared.contracts.case_hashes import hash_of

MOST_NAMED: Final = 3
"""Cases that are named one by one."""
TEMPLATE_MARKS: Final = ("{{", "{%")


@dataclass(slots=True)
class InputDifferences:
    """Units by what differs of them, apart from what a setting explains."""

    asked: set[str] = field(default_factory=set)
    """Something else was asked."""
    system: set[str] = field(default_factory=set)
    """They have a system message of their own, and another one."""
    recorded: set[str] = field(default_factory=set)
    """Another recorded output was judged."""
    expected: set[str] = field(default_factory=set)
    """They have other criteria."""
    weight: set[str] = field(default_factory=set)
    """They count more or less in means."""
    sent: set[str] = field(default_factory=set)
    """Something in the request differs."""
    judged: set[str] = field(default_factory=set)
    """Something in how they are judged differs."""
    unknown: bool = False
    """Whether it is not known of every pair what was sent and how it was judged."""

    def sentences(self, unit: str) -> list[str]:
        """Writes what differs."""
        found = [
            f"input of {_named(self.asked, unit)}" if self.asked else "",
            f"system prompt of {_named(self.system, unit)}" if self.system else "",
            f"recorded outputs of {_named(self.recorded, unit)}" if self.recorded else "",
            f"criteria of {_named(self.expected, unit)}" if self.expected else "",
            f"weight of {_named(self.weight, unit)}" if self.weight else "",
        ]
        return [sentence for sentence in found if sentence]

    def unexplained(self, unit: str) -> list[str]:
        """Writes that requests or judging differ in something that has no name here."""
        found = [
            f"what was sent for {_named(self.sent, unit)}" if self.sent else "",
            f"how {_named(self.judged, unit)} {'was' if len(self.judged) == 1 else 'were'} judged"
            if self.judged
            else "",
        ]
        return [sentence for sentence in found if sentence]


def input_differences(found: Comparison, before: Any, after: Any) -> InputDifferences:
    """Compares what was asked and judged, pair by pair.

    Args:
        found: the comparison.
        before: the templates of A by prompt, as a `Placed`; anything else: not known.
        after: those of B.
    """
    differences, templates = InputDifferences(), _Templates(before, after)
    for a, b in found.pairs.all():
        one, other = Inputs.of(a.inputs), Inputs.of(b.inputs)
        prompts = [_prompt_of(found, item, at) for at, item in enumerate((a, b))]
        parts = {
            name
            for name in Inputs._fields
            if (was := getattr(one, name)) and (now := getattr(other, name)) and was != now
        }
        if templates.differ("messages", *prompts):
            parts = parts - {"asked"} | ({"asked"} if "given" in parts else set())
        if "instructed" in parts and not (one.system and other.system):
            parts.add("system")
        elif "system" in parts and templates.explain(one.system, other.system, *prompts):
            parts.remove("system")
        for name in parts - {"given", "instructed"}:
            getattr(differences, name).add(b.unit)
        if a.weight != b.weight:
            differences.weight.add(b.unit)
        differences.unknown |= not all((one.sent, other.sent, one.judged, other.judged))
    return differences


class _Templates:
    """The templates of both runs."""

    def __init__(self, before: Any, after: Any) -> None:
        self._sides = [dict(side.values) if isinstance(side, Placed) else {} for side in (before, after)]

    def differ(self, part: str, one: str, other: str) -> bool:
        """Whether a part of the prompt is not the same in A and B."""
        found = [side.get(("", name)) for side, name in zip(self._sides, (one, other), strict=True)]
        if any(each is None for each in found):
            return False
        keys = ("system",) if part == "system" else ("user", "messages")
        [was, now] = ([each.get(key) for key in keys] for each in found if each is not None)
        return was != now

    def explain(self, was: bytes, now: bytes, one: str, other: str) -> bool:
        """Whether other system messages come from another template, and not from the case."""
        if not self.differ("system", one, other):
            return False
        sent = zip(self._sides, (one, other), (was, now), strict=True)
        return all(_renders(side[("", name)].get("system"), system) for side, name, system in sent)


def _renders(template: str | None, system: bytes) -> bool:
    """Whether a system message can be one that the template gives; without variables it is the template."""
    is_rendered = template is not None and any(mark in template for mark in TEMPLATE_MARKS)
    return is_rendered or hash_of(template) == system


def _prompt_of(found: Comparison, item: ComparedItem, side: int) -> str:
    """Returns the prompt of an item, also where cases were paired in spite of it."""
    at = KEY_PARTS["prompt"]
    if found.prompts is not None:
        return (found.prompts.a, found.prompts.b)[side]
    return item.key[at] if len(item.key) > at + 1 else ""


def _named(units: Collection[str], unit: str) -> str:
    """Names a few cases, queries or threads, and counts more of them.

    >>> _named({"peru"}, "case"), _named({"case 3"}, "case"), _named({"b", "a"}, "query")
    ('case peru', 'case 3', 'queries a and b')
    >>> _named("abcdef", "case")
    '6 cases'
    """
    if len(units) > MOST_NAMED:
        return plural(len(units), unit)
    names = [plain(name.removeprefix(f"{unit} "), Size.CELL) for name in sorted(units)]
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{unit if len(names) == 1 else many(unit)} {listed}"
