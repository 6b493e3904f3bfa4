"""Selects items of a file by the options of the command line: by text, the first ones, a sample."""

import random
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

SAMPLE_SEED: Final = 20_260_101
"""A sample is the same one each time, so that two runs can be compared."""


class Pick(Protocol):
    """Options that select items."""

    @property
    def containing(self) -> str:
        """Only items with this in their text, in any case of letters; empty: all."""

    @property
    def first(self) -> int | None:
        """Only so many, from the start."""

    @property
    def sample(self) -> int | None:
        """Only so many, picked at random."""


def pick_items(items: Sequence[T], pick: Pick, text_of: Callable[[T], str]) -> list[T]:
    """Returns the selected items, in their order.

    Args:
        items: in order.
        pick: the options; text is applied before numbers.
        text_of: the text of an item in which words are looked for.
    """
    found = list(items)
    if pick.containing:
        word = pick.containing.casefold()
        found = [item for item in found if word in text_of(item).casefold()]
    if pick.first is not None:
        found = found[: pick.first]
    if pick.sample is not None and pick.sample < len(found):
        chosen = random.Random(SAMPLE_SEED).sample(range(len(found)), pick.sample)  # noqa: S311 - to repeat, not to guess
        found = [found[at] for at in sorted(chosen)]
    return found
