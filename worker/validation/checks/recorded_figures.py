"""Bounds on figures of the call: without a recorded figure they are skipped, and do not count."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from shared.thresholds import exceeds
from worker.validation.checks.kind import Score, no, skipped, yes


def _as_amount(value: Any) -> Any:
    """Takes a number as it was written, so that 5 stays 5."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise PydanticCustomError("amount", "should be a number from 0")
    return value


Amount = Annotated[Any, BeforeValidator(_as_amount, json_schema_input_type=Annotated[float, Field(ge=0)])]
Count = Annotated[int, Field(strict=True, ge=0)]


def at_most(found: float | None, most: float, sentence: str) -> Score:
    """Compares a figure with its bound.

    >>> at_most(1.5, 2, "the call took {} s").reason
    'the call took 1.5 s, expected at most 2'
    >>> at_most(None, 2, "the call took {} s").reason
    'not recorded: the call took ? s'
    """
    if found is None:
        return skipped(f"not recorded: {sentence.format('?')}")
    score = no if exceeds(found, most) else yes
    return score(f"{sentence.format(f'{found:.10g}')}, expected at most {most:.10g}", found=found)
