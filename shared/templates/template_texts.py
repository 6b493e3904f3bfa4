"""What a template is, what can be wrong with one, and when its variables are small; needs no jinja2."""

import re
from collections.abc import Iterable
from typing import Any, Final

MARKS: Final = ("{{", "{%", "{#")
"""A text without any of these is no template."""
_TEMPLATE: Final = re.compile(r"\{[{%](.*?)[%}]\}", re.DOTALL)
_WORD: Final = re.compile(r"[^\W\d]\w*")
MOST_SHOWN: Final = 60
"""Characters of a foreign message that are shown."""
SMALL_VALUES: Final = 5_000
"""Characters and items of the variables of a loop that is harmless."""


class MissingValue(Exception):  # noqa: N818 - it is translated where the names of all variables are
    """A variable, or a key of one, is not there; the text is jinja2's."""


def is_template(text: str) -> bool:
    """Whether anything in a text would be rendered.

    >>> is_template("{{ country }}"), is_template("{country}")
    (True, False)
    """
    return any(mark in text for mark in MARKS)


def names_in_templates(values: Any) -> frozenset[str]:
    """Returns the words in the templates of texts: names of variables are among them.

    >>> sorted(names_in_templates([{"contains": "{{ capital|upper }}"}, "country"]))
    ['capital', 'upper']
    """
    return frozenset(word for part in _TEMPLATE.findall(str(values)) for word in _WORD.findall(part))


def is_small(values: Iterable[Any]) -> bool:
    """Returns whether variables are small; ends as soon as they are not.

    >>> is_small([["a", {"b": 1}]]), is_small(["a" * 9_999])
    (True, False)
    """
    size, left = 0, list(values)
    while left and size <= SMALL_VALUES:
        value = left.pop()
        size += 1 + (len(value) if isinstance(value, str | list | dict) else 0)
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list) and size <= SMALL_VALUES:
            left += value
    return size <= SMALL_VALUES


def one_line(text: object) -> str:
    r"""Makes a foreign message safe to print: escaped, and cut.

    >>> one_line("a\x1b\n b")
    'a\\x1b b'
    """
    whole = " ".join(str(text).split())
    return repr(whole if len(whole) <= MOST_SHOWN else f"{whole[:MOST_SHOWN]}…")[1:-1]
