"""Finds the comments of a YAML file by the places that they belong to."""

import re
from typing import Final

import yaml

from producer.load.yaml_text import Path, events, places_of

_BEHIND: Final = re.compile(r"[]},:|>+\-\d\s]*\s#+\s*(.*?)\s*")
"""What stands behind the last value of a line before its comment."""


def comments_above(text: str) -> dict[Path, list[str]]:
    r"""Finds the comments by what is written below them, or before them on the line.

    >>> comments_above("# all\na: 1 # first\nb:  # list\n  # one\n  # more\n  - c#\n")
    {('a',): ['all', 'first'], ('b',): ['list'], ('b', 0): ['one', 'more']}
    """
    found, waiting, inside = dict[Path, list[str]](), list[str](), set[int]()
    ends = dict[int, int]()
    for event in events(text):
        if isinstance(event, yaml.ScalarEvent) and event.start_mark and event.end_mark:
            inside.update(range(event.start_mark.line + 1, event.end_mark.line))
            is_block = event.style in {"|", ">"}
            end = event.start_mark if is_block else event.end_mark
            ends[end.line] = end.column
    first = {at: place for place, at, _ in reversed([*places_of(text)])}
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") and number - 1 not in inside:
            waiting.append(line.lstrip().lstrip("#").strip())
        elif line.strip():
            behind = _BEHIND.fullmatch(line[ends[number - 1] :]) if number - 1 in ends else None
            waiting += [behind[1]] if behind else []
            if waiting and number in first:
                found[first[number]] = waiting
            waiting = []
    return found
