r"""Filters of Nunjucks: what each becomes in Jinja, and which values the two treat differently.

>>> for name in ("safe", "title", "urlize"):
...     print(name, FILTERS[name].jinja, FILTERS[name].why)
safe None None
title title Jinja also writes a capital behind - ( [ { < and line ends
urlize None links are not made
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple


class JinjaFilter(NamedTuple):
    """A filter of Nunjucks."""

    jinja: str | None
    """What does the same in Jinja; None: the filter is left out."""
    why: str | None = None
    """How the result differs; None: it does not."""
    differs: Callable[[Any], bool] | None = None
    """Whether a value gives another result; None: any may."""


def _finds(pattern: str) -> Callable[[Any], bool]:
    """Whether a pattern is in the text of a value."""
    found = re.compile(pattern).search
    return lambda value: found(str(value)) is not None


_SAME: Final = (
    *("abs", "batch", "capitalize", "d", "default", "dictsort", "dump", "first", "int", "join"),
    *("last", "length", "lower", "random", "reject", "rejectattr", "replace", "reverse", "select"),
    *("selectattr", "slice", "sort", "string", "sum", "trim", "upper", "wordcount"),
)
_ESCAPE: Final = JinjaFilter(
    r"""replace('&', '&amp;') | replace('"', '&quot;') | replace("'", '&#39;')"""
    r""" | replace('<', '&lt;') | replace('>', '&gt;') | replace('\\', '&#92;')"""
)
FILTERS: Final[Mapping[str, JinjaFilter]] = {
    **{name: JinjaFilter(name) for name in _SAME},
    **dict.fromkeys(("escape", "e", "forceescape"), _ESCAPE),
    "safe": JinjaFilter(None),
    "nl2br": JinjaFilter(r"replace('\n', '<br />\n')"),
    "center": JinjaFilter("center", "Jinja may put the odd space on the other side"),
    "float": JinjaFilter("float", "Jinja writes 3.0 where JavaScript writes 3", _finds(r"^-?\d+(\.0*)?$")),
    "groupby": JinjaFilter("groupby", "Jinja sorts the groups"),
    "indent": JinjaFilter("indent", differs=_finds(r"\n[ \t]*\n")),  # of empty lines, Jinja wants to be told
    "list": JinjaFilter(
        "list", "Jinja lists only the keys of a mapping", lambda value: isinstance(value, dict)
    ),
    "round": JinjaFilter("round", "Jinja rounds halves to even numbers", _finds(r"\.5$")),
    "striptags": JinjaFilter("striptags", "Jinja also replaces entities such as &amp;", _finds(r"&#?\w+;")),
    "title": JinjaFilter(
        "title", "Jinja also writes a capital behind - ( [ { < and line ends", _finds(r"[-({\[<\n\t]\w")
    ),
    "truncate": JinjaFilter("truncate", "Jinja cuts at another word"),
    "urlencode": JinjaFilter(
        "urlencode", "Jinja encodes ! ' ( ) * and does not encode /", _finds(r"[/!'()*]")
    ),
    "urlize": JinjaFilter(None, "links are not made"),
    "load": JinjaFilter(None, "texts are not read as JSON: write the variable as a value"),
}
"""The filters that Nunjucks documents, and `load` of promptfoo."""
