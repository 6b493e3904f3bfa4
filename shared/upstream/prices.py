"""What model calls cost, by the prices that a run gives, or else by the table in litellm's package.

The table is read from its file, without importing litellm: 4 ms instead of seconds. A price that is not
known is None, never 0.

>>> tariff = tariff_of("m", {"m": GivenPrice(2.0, 4.0, cached_prompt_per_million=0.5)})
>>> tariff.usd(Usage(1000, 500, cached_input_tokens=800))
0.0028
"""

import importlib.util
import logging
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from shared.upstream.usage import Usage

TABLE: Final = "model_prices_and_context_window_backup.json"
MILLION: Final = 1_000_000
PRICE_DIGITS: Final = 9
"""Decimals of a price; any beyond them are errors of the conversion from one token to a million."""
ANSWER_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Request parameters that limit the length of an answer."""
SERVICE_TIER: Final = "service_tier"
"""The parameter of requests that names the tier."""
FLEX: Final = "flex"
BATCH: Final = "batch"
_RATE: Final = re.compile(
    r"(?P<of>input_cost_per_token|output_cost_per_token|cache_read_input_token_cost"
    r"|cache_creation_input_token_cost|output_cost_per_reasoning_token)"
    r"(?:_above_(?P<thousands>\d+)k_tokens)?(?:_(?P<tier>[a-z]+))?"
)
"""Keys of the table: what the price is for, above which prompt length, and in which tier."""
_TIERS: Final = {None: "", "batches": BATCH}
"""Tiers by the word of the table, where providers use another word."""
logger = logging.getLogger(__name__)


class GivenPrice(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A price as a bench or `--price` gives it, in US dollars per million tokens."""

    prompt_per_million: float
    """Price of the prompt."""
    completion_per_million: float
    """Price of the answer."""
    cached_prompt_per_million: float | None = None
    """Price of prompt tokens read from the provider's cache; None: as other prompt tokens."""
    cache_write_per_million: float | None = None
    """Price of prompt tokens written to the provider's cache; None: as other prompt tokens."""
    reasoning_per_million: float | None = None
    """Price of reasoning tokens; None: as other tokens of the answer."""
    flex_factor: float = 1.0
    """Factor of prices in the tier `flex`."""
    batch_factor: float = 1.0
    """Factor of prices in batches."""


class TokenRates(NamedTuple):
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float
    """Rate of prompt tokens read from the provider's cache."""
    cache_write: float
    """Rate of prompt tokens written to the provider's cache."""
    reasoning: float
    """Rate of reasoning tokens."""

    def times(self, factor: float) -> "TokenRates":
        """Returns the rates multiplied by a factor."""
        return TokenRates(*(rate * factor for rate in self))


class PriceStep(NamedTuple):
    """The rates of prompts from a certain length."""

    above: int
    """The rates apply to prompts with more tokens than this, including those from the cache."""
    rates: TokenRates


