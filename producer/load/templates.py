"""Renders the templates of prompts and checks: Jinja2, sandboxed; a variable that is missing is an error.

Templates that need little time and memory whatever their variables are, nearly all, are rendered here;
others in a process with limits.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from producer.load.case_contract import nearest
from producer.load.problems import shown
from producer.load.template_engine import (
    MissingValue,
    TemplateProblem,
    compiled,
    has_loop,
    is_harmless,
    is_small,
    names_in,
    one_line,
    parsed,
    rendered,
)

if TYPE_CHECKING:
    from jinja2 import Template

MARKS: Final = ("{{", "{%", "{#")
"""A text without any of these is no template."""
TEMPLATES: Final = 1_024
"""Compiled templates that are kept."""
_MISSING: Final = re.compile(r"'(?P<name>[^']*)' is undefined")
_NO_KEY: Final = re.compile(r"has no (?:attribute|element) '?(?P<name>[^']*)'?")
_VARIABLES: Final = "add it to vars of the case, or of the bench"


def is_template(text: str) -> bool:
    """Whether anything in a text would be rendered.

    >>> is_template("{{ country }}"), is_template("{country}")
    (True, False)
    """
    return any(mark in text for mark in MARKS)


class _Prepared(NamedTuple):
    """A template that was parsed."""

    template: "Template | None"
    """Compiled; None if it is always rendered in a process of its own."""
    has_loop: bool
    """Whether the process is needed where variables are not small."""
    names: frozenset[str]
    """Names in it: the process is sent no other variables."""


def render(text: str, values: Mapping[str, Any]) -> str:
    """Renders a text.

    Args:
        text: a template; one without any mark is returned as it is.
        values: the variables.

    Raises:
        TemplateProblem: it is no template, names a variable that is not there, or cannot be rendered.

    >>> render("Capital of {{ country }}?", {"country": "France"})
    'Capital of France?'
    """
    if not is_template(text):
        return text
    found = _prepared(text)
    try:
        used = {name: values[name] for name in found.names & values.keys()}
        if found.template is not None and (not found.has_loop or is_small(used.values())):
            return rendered(found.template, values)
        return _elsewhere(text, used)
    except MissingValue as error:
        raise _missing(str(error), values) from None


def check(text: str) -> None:
    """Checks a template without rendering it.

    Raises:
        TemplateProblem: it is none.
    """
    if is_template(text) and _prepared(text).template is None:
        _elsewhere(text, None)


@lru_cache(TEMPLATES)
def _prepared(text: str) -> _Prepared:
    """Parses a template, and compiles it if that cannot take long; the same one only once.

    Raises:
        TemplateProblem: it is none.
    """
    tree = parsed(text)
    names, loops = frozenset(names_in(tree)), has_loop(tree)
    return _Prepared(compiled(tree) if is_harmless(tree) else None, loops, names)


def _elsewhere(text: str, values: Mapping[str, Any] | None) -> str:
    """Renders a template in a process of its own."""
    from producer.load.template_process import PROCESS  # noqa: PLC0415 - start-up: few templates need it

    return PROCESS.render(text, values)


def _missing(text: str, values: Mapping[str, Any]) -> TemplateProblem:
    """Words for a variable, or a key of one, that is not there."""
    if found := _MISSING.search(text):
        name, known = found["name"], [str(each) for each in values]
        close = nearest(name, known) if known else ""
        hint = f"{close} Otherwise {_VARIABLES}" if close.startswith("did you mean") else _VARIABLES
        return TemplateProblem(f"the variable {shown(name)} is missing", hint)
    found = _NO_KEY.search(text)
    what = f"{shown(found['name'])} is missing: {one_line(text)}" if found else one_line(text)
    return TemplateProblem(what, _VARIABLES)
