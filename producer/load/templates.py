"""Renders the templates of prompts and checks: Jinja2, sandboxed; a variable that is missing is an error."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from producer.load.case_contract import nearest
from producer.load.problems import shown
from shared.contracts.case_vocabulary import MAX_INPUT_CHARS

if TYPE_CHECKING:
    from jinja2 import Environment, Template

MARKS: Final = ("{{", "{%", "{#")
"""A text without any of these is no template."""
TEMPLATES: Final = 1_024
"""Compiled templates that are kept."""
_MISSING: Final = re.compile(r"'(?P<name>[^']*)' is undefined")
_NO_KEY: Final = re.compile(r"has no (?:attribute|element) '?(?P<name>[^']*)'?")
_VARIABLES: Final = "add it to vars of the case, or of the bench"


class TemplateProblem(ValueError):  # noqa: N818 - it is what is wrong with a file, and read as that
    """A template cannot be read or rendered.

    Args:
        what: what is wrong.
        hint: how to mend it.
        line: where in the template, from 1.
    """

    def __init__(self, what: str, hint: str, line: int = 1) -> None:
        super().__init__(what)
        self.what, self.hint, self.line = what, hint, line


def is_template(text: str) -> bool:
    """Whether anything in a text would be rendered.

    >>> is_template("{{ country }}"), is_template("{country}")
    (True, False)
    """
    return any(mark in text for mark in MARKS)


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
    from jinja2 import UndefinedError  # noqa: PLC0415 - start-up: only benches with templates need it

    template = compiled(text)
    try:
        text = template.render(values)
    except UndefinedError as error:
        raise _missing(str(error), values) from None
    except Exception as error:  # noqa: BLE001 - a template is code, and may raise anything
        what = f"the template cannot be rendered: {type(error).__name__}: {_one_line(error)}"
        raise TemplateProblem(what, "correct the template, or the variables") from None
    if len(text) > MAX_INPUT_CHARS:
        what = f"rendered, it has {len(text):,} characters, at most {MAX_INPUT_CHARS:,} are allowed"
        raise TemplateProblem(what, "shorten the template, or the variables")
    return text


@lru_cache(TEMPLATES)
def compiled(text: str) -> "Template":
    """Compiles a template, the same one only once.

    Raises:
        TemplateProblem: it is none.
    """
    from jinja2 import TemplateSyntaxError  # noqa: PLC0415 - start-up: only benches with templates need it

    try:
        template = _environment().from_string(text)
    except TemplateSyntaxError as error:
        what = f"not a template: {_one_line(error.message or '')}"
        raise TemplateProblem(what, "templates are Jinja2: {{ variable }}", error.lineno) from None
    except (RecursionError, MemoryError, OverflowError):
        raise TemplateProblem("not a template: it is nested too deep", "write it flatter") from None
    template.globals = dict(template.globals)  # rendering copies them, slowly from jinja2's chain of maps
    return template


@cache
def _environment() -> "Environment":
    """Makes what compiles templates."""
    from jinja2 import StrictUndefined  # noqa: PLC0415 - start-up: 40 ms
    from jinja2.exceptions import SecurityError  # noqa: PLC0415 - same
    from jinja2.sandbox import SandboxedEnvironment  # noqa: PLC0415 - same

    class Bounded(SandboxedEnvironment):
        """Also refuses products of texts and powers, which take memory or time without end."""

        intercepted_binops = frozenset({"*", "**"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            """Multiplies numbers."""
            if operator == "**" or not (isinstance(left, int | float) and isinstance(right, int | float)):
                raise SecurityError(
                    f"{operator} is for numbers here" if operator == "*" else "no powers here"
                )
            return super().call_binop(context, operator, left, right)

    return Bounded(undefined=StrictUndefined, keep_trailing_newline=True)


def _missing(text: str, values: Mapping[str, Any]) -> TemplateProblem:
    """Words for a variable, or a key of one, that is not there."""
    if found := _MISSING.search(text):
        name, known = found["name"], [str(each) for each in values]
        close = nearest(name, known) if known else ""
        hint = f"{close} Otherwise {_VARIABLES}" if close.startswith("did you mean") else _VARIABLES
        return TemplateProblem(f"the variable {shown(name)} is missing", hint)
    found = _NO_KEY.search(text)
    what = f"{shown(found['name'])} is missing: {_one_line(text)}" if found else _one_line(text)
    return TemplateProblem(what, _VARIABLES)


def _one_line(text: object) -> str:
    """A foreign message, safe to print."""
    return shown(" ".join(str(text).split()))[1:-1]
