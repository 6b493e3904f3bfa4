"""Compiles and renders Jinja2 templates, and finds those that need neither much time nor memory; pure.

A template is code: it can loop without end and build texts of any length, in the compiler too, which
evaluates constants. `is_harmless` looks at the parsed template alone and is strict: plain variables, `if`
and a few filters. Everything else is rendered in a process of its own (`shared.templates.template_process`).
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, UndefinedError, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import SandboxedEnvironment

from shared.contracts.case_vocabulary import MAX_INPUT_CHARS
from shared.errors import WrongInput
from shared.templates.template_texts import MissingValue, one_line

MOST_NODES: Final = 200
"""Parts of a harmless template, texts included."""
MOST_CONST: Final = 100
"""Longest text, and largest number, that a harmless filter is called with."""
MOST_SEPARATOR: Final = 8
"""Longest text between the items that a harmless template joins."""
MOST_INDENT: Final = 10
"""Spaces by which JSON is indented at most."""
_NODES: Final = frozenset(
    {
        *("Template", "Output", "TemplateData", "Name", "Const", "Getattr", "Getitem", "Filter", "Test"),
        *("Keyword", "If", "CondExpr", "Compare", "Operand", "And", "Or", "Not", "For", "Tuple"),
    }
)
_FLAT: Final = frozenset(
    {
        *("abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "int", "last"),
        *("length", "list", "lower", "max", "min", "reverse", "sort", "string", "title", "trim"),
        *("truncate", "unique", "upper", "wordcount"),
    }
)
"""Filters whose result is about as large as what they are given."""
_GROWING: Final = frozenset({"dump", "join", "tojson"})
"""Filters whose result is a few times as large; one after another they would grow without bound."""


def parsed(text: str) -> nodes.Template:
    """Parses a template; nothing of it is evaluated.

    Raises:
        WrongInput: it is none.
    """
    try:
        return _ENVIRONMENT.parse(text)
    except TemplateSyntaxError as error:
        raise _syntax_problem(error) from None
    except RecursionError:
        raise WrongInput("not a template: it is nested too deep", "write it flatter") from None


def compiled(tree: nodes.Template) -> Template:
    """Compiles a parsed template; constants are evaluated.

    Raises:
        WrongInput: it is none.
    """
    try:
        template = _ENVIRONMENT.from_string(tree)
    except TemplateSyntaxError as error:
        raise _syntax_problem(error) from None
    except (RecursionError, OverflowError, SyntaxError):  # of the Python that it is compiled to
        raise WrongInput("not a template: it is nested too deep", "write it flatter") from None
    template.globals = dict(template.globals)  # rendering copies them, slowly from jinja2's chain of maps
    return template


def rendered(template: Template, values: Mapping[str, Any]) -> str:
    """Renders a compiled template, up to the length that a prompt may have.

    Raises:
        MissingValue: a variable, or a key of one, is not there.
        WrongInput: it cannot be rendered, or is too long.
        MemoryError: there is not enough memory.
    """
    parts, chars = list[str](), 0
    try:
        for part in template.generate(values):
            parts.append(part)
            chars += len(part)
            if chars > MAX_INPUT_CHARS:
                break
    except UndefinedError as error:
        raise MissingValue(str(error)) from None
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a template is code, and may raise anything
        what = f"the template cannot be rendered: {type(error).__name__}: {one_line(error)}"
        raise WrongInput(what, "correct the template, or the variables") from None
    if chars > MAX_INPUT_CHARS:
        what = f"rendered, it has more than {MAX_INPUT_CHARS:,} characters"
        raise WrongInput(what, "shorten the template, or the variables")
    return "".join(parts)


def is_harmless(tree: nodes.Template) -> bool:
    """Returns whether a template can be compiled and rendered at once.

    Without a loop that holds whatever its variables are, with one if they are small.

    >>> is_harmless(parsed("In {{ a.b|upper }}")), is_harmless(parsed("{{ a.ljust(9) }}"))
    (True, False)
    """
    seen, left = 0, list[nodes.Node]([tree])
    while left:
        node = left.pop()
        seen += 1
        if seen > MOST_NODES or type(node).__name__ not in _NODES or not _is_bounded(node):
            return False
        left += node.iter_child_nodes()
    return True


def has_loop(tree: nodes.Template) -> bool:
    """Returns whether a template repeats a part of itself."""
    return tree.find(nodes.For) is not None


def names_in(tree: nodes.Template) -> set[str]:
    """Returns the names in a template, those of its variables among them."""
    return {node.name for node in tree.find_all(nodes.Name)}


def _is_bounded(node: nodes.Node) -> bool:
    """Whether a part of a template needs about the memory of its variables."""
    match node:
        case nodes.For():
            return not node.recursive and node.find(nodes.For) is None
        case nodes.Getitem():
            return isinstance(node.arg, nodes.Const)
        case nodes.Test():
            return _has_short_arguments(node)
        case nodes.Filter(node=value, name=name) if name in _GROWING:
            below = (inner.name for inner in node.find_all(nodes.Filter))
            return (
                value is not None
                and _GROWING.isdisjoint(below)
                and _has_short_arguments(node, MOST_SEPARATOR)
            )
        case nodes.Filter(node=value, name=name):
            return value is not None and name in _FLAT and _has_short_arguments(node)
        case _:
            return True


def _has_short_arguments(node: nodes.Filter | nodes.Test, most: int = MOST_CONST) -> bool:
    """Whether a filter or a test is called with small constants alone."""
    given = [*node.args, *(each.value for each in node.kwargs)]
    return not (node.dyn_args or node.dyn_kwargs) and all(_is_short(each, most) for each in given)


def _is_short(node: nodes.Expr, most: int) -> bool:
    """Whether an argument is a constant, and small."""
    if not isinstance(node, nodes.Const):
        return False
    value = node.value
    return len(value) <= most if isinstance(value, str) else value is None or -most <= value <= most


class _Missing(StrictUndefined):
    """Also an error inside of a list, which is written by the names of what is in it."""

    __repr__ = StrictUndefined._fail_with_undefined_error  # noqa: SLF001 - jinja2 documents it for subclasses


class _Bounded(SandboxedEnvironment):
    """Also refuses products of texts and powers, which take memory or time without end."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Multiplies numbers."""
        if operator == "**" or not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise SecurityError(f"{operator} is for numbers here" if operator == "*" else "no powers here")
        return super().call_binop(context, operator, left, right)


def _dump(value: Any, indent: int | None = None) -> str:
    """Writes JSON as JavaScript does, signs of HTML included, which `tojson` escapes."""
    if isinstance(value, StrictUndefined):
        str(value)  # raises, and names what is missing
    if indent is not None and indent > MOST_INDENT:
        raise SecurityError(f"indented by more than {MOST_INDENT}")
    separators = (",", ":") if not indent else (",", ": ")
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, indent=indent or None, separators=separators
    )


_ENVIRONMENT: Final = _Bounded(undefined=_Missing, keep_trailing_newline=True)
_ENVIRONMENT.filters["dump"] = _dump


def _syntax_problem(error: Any) -> WrongInput:
    """Words for a text that jinja2 cannot read."""
    what = f"not a template: {one_line(error.message or '')}"
    return WrongInput(what, "templates are Jinja2: {{ variable }}", line=error.lineno)
