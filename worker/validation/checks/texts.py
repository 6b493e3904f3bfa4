"""The checks that compare texts, in letter case and spelling as their options say."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, StrictBool, StringConstraints

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.display import cut, show, show_pair
from worker.validation.unicode_forms import normalized

MAX_TEXTS: Final = 1_000
"""Texts that one check may list."""


def _as_text(value: Any) -> Any:
    """Takes numbers and truth values for the texts that they are in JSON."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value


Text = Annotated[str, BeforeValidator(_as_text, json_schema_input_type=str | bool | float)]
"""A text; `42` and `true` are taken for one."""
PartOfText = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(
        _as_text, json_schema_input_type=Annotated[str, StringConstraints(min_length=1)] | bool | float
    ),
]
"""A text that is not empty, since an empty one is part of every text."""
TextList = Annotated[list[PartOfText], Field(min_length=1, max_length=MAX_TEXTS)]
AnyTextList = Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)]
TEXT_OPTIONS: Final[Mapping[str, Any]] = {"ignore_case": StrictBool, "normalize": StrictBool}
"""`ignore_case` folds case; `normalize` composes characters (NFC) and takes any white space for one space."""


def comparable(text: str, check: Check) -> str:
    r"""A text as a check compares it.

    >>> comparable(" Cafe\u0301\n au  lait", Check("equals", "", options={"normalize": True}))
    'Café au lait'
    >>> comparable("Straße", Check("equals", "", options={"ignore_case": True}))
    'strasse'
    """
    if not check.options:
        return text
    if check.options.get("normalize"):
        text = " ".join(normalized("NFC", text).split())
    return text.casefold() if check.options.get("ignore_case") else text


def compared_texts(check: Check, subject: Subject) -> tuple[str, list[str]]:
    """The output and a list of texts, as a check compares them."""
    return comparable(subject.text, check), [comparable(text, check) for text in check.argument]


def begins(text: str) -> str:
    """How an output is named in a reason."""
    return f"the output, which begins: {cut(text, 60)}" if text else "the output, which is empty"


def listed(texts: list[str]) -> str:
    """Some texts, as a reason names them.

    >>> listed(["a", "b"])
    '"a", "b"'
    """
    shown = ", ".join(show(text, 60) for text in texts[:5])
    return shown if len(texts) <= 5 else f"{shown} and {len(texts) - 5} more"  # noqa: PLR2004 - as many as are shown


def equals(check: Check, subject: Subject) -> Score:
    """Compares the whole text.

    >>> equals(Check("equals", "Paris", options={"ignore_case": True}), Subject("PARIS")).value
    1.0
    >>> equals(Check("equals", "Paris"), Subject("Rome")).reason
    'expected "Paris", found "Rome"'
    """
    if comparable(check.argument, check) == comparable(subject.text, check):
        return yes("equal to the expected text")
    expected, found = show_pair(check.argument, subject.text)
    return no(f"expected {expected}, found {found}")


def contains(check: Check, subject: Subject) -> Score:
    """Looks for one text.

    >>> contains(Check("contains", "Paris"), Subject("It is Paris.")).value
    1.0
    >>> contains(Check("contains", "Paris"), Subject("It is Rome.")).reason
    '"Paris" is nowhere in the output, which begins: It is Rome.'
    """
    if comparable(check.argument, check) in comparable(subject.text, check):
        return yes(f"{show(check.argument)} is in the output")
    return no(f"{show(check.argument)} is nowhere in {begins(subject.text)}")


def contains_all(check: Check, subject: Subject) -> Score:
    """Looks for several texts.

    >>> contains_all(Check("contains_all", ["Paris", "Seine"]), Subject("Paris")).reason
    '1 of 2 texts is missing: "Seine" in the output, which begins: Paris'
    """
    text, parts = compared_texts(check, subject)
    missing = [part for part, compared in zip(check.argument, parts, strict=True) if compared not in text]
    if not missing:
        return yes(f"all {len(parts)} texts are in the output")
    verb = "is" if len(missing) == 1 else "are"
    what = f"{len(missing)} of {len(parts)} texts {verb} missing: {listed(missing)}"
    return no(f"{what} in {begins(subject.text)}", missing=missing)


def contains_any(check: Check, subject: Subject) -> Score:
    """Looks for one of several texts.

    >>> contains_any(Check("contains_any", ["Paris", "Lutetia"]), Subject("Lutetia")).reason
    '"Lutetia" is in the output'
    """
    text, parts = compared_texts(check, subject)
    found = next(
        (part for part, compared in zip(check.argument, parts, strict=True) if compared in text), None
    )
    if found is not None:
        return yes(f"{show(found)} is in the output", found=found)
    return no(f"none of {listed(check.argument)} is in {begins(subject.text)}")


def starts_with(check: Check, subject: Subject) -> Score:
    """Compares the beginning; leading white space counts unless `normalize` is set.

    >>> starts_with(Check("starts_with", "Yes"), Subject("Yes, of course.")).value
    1.0
    """
    if comparable(subject.text, check).startswith(comparable(check.argument, check)):
        return yes(f"the output starts with {show(check.argument)}")
    return no(f"{show(check.argument)} is not the start of {begins(subject.text)}")


def one_of(check: Check, subject: Subject) -> Score:
    """Compares the whole text with each of a list.

    >>> one_of(Check("one_of", ["yes", "no"]), Subject("maybe")).reason
    'expected one of "yes", "no", found "maybe"'
    """
    text, choices = compared_texts(check, subject)
    if text in choices:
        return yes(f"it is {show(check.argument[choices.index(text)])}")
    return no(f"expected one of {listed(check.argument)}, found {show(subject.text)}")
