"""The vocabulary of the static policy: what validators may use, and what they may not."""

import ast
import collections
import collections.abc
import datetime as dt
import functools
import itertools
import json
import json.decoder
import json.encoder
import math
import operator
import re
import string
import sys
import types
import typing
from collections.abc import Mapping
from string import Formatter
from types import MappingProxyType
from typing import Final

MAX_SOURCE_CHARS: Final = 1 << 18
"""A longer file is refused unread: reading takes time in proportion to its length."""

MODULES: Final[Mapping[str, types.ModuleType]] = MappingProxyType(
    {
        "ast": ast,
        "collections": collections,
        "collections.abc": collections.abc,
        "datetime": dt,
        "functools": functools,
        "itertools": itertools,
        "json": json,
        "json.decoder": json.decoder,
        "json.encoder": json.encoder,
        "math": math,
        "operator": operator,
        "re": re,
        "string": string,
        "typing": typing,
    }
)
"""What may be imported: the specification's list, `ast`, which its example needs, parts of these."""

BLOCKED_NAMES: Final = frozenset(
    {
        *("exec", "eval", "compile", "open", "__import__", "input", "breakpoint"),
        *("globals", "locals", "vars", "memoryview"),
    }
)
"""Builtins that may not be used, under whatever name."""

ATTRIBUTE_CALLS: Final = frozenset({"getattr", "setattr", "delattr"})
"""Builtins that may be called with an attribute's name written out, and not otherwise."""

BLOCKED_MEMBERS: Final = frozenset(
    {("typing", "get_type_hints"), ("typing", "ForwardRef"), ("string", "Formatter")}
)
"""Public names of allowed modules that evaluate texts or follow attributes named in them."""

NAMED_AT_RUN_TIME: Final = frozenset({("operator", "attrgetter"), ("operator", "methodcaller")})
"""Public names of allowed modules that may be called with attributes written out, and not otherwise."""

CALLED_PLAINLY: Final[Mapping[tuple[str, str], int]] = MappingProxyType(
    {("functools", "update_wrapper"): 2, ("functools", "wraps"): 1}
)
"""Public names of allowed modules that copy attributes: to be called with so many arguments and no others,
which would name the attributes."""

FOLLOWED_NAMES: Final = frozenset({"_fields", "_attributes"})
"""Attributes in which `ast` looks up which attributes of an object to follow."""

FORMATTING: Final = frozenset({"format", "format_map"})
"""Methods of texts that follow attributes named in the text."""

MAX_FORMAT_DEPTH: Final = 2
"""Formats inside formats that `str.format` follows; with more it raises."""

_COMPARING = "eq ne lt le gt ge hash bool len str repr format contains iter next reversed getitem call"
_OBJECT = "name qualname doc class init new enter exit post_init add sub mul and or abs int float"
OPEN_DUNDERS: Final = frozenset(f"__{word}__" for word in f"{_COMPARING} {_OBJECT}".split())
"""Special attributes that lead nowhere."""
OPEN_DUNDER_NAMES: Final = frozenset(
    {"__name__", "__doc__", "__all__", "__version__", "__author__", "__debug__", "__slots__"}
)
"""Special variables that lead nowhere."""

_FRAMES = "f_back f_builtins f_code f_globals f_locals tb_frame tb_next func_code func_globals mro"
_COROUTINES = "gi_code gi_frame gi_yieldfrom cr_code cr_frame cr_await ag_code ag_frame ag_await"
FRAME_ATTRIBUTES: Final = frozenset(f"{_FRAMES} {_COROUTINES}".split())
"""Attributes that lead to frames, and from there to everything."""


class PolicyViolation(Exception):  # noqa: N818 - control flow, no error of ours
    """Ends the reading of a file at the first thing that it may not do."""

    def __init__(self, node: ast.AST, what: str, rule: str) -> None:
        super().__init__(what)
        self.node = node
        self.what = what
        self.rule = rule


def attribute_problem(name: str) -> str | None:
    """Explains why an attribute may not be used; None when it may.

    >>> attribute_problem("__name__"), attribute_problem("_replace"), attribute_problem("__globals__")
    (None, None, 'attribute __globals__ is blocked')
    """
    is_special = name.startswith("__") and name.endswith("__") and name not in OPEN_DUNDERS
    if is_special or name in FRAME_ATTRIBUTES:
        return f"attribute {name} is blocked"
    return None


def member_problem(module: str, name: str) -> str | None:
    """Explains why a module's member may not be used; None when it may.

    >>> member_problem("re", "enum")
    're.enum is a module that is not allowed'
    >>> member_problem("collections", "abc"), member_problem("json", "loads")
    (None, None)
    """
    whole = f"{module}.{name}"
    if whole in MODULES or name in OPEN_DUNDER_NAMES:
        return None
    if name.startswith("_"):
        return f"{whole} is private"
    if (module, name) in BLOCKED_MEMBERS:
        return f"{whole} is blocked"
    if isinstance(getattr(MODULES[module], name, None), types.ModuleType):
        return f"{whole} is a module that is not allowed"
    return None


def missing_problem(module: str, name: str) -> str | None:
    """Explains why a name cannot be imported from an allowed module; None when it can.

    >>> missing_problem("re", "search"), missing_problem("re", "serch")  # doctest: +ELLIPSIS
    (None, 're has no serch in Python 3...')
    """
    if f"{module}.{name}" in MODULES or hasattr(MODULES[module], name):
        return None
    return f"{module} has no {name} in Python {sys.version_info.major}.{sys.version_info.minor}"


def format_problem(text: str, depth: int = 0) -> str | None:
    """Explains why a text may not be a format; None when it may.

    >>> format_problem("{0.__class__.__init__.__globals__}")
    'attribute __globals__ is blocked'
    >>> format_problem("{:>{width}} of {total.real}, not {")
    """
    if depth > MAX_FORMAT_DEPTH:
        return None  # `format` itself will say so
    try:
        fields = [field for _, field, spec, _ in Formatter().parse(text) for field in (field, spec) if field]
    except ValueError:
        return None  # `format` itself will say so
    for field in fields:
        if "{" in field:
            if problem := format_problem(field, depth + 1):
                return problem
            continue
        for part in field.replace("[", ".").replace("]", "").split(".")[1:]:
            if problem := attribute_problem(part):
                return problem
    return None
