"""The check `number`: the number in the output is the expected one, within a tolerance."""

import re
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.display import cut

MAX_DIGITS: Final = 400
"""Longer texts are not read as numbers."""
MAX_FOUND: Final = 100
"""Numbers that are read from a text; with more than one the check fails."""
MAX_LISTED: Final = 5
"""Numbers that a reason names."""
MAX_EXPONENT: Final = 400
"""Texts with larger exponents are not read as numbers; a float has at most 308."""

_NUMBER: Final = re.compile(
    r"(?<![\w.])[-+\u2212]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)?(?:(?<=\d)\.\d+|(?<!\d)\.\d+)?(?<=\d)(?:[eE][-+]?\d{1,4})?"
)
_WHOLE: Final = re.compile(r"[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][-+]?\d{1,4})?")


def _as_number(value: Any) -> Any:
    """Validates a number, which a template may have rendered as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise PydanticCustomError("number", "should be a number")
    if isinstance(value, str):
        found = number_of(value)
        if found is None:
            raise PydanticCustomError("number", "should be a number")
        return int(found) if found == found.to_integral_value() else float(found)
    if number_of(repr(value)) is None:
        raise PydanticCustomError("number", "should have a smaller exponent")
    return value


def _as_tolerance(value: Any) -> Any:
    """Validates a number, or a percentage of the expected number."""
    amount = value.strip().removesuffix("%") if isinstance(value, str) else value
    if isinstance(amount, bool) or not isinstance(amount, int | float | str):
        raise PydanticCustomError("tolerance", "should be a number or a percentage")
    found = number_of(str(amount))
    if found is None or found < 0:
        raise PydanticCustomError("tolerance", "should be a number from 0, or a percentage such as 5%")
    return value


Number = Annotated[Any, BeforeValidator(_as_number, json_schema_input_type=float | str)]
Tolerance = Annotated[
    Any, BeforeValidator(_as_tolerance, json_schema_input_type=Annotated[float, Field(ge=0)] | str)
]


def number(check: Check, subject: Subject) -> Score:
    """Compares the whole text if it is a number, else the only number in it.

    >>> number(Check("number", 2.1, options={"tolerance": 0.05}), Subject("About 2.14 million.")).reason
    'found 2.14, expected 2.1 ± 0.05'
    >>> number(Check("number", 200, options={"tolerance": "1%"}), Subject("203")).value
    0.0
    >>> number(Check("number", 3), Subject("3 of 5")).reason
    'expected 3, found 2 numbers: 3, 5'
    """
    expected = Decimal(repr(check.argument))
    margin = _margin(check.options.get("tolerance", 0), expected)
    wanted = f"{check.argument} ± {check.options['tolerance']}" if margin else f"{check.argument}"
    whole = number_of(subject.text)
    found = [whole] if whole is not None else numbers_in(subject.text)
    if len(found) != 1:
        listed = ", ".join(str(each) for each in found[:MAX_LISTED]) + (
            ", …" if len(found) > MAX_LISTED else ""
        )
        count = f"{len(found)} numbers" if len(found) < MAX_FOUND else f"at least {MAX_FOUND} numbers"
        what = f"{count}: {listed}" if found else f"no number in: {cut(subject.text, 60)}"
        return no(f"expected {wanted}, found {what}")
    score = yes if abs(found[0] - expected) <= margin else no
    return score(f"found {found[0]}, expected {wanted}", found=float(found[0]))


def number_of(text: str) -> Decimal | None:
    """Returns the number that a text consists of; None if it is anything else.

    >>> number_of(" 1,234.50 "), number_of("1e3"), number_of("NaN"), number_of("12 km") is None
    (Decimal('1234.50'), Decimal('1E+3'), None, True)
    """
    text = text[: MAX_DIGITS * 2].strip()
    return _decimal(text) if text and len(text) <= MAX_DIGITS and _WHOLE.fullmatch(text) else None


def numbers_in(text: str) -> list[Decimal]:
    """Returns the numbers in a text, at most 100.

    >>> [str(each) for each in numbers_in("From -3 to 1,500.25 km (v2), 5%.")]
    ['-3', '1500.25', '5']
    """
    found = (_decimal(match.group()) for match in _NUMBER.finditer(text) if len(match.group()) <= MAX_DIGITS)
    return list(islice((each for each in found if each is not None), MAX_FOUND))


def _decimal(text: str) -> Decimal | None:
    """Converts a match; None if its exponent is too large."""
    try:
        found = Decimal(text.replace(",", "").replace("\u2212", "-"))
    except InvalidOperation:
        return None
    return found if not found or abs(found.adjusted()) <= MAX_EXPONENT else None


def _margin(tolerance: Any, expected: Decimal) -> Decimal:
    """Returns how far a number may be from the expected one."""
    text = str(tolerance).strip()
    if text.endswith("%"):
        return abs(expected) * Decimal(text[:-1].strip()) / 100
    return Decimal(text)
