"""Calls cost what providers say: each kind of tokens at its rate, by tier and length of the question."""

import pytest
from msgspec import structs

from shared.upstream.prices import GivenPrice, cost_of, listed_models, tariff_of
from shared.upstream.usage import Usage

FLASH = {
    "m": GivenPrice(2.0, 8.0, 0.5, 2.5, 6.0, flex_factor=0.5, batch_factor=0.25),
    "odd": GivenPrice(1.0, 1.0, 3.0, 2.0, 5.0, flex_factor=2.0),
}


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        # The reply in OpenAI's guide to prompt caching: 2.50, 1.25 cached, 10.00.
        ("openai/gpt-4o", Usage(2006, 300, 1920), 86 * 2.5 + 1920 * 1.25 + 300 * 10),
        # The two replies in Anthropic's, a book of 188,086 tokens: 3.00, 3.75 written, 0.30 read, 15.00.
        (
            "anthropic/claude-sonnet-4-5",
            Usage(188107, 393, 0, 188086),
            21 * 3 + 188086 * 3.75 + 393 * 15,
        ),
        ("claude-sonnet-4-5", Usage(188107, 393, 188086, 0), 21 * 3 + 188086 * 0.3 + 393 * 15),
        # Its batches: half of everything, cache included.
        (
            "claude-sonnet-4-5",
            Usage(1000, 100, 800, 100, service_tier="batch"),
            100 * 1.5 + 800 * 0.15 + 100 * 1.875 + 100 * 7.5,
        ),
        # OpenAI's tiers: flex at the price of batches, priority at twice the usual one.
        (
            "gpt-5",
            Usage(1000, 200, 600, 0, 150, "flex"),
            400 * 0.625 + 600 * 0.0625 + 200 * 5,
        ),
        ("gpt-5", Usage(1000, 200, service_tier="priority"), 1000 * 2.5 + 200 * 20),
        ("gpt-5", Usage(1000, 200, service_tier="default"), 1000 * 1.25 + 200 * 10),
        # Gemini's long questions, cached tokens included, cost more from the first token on.
        ("gemini/gemini-2.5-pro", Usage(200_000, 100), 200_000 * 1.25 + 100 * 10),
        (
            "gemini/gemini-2.5-pro",
            Usage(200_001, 100, 100_001, reasoning_tokens=60),
            100_000 * 2.5 + 100_001 * 0.25 + 100 * 15,
        ),
        (
            "gemini/gemini-2.5-pro",
            Usage(300_000, 100, service_tier="flex"),
            300_000 * 1.25 + 100 * 7.5,
        ),
        ("text-embedding-3-small", Usage(1000, 0), 1000 * 0.02),
    ],
)
def test_known_models_cost_what_their_providers_publish(model: str, usage: Usage, usd: float) -> None:
    """The sums are those that the providers' own pages come to."""
    assert cost_of(model, usage, {}) == pytest.approx(usd / 1_000_000, rel=1e-9)


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (Usage(1000, 100), 1000 * 2 + 100 * 8),
        (Usage(1000, 100, 400, 100, 50), 500 * 2 + 400 * 0.5 + 100 * 2.5 + 50 * 8 + 50 * 6),
        (Usage(1000, 100, 400, service_tier="flex"), (600 * 2 + 400 * 0.5 + 100 * 8) / 2),
        (Usage(1000, 100, service_tier="on_demand_flex"), (1000 * 2 + 100 * 8) / 2),
        (Usage(1000, 100, service_tier="batch"), (1000 * 2 + 100 * 8) / 4),
        (Usage(1000, 100, service_tier="of a kind of its own"), 1000 * 2 + 100 * 8),
        (Usage(100, 10, 4000, 4000, 4000), 100 * 0.5 + 10 * 6),  # no part is larger than its whole
    ],
)
def test_a_given_price_goes_before_the_table(usage: Usage, usd: float) -> None:
    """What it does not name is priced as its whole, and a tier without a factor as usual."""
    assert cost_of("m", usage, FLASH) == pytest.approx(usd / 1_000_000)
    assert cost_of("gpt-5", Usage(1000, 100, 900, 50, 50), {"gpt-5": GivenPrice(1.0, 3.0)}) == 0.0013


def test_what_is_not_known_costs_nobody_knows_what() -> None:
    """Neither a model nor a number of tokens is guessed."""
    assert cost_of("no/such", Usage(1, 1), {}) is None
    assert cost_of("gpt-5", Usage(1, None), {}) is None
    assert tariff_of("text-to-speech/none", {}) is None


@pytest.mark.parametrize("tier", ["", "flex", "priority", "batch", "other"])
@pytest.mark.parametrize(
    "model", ["gpt-5", "gpt-5.6", "claude-sonnet-4-5", "gemini/gemini-2.5-pro", "m", "odd"]
)
def test_no_call_costs_more_than_it_reserves(model: str, tier: str) -> None:
    """Whatever the provider caches, writes, thinks or answers with, within the estimated lengths."""
    tariff = tariff_of(model, FLASH)
    assert tariff is not None
    for question in (1_000, 250_000, 300_000):
        most = tariff.most_usd(question, 500, tier)
        for usage in (
            Usage(question, 500),
            Usage(question, 500, question),
            Usage(question, 500, 0, question, 500),
            Usage(question // 2, 100, 0, question // 2),
        ):
            for answered in (usage, structs.replace(usage, service_tier=tier)):
                usd = tariff.usd(answered)
                assert usd is not None
                assert usd <= most + 1e-12


def test_every_listed_price_can_be_read() -> None:
    """No entry of the table is misread: no rate is negative, and steps are in their order."""
    tariffs = [tariff for model in listed_models() if (tariff := tariff_of(model, {})) is not None]
    assert len(tariffs) > 1_000
    for tariff in tariffs:
        for steps in (tariff.usual, *tariff.tiers.values()):
            assert [step.above for step in steps] == sorted({0, *(step.above for step in steps)})
            assert all(rate >= 0 for step in steps for rate in step.rates)
