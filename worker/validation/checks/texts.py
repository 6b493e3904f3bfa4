"""How checks of texts compare: letter case and spelling, as a check's options say, and arguments of texts."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, StrictBool, StringConstraints

from shared.contracts.checks import Check
from worker.validation.checks.kind import Subject
from worker.validation.display import cut, show
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
