"""Renders a template, in this process where that is harmless, else in one with limits; needs jinja2 late."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from shared.errors import WrongInput
from shared.templates.template_texts import MissingValue, is_small, is_template, one_line

TEMPLATES: Final = 1_024
"""Compiled templates that are kept."""
_MISSING: Final = re.compile(r"'(?P<name>[^']*)' is undefined")
_NO_KEY: Final = re.compile(r"has no (?:attribute|element) '?(?P<name>[^']*)'?")
_VARIABLES: Final = "add it to vars of the case, or of the bench"


class _Prepared(NamedTuple):
    """A template that was parsed."""

    render: Callable[[Mapping[str, Any]], str] | None
    """Renders it; None if it is always rendered in a process of its own."""
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
        WrongInput: it is no template, names a variable that is not there, or cannot be rendered.

    >>> render("Capital of {{ country }}?", {"country": "France"})
    'Capital of France?'
    """
    if not is_template(text):
        return text
    found = _prepared(text)
    try:
        used = {name: values[name] for name in found.names & values.keys()}
        if found.render is not None and (not found.has_loop or is_small(used.values())):
            return found.render(values)
        return _elsewhere(text, used)
    except MissingValue as error:
        raise _missing(str(error), values) from None


def check(text: str) -> None:
    """Checks a template without rendering it.

    Raises:
        WrongInput: it is none.
    """
    if is_template(text) and _prepared(text).render is None:
        _elsewhere(text, None)


@lru_cache(TEMPLATES)
def _prepared(text: str) -> _Prepared:
    """Parses a template, and compiles it if that cannot take long; the same one only once.

    Raises:
        WrongInput: it is none.
    """
    from shared.templates import template_engine as engine  # noqa: PLC0415 - start-up: jinja2 costs 40 ms

    tree = engine.parsed(text)
    names, loops = frozenset(engine.names_in(tree)), engine.has_loop(tree)
    is_harmless = engine.is_harmless(tree)
    return _Prepared(partial(engine.rendered, engine.compiled(tree)) if is_harmless else None, loops, names)


def _elsewhere(text: str, values: Mapping[str, Any] | None) -> str:
    """Renders a template in a process of its own."""
    from shared.templates.template_process import PROCESS  # noqa: PLC0415 - start-up: few templates need it

    return PROCESS.render(text, values)


def _missing(text: str, values: Mapping[str, Any]) -> WrongInput:
    """Words for a variable, or a key of one, that is not there."""
    if found := _MISSING.search(text):
        name, known = found["name"], [str(each) for each in values]
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}? Otherwise {_VARIABLES}" if close else _VARIABLES
        return WrongInput(f"the variable {name!r} is missing", hint)
    found = _NO_KEY.search(text)
    what = f"{found['name']!r} is missing: {one_line(text)}" if found else one_line(text)
    return WrongInput(what, _VARIABLES)
