"""Bounds on figures of the call: its tokens, times and cost; skipped without a figure."""

from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from shared.contracts.checks import Check
from shared.thresholds import exceeds, reaches
from worker.validation.checks.kind import Score, Subject, no, skipped, yes


def _as_amount(value: Any) -> Any:
    """Takes a number as it was written, so that 5 stays 5."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise PydanticCustomError("amount", "should be a number from 0")
    return value


Amount = Annotated[Any, BeforeValidator(_as_amount, json_schema_input_type=Annotated[float, Field(ge=0)])]
Count = Annotated[int, Field(strict=True, ge=0)]


NOT_TIMED: Final = "not measured: the answer is cached, came at a second call, or was not streamed"


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


def max_tokens_used(check: Check, subject: Subject) -> Score:
    """Compares the tokens that the provider counted.

    >>> from worker.validation.checks.kind import Answer
    >>> max_tokens_used(Check("max_tokens_used", 100), Subject("Hi", Answer(tokens=120))).reason
    'the call used 120 tokens, expected at most 100'
    """
    return at_most(subject.answer.tokens, check.argument, "the call used {} tokens")


def max_latency_s(check: Check, subject: Subject) -> Score:
    """Compares the time of the call; of a cached answer, when it was first given.

    >>> from worker.validation.checks.kind import Answer
    >>> max_latency_s(Check("max_latency_s", 5), Subject("Hi", Answer(latency_s=1.25))).reason
    'the call took 1.25 s, expected at most 5'
    """
    return at_most(subject.answer.latency_s, check.argument, "the call took {} s")


def max_first_token_s(check: Check, subject: Subject) -> Score:
    """Compares the time until the first piece of text or reasoning came.

    >>> from worker.validation.checks.kind import Answer
    >>> max_first_token_s(Check("max_first_token_s", 1), Subject("Hi", Answer(first_token_s=0.25))).reason
    'the first token came after 0.25 s, expected at most 1'
    """
    found = subject.answer.first_token_s
    if found is None:
        return skipped(NOT_TIMED)
    return at_most(found, check.argument, "the first token came after {} s")


def min_tokens_per_s(check: Check, subject: Subject) -> Score:
    """Compares how fast tokens came after the first one.

    >>> from worker.validation.checks.kind import Answer
    >>> min_tokens_per_s(Check("min_tokens_per_s", 20), Subject("Hi", Answer(tokens_per_s=12.5))).reason
    '12.5 tokens a second, expected at least 20'
    """
    found = subject.answer.tokens_per_s
    if found is None:
        return skipped(NOT_TIMED)
    score = yes if reaches(found, check.argument) else no
    return score(f"{found:.10g} tokens a second, expected at least {check.argument:.10g}", found=found)


def max_cost(check: Check, subject: Subject) -> Score:
    """Compares the price of the call, judges and other checks not included.

    >>> from worker.validation.checks.kind import Answer
    >>> max_cost(Check("max_cost", 0.001), Subject("Hi", Answer(cost_usd=0.00025))).reason
    'the call cost 0.00025 US dollars, expected at most 0.001'
    """
    return at_most(subject.answer.cost_usd, check.argument, "the call cost {} US dollars")
