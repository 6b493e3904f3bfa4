"""The table of checks: one row for each kind, in the order of the documentation."""

from collections.abc import Mapping
from typing import Final

from worker.validation.checks.contains import contains
from worker.validation.checks.contains_all import contains_all
from worker.validation.checks.contains_any import contains_any
from worker.validation.checks.equals import equals
from worker.validation.checks.kind import CheckKind
from worker.validation.checks.one_of import one_of
from worker.validation.checks.regex import Pattern, regex
from worker.validation.checks.starts_with import starts_with
from worker.validation.checks.texts import TEXT_OPTIONS, AnyTextList, PartOfText, Text, TextList

ROWS: Final = (
    CheckKind(
        "equals",
        "the output is the text",
        "{equals: Paris, ignore_case: true}",
        "PARIS",
        argument=Text,
        options=TEXT_OPTIONS,
        run=equals,
    ),
    CheckKind(
        "contains",
        "the text is somewhere in the output",
        "{contains: Paris}",
        "The capital is Paris.",
        argument=PartOfText,
        options=TEXT_OPTIONS,
        run=contains,
    ),
    CheckKind(
        "contains_all",
        "each of the texts is in the output",
        "{contains_all: [Paris, Seine]}",
        "Paris lies on the Seine.",
        argument=TextList,
        options=TEXT_OPTIONS,
        run=contains_all,
    ),
    CheckKind(
        "contains_any",
        "at least one of the texts is in the output",
        "{contains_any: [Paris, Lutetia]}",
        "Lutetia",
        argument=TextList,
        options=TEXT_OPTIONS,
        run=contains_any,
    ),
    CheckKind(
        "starts_with",
        "the output begins with the text",
        "{starts_with: 'Yes'}",
        "Yes, of course.",
        argument=PartOfText,
        options=TEXT_OPTIONS,
        run=starts_with,
    ),
    CheckKind(
        "one_of",
        "the output is one of the texts",
        "{one_of: [positive, negative]}",
        "negative",
        argument=AnyTextList,
        options=TEXT_OPTIONS,
        run=one_of,
    ),
    CheckKind(
        "regex",
        "the pattern matches somewhere in the output, as `regex_pattern` does; it runs in the sandbox",
        "{regex: '(?i)par.s'}",
        "It is PARIS.",
        argument=Pattern,
        run=regex,
        is_template=False,
        needs_sandbox=True,
    ),
)
"""All kinds of checks."""

KINDS: Final[Mapping[str, CheckKind]] = {kind.name: kind for kind in ROWS}
"""By name."""
