"""The check `length`: the output has a number of characters or words within bounds."""

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from shared.contracts.checks import Check
from worker.validation.checks.kind import Label, Score, Subject, no, titled, yes


def _as_bounds(value: Any) -> Any:
    """Takes a number as the upper bound."""
    return {"max": value} if isinstance(value, int) and not isinstance(value, bool) else value


def _in_order(bounds: dict[str, int]) -> dict[str, int]:
    """Refuses bounds that nothing can keep."""
    if bounds.get("min", 0) > bounds.get("max", bounds.get("min", 0)):
        raise PydanticCustomError("bounds", "min is greater than max")
    return bounds


Bound = Annotated[int, Field(strict=True, ge=0)]
Bounds = Annotated[
    dict[Literal["min", "max"], Bound],
    Field(min_length=1),
    BeforeValidator(_as_bounds, json_schema_input_type=dict[Literal["min", "max"], Bound] | Bound),
    AfterValidator(_in_order),
]
"""`{min: 1, max: 200}`, either alone, or a number: the greatest."""
LENGTH_OPTIONS: Final = {"unit": Literal["characters", "words"]}


def length(check: Check, subject: Subject) -> Score:
    """Counts characters, or words separated by white space.

    >>> length(Check("length", {"max": 3}), Subject("Paris")).reason
    'the output has 5 characters, expected at most 3'
    >>> length(Check("length", {"min": 2}, options={"unit": "words"}), Subject("It is Paris.")).value
    1.0
    """
    unit = check.options.get("unit", "characters")
    found = len(subject.text.split()) if unit == "words" else len(subject.text)
    least, most = check.argument.get("min", 0), check.argument.get("max")
    score = yes if least <= found and (most is None or found <= most) else no
    return score(f"the output has {found:,} {unit}, expected {_bounds(least, most)}", found=found)


def length_title(check: Check, _: Label) -> str:
    """Names an upper bound alone by its number."""
    only_max = isinstance(check.argument, dict) and check.argument.keys() == {"max"}
    return titled(check, check.argument["max"] if only_max else check.argument)


def _bounds(least: int, most: int | None) -> str:
    """The bounds in words."""
    if most is None:
        return f"at least {least:,}"
    return f"{least:,} to {most:,}" if least else f"at most {most:,}"