class Tariff(NamedTuple):
    """What calls of a model cost, by the tier that answers and the length of the prompt."""

    usual: Sequence[PriceStep]
    """Rates without a tier of their own, shortest prompts first."""
    tiers: Mapping[str, Sequence[PriceStep]]
    """The same for other tiers, by the providers' names of them."""

    def rates(self, tier: str, question: int) -> TokenRates:
        """Returns the rates of a call; a tier without a price of its own has the usual one.

        Args:
            tier: as the provider names it, such as `flex`, or Google's `on_demand_flex`.
            question: tokens of the prompt.
        """
        steps = self.tiers.get(tier.rpartition("_")[2], self.usual) if tier else self.usual
        if len(steps) == 1:
            return steps[0].rates
        *_, step = takewhile(lambda step: step.above < max(question, 1), steps)
        return step.rates

    def usd(self, usage: Usage) -> float | None:
        """Returns the cost of a call; None if a number of tokens is not known, and they are not free.

        >>> tariff_of("m", {"m": GivenPrice(0, 0)}).usd(Usage())
        0.0
        """
        question, answer = usage.input_tokens, usage.output_tokens
        if question is None or answer is None:
            steps = [*self.usual, *chain.from_iterable(self.tiers.values())]
            return None if any(any(step.rates) for step in steps) else 0.0
        rates = self.rates(usage.service_tier, question)
        usd = question * rates.input + answer * rates.output
        if usage.cached_input_tokens or usage.cache_write_tokens:
            cached = min(usage.cached_input_tokens or 0, question)
            written = min(usage.cache_write_tokens or 0, question - cached)
            usd += cached * (rates.cached - rates.input) + written * (rates.cache_write - rates.input)
        if usage.reasoning_tokens:
            usd += min(usage.reasoning_tokens, answer) * (rates.reasoning - rates.output)
        return usd / MILLION

    def most_usd(self, question: int, answer: int, tier: str = "") -> float:
        """Returns the highest possible cost of a call: cache and tier can raise it, and never lower it.

        Args:
            question: tokens of the prompt.
            answer: most tokens of the answer.
            tier: the requested tier.

        >>> tariff_of("m", {"m": GivenPrice(1.0, 2.0, cache_write_per_million=1.5)}).most_usd(100, 100)
        0.00035
        """
        both = [self.rates(each, question) for each in ("", tier)]
        asked = max(max(rates.input, rates.cached, rates.cache_write) for rates in both)
        said = max(max(rates.output, rates.reasoning) for rates in both)
        return (question * asked + answer * said) / MILLION


def tariff_of(model: str, prices: Mapping[str, GivenPrice]) -> Tariff | None:
    """Returns the tariff of a model; None if it is not known.

    Args:
        model: its name in the configuration.
        prices: prices that the run gives, by model.

    >>> tariff_of("no/such", {}) is None
    True
    """
    given = prices.get(model)
    return _listed_tariff(model) if given is None else _given_tariff(given)


def cost_of(model: str, usage: Usage, prices: Mapping[str, GivenPrice]) -> float | None:
    """Returns the cost of a call in US dollars; None if a price or a number of tokens is not known.

    >>> cost_of("m", Usage(1000, 500), {"m": GivenPrice(2.0, 4.0)})
    0.004
    """
    tariff = tariff_of(model, prices)
    return None if tariff is None else tariff.usd(usage)


@lru_cache(256)
def _given_tariff(given: GivenPrice) -> Tariff:
    """Returns the tariff of a given price, with defaults for what it does not state."""
    cached, written, thought = (
        given.cached_prompt_per_million,
        given.cache_write_per_million,
        given.reasoning_per_million,
    )
    rates = TokenRates(
        given.prompt_per_million,
        given.completion_per_million,
        given.prompt_per_million if cached is None else cached,
        given.prompt_per_million if written is None else written,
        given.completion_per_million if thought is None else thought,
    )
    factors = {FLEX: given.flex_factor, BATCH: given.batch_factor}
    tiers = {tier: [PriceStep(0, rates.times(by))] for tier, by in factors.items()}
    return Tariff([PriceStep(0, rates)], tiers)


class Listed(msgspec.Struct, frozen=True, gc=False):
    """What the table contains about a model besides its prices."""

    litellm_provider: Any = None
    mode: Any = None


def listed_models() -> list[str]:
    """Returns the models in the table that answer with text or embed it, in its order.

    >>> "gpt-4o" in listed_models()
    True
    """
    return [name for name in _table() if _listed(name).mode in ("chat", "completion", "embedding")]


def listed_provider(model: str) -> str | None:
    """Returns the provider of a model in the table; None if the model is not listed.

    >>> listed_provider("gpt-4o"), listed_provider("no/such")
    ('openai', None)
    """
    provider = _listed(model).litellm_provider
    return None if provider is None else str(provider)


@lru_cache(1)
def listed_providers() -> frozenset[str]:
    """Returns the providers in the table; empty without a table."""
    return frozenset(str(provider) for name in _table() if (provider := _listed(name).litellm_provider))


def _listed(model: str) -> Listed:
    """Returns the entry of a model in the table; an empty one if the model is not listed."""
    found = _table().get(model)
    return Listed() if found is None else msgspec.json.decode(found, type=Listed)


@lru_cache(256)
def _listed_tariff(model: str) -> Tariff | None:
    """Returns the listed tariff of a model, under its whole name or its name without the provider."""
    found = _table().get(model)
    provider, slash, name = model.partition("/")
    if found is None and slash and _listed(name).litellm_provider == provider:
        found = _table()[name]
    return None if found is None else _read_tariff(msgspec.json.decode(found, type=dict[str, Any]))


def _read_tariff(entry: Mapping[str, Any]) -> Tariff | None:
    """Reads the prices of a model; None if that of the prompt or of the answer is missing."""
    found = defaultdict[tuple[str, int], dict[str, float]](dict)
    for key, value in entry.items():
        match = _RATE.fullmatch(key)
        if match and isinstance(value, int | float):
            tier = _TIERS.get(match["tier"], match["tier"])
            above = 1000 * int(match["thousands"] or 0)
            found[tier, above][match["of"]] = round(value * MILLION, PRICE_DIGITS)
    usual = found["", 0]
    if entry.get("mode") == "embedding":
        usual["output_cost_per_token"] = 0.0
    if "input_cost_per_token" not in usual or "output_cost_per_token" not in usual:
        return None
    question, answer = usual["input_cost_per_token"], usual["output_cost_per_token"]
    base = _rates(usual, TokenRates(question, answer, question, question, answer))
    long = {above: _rates(found["", above], base) for above in sorted({above for _, above in found})}
    steps = {}
    for tier in sorted({tier for tier, _ in found} - {""}):
        own = _rates(found[tier, 0], base)
        like = {above: _alike(own, base, rates) for above, rates in long.items()}
        steps[tier] = [PriceStep(above, _rates(found[tier, above], like[above])) for above in long]
    return Tariff([PriceStep(above, rates) for above, rates in long.items()], steps)


def _rates(listed: Mapping[str, float], like: TokenRates) -> TokenRates:
    """Completes listed rates by `like`, scaled by the ratio of the listed input or output rate to its own.

    >>> _rates({"input_cost_per_token": 1.0}, TokenRates(2.0, 8.0, 0.2, 2.5, 8.0))
    TokenRates(input=1.0, output=8.0, cached=0.1, cache_write=1.25, reasoning=8.0)
    """
    question = listed.get("input_cost_per_token", like.input)
    answer = listed.get("output_cost_per_token", like.output)
    asked, said = _ratio(question, like.input), _ratio(answer, like.output)
    return TokenRates(
        question,
        answer,
        listed.get("cache_read_input_token_cost", like.cached * asked),
        listed.get("cache_creation_input_token_cost", like.cache_write * asked),
        listed.get("output_cost_per_reasoning_token", like.reasoning * said),
    )


def _alike(own: TokenRates, base: TokenRates, other: TokenRates) -> TokenRates:
    """Scales the rates `other` by the ratios of `own` to `base`."""
    return TokenRates(*(each * _ratio(*pair) for each, *pair in zip(other, own, base, strict=True)))


def _ratio(one: float, other: float) -> float:
    """Returns the ratio of two prices; 1 if the second is zero."""
    return one / other if other else 1.0


@lru_cache(1)
def _table() -> dict[str, msgspec.Raw]:
    """Reads the table; without one, all prices are unknown."""
    try:
        spec = importlib.util.find_spec("litellm")
        if spec is None or spec.origin is None:
            return {}
        table = Path(spec.origin).with_name(TABLE).read_bytes()
        return msgspec.json.decode(table, type=dict[str, msgspec.Raw])
    except (OSError, ValueError) as error:
        logger.warning("prices unreadable", extra={"reason": str(error)})
        return {}
